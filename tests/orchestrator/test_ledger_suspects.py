"""Killed is not guilty: deaths cost no attempt, and only a job that ends the process alone with it is put aside."""

from __future__ import annotations

import pytest

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, Progress, Release, WorkerEnd

END = WorkerEnd("ended_worker: by SIGSEGV at verify", {"signal": "SIGSEGV", "stage": "verify"})


def new_suspect(ledger, enqueue):
    """A job that was in hand in two deaths in a row."""
    [job_id] = enqueue(max_attempts=1)
    for life in range(2):
        assert [job.job_id for job in ledger.lease(f"life-{life}", 1, 600)] == [job_id]
        assert ledger.release_worker(f"life-{life}", [job_id]) == 1
    return job_id


def test_what_a_dead_worker_held_comes_back_and_costs_no_attempt(ledger, enqueue):
    """QUE-20: what was in hand is noted, and nothing else is."""
    in_hand, begun, waiting = enqueue(3)
    job = ledger.lease("dead", 3, 600)[1]
    ledger.progress(Progress(job.job_id, job.fence, job.lease_id, "fetch"))
    assert ledger.release_worker("dead", [in_hand, 999_999]) == 3
    jobs = [ledger.job(n) for n in (in_hand, begun, waiting)]
    assert [(job.state, job.attempts, job.crashes) for job in jobs] == [
        ("queued", 0, 1),
        ("queued", 0, 0),
        ("queued", 0, 0),
    ]
    assert [(job.last_error or "").partition(":")[0] for job in jobs] == ["worker_lost", "", ""]


def test_where_nothing_could_be_noted_what_had_begun_counts(ledger, enqueue):
    begun, waiting = enqueue(2)
    [job, _] = ledger.lease("dead", 2, 600)
    ledger.progress(Progress(job.job_id, job.fence, job.lease_id, "fetch"))
    assert ledger.release_worker("dead", None) == 2
    assert [ledger.job(n).crashes for n in (begun, waiting)] == [1, 0]


def test_no_number_of_deaths_ends_a_job_that_nobody_was_alone_with(ledger, enqueue):
    """QUE-20, FAIL-01: also where everything dies together, over and over."""
    suspect = new_suspect(ledger, enqueue)
    for life in range(20):
        [job] = ledger.lease_suspect(f"alone-{life}", 600)
        assert (job.job_id, job.attempts) == (suspect, 0)
        assert ledger.release_worker(f"alone-{life}", [suspect]) == 1
    assert (ledger.job(suspect).state, ledger.job(suspect).crashes) == ("pending", 2)
    [job] = ledger.lease_suspect("last", 600)
    assert ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"


def test_a_suspect_is_leased_alone_and_keeps_nobody_waiting(ledger, enqueue):
    suspect = new_suspect(ledger, enqueue)
    others = enqueue(3)
    assert [job.job_id for job in ledger.lease("ordinary", 9, 600)] == others
    assert ledger.stats()["pending"] == 1
    assert [job.job_id for job in ledger.lease_suspect("alone", 600)] == [suspect]
    assert ledger.lease_suspect("another", 600) == []
    assert ledger.next_suspect_at() is None
    assert ledger.verify_history()


def test_what_ends_the_process_alone_with_it_twice_is_put_aside(ledger, enqueue):
    """QUE-21."""
    suspect = new_suspect(ledger, enqueue)
    for life, after in enumerate(("pending", "error")):
        [job] = ledger.lease_suspect(f"alone-{life}", 600)
        assert ledger.release_worker(f"alone-{life}", (), end=END) == 1
        assert ledger.job(suspect).state == after
    job = ledger.job(suspect)
    assert (job.attempts, job.last_error, job.finished_at is not None) == (0, END.reason, True)
    assert job.result_json == '{"signal":"SIGSEGV","stage":"verify"}'
    assert ledger.lease_suspect("last", 600) == []
    assert ledger.retry_failed() == 1
    assert (ledger.job(suspect).state, ledger.job(suspect).crashes) == ("queued", 0)


def test_a_word_of_its_end_says_nothing_of_an_ordinary_job(ledger, enqueue):
    [job_id] = enqueue()
    ledger.lease("w", 1, 600)
    ledger.release_worker("w", (), end=END)
    assert (ledger.job(job_id).state, ledger.job(job_id).crashes) == ("queued", 0)


def test_a_try_that_comes_to_its_end_clears_a_suspect(ledger, clock, enqueue):
    suspect = new_suspect(ledger, enqueue)
    [job] = ledger.lease_suspect("alone", 600)
    assert ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 0.0, 3, "busy")) == "queued"
    [job] = ledger.lease("ordinary", 1, 600)
    assert (job.job_id, job.attempts, ledger.job(suspect).crashes) == (suspect, 1, 0)


def test_a_suspect_that_is_given_back_stays_one_and_keeps_its_time(ledger, clock, enqueue):
    """Only to wait for a host proves nothing."""
    suspect = new_suspect(ledger, enqueue)
    [job] = ledger.lease_suspect("alone", 600)
    assert ledger.release(Release(job.job_id, job.fence, job.lease_id, delay_s=60)) == "pending"
    assert ledger.lease_suspect("alone", 600) == []
    assert ledger.next_suspect_at() == pytest.approx(clock.now() + 60, abs=0.01)
    assert ledger.next_eligible_at() == pytest.approx(clock.now() + 60, abs=0.01)
    clock.advance(61)
    assert ledger.lease("ordinary", 1, 600) == []
    assert [job.job_id for job in ledger.lease_suspect("alone", 600)] == [suspect]


def test_a_suspects_lease_that_runs_out_leaves_it_a_suspect(ledger, clock, enqueue):
    suspect = new_suspect(ledger, enqueue)
    ledger.lease_suspect("gone", 60)
    clock.advance(61)
    assert ledger.lease("ordinary", 1, 600) == []
    assert ledger.why(suspect).reason == "suspect"
    [job] = ledger.lease_suspect("alone", 60)
    clock.advance(61)
    assert ledger.lease_suspect("next", 60)[0].fence == job.fence + 1


def test_suspects_wait_while_the_queue_is_paused_and_can_be_called_off(ledger, enqueue):
    suspect = new_suspect(ledger, enqueue)
    ledger.pause()
    assert ledger.lease_suspect("alone", 600) == []
    ledger.resume()
    assert ledger.lease_suspect("alone", 600, job_type="another") == []
    assert ledger.cancel(suspect, "not wanted")
    assert ledger.lease_suspect("alone", 600) == []
    assert ledger.stats()["canceled"] == 1


def test_why_tells_of_a_suspect(ledger, enqueue):
    suspect = new_suspect(ledger, enqueue)
    why = ledger.why(suspect)
    assert (why.state, why.reason) == ("pending", "suspect")
    assert "two processes in a row ended at work on it (worker_lost" in why.detail
