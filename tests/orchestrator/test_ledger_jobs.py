"""What a job is on the ledger: its states, what it carries, what needs no naming, and what a poison job leaves."""

from __future__ import annotations

import pytest

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, JobFilter, JobRecord, NewJob, WorkerEnd


def test_a_job_is_in_one_of_eight_states(ledger, sql):
    """QUE-14: the same words for programs, people and the database, which refuses any other."""
    words = {"pending", "queued", "in_progress", "done", "skipped", "error", "canceled", "timed_out"}
    assert {state.value for state in JobState} == words
    [(table,)] = sql("SELECT sql FROM sqlite_master WHERE name = 'jobs'")
    assert all(f"'{word}'" in table for word in words)
    assert words <= ledger.stats().keys()


def test_a_retry_waits_as_queued_and_only_a_dependent_as_pending(ledger, clock, lease_one):
    """QUE-14."""
    job = lease_one()
    [after] = ledger.enqueue_many([NewJob("after", {}, depends_on=[job.job_id])])
    assert ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 30, 3, "timeout")) is JobState.QUEUED
    waiting = ledger.job(job.job_id)
    assert (waiting.state, waiting.stage) == ("queued", "backoff")
    assert waiting.next_eligible_at == pytest.approx(clock.now() + 30)
    assert ledger.job(after.job_id).state == "pending"


def test_a_job_carries_its_lease_and_its_retry_policy(ledger, clock, lease_one):
    """QUE-25: whoever has the row, or the lease, needs nothing else to go by."""
    job = lease_one("w", ttl_s=60, max_attempts=5, idempotency_key="k")
    record = ledger.job(job.job_id)
    for name in ("fence", "lease_id", "attempts", "max_attempts", "idempotency_key", "payload_digest"):
        assert getattr(record, name) == getattr(job, name), name
    assert (record.worker_id, record.max_attempts) == ("w", 5)
    assert record.lease_until == job.lease_until == pytest.approx(clock.now() + 60)


def test_a_local_user_names_nothing_but_the_work(ledger):
    """LEDG-07."""
    [answer] = ledger.enqueue_many([NewJob("doi:10.1/x", {})])
    record = ledger.job(answer.job_id)
    assert (record.tenant, record.project, record.priority) == ("default", None, 0)
    assert record.job_type == "content.download"


def test_what_names_a_tenant_finds_only_its_jobs(ledger):
    """LEDG-08, as far as a ledger goes: the same work of two tenants is two jobs, each found under its own."""
    mine, theirs = ledger.enqueue_many([NewJob("a:1", {}, tenant="one"), NewJob("a:1", {}, tenant="two")])
    assert mine.job_id != theirs.job_id
    assert [job.job_id for job in ledger.list_jobs(wanted=JobFilter(tenant="one"))] == [mine.job_id]
    found = ledger.find("a:1", tenant="two")
    assert found is not None
    assert found.job_id == theirs.job_id
    assert ledger.find("a:1", tenant="three") is None


def test_a_poison_job_ends_in_error_while_others_go_on_and_can_be_looked_at_and_repeated(ledger, enqueue):
    """FAIL-05: every worker that takes the first job dies with it."""
    poison, *others = enqueue(3, max_attempts=3)
    done: list[int] = []
    for life in range(4):
        for job in ledger.lease(f"w{life}", 9, 600) + ledger.lease_suspect(f"w{life}", 600):
            if job.job_id != poison:
                ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
                done.append(job.job_id)
        end = WorkerEnd("ended_worker: by SIGSEGV at verify", {"stage": "verify"}) if life >= 2 else None
        assert ledger.release_worker(f"w{life}", [poison], end=end) == 1
    assert done == others
    record: JobRecord = ledger.job(poison)
    assert (record.state, record.attempts, record.crashes) == ("error", 0, 4)
    assert (record.last_error, record.result_json) == ("ended_worker: by SIGSEGV at verify", '{"stage":"verify"}')
    assert [row.event for row in ledger.history(poison)].count("worker_lost") == 4
    assert ledger.lease("w", 1, 600) == []
    assert ledger.retry_failed(job_ids=[poison]) == 1
    [again] = ledger.lease("w", 1, 600)
    assert (again.job_id, again.attempts) == (poison, 0)
