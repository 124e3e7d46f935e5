"""The bridge to workers without a database, on every ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.jobs.service import JobService
from DocsToKG.Orchestrator.control.workers.lease_rows import JobLease, Provenance
from DocsToKG.Orchestrator.control.workers.leases import LeaseService, NextLease
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost
from DocsToKG.Orchestrator.ledger.base import JobState, NewJob

Open = Callable[..., Any]


@pytest.fixture
def leases(ledger: Any) -> LeaseService:
    return LeaseService(ledger, chance=lambda: 0.0)


def enqueue(ledger: Any, count: int = 1, tenant: str = "a", **more: Any) -> list[int]:
    start = ledger.stats()["total"]
    jobs = [NewJob(f"x{start + n}", {"n": n}, tenant=tenant, **more) for n in range(count)]
    return [answer.job_id for answer in ledger.enqueue_many(jobs)]


def one(leases: LeaseService, tenant: str = "a", **more: Any) -> JobLease:
    [lease] = leases.lease(tenant, "w1", **more)
    return lease


def test_a_lease_carries_all_that_a_task_runner_needs(ledger: Any, leases: LeaseService, clock: ManualClock) -> None:
    """JOB-07, JOB-08."""
    [job_id] = enqueue(
        ledger,
        project="p",
        source="s",
        correlation_id="c",
        trace_context="00-ab-cd-01",
        idempotency_key="k",
        priority=3,
    )
    clock.advance(5)
    lease = one(leases, ttl_s=120)
    assert (lease.job_id, lease.lease_until, lease.idempotency_key) == (job_id, clock.now() + 120, "k")
    assert lease.provenance == Provenance("a", "p", "c", "w1")
    assert lease.instrumentation.traceparent == "00-ab-cd-01"
    assert (lease.source, lease.waited_s, lease.renew_s) == ("s", 5.0, 12.0)
    assert (lease.retry.attempt, lease.retry.max_attempts, lease.retry.backoff_s) == (1, 3, 60.0)
    assert lease.payload == {"n": 0}
    enqueue(ledger)
    assert one(leases).idempotency_key


def test_only_jobs_of_the_tenant_and_of_the_types_named_are_leased(ledger: Any, leases: LeaseService) -> None:
    """LEDG-08: also when all the jobs before them in line are another's."""
    enqueue(ledger, 30, tenant="b", priority=5)
    enqueue(ledger, 2, tenant="default")
    slow, quick = enqueue(ledger, 1, job_type="slow"), enqueue(ledger, 1, job_type="quick", source="s")
    other = enqueue(ledger, 1, job_type="other", host_key="h.example")
    assert leases.lease("c", "w", limit=10) == []
    assert leases.lease("a", "w", job_types=["none"], limit=10) == []
    assert [lease.job_id for lease in leases.lease("a", "w", job_types=["quick"], limit=10)] == quick
    assert {lease.job_id for lease in leases.lease("a", "w", job_types=["other", "slow"], limit=1)} == set(other)
    assert [lease.job_id for lease in leases.lease("a", "w", limit=10)] == slow
    assert leases.lease("a", "w", limit=10) == []
    assert len(leases.lease("b", "w", limit=100)) == 30


def test_priority_then_age_decides_within_a_tenant(ledger: Any, leases: LeaseService) -> None:
    """JOB-06."""
    old, new = enqueue(ledger, 2)
    [urgent] = enqueue(ledger, priority=9, source="s")
    assert [lease.job_id for lease in leases.lease("a", "w", limit=3)] == [urgent, old, new]


def test_bad_requests_are_refused(leases: LeaseService) -> None:
    for wrong in ({"limit": 0}, {"limit": 501}, {"ttl_s": 0.0}, {"ttl_s": 1e9}, {"ttl_s": float("nan")},
                  {"job_types": ["x"] * 101}, {"job_types": [""]}):  # fmt: skip
        with pytest.raises(BadJob):
            leases.lease("a", "w", **wrong)  # type: ignore[arg-type]
    with pytest.raises(BadJob):
        leases.lease("a", "")
    with pytest.raises(BadJob):
        leases.renew("a", [])


def test_nothing_is_leased_while_paused(ledger: Any, leases: LeaseService) -> None:
    enqueue(ledger)
    ledger.pause()
    assert leases.lease("a", "w") == []
    ledger.resume()
    assert leases.lease("a", "w")


def test_a_renewal_tells_held_lost_and_canceled_with_the_reason(
    ledger: Any, leases: LeaseService, clock: ManualClock
) -> None:
    """JOB-09, JOB-15."""
    enqueue(ledger, 4)
    kept, canceled, expired, ended = leases.lease("a", "w1", limit=4, ttl_s=60)
    JobService(ledger).cancel("a", canceled.job_id, actor="op", reason="wrong paper")
    leases.complete("a", ended.lease_id, "succeeded")
    clock.advance(50)
    leases.renew("a", [kept.lease_id], ttl_s=60)
    clock.advance(20)
    asked = [kept, canceled, expired, ended, kept]
    told = leases.renew("a", [*(lease.lease_id for lease in asked), "nonsense", "lease_" + "0" * 32 + "_1"], ttl_s=60)
    assert [renewal.state for renewal in told] == ["held", "canceled", "lost", "lost", "held", "lost", "lost"]
    assert told[0].lease_until == clock.now() + 60
    assert told[1].reason == "wrong paper"
    assert {renewal.state for renewal in leases.renew("b", [kept.lease_id, canceled.lease_id])} == {"lost"}
    assert leases.renew("a", [kept.lease_id], ttl_s=1)[0].lease_until == clock.now() + 60
    notes = ledger.read(lambda tx: tx.execute("SELECT actor, detail_json FROM job_history WHERE event = 'renewed'"))
    assert notes == [("w1", '{"leases": 1}')] * 3


def test_progress_shows_the_stage_and_the_result_so_far(ledger: Any, leases: LeaseService) -> None:
    [job_id] = enqueue(ledger)
    lease = one(leases)
    leases.progress("a", lease.lease_id, "resolving")
    assert ledger.job(job_id).stage == "resolving"
    leases.progress("a", lease.lease_id, "fetching", result={"tried": ["u1"]})
    detail = JobService(ledger).detail("a", job_id)
    assert (detail.stage, detail.result) == ("fetching", {"tried": ["u1"]})
    for wrong in ("", "x" * 65):
        with pytest.raises(BadJob):
            leases.progress("a", lease.lease_id, wrong)
    with pytest.raises(BadJob):
        leases.progress("a", lease.lease_id, "s", result={"x": "y" * 300_000})
    leases.complete("a", lease.lease_id, "succeeded", result={"file": "f"})
    assert JobService(ledger).detail("a", job_id).result == {"file": "f"}


@pytest.mark.parametrize(
    ("status", "more", "state"),
    [
        ("succeeded", {}, "done"),
        ("succeeded", {"outcome": "skipped"}, "skipped"),
        ("failed", {"reason": "E: no", "retryable": False}, "error"),
        ("canceled", {}, "canceled"),
        ("timed_out", {"reason": "E: slow"}, "timed_out"),
        ("failed", {"reason": "E: no"}, "queued"),
        ("timed_out", {"reason": "E: slow", "retryable": True}, "queued"),
    ],
)
def test_a_completion_ends_the_job_or_brings_it_back(
    ledger: Any, leases: LeaseService, clock: ManualClock, status: str, more: dict[str, Any], state: str
) -> None:
    """JOB-10, JOB-12."""
    [job_id] = enqueue(ledger)
    lease = one(leases)
    told = leases.complete("a", lease.lease_id, status, result={"r": 1}, **more)
    assert (told.job_id, told.state, told.retried) == (job_id, state, state == "queued")
    assert told.next_eligible_at == (clock.now() + 60 if state == "queued" else None)
    assert leases.complete("a", lease.lease_id, status, result={"r": 1}, **more).state == state
    assert ledger.job(job_id).result_json == '{"r":1}'


def test_a_failure_waits_longer_each_time_and_ends_after_its_tries(
    ledger: Any, leases: LeaseService, clock: ManualClock
) -> None:
    enqueue(ledger)
    waits = []
    for turn in range(3):
        lease = one(leases)
        assert lease.retry.attempt == turn + 1
        told = leases.complete("a", lease.lease_id, "failed", reason="E: no")
        waits.append(told.next_eligible_at and told.next_eligible_at - clock.now())
        clock.advance(1000)
    assert waits == [60.0, 120.0, None]
    assert told.state is JobState.ERROR


def test_how_long_a_job_took_is_known_once_it_is_over(ledger: Any, clock: ManualClock) -> None:
    """MET-19."""
    leases = LeaseService(ledger, chance=lambda: 0.0)
    enqueue(ledger, 3)
    done, failed, tried = leases.lease("a", "w", limit=3)
    clock.advance(4)
    assert leases.complete("a", done.lease_id, "succeeded").took_s == 4.0
    assert leases.complete("a", failed.lease_id, "failed", reason="E", retryable=False).took_s == 4.0
    assert leases.complete("a", tried.lease_id, "failed", reason="E").took_s is None


def test_the_worker_may_say_when_to_try_again(ledger: Any, leases: LeaseService, clock: ManualClock) -> None:
    enqueue(ledger)
    told = leases.complete("a", one(leases).lease_id, "failed", reason="http_429: slow down", retry_after_s=7)
    assert told.next_eligible_at == clock.now() + 7
    clock.advance(8)
    assert leases.complete("a", one(leases).lease_id, "failed", reason="E: x", retry_after_s=-5).retried


def test_a_job_given_back_comes_again_and_counts_no_try(ledger: Any, leases: LeaseService, clock: ManualClock) -> None:
    [job_id] = enqueue(ledger)
    lease = one(leases)
    leases.release("a", lease.lease_id, delay_s=20, why="the host is busy")
    assert leases.lease("a", "w") == []
    assert "the host is busy" in JobService(ledger).why("a", job_id).detail
    clock.advance(21)
    assert one(leases).retry.attempt == 1
    with pytest.raises(LeaseLost):
        leases.release("a", lease.lease_id)


def test_words_that_end_nothing_are_refused(ledger: Any, leases: LeaseService) -> None:
    enqueue(ledger)
    lease = one(leases)
    for status, reason in (("done", "x"), ("", "x"), ("failed", None), ("failed", "  "), ("timed_out", None)):
        with pytest.raises(BadJob):
            leases.complete("a", lease.lease_id, status, reason=reason)
    assert leases.renew("a", [lease.lease_id])[0].state == "held"


def test_a_stale_or_foreign_lease_changes_nothing(ledger: Any, leases: LeaseService, clock: ManualClock) -> None:
    """JOB-10, LEDG-08."""
    [job_id] = enqueue(ledger)
    stale = one(leases, ttl_s=10)
    clock.advance(11)
    fresh = one(leases)
    assert fresh.job_id == job_id
    for tenant, lease_id in (("a", stale.lease_id), ("b", fresh.lease_id), ("a", "x"), ("a", ""), ("a", "\ud800"),
                             ("a", "lease_" + "0" * 32 + "_" + "9" * 19)):  # fmt: skip
        for word in (
            lambda t, i: leases.complete(t, i, "succeeded"),
            lambda t, i: leases.complete(t, i, "failed", reason="E"),
            lambda t, i: leases.progress(t, i, "s"),
            lambda t, i: leases.progress(t, i, "s", result={}),
        ):
            with pytest.raises(LeaseLost):
                word(tenant, lease_id)
    assert leases.renew("a", [fresh.lease_id])[0].state == "held"
    assert leases.complete("a", fresh.lease_id, "succeeded").state == "done"
    with pytest.raises(LeaseLost):
        leases.complete("a", fresh.lease_id, "canceled")


def test_jobs_that_nobody_is_told_of_are_given_back_beside_one_that_was_called_off(
    ledger: Any, leases: LeaseService, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue(ledger, 3)
    mine = one(leases)
    jobs = ledger.lease("w1", 2, 60, tenants=("a",))
    ledger.cancel(jobs[0].job_id, "not needed")
    lost = LeaseLost(mine.job_id)
    monkeypatch.setattr(ledger, "finish_and_lease", lambda *_, **__: ([lost], jobs))
    with pytest.raises(LeaseLost) as told:
        leases.complete("a", mine.lease_id, "succeeded", then=NextLease("w1", limit=2))
    assert told.value is lost
    assert ledger.job(jobs[1].job_id).state is JobState.QUEUED


@pytest.mark.slow
@pytest.mark.parametrize("governed", [False, True])
def test_many_workers_at_once_share_the_jobs_without_a_double(open_ledger: Open, governed: bool) -> None:
    """JOB-19: workers of two tenants on several ledgers, with rules and without, and local ones beside them."""
    ledgers = [open_ledger() for _ in range(3)]
    if governed:
        ledgers[0].write(
            lambda tx: (
                tx.execute("INSERT INTO tenants (tenant, weight, updated_at) VALUES ('a', 2, 1)"),
                tx.rules_changed(),
            )
        )
    for tenant in ("a", "b"):
        for kind in ("t1", "t2"):
            ledgers[0].enqueue_many(
                [NewJob(f"{kind}/{n}", {}, tenant=tenant, job_type=kind, source=f"s{n % 2}") for n in range(60)]
            )
    got: list[tuple[str, int]] = []
    errors: list[BaseException] = []

    def work(ledger: Any, tenant: str, name: str) -> None:
        leases = LeaseService(ledger)
        try:
            while found := leases.lease(tenant, name, limit=3, job_types=["t1", "t2"]):
                for lease in found:
                    assert lease.provenance.tenant == tenant
                    leases.complete(tenant, lease.lease_id, "succeeded")
                    got.append((tenant, lease.job_id))
        except BaseException as error:
            errors.append(error)

    def work_here(ledger: Any) -> None:
        try:
            while found := ledger.lease("local", 2, 600, begun=True):
                for job in found:
                    LeaseService(ledger).complete(job.tenant, job.lease_id, "succeeded")
                    got.append((job.tenant, job.job_id))
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(ledger, tenant, f"{tenant}{number}/{n}"))
        for number, ledger in enumerate(ledgers)
        for tenant in ("a", "b")
        for n in range(3)
    ]
    threads.append(threading.Thread(target=work_here, args=(ledgers[0],)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    # A worker stops when it finds nothing, which may be while another holds what is left; the last one takes the rest.
    work(ledgers[0], "a", "last")
    work(ledgers[0], "b", "last")
    assert not errors
    assert len(got) == len(set(got)) == 240
    assert ledgers[0].stats()["done"] == 240
    assert ledgers[0].verify_history()
