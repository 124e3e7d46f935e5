"""Which ledger? One place that knows all of them, so that nobody else has to.

The driver of a database is imported when a ledger in it is opened, and not before.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.errors import LedgerUnusable

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
    from DocsToKG.Orchestrator.notifications.base import Signal


def open_ledger(
    path: str | Path,
    *,
    url: str | None = None,
    clock: Clock | None = None,
    wal: bool | None = True,
    signal: Signal | None = None,
    listen_url: str | None = None,
    retain_history_days: int | None = None,
    **more: Any,
) -> DatabaseLedger:
    """The ledger in the file at `path`, or on the PostgreSQL server at `url`.

    On a server, the workers of this machine show beside `path` that they live; wake-ups go by LISTEN and NOTIFY where
    no other `signal` is given, and `listen_url` is the server itself when `url` is a pooler's address. `clock` is this
    machine's own: time on a server is the server's. Months of history older than `retain_history_days` are removed
    there; in a file the history is kept.
    """
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

    if url is None:
        return SqliteLedger(path, clock=clock, wal=wal, signal=signal, **more)
    try:
        from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
        from DocsToKG.Orchestrator.notifications.pg_notify import PgNotifySignal
    except ImportError:
        raise LedgerUnusable(
            "the ledger on PostgreSQL needs the postgres extra: pip install 'docstokg[postgres]'"
        ) from None
    if signal is None:
        channel = f"docstokg_{more.get('schema_name', 'orchestrator')}"
        try:
            signal = PgNotifySignal(url, listen_url=listen_url, channel=channel)
        except ValueError as error:
            raise LedgerUnusable(f"the address of the ledger's database: {error}") from None
    return PostgresLedger(
        url, clock=clock, signal=signal, local_path=path, retain_history_days=retain_history_days, **more
    )
