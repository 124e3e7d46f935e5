"""What one of all instances does every few seconds: end pack-runs that fell silent, forget old answers.

Promises: one instance at a time does it, another takes over when that one dies; trouble of the ledger is waited out.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.services.leaders import Leader
from DocsToKG.Orchestrator.web.rooms import Rooms

_log = logging.getLogger("DocsToKG.Orchestrator.web")
_EVERY_S = 5.0


class Upkeep:
    """A thread of its own while the service runs."""

    def __init__(self, rooms: Rooms, *, every_s: float = _EVERY_S) -> None:
        self._rooms = rooms
        self._every_s = every_s
        self._leader = Leader(rooms.ledger, "upkeep", ttl_s=3 * every_s)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def once(self) -> bool:
        """Do it if it is ours to do; whether it was."""
        if not self._leader.hold():
            return False
        for run in self._rooms.pack_runs.time_out_overdue():
            _log.warning("pack-run %s timed out", run.pack_run_id, extra={"incident": True, "tenant": run.tenant})
        self._rooms.answers.purge()
        self._rooms.source_hosts.forget_old()
        return True

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self.once()
            except LedgerError as error:
                _log.warning("upkeep: %s", type(error).__name__)
        with contextlib.suppress(LedgerError):
            self._leader.resign()
