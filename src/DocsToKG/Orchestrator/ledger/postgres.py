"""The ledger in a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.ledger.drivers.postgres import schema
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
from DocsToKG.Orchestrator.ledger.drivers.postgres.driver import MAINTENANCE_S, PostgresDriver
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
from DocsToKG.Orchestrator.ledger.ledger_time import DatabaseTime, LedgerTime
from DocsToKG.Orchestrator.notifications.base import Signal
from DocsToKG.Orchestrator.notifications.local import LocalSignal


class PostgresLedger(DatabaseLedger):
    """For all threads, processes and machines that share it. Opens (and makes) the ledger at `url`.

    What was answered survives whatever the database survives. `schema_name` is where its tables lie. `patience_s` is
    how long a database that is away is waited for. `clock` is this machine's, for moments that are shown; with
    `database_time` False it is the ledger's too, for tests. Months of history older than `retain_history_days` are
    removed, where given; that, and folding the counts, happens after a commit, `maintenance_s` after the last time. The
    `signal` is closed with the ledger. Beside `local_path` the workers of this machine show that they live
    (`control.workers.liveness`).
    """

    def __init__(
        self,
        url: str,
        *,
        schema_name: str = "orchestrator",
        clock: Clock | None = None,
        database_time: bool = True,
        patience_s: float = 30.0,
        linger_s: float = 0.002,
        poll_s: float = 1.0,
        signal: Signal | None = None,
        retain_history_days: int | None = None,
        maintenance_s: float = MAINTENANCE_S,
        local_path: str | Path | None = None,
    ) -> None:
        database = Database(url, schema=schema_name, patience_s=patience_s)
        ledger_time = (DatabaseTime if database_time else LedgerTime)(clock or SystemClock())
        database_ms = schema.prepare(database)
        driver = PostgresDriver(
            database, ledger_time=ledger_time, retain_history_days=retain_history_days, maintenance_s=maintenance_s
        )
        super().__init__(
            driver,
            path=Path(local_path or "state/workers"),
            ledger_time=ledger_time,
            signal=signal or LocalSignal(),
            linger_s=linger_s,
            lively_linger_s=None,
            poll_s=poll_s,
            database_ms=database_ms,
        )
