"""`Idempotency-Key`: a repeated request gets the first response and acts once.

Promises: a key that comes again with the same request gets the first response, with `Idempotency-Replayed: true`; with
another request, or while the first is running, it is refused; a request that did not act may be sent again with its
key. A request that timed out for its caller counts as running until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from starlette.responses import Response, StreamingResponse

from DocsToKG.Orchestrator.api.auth.admission import Caller
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.threads import in_thread, to_its_end
from DocsToKG.Orchestrator.control.idempotency import ABANDONED_MS, Answer, IdempotencyService
from DocsToKG.Orchestrator.errors import LedgerError

_KEY = re.compile(r"[\x21-\x7e]{1,128}")
HOLD_S = ABANDONED_MS / 1000 / 4


class IdempotencyKeys:
    """Stores first responses by tenant, path and key, for all instances of the ledger."""

    def __init__(self, answers: IdempotencyService) -> None:
        self._answers = answers
        self._holding = anyio.CapacityLimiter(1)  # its own, as requests may have taken all others

    async def once(
        self,
        caller: Caller,
        path: str,
        key: str,
        body: bytes,
        work: Callable[[], Awaitable[Response]],
        *,
        slots: anyio.CapacityLimiter,
    ) -> Response:
        if not _KEY.fullmatch(key):
            raise Problem(400, "BAD_IDEMPOTENCY_KEY", "an Idempotency-Key has 1 to 128 visible ASCII characters")
        # A thread cannot be cancelled: a caller that stops waiting must not free the key while it may still act.
        first = self._first(caller.tenant, path, key, _digest(path, body), work, slots)
        return await asyncio.shield(to_its_end(first))

    async def _first(
        self,
        tenant: str,
        path: str,
        key: str,
        digest: str,
        work: Callable[[], Awaitable[Response]],
        slots: anyio.CapacityLimiter,
    ) -> Response:
        place = (tenant, path, key)
        known = await in_thread(partial(self._answers.remember, *place, digest), slots)
        if known is not None:
            headers = {"Idempotency-Replayed": "true"}
            return Response(known.body, known.status, headers=headers, media_type="application/json")
        acting = to_its_end(self._act(place, work, slots))
        while not (await asyncio.wait({acting}, timeout=HOLD_S))[0]:
            with contextlib.suppress(LedgerError):  # the next round tries again
                await in_thread(partial(self._answers.hold, *place), self._holding)
        return await acting

    async def _act(
        self, place: tuple[str, str, str], work: Callable[[], Awaitable[Response]], slots: anyio.CapacityLimiter
    ) -> Response:
        is_kept = False
        try:
            response = await work()
            is_kept = 200 <= response.status_code < 300 and not isinstance(response, StreamingResponse)
        finally:
            # Shielded: a service that stops must not leave a key taken.
            if not is_kept:
                with anyio.CancelScope(shield=True):
                    await in_thread(partial(self._answers.forget, *place), slots)
        if is_kept:
            answer = Answer(response.status_code, bytes(response.body).decode())
            await in_thread(partial(self._answers.keep, *place, answer), slots)
        return response


def _digest(path: str, body: bytes) -> str:
    return hashlib.sha256(b"POST " + path.encode() + b"\n" + body).hexdigest()
