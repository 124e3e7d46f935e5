"""What one of all instances does every few seconds: time out silent pack-runs, remove what is old, log incidents.

Promises: one instance at a time does it, another takes over when that one dies; what fails is tried again.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from DocsToKG.Orchestrator.api.observability.job_log import log_incident
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.control.leader_election import Leader
from DocsToKG.Orchestrator.errors import LedgerError

_log = logging.getLogger("DocsToKG.Orchestrator.api")
_EVERY_S = 5.0


class Housekeeping:
    """A thread of its own while the service runs."""

    def __init__(self, services: Services, *, every_s: float = _EVERY_S) -> None:
        self._rooms = services
        self._every_s = every_s
        self._leader = Leader(services.ledger, "upkeep", ttl_s=3 * every_s)
        self._logged_ms: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def once(self) -> bool:
        """Do it if this instance is the leader; whether it is."""
        if not self._leader.hold():
            return False
        for run in self._rooms.pack_runs.time_out_overdue():
            _log.warning("pack-run %s timed out", run.pack_run_id, extra={"incident": True, "tenant": run.tenant})
        self._log_incidents()
        self._rooms.answers.purge()
        self._rooms.source_hosts.forget_old()
        self._rooms.workers.forget_old()
        return True

    def _log_incidents(self) -> None:
        """Log the incidents that began or happened again since the last time."""
        since = self._logged_ms
        words = (
            "SELECT incident_id, tenant, source, severity, cause, count, last_at FROM incidents WHERE last_at > :since"
            " AND state <> 'resolved' ORDER BY last_at LIMIT 100"
        )
        now_ms, rows = self._rooms.ledger.read(
            lambda tx: (tx.now_ms, tx.execute(words, {"since": tx.now_ms if since is None else since}))
        )
        for incident_id, tenant, source, severity, cause, count, _ in rows:
            log_incident(
                incidentId=incident_id, tenant=tenant, source=source, severity=severity, cause=cause, count=count
            )
        self._logged_ms = int(rows[-1][6]) if rows else (now_ms if since is None else since)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self.once()
            except Exception as error:  # without this thread a silent pack-run would never end
                _log.warning("housekeeping: %s", type(error).__name__)
        with contextlib.suppress(LedgerError):
            self._leader.resign()
