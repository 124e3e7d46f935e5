"""Long polling of leases: one listener for all waiting requests, which hold no thread.

Promises: a request wakes when a lease may find something, or at its deadline; without waiting requests nothing listens.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

import anyio
import anyio.to_thread

from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.errors import LedgerError

_LISTEN_S = 0.5
_SPACE_S = 0.05


class LongPolling:
    """Wakes requests that wait for work. Lives on one event loop."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger
        self._waiters: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self._thread: anyio.CapacityLimiter | None = None

    async def wait(self, seconds: float) -> bool:
        """Whether there may be work now; False at the deadline."""
        if self._thread is None:
            self._thread = anyio.CapacityLimiter(1)
        wake = asyncio.Event()
        self._waiters.add(wake)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._listen())
        try:
            async with asyncio.timeout(seconds):
                return await wake.wait()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(wake)

    async def _listen(self) -> None:
        while self._waiters:
            found = True  # on an error the waiting requests ask the ledger themselves, and report it
            with contextlib.suppress(LedgerError):
                listen = partial(self._ledger.wait_for_work, _LISTEN_S, unless=self._is_idle)
                found = await anyio.to_thread.run_sync(listen, limiter=self._thread)
            if found:
                for wake in self._waiters:
                    wake.set()
                await asyncio.sleep(_SPACE_S)

    def _is_idle(self) -> bool:
        return not self._waiters
