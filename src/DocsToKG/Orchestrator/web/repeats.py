"""The same request twice, the work once: `Idempotency-Key`.

Knows keys, digests of requests and where first answers are kept. Promises: a key that comes again with the same request
gets the first answer, with `Idempotency-Replayed: true`; with another request, or while the first is at work, it is
refused; a request that did not act may be tried again with its key. One whose caller was told that it took too long is
at work until it is through.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse

from DocsToKG.Orchestrator.services.idempotency import Answer, IdempotencyService
from DocsToKG.Orchestrator.web.admission import Caller
from DocsToKG.Orchestrator.web.envelope import Problem

T = TypeVar("T")
_KEY = re.compile(r"[\x21-\x7e]{1,128}")


class Repeats:
    """Remembers by tenant, path and key, for all instances of the ledger."""

    def __init__(self, answers: IdempotencyService) -> None:
        self._answers = answers
        self._works: set[asyncio.Task[Response]] = set()  # kept here, as the event loop does not keep them

    async def once(
        self,
        caller: Caller,
        path: str,
        key: str,
        body: bytes,
        work: Callable[[], Awaitable[Response]],
        *,
        limiter: anyio.CapacityLimiter,
    ) -> Response:
        if not _KEY.fullmatch(key):
            raise Problem(400, "BAD_IDEMPOTENCY_KEY", "an Idempotency-Key has 1 to 128 visible ASCII characters")
        # A thread cannot be called back: whoever stops waiting must not make the key free while it may still act.
        task = asyncio.create_task(self._first(caller.tenant, path, key, _digest(path, body), work, limiter))
        self._works.add(task)
        task.add_done_callback(self._through)
        return await asyncio.shield(task)

    def _through(self, task: asyncio.Task[Response]) -> None:
        self._works.discard(task)
        if not task.cancelled():
            task.exception()  # told to the caller, if one still waits

    async def _first(
        self,
        tenant: str,
        path: str,
        key: str,
        digest: str,
        work: Callable[[], Awaitable[Response]],
        limiter: anyio.CapacityLimiter,
    ) -> Response:
        place = (tenant, path, key)
        known = await _threaded(partial(self._answers.remember, *place, digest), limiter)
        if known is not None:
            headers = {"Idempotency-Replayed": "true"}
            return Response(known.body, known.status, headers=headers, media_type="application/json")
        is_kept = False
        try:
            response = await work()
            is_kept = 200 <= response.status_code < 300 and not isinstance(response, StreamingResponse)
        finally:
            # Shielded: a service that ends must not leave a key taken.
            if not is_kept:
                with anyio.CancelScope(shield=True):
                    await _threaded(partial(self._answers.forget, *place), limiter)
        if is_kept:
            answer = Answer(response.status_code, bytes(response.body).decode())
            await _threaded(partial(self._answers.keep, *place, answer), limiter)
        return response


async def _threaded(call: Callable[[], T], limiter: anyio.CapacityLimiter) -> T:
    return await anyio.to_thread.run_sync(call, limiter=limiter)


def _digest(path: str, body: bytes) -> str:
    return hashlib.sha256(b"POST " + path.encode() + b"\n" + body).hexdigest()
