"""Transactions that come to nothing, and what must not be remembered, or called refused, because of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger import control
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.governed import Governor
from DocsToKG.Orchestrator.ledger.postgres.database import Database
from DocsToKG.Orchestrator.ledger.postgres.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.postgres.writer import GroupWriter
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.ledger.transaction import Transaction
from DocsToKG.Orchestrator.signal.local import LocalSignal


def maintenance(on: bool) -> Any:
    def change(tx: ControlTx) -> None:
        tx.ask(
            "INSERT INTO settings (name, value, updated_at) VALUES ('maintenance', :value, :now)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"value": "1" if on else "0", "now": tx.now_ms},
        )
        tx.rules_changed()

    return change


def test_rules_that_were_never_committed_hold_nobody_up(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        ledger.change(maintenance(False))
        ledger.enqueue_many([NewJob("doi:10.1/a", {})])

        def change_look_and_break(tx: Transaction) -> None:
            control.make_change(tx, maintenance(True))
            ledger._turns.governor.rules(control.OpenControl(tx.now_ms, tx.ask), tx.control_version)
            raise RuntimeError("the disk is full")

        with pytest.raises(RuntimeError, match="full"):
            ledger._writer.call(change_look_and_break)
        assert len(ledger.lease("w1", limit=1, ttl_s=60)) == 1


def test_rules_of_a_transaction_that_broke_by_itself_are_forgotten_on_a_server_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What goes along with the changes may fail where the database says nothing."""
    database = Database("postgresql://nobody@127.0.0.1:1/none", schema="orchestrator", patience_s=0.05)
    governor = Governor()
    writer = GroupWriter(
        database,
        sql={},
        ledger_time=DatabaseTime(SystemClock()),
        signal=LocalSignal(),
        linger_s=0.0,
        retain_history_days=None,
        governor=governor,
    )

    def read_rules_and_break(batch: Any) -> Any:
        governor._version = 7
        raise RuntimeError("this cannot be written")

    monkeypatch.setattr(writer, "_transact", read_rules_and_break)
    with contextlib.closing(writer), pytest.raises(RuntimeError):
        writer.call(lambda tx: None)
    assert governor._version == -1


def test_changes_that_are_committed_are_not_refused_because_of_what_follows_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server goes away for long after the commit, while jobs that waited for others are moved on."""
    database = Database("postgresql://nobody@127.0.0.1:1/none", schema="orchestrator", patience_s=0.05)
    writer = GroupWriter(
        database,
        sql={},
        ledger_time=DatabaseTime(SystemClock()),
        signal=LocalSignal(),
        linger_s=0.001,
        retain_history_days=None,
    )

    @contextlib.contextmanager
    def away() -> Iterator[None]:
        raise LedgerError("whether it was committed cannot be asked")
        yield

    monkeypatch.setattr(writer._transactor, "begun", away)
    assert writer._follow() == set()
    writer.close()
    database.close()
