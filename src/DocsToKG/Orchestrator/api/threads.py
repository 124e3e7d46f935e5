"""Blocking calls in threads, bounded by a capacity limiter.

Promises: a slot is held for as long as its thread runs, also after its caller stopped waiting, so that slow calls do
not pile up; a call that is cancelled before it has a slot is never made.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")
_tasks: set[asyncio.Task[Any]] = set()  # kept here, as the event loop does not keep them


async def in_thread(call: Callable[[], T], slots: anyio.CapacityLimiter) -> T:
    """The result of `call`."""
    slot = object()
    await slots.acquire_on_behalf_of(slot)
    work = to_its_end(anyio.to_thread.run_sync(call, limiter=anyio.CapacityLimiter(math.inf)))
    # A thread cannot be cancelled: a caller that stops waiting must not free its slot while it runs.
    work.add_done_callback(lambda _: slots.release_on_behalf_of(slot))
    return await asyncio.shield(work)


def to_its_end(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that goes on when its caller stops waiting; await it by `asyncio.shield`."""
    task = asyncio.create_task(work)
    _tasks.add(task)
    task.add_done_callback(_through)
    return task


def _through(task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that it is not logged; the caller has it
