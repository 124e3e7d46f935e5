"""Transactions that come to nothing, and what must not be remembered, or called refused, because of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger import control
from DocsToKG.Orchestrator.ledger import ledger as ledgers
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.checks import checked_end
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.driver import Done
from DocsToKG.Orchestrator.ledger.drivers.postgres import work
from DocsToKG.Orchestrator.ledger.drivers.postgres.connection import Transactor
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
from DocsToKG.Orchestrator.ledger.drivers.postgres.driver import PostgresDriver
from DocsToKG.Orchestrator.ledger.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.ledger.writer import GroupWriter
from DocsToKG.Orchestrator.notifications.local import LocalSignal


def maintenance(on: bool) -> Any:
    def change(tx: ControlTx) -> None:
        tx.execute(
            "INSERT INTO settings (name, value, updated_at) VALUES ('maintenance', :value, :now)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"value": "1" if on else "0", "now": tx.now_ms},
        )
        tx.rules_changed()

    return change


def test_rules_that_were_never_committed_hold_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    governor = Governor()
    monkeypatch.setattr(ledgers, "Governor", lambda: governor)
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        ledger.write(maintenance(False))
        ledger.enqueue_many([NewJob("doi:10.1/a", {})])

        def change_look_and_break(tx: ControlTx) -> None:
            maintenance(True)(tx)
            assert governor.rules(tx, control.version_of(tx)).maintenance is not None
            raise RuntimeError("the disk is full")

        with pytest.raises(RuntimeError, match="full"):
            ledger.write(change_look_and_break)
        assert len(ledger.lease("w1", limit=1, ttl_s=60)) == 1


def test_rules_of_a_transaction_that_broke_by_itself_are_forgotten_on_a_server_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What goes along with the changes may fail where the database says nothing."""
    governor = Governor()
    writer = writer_of_nowhere(governor)

    def read_rules_and_break(transactor: Transactor) -> Any:
        governor.rules(cast(ControlTx, NoRules()), 7)
        assert governor.free_rules == 7
        raise RuntimeError("this cannot be written")

    monkeypatch.setattr(Transactor, "begun", read_rules_and_break)
    with contextlib.closing(writer), pytest.raises(RuntimeError):
        writer.call(lambda tx: None)
    assert governor.free_rules is None


def test_changes_that_are_committed_are_not_refused_because_of_what_follows_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server goes away for long after the commit, while jobs that waited for others are moved on."""
    tried = threading.Event()

    @contextlib.contextmanager
    def away(transactor: Transactor) -> Iterator[None]:
        tried.set()
        raise LedgerError("whether it was committed cannot be asked")
        yield

    others_wait = Done(["applied"], [], set(), unsettled=True)
    monkeypatch.setattr(work, "work", lambda *words: others_wait)
    monkeypatch.setattr(Transactor, "begun", away)
    with contextlib.closing(writer_of_nowhere()) as writer:
        end = checked_end(Finish(1, 1, "lease", JobState.DONE))
        assert writer.submit([end]).result(timeout=60) == ["applied"]
        assert tried.is_set()


class NoRules:
    """A transaction that finds nothing."""

    now_ms = 0

    def execute(self, *words: Any) -> list[Any]:
        return []


def writer_of_nowhere(governor: Governor | None = None) -> GroupWriter:
    database = Database("postgresql://nobody@127.0.0.1:1/none", schema="orchestrator", patience_s=0.05)
    driver = PostgresDriver(database, ledger_time=DatabaseTime(SystemClock()))
    return GroupWriter(driver, signal=LocalSignal(), governor=governor or Governor(), linger_s=0.001)
