"""Jobs that wait for others: pending until all of them ended well, canceled when one failed, back on its retry."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.Orchestrator.errors import BadJob, UnknownJob
from DocsToKG.Orchestrator.jobs.dependencies import DEPENDENCY_FAILED, next_state, wanted_state
from DocsToKG.Orchestrator.jobs.states import GOOD_ENDS, TERMINAL, JobState
from DocsToKG.Orchestrator.ledger import dependencies
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, WorkerEnd
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.notifications.local import LocalSignal


def add(ledger, name, *needs, **fields):
    [answer] = ledger.enqueue_many([NewJob(name, {}, depends_on=needs, **fields)])
    return answer.job_id


def end(ledger, job_id, state=JobState.DONE):
    """Lease until the job comes, and end it; the others are given back by the death of the worker."""
    job = next(job for job in ledger.lease("ender", 100, 60) if job.job_id == job_id)
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, state, "broken"))
    ledger.release_worker("ender")


def states(ledger, *job_ids):
    return [ledger.job(job_id).state.value for job_id in job_ids]


def test_a_job_waits_until_all_that_it_needs_are_done_or_skipped(ledger):
    a, b = add(ledger, "a:1"), add(ledger, "a:2")
    c = add(ledger, "a:3", a, "a:2")
    assert states(ledger, c) == ["pending"]
    assert c not in [job.job_id for job in ledger.lease("w", 10, 60)]
    ledger.release_worker("w")
    end(ledger, a)
    assert states(ledger, c) == ["pending"]
    end(ledger, b, JobState.SKIPPED)
    assert states(ledger, c) == ["queued"]
    assert [job.job_id for job in ledger.lease("w", 10, 60)] == [c]
    moves = [(row.event, row.from_state, row.to_state) for row in ledger.history(c)]
    assert moves == [
        ("enqueued", None, "pending"),
        ("dependencies_met", "pending", "queued"),
        ("leased", "queued", "in_progress"),
    ]
    assert ledger.verify_history()


def test_a_job_that_becomes_free_wakes_a_waiting_worker(path):
    signal = LocalSignal()
    with SqliteLedger(path, poll_s=10, signal=signal) as ledger:
        a = add(ledger, "a:1")
        add(ledger, "a:2", a)
        [job] = ledger.lease("w", 10, 600)
        assert not ledger.wait_for_work(0)
        mark = signal.mark()
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
        assert signal.wait(0, since=mark)
        assert ledger.wait_for_work(0)


def test_waiting_jobs_keep_no_worker_awake(ledger):
    """A pending job has no moment of its own: nothing but the end of what it needs can free it."""
    a = add(ledger, "a:1")
    add(ledger, "a:2", a)
    ledger.lease("w", 10, 600)
    assert ledger.next_eligible_at() is None
    assert not ledger.wait_for_work(0)


def test_a_delay_still_holds_after_the_needs_are_met(ledger, clock):
    a = add(ledger, "a:1")
    b = add(ledger, "a:2", a, delay_s=60)
    end(ledger, a)
    assert states(ledger, b) == ["queued"]
    assert ledger.lease("w", 10, 60) == []
    clock.advance(60)
    assert [job.job_id for job in ledger.lease("w", 10, 60)] == [b]


@pytest.mark.parametrize("state", ["error", "canceled", "timed_out"])
def test_a_failed_need_cancels_all_that_hang_on_it(ledger, state):
    a, lone = add(ledger, "a:1"), add(ledger, "a:lone")
    b = add(ledger, "a:2", a)
    c = add(ledger, "a:3", b, lone)
    if state == "canceled":
        ledger.cancel(a, "not wanted")
    else:
        end(ledger, a, JobState(state))
    assert states(ledger, a, b, c, lone) == [state, "canceled", "canceled", "queued"]
    assert ledger.job(b).last_error == f"dependency_failed: job {a} (a:1) ended as {state}"
    assert ledger.job(c).last_error == f"dependency_failed: job {b} (a:2) ended as canceled"
    assert (ledger.history(b)[-1].event, ledger.history(b)[-1].actor) == ("dependency_failed", "ledger")
    assert ledger.stats()["canceled"] == (3 if state == "canceled" else 2)


def test_used_up_tries_and_a_job_that_ends_its_worker_cancel_dependents_too(ledger):
    a = add(ledger, "a:1", max_attempts=1)
    b = add(ledger, "a:2", a)
    [job] = ledger.lease("w", 1, 60)
    ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 0, 1, "no"))
    assert states(ledger, a, b) == ["error", "canceled"]
    c = add(ledger, "a:3", max_attempts=1)
    d = add(ledger, "a:4", c)
    for life in range(4):
        assert len(ledger.lease(f"w{life}", 9, 60) + ledger.lease_suspect(f"w{life}", 60)) == 1
        assert states(ledger, c, d) == ["in_progress", "pending"]
        ledger.release_worker(f"w{life}", [c], end=WorkerEnd("by SIGSEGV"))
    assert states(ledger, c, d) == ["error", "canceled"]


def test_a_retry_of_the_failed_need_brings_its_dependents_back(ledger):
    a = add(ledger, "a:1")
    b = add(ledger, "a:2", a)
    c = add(ledger, "a:3", b)
    called_off = add(ledger, "a:4", a)
    ledger.cancel(called_off, "the operator's own word")
    end(ledger, a, JobState.ERROR)
    assert ledger.retry_failed() == 1
    assert states(ledger, a, b, c, called_off) == ["queued", "pending", "pending", "canceled"]
    assert ledger.job(b).last_error is None
    for job_id in (a, b, c):
        end(ledger, job_id)
    assert states(ledger, a, b, c) == ["done"] * 3
    assert ledger.verify_history()


def test_a_dependent_is_not_retried_before_what_it_needs(ledger):
    """It would wait for a job that is over, for ever."""
    a = add(ledger, "a:1")
    b = add(ledger, "a:2", a)
    end(ledger, a, JobState.ERROR)
    assert ledger.retry_failed(job_ids=[b], states=(JobState.CANCELED,)) == 0
    assert states(ledger, b) == ["canceled"]
    assert ledger.retry_failed(states=(JobState.ERROR, JobState.CANCELED)) == 2
    assert states(ledger, a, b) == ["queued", "pending"]


def test_a_need_that_was_met_stays_met(ledger):
    a = add(ledger, "a:1")
    b = add(ledger, "a:2", a)
    end(ledger, a)
    assert ledger.retry_failed(job_ids=[a], states=(JobState.DONE,)) == 1
    assert states(ledger, a, b) == ["queued", "queued"]


def test_needs_that_are_over_at_the_enqueue_count_at_once(ledger):
    a, b = add(ledger, "a:1"), add(ledger, "a:2")
    end(ledger, a)
    end(ledger, b, JobState.ERROR)
    answers = ledger.enqueue_many(
        [NewJob("a:3", {}, depends_on=[a]), NewJob("a:4", {}, depends_on=[a, b]), NewJob("a:5", {}, depends_on=["a:4"])]
    )
    assert [answer.state.value for answer in answers] == ["queued", "canceled", "canceled"]
    assert states(ledger, *(answer.job_id for answer in answers)) == ["queued", "canceled", "canceled"]
    assert ledger.stats()["canceled"] == 2


def test_jobs_of_one_call_may_name_each_other_in_any_order(ledger):
    answers = ledger.enqueue_many(
        [NewJob("a:last", {}, depends_on=["a:mid"]), NewJob("a:mid", {}, depends_on=["a:first"]), NewJob("a:first", {})]
    )
    assert [answer.artifact_id for answer in answers] == ["a:last", "a:mid", "a:first"]
    assert [answer.state.value for answer in answers] == ["pending", "pending", "queued"]
    for answer in reversed(answers):
        end(ledger, answer.job_id)
    assert ledger.stats()["done"] == 3


def test_a_circle_is_refused_and_nothing_written(ledger):
    with pytest.raises(BadJob, match="never run"):
        ledger.enqueue_many(
            [NewJob("a:0", {}), NewJob("a:1", {}, depends_on=["a:2"]), NewJob("a:2", {}, depends_on=["a:1"])]
        )
    with pytest.raises(BadJob, match="itself"):
        add(ledger, "a:1", "a:1")
    assert ledger.stats()["total"] == 0


def test_the_schema_itself_knows_no_circle(ledger, sql):
    a, b = add(ledger, "a:1"), add(ledger, "a:2")
    with pytest.raises(sqlite3.IntegrityError):
        sql("INSERT INTO job_dependencies VALUES (?, ?)", a, b)


@pytest.mark.parametrize(
    ("needs", "error"),
    [([99], UnknownJob), (["a:none"], BadJob), ("a:1", BadJob), ([""], BadJob), ([1] * 1001, BadJob)],
)
def test_an_unknown_or_ill_formed_need_is_refused_before_anything_is_written(ledger, needs, error):
    with pytest.raises(error):
        ledger.enqueue_many([NewJob("a:0", {}), NewJob("a:9", {}, depends_on=needs)])
    assert ledger.stats()["total"] == 0


def test_a_need_is_found_in_its_own_tenant_and_job_type_only(ledger):
    add(ledger, "a:1")
    with pytest.raises(BadJob, match="a:1"):
        add(ledger, "a:2", "a:1", tenant="other")


def test_many_dependents_are_moved_on_in_bounded_steps(ledger, sql, monkeypatch):
    """One job may free more than fit into a decent transaction; the rest follows, in this process or the next."""
    monkeypatch.setattr(dependencies, "PAGE", 7)
    a = add(ledger, "a:0")
    ledger.enqueue_many([NewJob(f"a:{n}", {}, depends_on=[a]) for n in range(1, 51)])
    ledger.cancel(a, "not wanted")
    for _ in range(10):
        ledger.heartbeat("w", 60)  # any transaction takes the next step
    assert ledger.stats()["canceled"] == 51
    assert sql("SELECT count(*) FROM dependency_changes") == [(0,)]
    assert ledger.retry_failed(states=(JobState.CANCELED,), job_ids=[a]) == 1
    end(ledger, a)
    for _ in range(20):
        ledger.heartbeat("w", 60)
    assert (ledger.stats()["queued"], ledger.stats()["done"]) == (50, 1)


def test_steps_left_by_a_process_that_ended_are_taken_up(path, clock, monkeypatch):
    monkeypatch.setattr(dependencies, "PAGE", 1)
    with SqliteLedger(path, clock=clock) as ledger:
        a = add(ledger, "a:0")
        ledger.enqueue_many([NewJob(f"a:{n}", {}, depends_on=[a]) for n in range(1, 21)])
        ledger.cancel(a, "not wanted")
    with SqliteLedger(path, clock=clock) as other:
        assert 1 < other.stats()["canceled"] < 21
        for _ in range(45):
            other.heartbeat("w", 60)
        assert other.stats()["canceled"] == 21


_states = st.sampled_from(list(JobState))


@given(_states, st.sampled_from([None, DEPENDENCY_FAILED, "success"]), st.sets(_states, min_size=1))
def test_only_waiting_jobs_follow_and_only_where_the_rules_say(state, outcome, needs):
    after = next_state(state, outcome, needs)
    if state is not JobState.PENDING and not (state is JobState.CANCELED and outcome == DEPENDENCY_FAILED):
        assert after is None
    elif needs & (TERMINAL - GOOD_ENDS):
        assert (after or state) is JobState.CANCELED
    else:
        assert (after or state) is (JobState.QUEUED if needs <= GOOD_ENDS else JobState.PENDING)
    assert after is None or after is wanted_state(needs)
