"""What one of the instances must do now and then: end pack-runs that fell silent, drop answers that are too old.

Knows who leads. Promises: of many instances one does the work, and another takes over when it dies; a ledger that is
away for a while is asked again later, and stops nothing.
"""

from __future__ import annotations

import threading
from types import TracebackType

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.services.idempotency import IdempotencyService
from DocsToKG.Orchestrator.services.jobs import ServedLedger
from DocsToKG.Orchestrator.services.leaders import Leader
from DocsToKG.Orchestrator.services.packruns import PackRunService

_NAME = "upkeep"


class Upkeep:
    """Held in a `with` for as long as an instance serves; the work is done in a thread of its own."""

    def __init__(self, ledger: ServedLedger, *, every_s: float = 5.0) -> None:
        self._leader = Leader(ledger, _NAME, ttl_s=max(1.0, 3 * every_s))
        self._answers = IdempotencyService(ledger)
        self._packs = PackRunService(ledger)
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def __enter__(self) -> Upkeep:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def tick(self) -> bool:
        """One round, if it is ours to do; whether it was."""
        if not self._leader.hold():
            return False
        self._packs.time_out_overdue()
        self._answers.purge()
        return True

    def _run(self) -> None:
        while True:
            try:
                self.tick()
                if self._stop.wait(self._every_s):
                    self._leader.resign()
                    return
            except LedgerError:
                if self._stop.wait(self._every_s):
                    return
