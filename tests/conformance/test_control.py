"""The way into what governs the queue: the same on every ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import NotFound, Refused
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.control import ControlTx, version_of

Open = Callable[..., Any]
_ADD = (
    "INSERT INTO tenants (tenant, weight, updated_at) VALUES (:tenant, :weight, :now)"
    " ON CONFLICT (tenant) DO UPDATE SET weight = excluded.weight, version = tenants.version + 1"
    " RETURNING tenant, weight, version"
)


@pytest.fixture
def ledger(open_ledger: Open) -> Any:
    return open_ledger(clock=ManualClock())


def weigh(tx: ControlTx, tenant: str, weight: int) -> tuple[Any, ...]:
    return tx.execute(_ADD, {"tenant": tenant, "weight": weight, "now": tx.now_ms})[0]


def weights(tx: ControlTx) -> dict[str, int]:
    return dict(tx.execute("SELECT tenant, weight FROM tenants ORDER BY tenant"))


def test_a_change_answers_and_is_seen_by_everyone(open_ledger: Open) -> None:
    one, other = open_ledger(), open_ledger()
    assert one.write(lambda tx: weigh(tx, "a", 2)) == ("a", 2, 1)
    assert one.write(lambda tx: weigh(tx, "a", 5)) == ("a", 5, 2)
    assert other.read(weights) == {"a": 5}


def test_ledger_time_is_given_in_milliseconds(open_ledger: Open) -> None:
    clock = ManualClock()
    ledger = open_ledger(clock=clock)
    assert ledger.write(lambda tx: tx.now_ms) == int(clock.now() * 1000)
    clock.advance(5)
    assert ledger.read(lambda tx: tx.now_ms) == int(clock.now() * 1000)


def test_a_refused_change_leaves_nothing_behind_and_its_neighbours_stand(ledger: Any) -> None:
    """Changes of several threads share a transaction; one that is refused after it wrote is undone alone."""

    def refused(tx: ControlTx) -> None:
        weigh(tx, "bad", 9)
        tx.note("bad", event="weighed", actor="me")
        tx.rules_changed()
        raise Refused("no", "because")

    def bad() -> None:
        with pytest.raises(Refused):
            ledger.write(refused)

    threads = [threading.Thread(target=bad) for _ in range(4)]
    threads += [threading.Thread(target=ledger.write, args=(lambda tx, n=n: weigh(tx, f"good{n}", n),)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert ledger.read(weights) == {"good1": 1, "good2": 2}
    assert ledger.read(version_of) == 0
    assert ledger.verify_history()


def test_a_broken_change_is_told_and_undone(ledger: Any) -> None:
    def broken(tx: ControlTx) -> None:
        weigh(tx, "bad", 9)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.write(broken)
    assert ledger.read(weights) == {}


def test_an_audit_row_is_a_link_of_the_history(ledger: Any) -> None:
    """LEDG-04."""
    [job] = ledger.enqueue_many([NewJob("a:1", {}, tenant="acme")])

    def change(tx: ControlTx) -> None:
        words = {"reason": "too much", "ticket": "OPS-7", "detail": {"max": 3}}
        tx.note("acme", event="quota_set", actor="ann", job_id=job.job_id, **words)  # type: ignore[arg-type]

    ledger.write(change)
    row = ledger.history(job.job_id)[-1]
    assert (row.event, row.actor, row.reason, row.ticket) == ("quota_set", "ann", "too much", "OPS-7")
    assert row.detail_json == '{"max": 3}'
    assert ledger.verify_history()


def test_the_number_of_the_rules_grows_once_for_each_change_that_says_so(ledger: Any) -> None:
    def change(tx: ControlTx) -> None:
        tx.rules_changed()
        tx.rules_changed()

    assert ledger.read(version_of) == 0
    ledger.write(lambda tx: weigh(tx, "a", 1))
    assert ledger.read(version_of) == 0
    ledger.write(change)
    ledger.write(change)
    assert ledger.read(version_of) == 2


def test_statements_are_portable(ledger: Any) -> None:
    """NULL, flags, sums, quotes and signs of either driver mean the same on both."""
    hostile = "it's 100% :x /* lock */ \\ \u00e9"

    def change(tx: ControlTx) -> None:
        tx.execute(
            "INSERT INTO tenants (tenant, blocked, blocked_reason, updated_at) VALUES (:t, :b, :r, :now)",
            {"t": "a", "b": True, "r": hostile, "now": tx.now_ms},
        )

    ledger.write(change)
    assert ledger.read(lambda tx: tx.execute("SELECT blocked, blocked_reason FROM tenants")) == [(1, hostile)]
    asked = (
        "SELECT count(*), sum(weight), ':no%' FROM tenants "
        "WHERE (:t IS NULL OR tenant = :t) AND blocked_reason LIKE 'it%'"
    )
    assert ledger.read(lambda tx: tx.execute(asked, {"t": None})) == [(1, 1, ":no%")]
    assert ledger.read(lambda tx: tx.execute(asked, {"t": "b"})) == [(0, None, ":no%")]
    [(total,)] = ledger.read(lambda tx: tx.execute("SELECT sum(weight) FROM tenants"))
    assert type(total) is int


def test_many_who_add_one_lose_none(open_ledger: Open) -> None:
    """A row that is read to be changed is locked where writers run beside each other."""
    ledgers = [open_ledger() for _ in range(3)]
    ledgers[0].write(lambda tx: weigh(tx, "a", 1))

    def add(tx: ControlTx) -> None:
        [(weight,)] = tx.execute("SELECT weight FROM tenants WHERE tenant = 'a' /* lock */")
        tx.execute("UPDATE tenants SET weight = :weight WHERE tenant = 'a'", {"weight": weight + 1})

    def work(ledger: Any) -> None:
        for _ in range(20):
            ledger.write(add)

    threads = [threading.Thread(target=work, args=(ledger,)) for ledger in ledgers for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert ledgers[0].read(weights) == {"a": 121}


def test_looking_sees_one_moment_and_changes_nothing(open_ledger: Open) -> None:
    one, other = open_ledger(), open_ledger()
    one.write(lambda tx: weigh(tx, "a", 1))

    def twice(tx: ControlTx) -> tuple[Any, Any]:
        first = weights(tx)
        other.write(lambda inner: weigh(inner, "b", 1))
        return first, weights(tx)

    before, after = one.read(twice)
    assert before == after == {"a": 1}
    assert one.read(weights) == {"a": 1, "b": 1}


def test_an_error_while_looking_leaves_the_ledger_usable(ledger: Any) -> None:
    def missing(tx: ControlTx) -> None:
        raise NotFound("nothing")

    with pytest.raises(NotFound):
        ledger.read(missing)
    assert ledger.read(weights) == {}
