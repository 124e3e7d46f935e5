"""Leasing under rules, on every ledger: limits that hold, tenants that share, and words for what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.incidents import IncidentService
from DocsToKG.Orchestrator.control.maintenance import MaintenanceService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.control.tenants import TenantService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.jobs.states import UNAVAILABLE, JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Release

Open = Callable[..., Any]
BY = {"actor": "ann", "reason": "test", "ticket": "OPS-1"}


def enqueue(ledger: Any, count: int, tenant: str = "a", job_type: str = "t", **more: Any) -> list[int]:
    start = ledger.stats()["total"]
    jobs = [NewJob(f"{tenant}:{start + n}", {}, tenant=tenant, job_type=job_type, **more) for n in range(count)]
    return [answer.job_id for answer in ledger.enqueue_many(jobs)]


def lease(ledger: Any, limit: int = 100, **more: Any) -> list[Any]:
    return list(ledger.lease("w", limit, 600, **more))


def finish(ledger: Any, job: Any, state: JobState = JobState.DONE) -> None:
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, state))


def tenants(jobs: list[Any]) -> Counter[str]:
    return Counter(job.tenant for job in jobs)


def test_a_quota_holds_and_frees_as_jobs_end(ledger: Any) -> None:
    """QUOTA-01, QUOTA-02: what ends, fails, is given back or runs out makes room."""
    QuotaService(ledger).set("a", "t", 4, 10_000, 1000, **BY)
    enqueue(ledger, 20)
    enqueue(ledger, 3, "b")
    first = lease(ledger)
    assert tenants(first) == {"a": 4, "b": 3}
    assert lease(ledger) == []
    mine = [job for job in first if job.tenant == "a"]
    finish(ledger, mine[0])
    ledger.fail(Fail(mine[1].job_id, mine[1].fence, mine[1].lease_id, 60, 3, "x"))
    ledger.release(Release(mine[2].job_id, mine[2].fence, mine[2].lease_id))
    assert tenants(lease(ledger)) == {"a": 3}
    assert ledger.verify_history()


def test_a_lease_that_ran_out_makes_room(ledger: Any, clock: ManualClock) -> None:
    """QUOTA-17: a lost lease releases too."""
    QuotaService(ledger).set("a", "t", 2, 10_000, 1000, **BY)
    enqueue(ledger, 4)
    assert len(ledger.lease("dead", 10, 60)) == 2
    clock.advance(30)
    assert lease(ledger) == []
    clock.advance(31)
    assert len(lease(ledger)) == 2


def test_starts_of_any_hour_stay_within_the_quota(ledger: Any, clock: ManualClock) -> None:
    """QUOTA-03: over a day of leasing in odd steps, no hour has more starts than maxPerHour and burst together."""
    QuotaService(ledger).set("a", "t", 1000, 30, 5, **BY)
    enqueue(ledger, 400)
    starts: list[float] = []
    for step in range(60):
        for job in lease(ledger):
            starts.append(clock.now())
            finish(ledger, job)
        clock.advance((7, 61, 240, 1200)[step % 4])
    assert len(starts) > 100
    for start in starts:
        assert sum(start <= other < start + 3600 for other in starts) <= 35


def test_a_staged_lane_says_when_its_next_job_may_start(ledger: Any, clock: ManualClock) -> None:
    """JOB-05: and the job starts by itself when it is due."""
    QuotaService(ledger).set("a", "t", 100, 60, 1, **BY)
    [one, two] = enqueue(ledger, 2)
    assert [job.job_id for job in lease(ledger)] == [one]
    assert lease(ledger) == []
    [(by, until)] = ledger.read(
        lambda tx: tx.execute("SELECT blocked_by, blocked_until FROM lanes WHERE tenant = 'a' AND job_type = 't'")
    )
    assert (by, until) == ("quota", int((clock.now() + 60) * 1000))
    assert ledger.why(two).reason == "quota"
    assert ledger.why(two).at == pytest.approx(clock.now() + 60, abs=0.01)
    clock.advance(60)
    assert [job.job_id for job in lease(ledger)] == [two]


def test_why_names_what_is_in_the_way(ledger: Any, clock: ManualClock) -> None:
    """Maintenance, block, throttle and breaker by name, with the time where there is one; quota above."""
    [job_id] = enqueue(ledger, 1, source="arxiv")
    assert ledger.why(job_id).reason == "queued"
    maintenance, throttles = MaintenanceService(ledger), ThrottleService(ledger)
    maintenance.on(actor="ann", reason="new disks")
    TenantService(ledger).block("a", actor="ann", reason="abuse")
    throttles.apply("a", source="arxiv", pause=True, expires_in_s=90, **BY)
    BreakerService(ledger).force_open("a", "jobtype:t", **BY)
    assert lease(ledger) == []
    found = ledger.why(job_id)
    assert (found.reason, found.at) == ("maintenance", None)
    assert "new disks" in found.detail
    maintenance.off(actor="ann")
    assert ledger.why(job_id).reason == "tenant"
    assert "abuse" in ledger.why(job_id).detail
    TenantService(ledger).unblock("a", actor="ann")
    found = ledger.why(job_id)
    assert (found.reason, found.at) == ("throttle", pytest.approx(clock.now() + 90, abs=0.01))
    throttles.resume_source("a", "arxiv", actor="ann")
    assert ledger.why(job_id).reason == "breaker"
    assert lease(ledger) == []
    BreakerService(ledger).force_close("a", "jobtype:t", **BY)
    assert ledger.why(job_id).reason == "queued"
    assert [job.job_id for job in lease(ledger)] == [job_id]


def test_a_source_is_paused_alone(ledger: Any) -> None:
    """THR-01, THR-02."""
    enqueue(ledger, 5, source="arxiv")
    enqueue(ledger, 5, source="pmc")
    enqueue(ledger, 5)
    throttles = ThrottleService(ledger)
    throttles.pause_source("a", "arxiv", **BY)
    throttles.apply("a", source="pmc", max_active=2, **BY)
    assert Counter(job.source for job in lease(ledger)) == {"pmc": 2, None: 5}
    throttles.resume_source("a", "arxiv", actor="ann")
    assert Counter(job.source for job in lease(ledger)) == {"arxiv": 5}


def test_maintenance_halts_leases_and_nothing_else(ledger: Any, clock: ManualClock) -> None:
    """OPS-03."""
    enqueue(ledger, 2)
    [job] = lease(ledger, 1)
    MaintenanceService(ledger).on(actor="ann", reason="x")
    assert lease(ledger) == []
    assert ledger.heartbeat("w", 600) == {job.lease_id}
    finish(ledger, job)
    assert ledger.stats()["done"] == 1
    MaintenanceService(ledger).off(actor="ann")
    assert len(lease(ledger)) == 1


def test_a_rule_acts_on_another_instance_at_its_next_lease(open_ledger: Open) -> None:
    """THR-03: without a restart, in both directions."""
    one, other = open_ledger(), open_ledger()
    enqueue(one, 10)
    assert len(lease(other, 1)) == 1
    held = ThrottleService(one).apply("a", pause=True, **BY)
    assert lease(other) == []
    ThrottleService(one).lift("a", held.throttle_id, actor="ann")
    assert len(lease(other, 2)) == 2
    QuotaService(one).set("a", "*", 4, 1000, 100, **BY)
    assert len(lease(other)) == 1


def test_tenants_share_a_lease_by_weight_and_priority_rules_within(ledger: Any) -> None:
    """QUOTA-06, JOB-06."""
    TenantService(ledger).weigh("b", weight=3, actor="ann")
    low, high = enqueue(ledger, 20), enqueue(ledger, 2, priority=5)
    enqueue(ledger, 20, "b")
    jobs = lease(ledger, 8)
    assert tenants(jobs) == {"a": 2, "b": 6}
    assert [job.job_id for job in jobs if job.tenant == "a"] == high
    assert low[0] not in [job.job_id for job in jobs]


def test_a_flood_costs_the_others_nothing(ledger: Any) -> None:
    """One tenant has many jobs; the others are found by stepping over them, and get as much."""
    MaintenanceService(ledger).start_governing()
    enqueue(ledger, 3000, "flood")
    for n in range(20):
        enqueue(ledger, 3, f"small{n:02}")
    jobs = lease(ledger, 42)
    assert set(tenants(jobs).values()) == {2}
    assert len(tenants(jobs)) == 21


def test_a_policy_shares_its_capacity_and_is_never_overdrawn(ledger: Any) -> None:
    """QUOTA-05, QUOTA-11: also when a second tenant comes while the first has everything."""
    quotas = QuotaService(ledger)
    quotas.policies.create("pool", "Equal", 10, actor="ann")
    enqueue(ledger, 30)
    first = lease(ledger)
    assert tenants(first) == {"a": 10}
    enqueue(ledger, 30, "b")
    assert lease(ledger) == []
    for job in first[:6]:
        finish(ledger, job)
    assert tenants(lease(ledger)) == {"a": 1, "b": 5}
    assert lease(ledger) == []


def test_the_smaller_of_quota_and_share_counts(ledger: Any) -> None:
    """QUOTA-19."""
    quotas = QuotaService(ledger)
    quotas.policies.create("pool", "Equal", 10, actor="ann")
    quotas.set("a", "t", 3, 1000, 100, actor="ann")
    enqueue(ledger, 30)
    assert len(lease(ledger)) == 3
    status = quotas.status("a", "t")
    assert (status.effective, status.allocation.share, status.quotas[0].max_active, status.active) == (3, 10, 3, 3)
    seen = quotas.can_schedule("a", "t")
    assert (seen.can_schedule, seen.blocked_by) == (False, "quota")
    assert quotas.can_schedule("b", "t").can_schedule


def fail_many(ledger: Any, count: int) -> None:
    for job in lease(ledger, count):
        finish(ledger, job, JobState.ERROR)


def test_jobs_that_end_with_the_answer_no_do_not_pause_their_type(ledger: Any) -> None:
    """BRK-10: a paper that is nowhere to be had says nothing against downloads."""
    MaintenanceService(ledger).start_governing()
    enqueue(ledger, 60)
    for job in lease(ledger, 30):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "no copy", outcome=UNAVAILABLE))
    assert BreakerService(ledger).get("a", "jobtype:t").failure_rate == 0
    assert len(lease(ledger, 30)) == 30


def test_a_failing_job_type_is_paused_with_an_incident_and_comes_back_by_tests(ledger: Any, clock: ManualClock) -> None:
    """BRK-04, BRK-10, INC-02, THR-05: exactly as many tests pass as allowed, and good ones close it."""
    MaintenanceService(ledger).start_governing()
    enqueue(ledger, 60)
    enqueue(ledger, 5, "b")
    enqueue(ledger, 5, job_type="u")
    breakers, incidents, throttles = BreakerService(ledger), IncidentService(ledger), ThrottleService(ledger)
    jobs = [job for job in lease(ledger, 100, job_type="t") if job.tenant == "a"][:20]
    for job in jobs[:9]:
        finish(ledger, job)
    for job in jobs[9:]:
        finish(ledger, job, JobState.ERROR)
    assert breakers.get("a", "jobtype:t").state == "open"
    assert breakers.get("a", "jobtype:t").failure_rate == pytest.approx(11 / 20)
    [pause] = throttles.list("a")
    assert (pause.origin, pause.job_type, pause.expires_at) == ("breaker", "t", pytest.approx(clock.now() + 30))
    [incident] = incidents.list("a").incidents
    assert (incident.source, incident.state, incident.count) == ("breaker:jobtype:t", "open", 1)
    assert tenants(lease(ledger)) == {"a": 5}  # the other type goes on; those of t are leased or held
    clock.advance(700)
    tests = [job for job in lease(ledger) if (job.tenant, job.job_type) == ("a", "t")]
    assert len(tests) == 3
    assert [job for job in lease(ledger) if (job.tenant, job.job_type) == ("a", "t")] == []
    assert breakers.get("a", "jobtype:t").state == "half-open"
    finish(ledger, tests[0], JobState.ERROR)
    assert breakers.get("a", "jobtype:t").state == "open"
    [incident] = incidents.list("a").incidents
    assert incident.count == 2
    clock.advance(61)  # twice as long
    tests = [job for job in lease(ledger) if (job.tenant, job.job_type) == ("a", "t")]
    assert len(tests) == 3
    for job in tests:
        finish(ledger, job)
    assert breakers.get("a", "jobtype:t").state == "closed"
    assert throttles.list("a") == []
    assert len([job for job in lease(ledger) if (job.tenant, job.job_type) == ("a", "t")]) > 3
    states = [change.new_state for change in reversed(breakers.transitions("a", "jobtype:t"))]
    assert sorted(states) == sorted(["open", "half-open", "open", "half-open", "closed"])
    assert ledger.verify_history()


def test_an_automatic_pause_can_be_lifted(ledger: Any) -> None:
    """THR-05."""
    MaintenanceService(ledger).start_governing()
    enqueue(ledger, 50)
    fail_many(ledger, 20)
    assert lease(ledger) == []
    [pause] = ThrottleService(ledger).list("a")
    lifted = ThrottleService(ledger).lift("a", pause.throttle_id, actor="ann", reason="mended")
    assert lifted.lifted_by == "ann"
    assert BreakerService(ledger).get("a", "jobtype:t").state == "closed"
    assert len(lease(ledger)) == 30


def test_without_rules_ends_are_judged_by_nobody(ledger: Any) -> None:
    enqueue(ledger, 50)
    fail_many(ledger, 30)
    assert ledger.read(lambda tx: tx.execute("SELECT count(*) FROM breakers")) == [(0,)]
    assert len(lease(ledger)) == 20


def test_those_who_wait_for_work_do_not_spin_while_it_is_held(ledger: Any, clock: ManualClock) -> None:
    enqueue(ledger, 2)
    held = ThrottleService(ledger).apply("a", pause=True, **BY)
    assert lease(ledger) == []
    assert not ledger.wait_for_work(0.05)
    ThrottleService(ledger).lift("a", held.throttle_id, actor="ann")
    clock.advance(1)
    assert ledger.wait_for_work(30)
    assert len(lease(ledger)) == 2


def test_hosts_take_turns_while_rules_limit_nothing_and_one_tenant_waits(ledger: Any) -> None:
    MaintenanceService(ledger).start_governing()
    enqueue(ledger, 5, host_key="one.example")
    enqueue(ledger, 5, host_key="two.example")
    assert Counter(job.host_key for job in lease(ledger, 4)) == {"one.example": 2, "two.example": 2}
