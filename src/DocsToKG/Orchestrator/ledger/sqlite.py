"""The ledger in one SQLite file."""

from __future__ import annotations

from pathlib import Path

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.ledger.drivers.sqlite.driver import SqliteDriver
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.notifications.base import Signal
from DocsToKG.Orchestrator.notifications.local import LocalSignal


class SqliteLedger(DatabaseLedger):
    """For all threads and processes of one machine. Opens (and makes) the file at `path`.

    An enqueued job survives power loss; other changes survive a killed process. `wal` None leaves the journal mode as
    it is, for those who only look.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        wal: bool | None = True,
        busy_timeout_s: float = 30.0,
        linger_s: float = 0.005,
        lively_linger_s: float = 0.1,
        poll_s: float = 0.025,
        signal: Signal | None = None,
    ) -> None:
        file, ledger_time = Path(path), LedgerTime(clock or SystemClock())
        super().__init__(
            SqliteDriver(file, ledger_time=ledger_time, wal=wal, busy_timeout_s=busy_timeout_s),
            path=file,
            ledger_time=ledger_time,
            signal=signal or LocalSignal(),
            linger_s=linger_s,
            lively_linger_s=max(linger_s, lively_linger_s),
            poll_s=poll_s,
        )
