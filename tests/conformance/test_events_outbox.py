"""The outbox: what was committed is in it and nothing else, in order for each job, whoever writes; on every ledger."""

from __future__ import annotations

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.history.feed import HistoryFeed
from DocsToKG.Orchestrator.control.leader_election import Leader
from DocsToKG.Orchestrator.control.pack_runs import PackRunService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.errors import BadJob, NotFound
from DocsToKG.Orchestrator.events.envelope import envelopes, event_type
from DocsToKG.Orchestrator.events.notifier import Notifier, RetryPolicy
from DocsToKG.Orchestrator.events.outbox import Outbox, Settled, Subscription
from DocsToKG.Orchestrator.events.targets import Delivery, DeliveryFailed
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, JobFilter, JobState, NewJob
from DocsToKG.Orchestrator.signing.keys import new_signer

Open = Callable[..., Any]
ALL = [Subscription("all", "test")]
KEY = new_signer("test", 0.0)


class Recorder:
    """A target that keeps what it gets, and refuses what it is told to."""

    at_once = 4

    def __init__(self, name: str = "all", max_tries: int = 3) -> None:
        self.name, self.max_tries = name, max_tries
        self.events: list[dict[str, Any]] = []
        self.refuses: Callable[[dict[str, Any]], bool] = lambda event: False
        self.retry_after_s: float | None = None
        self.asked = 0

    def send(self, delivery: Delivery) -> None:
        self.asked += 1
        event = json.loads(base64.b64decode(json.loads(delivery.body)["payload"]))
        if self.refuses(event):
            raise DeliveryFailed("refused", self.retry_after_s)
        self.events.append(event)

    def close(self) -> None:
        pass

    @property
    def types(self) -> list[str]:
        return [event["eventType"] for event in self.events]


def carry(ledger: Any, *targets: Recorder, **words: Any) -> int:
    names = [Subscription(target.name, "test") for target in targets]
    notifier = Notifier(ledger, names, targets, signers=[KEY], **words)
    return notifier.run_once()


def work(ledger: Any, *names: str, tenant: str = "default") -> list[int]:
    """Jobs that are added, leased and done."""
    jobs = ledger.enqueue_many([NewJob(name, {}, tenant=tenant) for name in names])
    for job in ledger.lease("w", len(names), 60):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    return [job.job_id for job in jobs]


def count(ledger: Any, table: str = "events_outbox") -> int:
    return int(ledger.read(lambda tx: tx.execute(f"SELECT count(*) FROM {table}"))[0][0])


def test_without_a_target_nothing_is_written_down(open_ledger: Open) -> None:
    ledger = open_ledger()
    work(ledger, "a", "b")
    assert count(ledger) == 0
    assert Outbox(ledger).statuses() == []


def test_each_change_of_state_is_one_event_told_in_order(open_ledger: Open) -> None:
    ledger, target = open_ledger(), Recorder()
    work(ledger, "before")
    Outbox(ledger).register(ALL)
    [first, second] = work(ledger, "a", "b")
    assert carry(ledger, target) == 6
    for job in (first, second):
        found = [event["eventType"] for event in target.events if event["job"]["id"] == job]
        assert found == ["job.enqueued", "job.leased", "job.completed"]
    assert count(ledger) == 0
    [status] = Outbox(ledger).statuses()
    assert (status.sent, status.waiting, status.dead, status.failures) == (6, 0, 0, 0)


def test_the_outbox_tells_the_same_event_as_the_feed(open_ledger: Open) -> None:
    """Ids, keys and every other word, for jobs, pack-runs and decisions of operators alike."""
    ledger, target = open_ledger(), Recorder()
    Outbox(ledger).register(ALL)
    feed = HistoryFeed(ledger)
    start = feed.now("default")
    work(ledger, "a", "b")
    ledger.enqueue_many([NewJob(f"c{n}", {}) for n in range(4)])
    failing, given_up, *_ = ledger.lease("w2", 4, 60)
    ledger.fail(Fail(failing.job_id, failing.fence, failing.lease_id, 0.0, 5, "late"))
    ledger.fail(Fail(given_up.job_id, given_up.fence, given_up.lease_id, 0.0, 1, "no"))
    ledger.heartbeat("w2", 60)
    ledger.cancel_many(JobFilter(), reason="enough", actor="op", ticket="T-1")
    PackRunService(ledger).register("default", payload={}, actor="op", project="p", correlation_id="c-1")
    ledger.pause(actor="op", reason="lunch")
    ThrottleService(ledger).pause_source("default", "arxiv", actor="op", reason="busy", ticket="T-2")
    carry(ledger, target)
    rows = [event.row for event in feed.after(start, "default").events]
    wanted = [row for row in rows if row.event != "renewed"]
    assert len(wanted) < len(rows)
    by_id = {event["eventId"]: event for event in target.events}
    assert len(by_id) == len(target.events)
    assert [by_id.get(event["eventId"]) for event in envelopes(ledger, wanted)] == envelopes(ledger, wanted)
    assert {"job.failed", "job.canceled", "job.completed", "control.paused"} <= set(target.types)
    assert set(target.types) == {event_type(row) for row in wanted}


def test_a_target_gets_its_tenant_and_its_types_only(open_ledger: Open) -> None:
    ledger, ends, other = open_ledger(), Recorder("ends"), Recorder("other")
    subscriptions = [
        Subscription("ends", "test", types=("job.completed", "job.failed")),
        Subscription("other", "test", tenant="b"),
    ]
    Outbox(ledger).register(subscriptions)
    work(ledger, "x")
    work(ledger, "y", tenant="b")
    notifier = Notifier(ledger, subscriptions, [ends, other], signers=[KEY])
    notifier.run_once()
    assert ends.types == ["job.completed", "job.completed"]
    assert other.types == ["job.enqueued", "job.leased", "job.completed"]


def test_forgetting_the_last_target_stops_the_writing(open_ledger: Open) -> None:
    ledger = open_ledger()
    outbox = Outbox(ledger)
    outbox.register([*ALL, Subscription("second", "test")])
    ledger.enqueue_many([NewJob("a", {})])
    assert count(ledger) == 2
    assert outbox.forget("second") == 1
    ledger.enqueue_many([NewJob("b", {})])
    assert count(ledger) == 2
    assert outbox.forget("all") == 2
    ledger.enqueue_many([NewJob("c", {})])
    assert count(ledger) == 0
    with pytest.raises(NotFound, match="no target 'all'"):
        outbox.forget("all")
    outbox.register(ALL)
    ledger.enqueue_many([NewJob("d", {})])
    assert count(ledger) == 1


def test_what_is_rolled_back_leaves_no_event(open_ledger: Open) -> None:
    ledger = open_ledger()
    Outbox(ledger).register(ALL)

    def refused(tx: Any) -> None:
        tx.execute("UPDATE settings SET value = value")
        tx.note("default", event="decided", actor="op")
        raise BadJob("no")

    with pytest.raises(BadJob):
        ledger.write(refused)
    assert count(ledger) == 0


def test_a_refused_event_holds_up_its_job_and_no_other(open_ledger: Open) -> None:
    clock = ManualClock()
    ledger, target = open_ledger(clock=clock), Recorder()
    Outbox(ledger).register(ALL)
    [bad, good] = work(ledger, "bad", "good")
    target.refuses = lambda event: event["job"]["id"] == bad and event["eventType"] == "job.leased"
    for _ in range(4):
        carry(ledger, target, retry_policy=RetryPolicy(1000.0, 1000.0))
        ledger.write(lambda tx: tx.execute("UPDATE event_targets SET next_at = 0"))
    found = defaultdict(list)
    for event in target.events:
        found[event["job"]["id"]].append(event["eventType"])
    assert found == {bad: ["job.enqueued"], good: ["job.enqueued", "job.leased", "job.completed"]}
    target.refuses = lambda event: False
    clock.advance(1001)
    carry(ledger, target)
    assert [event["eventType"] for event in target.events if event["job"]["id"] == bad] == [
        "job.enqueued",
        "job.leased",
        "job.completed",
    ]


def test_an_event_refused_too_often_is_dead_until_it_is_asked_for(open_ledger: Open) -> None:
    clock = ManualClock()
    ledger, target = open_ledger(clock=clock), Recorder(max_tries=3)
    outbox = Outbox(ledger)
    outbox.register(ALL)
    work(ledger, "a")
    target.refuses = lambda event: event["eventType"] == "job.leased"
    for _ in range(6):
        carry(ledger, target)
        clock.advance(60)
    assert target.types == ["job.enqueued", "job.completed"]
    [dead] = outbox.list(dead=True)
    assert (dead.event_type, dead.tries, dead.last_error) == ("job.leased", 3, "refused")
    assert outbox.statuses()[0].dead == 1
    target.refuses = lambda event: False
    with pytest.raises(NotFound):
        outbox.retry("other")
    assert outbox.retry("all", [dead.outbox_id]) == 1
    carry(ledger, target)
    assert target.types[-1] == "job.leased"
    assert outbox.list(dead=True) == []


def test_what_nobody_foresaw_is_a_failure_like_others(open_ledger: Open) -> None:
    clock = ManualClock()
    ledger, target = open_ledger(clock=clock), Recorder(max_tries=2)
    carry(ledger, target)
    ledger.enqueue_many([NewJob("a:1", {})])

    def refuses(event: dict[str, Any]) -> bool:
        raise LookupError("words that may be secret")

    target.refuses = refuses
    for _ in range(2):
        clock.advance(7200)
        carry(ledger, target)
    [dead] = Outbox(ledger).list(dead=True)
    assert (dead.tries, dead.last_error) == (2, "LookupError")


def test_a_target_that_is_away_is_asked_less_and_less_by_one_event(open_ledger: Open) -> None:
    clock = ManualClock()
    ledger, target = open_ledger(clock=clock), Recorder(max_tries=100)
    Outbox(ledger).register(ALL)
    work(ledger, *(f"j{n}" for n in range(50)))
    target.refuses, target.at_once = lambda event: True, 1
    waits = []
    for _ in range(6):
        before = target.asked
        carry(ledger, target, retry_policy=RetryPolicy(1.0, 8.0))
        assert target.asked == before + 1
        [status] = Outbox(ledger).statuses()
        waits.append(round(status.next_at / 1000 - clock.now(), 1))
        clock.advance(waits[-1] / 2)
        carry(ledger, target, retry_policy=RetryPolicy(1.0, 8.0))
        assert target.asked == before + 1, "the target has its rest"
        clock.advance(waits[-1])
    for wait, most in zip(waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert 0.7 * most <= wait <= most
    target.refuses = lambda event: False
    clock.advance(10)
    carry(ledger, target)
    assert len(target.events) == 150
    assert count(ledger) == 0


def test_a_targets_wish_for_a_rest_is_heard(open_ledger: Open) -> None:
    clock = ManualClock()
    ledger, target = open_ledger(clock=clock), Recorder()
    Outbox(ledger).register(ALL)
    work(ledger, "a")
    target.refuses, target.retry_after_s = lambda event: True, 500.0
    carry(ledger, target)
    [status] = Outbox(ledger).statuses()
    assert status.next_at / 1000 - clock.now() == pytest.approx(500, abs=1)


def test_the_claim_of_one_who_is_gone_is_taken_over(open_ledger: Open) -> None:
    ledger = open_ledger()
    outbox, other = Outbox(ledger, holder="gone"), Outbox(ledger, holder="next")
    outbox.register(ALL)
    work(ledger, "a")
    held = outbox.claim("all", limit=10, hold_s=600)
    assert [waiting.event_type for waiting in held] == ["job.enqueued", "job.leased", "job.completed"]
    assert outbox.claim("all", limit=10, hold_s=600) == []
    taken = other.claim("all", limit=10, hold_s=600)
    assert [waiting.row for waiting in taken] == [waiting.row for waiting in held]
    # What the one who is back says now counts only where it is a fact.
    outbox.settle("all", Settled([held[0].outbox_id], [], [held[1].outbox_id]), lambda failures: 0.0)
    assert [waiting.outbox_id for waiting in outbox.list()] == [held[1].outbox_id, held[2].outbox_id]
    assert outbox.list()[0].tries == 2


def test_of_two_notifiers_one_carries(open_ledger: Open) -> None:
    ledger, first, second = open_ledger(), Recorder(), Recorder()
    holder = Notifier(ledger, ALL, [first], signers=[KEY])
    assert holder.hold()
    Outbox(ledger).register(ALL)
    work(ledger, "a")
    assert carry(ledger, second) == 0
    assert holder.run_once() == 3
    assert (len(first.events), len(second.events)) == (3, 0)


def test_whatever_goes_wrong_with_the_lead_it_is_asked_for_again(
    open_ledger: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    notifier = Notifier(open_ledger(), [], [], signers=[KEY], lead_s=0.15)
    hold, tries = Leader.hold, iter([ZeroDivisionError()])
    held = threading.Event()

    def shaky(leader: Leader) -> bool:
        for error in tries:
            raise error
        held.set()
        return hold(leader)

    monkeypatch.setattr(Leader, "hold", shaky)
    with notifier.running():
        assert held.wait(20)


@pytest.mark.slow
def test_while_many_write_nothing_is_lost_and_each_job_keeps_its_order(open_ledger: Open) -> None:
    ledgers, target = [open_ledger() for _ in range(3)], Recorder(max_tries=1000)
    target.at_once = 8
    Outbox(ledgers[0]).register(ALL)
    flaky = iter(range(10**9))
    target.refuses = lambda event: next(flaky) % 97 == 0
    notifier = Notifier(ledgers[0], ALL, [target], signers=[KEY], poll_s=0.01, retry_policy=RetryPolicy(0.01, 0.05))

    def writes(number: int) -> None:
        for round_ in range(8):
            work(ledgers[number], *(f"{number}-{round_}-{place}" for place in range(10)))

    with notifier.running():
        threads = [threading.Thread(target=writes, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        deadline = threading.Event()
        for _ in range(6000):
            if count(ledgers[0]) == 0 or deadline.wait(0.02):
                break
    assert count(ledgers[0]) == 0
    rows = ledgers[0].read(lambda tx: tx.execute("SELECT job_id, to_state FROM job_history ORDER BY seq"))
    wanted, found = defaultdict(list), defaultdict(list)
    words = {"in_progress": "leased", "done": "succeeded"}
    for job_id, state in rows:
        wanted[job_id].append(words.get(state, state))
    for event in target.events:
        found[event["job"]["id"]].append(event["job"]["status"])
    assert found == wanted
    assert len({event["eventId"] for event in target.events}) == len(rows)


@pytest.mark.slow
def test_who_works_jobs_needs_no_rights_on_the_outbox(postgres_url: str) -> None:
    """A role that was given its rights before there were events goes on, and its events are told."""
    import psycopg

    from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

    name, role = f"g_{uuid4().hex[:20]}", f"r_{uuid4().hex[:12]}"
    with (
        psycopg.connect(postgres_url, autocommit=True) as owner,
        PostgresLedger(postgres_url, schema_name=name) as own,
    ):
        owner.execute(f"CREATE ROLE {role} LOGIN")
        try:
            owner.execute(f"GRANT USAGE ON SCHEMA {name} TO {role}")
            owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {name} TO {role}")
            owner.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {name} TO {role}")
            owner.execute(f"REVOKE ALL ON {name}.events_outbox, {name}.event_targets FROM {role}")
            Outbox(own).register(ALL)
            with PostgresLedger(postgres_url.replace("//postgres@", f"//{role}@"), schema_name=name) as worker:
                work(worker, "a")
            target = Recorder()
            assert carry(own, target) == 3
        finally:
            owner.execute(f"DROP OWNED BY {role}")
            owner.execute(f"DROP ROLE {role}")
            owner.execute(f"DROP SCHEMA {name} CASCADE")
