"""Calls in threads, no more at once than there are slots.

Knows threads and slots. Promises: a slot is held for as long as its thread works, though nobody may wait for it any
more, so that slow calls do not pile up; a call that is given up before it has a slot is never made.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")
_works: set[asyncio.Task[Any]] = set()  # kept here, as the event loop does not keep them


async def in_thread(call: Callable[[], T], slots: anyio.CapacityLimiter) -> T:
    """What `call` answers."""
    slot = object()
    await slots.acquire_on_behalf_of(slot)
    work = to_its_end(anyio.to_thread.run_sync(call, limiter=anyio.CapacityLimiter(math.inf)))
    # A thread cannot be called back: whoever stops waiting must not make its slot free while it works.
    work.add_done_callback(lambda _: slots.release_on_behalf_of(slot))
    return await asyncio.shield(work)


def to_its_end(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that goes on though nobody may wait for it any more; await it by `asyncio.shield`."""
    task = asyncio.create_task(work)
    _works.add(task)
    task.add_done_callback(_through)
    return task


def _through(task: asyncio.Task[Any]) -> None:
    _works.discard(task)
    if not task.cancelled():
        task.exception()  # told to the caller, if one still waits
