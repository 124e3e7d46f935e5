"""Choosing many jobs at once: lists, counts and cancels by filter, and what a lease tells of the wait before it."""

from __future__ import annotations

import pytest

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger import reads
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, JobFilter, NewJob, Release


def ids(jobs) -> list[int]:
    return [job.job_id for job in jobs]


@pytest.fixture
def mixed(ledger, clock) -> None:
    """1 and 2 wait for hosts, 3 failed, 4 is another tenant's, 5 of another type and newer."""
    ledger.enqueue_many([NewJob("a:3", {}, priority=9)])
    [job] = ledger.lease("w", 1, 60)
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "Timeout: no answer from ONE.example"))
    ledger.enqueue_many([NewJob("a:1", {}, host_key="one.example"), NewJob("a:2", {}, host_key="two.example")])
    ledger.enqueue_many([NewJob("a:4", {}, tenant="other")])
    clock.advance(100)
    ledger.enqueue_many([NewJob("a:5", {}, job_type="report")])


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (JobFilter(), [1, 2, 3, 4, 5]),
        (JobFilter(states=(JobState.ERROR,)), [1]),
        (JobFilter(states=(JobState.ERROR, JobState.QUEUED)), [1, 2, 3, 4, 5]),
        (JobFilter(host="one.example"), [2]),
        (JobFilter(reason="timeout"), [1]),
        (JobFilter(reason="ANSWER from one"), [1]),
        (JobFilter(reason="%"), []),
        (JobFilter(tenant="other"), [4]),
        (JobFilter(job_type="report"), [5]),
        (JobFilter(job_ids=[2, 5, 99]), [2, 5]),
        (JobFilter(job_ids=[]), []),
        (JobFilter(host="one.example", tenant="other"), []),
        (JobFilter(reason="x' OR 1 --"), []),
    ],
)
def test_jobs_are_listed_by_everything_a_filter_asks(ledger, mixed, wanted, found):
    assert ids(ledger.list_jobs(wanted=wanted)) == found


def test_a_list_by_time_has_what_changed_since(ledger, clock, mixed):
    assert ids(ledger.list_jobs(wanted=JobFilter(since=clock.now() - 1))) == [5]
    assert ids(ledger.list_jobs(wanted=JobFilter(since=clock.now() - 101))) == [1, 2, 3, 4, 5]


def test_pages_and_a_state_go_together_with_a_filter(ledger, mixed):
    wanted = JobFilter(tenant="default")
    assert ids(ledger.list_jobs(JobState.QUEUED, 1, 2, wanted=wanted)) == [3]


def test_a_cancel_by_filter_calls_off_what_fits_and_is_not_over(ledger, lease_one, enqueue):
    running = lease_one(host_key="one.example")
    enqueue(3, host_key="one.example")
    enqueue(2, host_key="two.example")
    assert ledger.cancel_many(JobFilter(host="one.example"), "withdrawn", ticket="T-1") == 4
    assert ledger.stats()["canceled"] == 4
    assert ledger.stats()["queued"] == 2
    with pytest.raises(LeaseLost):
        ledger.finish(Finish(running.job_id, running.fence, running.lease_id, JobState.DONE))
    last = ledger.history(running.job_id)[-1]
    assert (last.event, last.reason, last.ticket, last.from_state) == ("canceled", "withdrawn", "T-1", "in_progress")
    assert ledger.cancel_many(JobFilter(host="one.example"), "again") == 0
    assert ledger.verify_history()


def test_a_cancel_by_filter_goes_over_many_pages_and_stops_dependents(ledger, enqueue, monkeypatch):
    monkeypatch.setattr(reads, "PAGE", 4)
    enqueue(10)
    ledger.enqueue_many([NewJob("after", {}, depends_on=[3])])
    assert ledger.cancel_many(JobFilter(states=(JobState.QUEUED,)), "withdrawn") == 10
    assert ledger.find("after").outcome == "dependency_failed"


def test_a_cancel_by_filter_needs_a_reason(ledger, enqueue):
    enqueue(1)
    with pytest.raises(BadJob, match="needs a reason"):
        ledger.cancel_many(JobFilter(), "  ")
    assert ledger.stats()["queued"] == 1


def test_a_job_that_no_longer_fits_is_left_alone(ledger, enqueue, monkeypatch):
    """Between the look and the write a worker may have given the job another host."""
    [job_id] = enqueue(1, host_key="one.example")
    look = reads.Reader.open_jobs

    def look_and_be_late(reader, wanted):
        seen = list(look(reader, wanted))
        [job] = ledger.lease("w", 1, 60)
        ledger.release(Release(job.job_id, job.fence, job.lease_id, host_key="two.example"))
        return iter(seen)

    monkeypatch.setattr(reads.Reader, "open_jobs", look_and_be_late)
    assert ledger.cancel_many(JobFilter(host="one.example"), "withdrawn") == 0
    assert ledger.job(job_id).state is JobState.QUEUED


# what a lease tells


def test_a_lease_tells_since_when_the_job_could_have_run(ledger, clock, enqueue):
    began = clock.now()
    enqueue(1, delay_s=5)
    clock.advance(12)
    [job] = ledger.lease("w", 1, 60)
    assert job.eligible_at == pytest.approx(began + 5)
    assert job.leased_at == pytest.approx(clock.now())
    assert job.waited_s == pytest.approx(7)


@pytest.mark.parametrize(
    ("give_back", "delay_s"),
    [
        (lambda ledger, job: ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 30, 3, "HTTP 503")), 30),
        (lambda ledger, job: ledger.release(Release(job.job_id, job.fence, job.lease_id, 10)), 10),
        (lambda ledger, job: ledger.release_worker("first"), 0),
    ],
)
def test_the_wait_begins_anew_when_a_job_comes_back(ledger, clock, lease_one, give_back, delay_s):
    job = lease_one()
    clock.advance(50)
    give_back(ledger, job)
    clock.advance(delay_s + 3)
    [again] = ledger.lease("second", 1, 60)
    assert again.waited_s == pytest.approx(3)


def test_a_dependent_could_first_have_run_when_its_need_was_done(ledger, clock, lease_one):
    need = lease_one()
    ledger.enqueue_many([NewJob("after", {}, depends_on=[need.job_id])])
    clock.advance(40)
    ledger.finish(Finish(need.job_id, need.fence, need.lease_id, JobState.DONE))
    clock.advance(2)
    [job] = ledger.lease("w", 1, 60)
    assert (job.artifact_id, job.waited_s) == ("after", pytest.approx(2))


def test_a_dependent_with_a_longer_delay_still_waits_for_it(ledger, clock, lease_one):
    need = lease_one()
    ledger.enqueue_many([NewJob("after", {}, depends_on=[need.job_id], delay_s=60)])
    ledger.finish(Finish(need.job_id, need.fence, need.lease_id, JobState.DONE))
    clock.advance(59)
    assert ledger.lease("w", 1, 60) == []
    clock.advance(1)
    [job] = ledger.lease("w", 1, 60)
    assert job.waited_s == pytest.approx(0, abs=0.01)


def test_what_the_producer_gave_to_trace_a_job_is_in_its_lease(lease_one):
    """A worker's span hangs below the producer's."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert lease_one(trace_context=trace, correlation_id="c-1").trace_context == trace


# why names the host


def test_a_parked_job_names_its_host_its_time_and_what_its_worker_said(ledger, clock, lease_one):
    job = lease_one()
    why = "makes room: rate of www.example.org"
    ledger.release(Release(job.job_id, job.fence, job.lease_id, 20, "www.example.org", why))
    answer = ledger.why(job.job_id)
    assert (answer.host, answer.at) == ("www.example.org", clock.now() + 20)
    assert answer.detail == f"waits for www.example.org until {utc_iso(clock.now() + 20)}: {why}"


def test_a_leased_job_names_its_host(ledger, lease_one):
    job = lease_one(host_key="www.example.org")
    answer = ledger.why(job.job_id)
    assert answer.host == "www.example.org"
    assert ", for www.example.org until" in answer.detail
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    assert ledger.why(job.job_id).host is None


def test_an_older_release_does_not_explain_a_later_failure(ledger, clock, lease_one):
    job = lease_one()
    ledger.release(Release(job.job_id, job.fence, job.lease_id, 0, None, "makes room"))
    [job] = ledger.lease("w", 1, 60)
    ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 30, 3, "HTTP 503"))
    assert ledger.why(job.job_id).detail == f"waits until {utc_iso(clock.now() + 30)} after: HTTP 503"
