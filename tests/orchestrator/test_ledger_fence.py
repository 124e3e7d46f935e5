"""A worker that lost its lease changes nothing, whatever it tries (QUE-09)."""

from __future__ import annotations

import pytest

from DocsToKG.Orchestrator.errors import LeaseLost, UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Progress, Release

LATE_WRITES = {
    "finish": lambda job: ("submit_finish", Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)),
    "error": lambda job: ("submit_finish", Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "late")),
    "fail": lambda job: ("submit_fail", Fail(job.job_id, job.fence, job.lease_id, 0, 3, "late")),
    "release": lambda job: ("submit_release", Release(job.job_id, job.fence, job.lease_id)),
    "progress": lambda job: ("submit_progress", Progress(job.job_id, job.fence, job.lease_id, "store")),
}
late_writes = pytest.mark.parametrize("write", LATE_WRITES.values(), ids=LATE_WRITES)


def attempt(ledger, job, write):
    method, order = write(job)
    return getattr(ledger, method)(order).result()


@late_writes
def test_a_late_write_is_refused_once_another_owns_the_job(write, ledger, clock, lease_one):
    late = lease_one("frozen", ttl_s=60)
    clock.advance(61)
    [owner] = ledger.lease("owner", 1, 60)
    before, rows = ledger.job(owner.job_id), ledger.history(owner.job_id)
    with pytest.raises(LeaseLost) as lost:
        attempt(ledger, late, write)
    assert (lost.value.job_id, lost.value.fence) == (late.job_id, late.fence)
    assert (ledger.job(owner.job_id), ledger.history(owner.job_id)) == (before, rows)
    assert ledger.finish(Finish(owner.job_id, owner.fence, owner.lease_id, JobState.DONE)) == "applied"


@late_writes
def test_a_late_write_is_refused_after_the_job_was_freed_from_its_dead_worker(write, ledger, lease_one):
    late = lease_one("dead")
    ledger.release_worker("dead")
    with pytest.raises(LeaseLost):
        attempt(ledger, late, write)
    assert ledger.job(late.job_id).state == "queued"


@late_writes
def test_a_late_write_is_refused_after_a_cancel(write, ledger, lease_one):
    late = lease_one()
    ledger.cancel(late.job_id, "withdrawn")
    with pytest.raises(LeaseLost):
        attempt(ledger, late, write)
    assert ledger.job(late.job_id).state == "canceled"


@late_writes
def test_a_write_is_refused_after_the_lease_was_given_back(write, ledger, lease_one):
    job = lease_one()
    ledger.release(Release(job.job_id, job.fence, job.lease_id))
    with pytest.raises(LeaseLost):
        attempt(ledger, job, write)
    assert (ledger.job(job.job_id).state, ledger.job(job.job_id).attempts) == ("queued", 0)


@pytest.mark.parametrize("field", ["fence", "lease_id"])
def test_half_a_name_is_not_enough(field, ledger, lease_one):
    job = lease_one()
    named = {"fence": job.fence, "lease_id": job.lease_id} | ({"fence": 7} if field == "fence" else {"lease_id": "x"})
    with pytest.raises(LeaseLost):
        ledger.finish(Finish(job.job_id, state=JobState.DONE, **named))


def test_a_finish_sent_twice_is_applied_once(ledger, lease_one):
    """The reply may be lost on the way; the same answer again is no harm."""
    job = lease_one()
    order = Finish(job.job_id, job.fence, job.lease_id, JobState.SKIPPED, "robots", {"host": "example.org"})
    assert [ledger.finish(order), ledger.finish(order)] == ["applied", "already"]
    assert [row.event for row in ledger.history(job.job_id)] == ["enqueued", "leased", "finished"]


@pytest.mark.parametrize(
    "change", [{"state": JobState.DONE}, {"last_error": "other"}, {"result": {"host": "other.org"}}], ids=str
)
def test_a_different_finish_after_the_first_is_refused(change, ledger, lease_one):
    job = lease_one()
    words = {"state": JobState.SKIPPED, "last_error": "robots", "result": {"host": "example.org"}}
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, **words))
    with pytest.raises(LeaseLost):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, **(words | change)))


def test_a_failure_sent_twice_counts_once(ledger, lease_one):
    job = lease_one()
    order = Fail(job.job_id, job.fence, job.lease_id, 30, 3, "timeout")
    assert [ledger.fail(order), ledger.fail(order)] == ["queued", "queued"]
    assert ledger.job(job.job_id).attempts == 1


def test_a_finish_after_expiry_stands_while_nobody_else_took_the_job(ledger, clock, lease_one):
    """The fence proves that there was no other owner, so the work is not thrown away."""
    job = lease_one(ttl_s=60)
    clock.advance(600)
    assert ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"


def test_a_job_that_does_not_exist_is_named(ledger):
    with pytest.raises(UnknownJob, match="99"):
        ledger.job(99)
    with pytest.raises(UnknownJob):
        ledger.cancel(99, "why")
    with pytest.raises(LeaseLost):
        ledger.finish(Finish(99, 1, "x", JobState.DONE))


def test_a_number_that_no_column_holds_is_no_jobs(ledger):
    for number in (2**63, 10**30, -(2**63)):
        with pytest.raises(UnknownJob):
            ledger.job(number)
        assert ledger.why(number).reason == "unknown"


def test_the_database_refuses_a_fence_that_shrinks(lease_one, sql):
    job = lease_one()
    with pytest.raises(Exception, match="only grows"):
        sql("UPDATE jobs SET fence = 0 WHERE id = ?", job.job_id)


def test_many_ends_in_one_call_are_fenced_one_by_one(ledger):
    """QUE-10: a stale end among them is refused in its place and spoils no other."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(3)])
    first, second, third = ledger.lease("w", 3, 60)
    ends = [
        Finish(first.job_id, first.fence, first.lease_id, JobState.DONE),
        Finish(second.job_id, second.fence - 1, second.lease_id, JobState.DONE),
        Finish(third.job_id, third.fence, third.lease_id, JobState.ERROR, "gone"),
    ]
    answers = ledger.submit_finishes(ends).result(timeout=60)
    assert (answers[0], answers[2]) == ("applied", "applied")
    assert isinstance(answers[1], LeaseLost)
    again = ledger.submit_finishes(ends).result(timeout=60)
    assert (again[0], again[2]) == ("already", "already")
    assert ledger.stats()["in_progress"] == 1


def test_a_job_is_ended_and_the_next_one_leased_in_one_transaction(ledger, enqueue, clock):
    """What a worker with one job at a time does: one visit for each job, fenced and written down like two."""
    first, second, third = enqueue(3)
    [job] = ledger.lease("w", 1, 60)
    for expected in (second, third, None):
        done = Finish(job.job_id, job.fence, job.lease_id, JobState.DONE, result={"n": 1})
        told, jobs = ledger.finish_and_lease([done], "w", 1, 60, begun=True)
        assert told == ["applied"]
        assert [each.job_id for each in jobs] == ([] if expected is None else [expected])
        job = jobs[0] if jobs else job
    assert ledger.stats()["done"] == 3
    assert [row.event for row in ledger.history(second)] == ["enqueued", "leased", "finished"]
    assert ledger.history(first)[-1].at == ledger.history(second)[-2].at
    assert ledger.verify_history()


def test_a_lost_lease_takes_nothing_from_the_jobs_that_are_given(ledger, enqueue, clock, lease_one):
    """The worker has to hear of its new jobs, whatever became of the old ones."""
    late = lease_one("frozen", ttl_s=60)
    clock.advance(61)
    [owner] = ledger.lease("owner", 1, 60)
    [next_id] = enqueue(1)
    told, [job] = ledger.finish_and_lease(
        [Finish(late.job_id, late.fence, late.lease_id, JobState.DONE)], "frozen", 5, 60
    )
    assert isinstance(told[0], LeaseLost)
    assert job.job_id == next_id
    assert ledger.job(owner.job_id).state == "in_progress"
    again = Finish(job.job_id, job.fence, job.lease_id, JobState.SKIPPED)
    assert ledger.finish_and_lease([again], "frozen", 0, 60) == (["applied"], [])
    assert ledger.finish_and_lease([again], "frozen", 1, 60) == (["already"], [])


def test_ends_without_room_for_more_and_leases_without_ends(ledger, enqueue):
    [job_id] = enqueue(1)
    told, [job] = ledger.finish_and_lease([], "w", 1, 60, job_type="content.download", tenants=["default"])
    assert (told, job.job_id) == ([], job_id)
    assert ledger.finish_and_lease([], "w", 1, 60) == ([], [])
