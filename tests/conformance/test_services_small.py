"""Backfills, workers, remembered answers and upkeep, on every ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.waiting import eventually

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.api.housekeeping import Housekeeping
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.control import backfills as backfills_room
from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.backfills import BackfillService
from DocsToKG.Orchestrator.control.history.decisions import ActionService
from DocsToKG.Orchestrator.control.idempotency import Answer, IdempotencyService
from DocsToKG.Orchestrator.control.incidents import IncidentService
from DocsToKG.Orchestrator.control.jobs.service import JobService
from DocsToKG.Orchestrator.control.leader_election import Leader
from DocsToKG.Orchestrator.control.pack_runs import Hints, PackRunService
from DocsToKG.Orchestrator.control.workers.registry import WorkerService
from DocsToKG.Orchestrator.errors import BadJob, BadPage, Conflict, LedgerBusy, NotFound
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.control import ControlTx

Open = Callable[..., Any]
DAY = 86_400.0
RANGE: dict[str, Any] = {
    "job_type": "ingest", "from_at": 1_700_000_000.0, "to_at": 1_700_000_000.0 + 10 * DAY, "step_s": DAY,
    "actor": "op", "reason": "lost month", "ticket": "T-9",
}  # fmt: skip


def test_a_backfill_enqueues_its_range_in_steps_behind_other_work(ledger: Any) -> None:
    """JOB-16, AUTH-05."""
    service = BackfillService(ledger)
    made = service.start("a", payload={"feed": "f"}, **RANGE)
    assert (made.jobs, made.reason, made.ticket) == (10, "lost month", "T-9")
    ledger.enqueue_many([NewJob("urgent", {}, tenant="a")])
    jobs = ledger.lease("w", 20, 60)
    assert jobs[0].artifact_id == "urgent"
    assert [job.payload["feed"] for job in jobs[1:]] == ["f"] * 10
    assert jobs[1].payload["from"] == "2023-11-14T22:13:20.000Z"
    assert [job.payload["from"] for job in jobs[2:]] == [job.payload["to"] for job in jobs[1:-1]]
    assert {job.correlation_id for job in jobs[1:]} == {made.backfill_id}
    [note] = ledger.read(
        lambda tx: tx.execute("SELECT tenant, actor, reason, ticket FROM job_history WHERE event = 'backfill_started'")
    )
    assert note == ("a", "op", "lost month", "T-9")


def test_the_last_step_ends_where_the_range_ends(ledger: Any) -> None:
    made = BackfillService(ledger).start("a", **{**RANGE, "to_at": RANGE["from_at"] + 2.5 * DAY})
    assert made.jobs == 3
    assert ledger.lease("w", 9, 60)[-1].payload["to"] == "2023-11-17T10:13:20.000Z"


def test_a_backfill_without_reason_ticket_or_sense_is_refused_and_nothing_changes(ledger: Any) -> None:
    """AUTH-06."""
    service = BackfillService(ledger)
    for wrong in (
        {"reason": " "}, {"ticket": ""}, {"reason": "x" * 257}, {"to_at": RANGE["from_at"]}, {"step_s": 0.0},
        {"step_s": 1.0}, {"from_at": float("nan")}, {"to_at": float("inf")}, {"step_s": float("nan")}, {"job_type": ""},
    ):  # fmt: skip
        with pytest.raises(BadJob):
            service.start("a", **{**RANGE, **wrong})
    assert service.list("a").backfills == []
    assert ledger.stats()["total"] == 0


def test_a_backfill_that_was_cut_short_goes_on_and_makes_no_job_twice(
    ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfills_room, "PAGE", 3)
    service = BackfillService(ledger)
    told = JobService.submit
    calls = []

    def failing(self: JobService, *args: Any, **words: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise ConnectionError("cut")
        return told(self, *args, **words)

    monkeypatch.setattr(JobService, "submit", failing)
    with pytest.raises(ConnectionError):
        service.start("a", backfill_id="bf_1", **RANGE)
    assert service.get("a", "bf_1").jobs == 6
    assert service.start("a", backfill_id="bf_1", **RANGE).jobs == 10
    assert ledger.stats()["total"] == 10
    with pytest.raises(BadJob):
        service.start("a", backfill_id="bf_1", **{**RANGE, "to_at": RANGE["to_at"] + DAY})
    with pytest.raises(BadJob):
        service.start("b", backfill_id="bf_1", **RANGE)


def test_backfills_are_the_tenants_own_and_come_in_pages(ledger: Any, clock: ManualClock) -> None:
    service = BackfillService(ledger)
    ids = []
    for _ in range(3):
        ids.append(service.start("a", **RANGE).backfill_id)
        clock.advance(1)
    first = service.list("a", page_size=2)
    second = service.list("a", page_size=2, page_token=first.next_page_token)
    assert [each.backfill_id for each in (*first.backfills, *second.backfills)] == ids[::-1]
    assert second.next_page_token is None
    assert service.list("b").backfills == []
    with pytest.raises(NotFound):
        service.get("b", ids[0])
    with pytest.raises(BadPage):
        service.list("a", page_token="x")


@pytest.mark.parametrize("kind", ["actions", "backfills", "incidents", "pack-runs"])
@pytest.mark.parametrize("number", [-1, 2**63, 2**70])
def test_a_place_that_no_ledger_could_hold_was_not_handed_out(ledger: Any, kind: str, number: int) -> None:
    services = (ActionService(ledger), BackfillService(ledger), IncidentService(ledger), PackRunService(ledger))
    lists = dict(zip(["actions", "backfills", "incidents", "pack-runs"], services, strict=True))
    with pytest.raises(BadPage):
        lists[kind].list("a", page_token=paging.token(kind, number, number if kind == "actions" else "x"))


def test_workers_are_listed_with_what_they_hold_each_tenant_for_itself(ledger: Any, clock: ManualClock) -> None:
    workers = WorkerService(ledger)
    workers.seen("a", "w1", node="n1", kind="download", version="1", info={"cores": 2})
    workers.seen("a", "w2")
    workers.seen("b", "w1", node="other")
    ledger.enqueue_many([NewJob(str(n), {}, tenant="a") for n in range(3)])
    ledger.lease("w1", 3, 60)
    clock.advance(30)
    workers.seen("a", "w2")
    first, second = workers.list("a").workers
    assert (first.worker_id, first.node, first.info, first.leases) == ("w1", "n1", {"cores": 2}, 3)
    assert (second.worker_id, second.leases) == ("w2", 0)
    assert second.last_seen_at - second.started_at == 30
    assert [(each.node, each.leases) for each in workers.list("b").workers] == [("other", 0)]
    assert [each.worker_id for each in workers.list("a", seen_within_s=10).workers] == ["w2"]
    page = workers.list("a", page_size=1)
    assert [each.worker_id for each in workers.list("a", page_token=page.next_page_token).workers] == ["w2"]


def test_a_worker_that_reports_often_is_written_seldom(ledger: Any, clock: ManualClock) -> None:
    workers = WorkerService(ledger)
    workers.seen("a", "w")
    started = workers.list("a").workers[0].last_seen_at
    clock.advance(5)
    workers.seen("a", "w")
    assert workers.list("a").workers[0].last_seen_at == started
    workers.seen("a", "w", node="moved")
    assert workers.list("a").workers[0].node == "moved"
    clock.advance(11)
    workers.seen("a", "w", node="moved")
    assert workers.list("a").workers[0].last_seen_at == started + 16


def test_a_word_that_could_not_be_written_is_written_the_next_time(
    ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(change: Any) -> None:
        raise LedgerBusy("locked")

    workers = WorkerService(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "write", busy)
        with pytest.raises(LedgerBusy):
            workers.seen("a", "w")
    workers.seen("a", "w")
    assert [each.worker_id for each in workers.list("a").workers] == ["w"]


def test_a_worker_is_forgotten_a_month_after_its_last_word(ledger: Any, clock: ManualClock) -> None:
    workers = WorkerService(ledger)
    workers.seen("a", "gone")
    clock.advance(86_400)
    workers.seen("b", "there")
    clock.advance(29.5 * 86_400)
    workers.forget_old()
    assert [[each.worker_id for each in workers.list(tenant).workers] for tenant in "ab"] == [[], ["there"]]


def test_what_a_worker_says_of_itself_is_bounded(ledger: Any) -> None:
    workers = WorkerService(ledger)
    for wrong in ({"node": ""}, {"node": "x" * 300}, {"info": {"x": "y" * 20_000}}, {"info": {"x": float("nan")}}):
        with pytest.raises(BadJob):
            workers.seen("a", "w", **wrong)  # type: ignore[arg-type]
    with pytest.raises(BadJob):
        workers.seen("a", "")
    assert workers.list("a").workers == []


def test_the_first_answer_is_given_again(ledger: Any) -> None:
    """API-29."""
    answers = IdempotencyService(ledger)
    assert answers.remember("a", "/jobs", "k", "d") is None
    answers.keep("a", "/jobs", "k", Answer(201, '{"id": 1}'))
    assert answers.remember("a", "/jobs", "k", "d") == Answer(201, '{"id": 1}')
    answers.forget("a", "/jobs", "k")
    answers.keep("a", "/jobs", "k", Answer(500, "later"))
    assert answers.remember("a", "/jobs", "k", "d") == Answer(201, '{"id": 1}')
    for other in (("b", "/jobs", "k"), ("a", "/other", "k"), ("a", "/jobs", "k2")):
        assert answers.remember(*other, "d") is None


def test_the_same_key_with_another_body_or_at_once_is_a_conflict(ledger: Any) -> None:
    answers = IdempotencyService(ledger)
    answers.remember("a", "/p", "k", "d")
    for digest in ("d", "other"):
        with pytest.raises(Conflict):
            answers.remember("a", "/p", "k", digest)
    answers.keep("a", "/p", "k", Answer(200, ""))
    with pytest.raises(Conflict):
        answers.remember("a", "/p", "k", "other")


def test_a_request_that_did_not_act_may_come_again(ledger: Any, clock: ManualClock) -> None:
    answers = IdempotencyService(ledger)
    assert answers.remember("a", "/p", "k", "d") is None
    answers.forget("a", "/p", "k")
    assert answers.remember("a", "/p", "k", "d2") is None
    clock.advance(61)  # its server is gone
    assert answers.remember("a", "/p", "k", "d2") is None
    answers.keep("a", "/p", "k", Answer(200, "x" * (1024 * 1024 + 1)))
    assert answers.remember("a", "/p", "k", "d2") is None


def test_a_request_that_is_at_work_for_long_keeps_its_key(ledger: Any, clock: ManualClock) -> None:
    answers = IdempotencyService(ledger)
    answers.remember("a", "/p", "k", "d")
    for _ in range(3):
        clock.advance(40)
        answers.hold("a", "/p", "k")
        with pytest.raises(Conflict):
            answers.remember("a", "/p", "k", "d")
    answers.forget("a", "/p", "k")
    answers.hold("a", "/p", "k")
    assert answers.remember("a", "/p", "k", "d") is None


def test_a_key_that_is_let_go_of_while_another_asks_is_taken_by_that_one(ledger: Any) -> None:
    """On a server the first may forget its key between the other's two statements."""
    answers = IdempotencyService(ledger)
    assert answers.remember("a", "/jobs", "k", "d1") is None

    class LetsGo:
        """A transaction in which the key goes after the first statement."""

        def __init__(self, tx: ControlTx) -> None:
            self.now_ms, self._tx, self._asked = tx.now_ms, tx, 0

        def execute(self, statement: str, values: Any = None) -> Any:
            self._asked += 1
            if self._asked == 2:
                self._tx.execute("DELETE FROM idempotency_keys")
            return self._tx.execute(statement, values)

    class Ledger:
        def write(self, make: Callable[[Any], Any]) -> Any:
            return ledger.write(lambda tx: make(LetsGo(tx)))

    assert IdempotencyService(cast(Any, Ledger())).remember("a", "/jobs", "k", "d2") is None
    with pytest.raises(Conflict):
        answers.remember("a", "/jobs", "k", "d1")


def test_answers_are_kept_for_a_day(ledger: Any, clock: ManualClock) -> None:
    answers = IdempotencyService(ledger)
    answers.remember("a", "/p", "k", "d")
    answers.keep("a", "/p", "k", Answer(200, "first"))
    clock.advance(24 * 3600 - 1)
    assert answers.remember("a", "/p", "k", "d") == Answer(200, "first")
    assert answers.purge() == 0
    clock.advance(1)
    assert answers.remember("a", "/p", "k", "other") is None
    clock.advance(24 * 3600)
    assert answers.purge() == 1
    assert answers.purge() == 0


def test_upkeep_is_done_by_one_instance_and_taken_over(open_ledger: Open, clock: ManualClock) -> None:
    ledgers = [open_ledger(clock=clock) for _ in range(2)]
    first, second = (Housekeeping(Services(ledger), every_s=5) for ledger in ledgers)
    packs, answers = PackRunService(ledgers[0]), IdempotencyService(ledgers[0])
    run = packs.register("a", payload={}, hints=Hints(heartbeat_s=1), actor="me").pack_run_id
    packs.heartbeat("a", run)
    answers.remember("a", "/p", "k", "d")
    assert [first.once(), second.once()] == [True, False]
    clock.advance(10)
    assert [second.once(), first.once()] == [False, True]
    assert packs.get("a", run).state == "timed_out"
    clock.advance(16)
    assert [second.once(), first.once()] == [True, False]
    clock.advance(24 * 3600)
    second.once()
    assert answers.purge() == 0


def test_upkeep_runs_by_itself_and_lets_go_at_the_end(open_ledger: Open) -> None:
    ledger = open_ledger()
    leader = Leader(ledger, "upkeep")
    with Housekeeping(Services(ledger), every_s=0.3).running():
        eventually(leader.leading)
    assert leader.leading() is None


def test_of_many_at_once_exactly_one_acts(open_ledger: Open) -> None:
    services = [IdempotencyService(open_ledger()) for _ in range(4)]
    told: list[str] = []

    def ask(service: IdempotencyService) -> None:
        try:
            told.append("acts" if service.remember("a", "/p", "k", "d") is None else "again")
        except Conflict:
            told.append("waits")

    threads = [threading.Thread(target=ask, args=(service,)) for service in services * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(told) == ["acts"] + ["waits"] * 11
