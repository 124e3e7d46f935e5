from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Release
from DocsToKG.Orchestrator.ledger.drivers.sqlite import schema, type_indexes
from DocsToKG.Orchestrator.ledger.drivers.sqlite.many_rows import widened


def finish(job, state=JobState.DONE, **fields):
    return Finish(job.job_id, job.fence, job.lease_id, state, **fields)


def test_a_lease_takes_at_most_its_limit_and_only_new_jobs(ledger, enqueue):
    """QUE-06: a second lease of the same worker never returns the first batch again."""
    ids = enqueue(5)
    batches = [[job.job_id for job in ledger.lease("w", 2, 60)] for _ in range(4)]
    assert batches == [ids[:2], ids[2:4], ids[4:], []]


def test_a_lease_carries_what_the_worker_needs(ledger, clock):
    """JOB-07, JOB-08."""
    job = NewJob("doi:10.1/x", {"a": 1}, "unpaywall", correlation_id="c", trace_context="t", project="p", source="s")
    ledger.enqueue_many([job])
    [leased] = ledger.lease("w", 1, 60)
    assert leased.payload == {"a": 1}
    assert leased.lease_until == pytest.approx(clock.now() + 60, abs=0.002)
    assert (leased.resolver_hint, leased.correlation_id, leased.trace_context) == ("unpaywall", "c", "t")
    assert (leased.project, leased.source, leased.fence, leased.attempts) == ("p", "s", 1, 0)


def test_higher_priority_goes_first_then_age(ledger):
    """JOB-06."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}, priority=priority) for n, priority in enumerate([0, 5, 0, 5, -1])])
    assert [job.artifact_id for job in ledger.lease("w", 9, 60)] == ["a:1", "a:3", "a:0", "a:2", "a:4"]


def test_a_lease_may_ask_for_one_job_type(ledger):
    ledger.enqueue_many([NewJob("a:1", {}, job_type="export"), NewJob("a:2", {})])
    assert [job.artifact_id for job in ledger.lease("w", 9, 60, job_type="content.download")] == ["a:2"]


def test_every_lease_has_its_own_id_and_a_higher_fence(ledger, clock, enqueue):
    """QUE-09."""
    enqueue(2)
    first = ledger.lease("w", 2, 60)
    clock.advance(61)
    second = ledger.lease("w", 2, 60)
    assert len({job.lease_id for job in first + second}) == 4
    assert [job.fence for job in second] == [2, 2]


def test_an_expired_lease_goes_to_the_next_worker_and_costs_no_attempt(ledger, clock, lease_one):
    """QUE-07, QUE-20: that its worker did not come back is not the job's fault, however often."""
    lease_one("first", ttl_s=60)
    clock.advance(59.9)
    assert ledger.lease("second", 1, 60) == []
    clock.advance(0.1)
    for n in range(9):
        [again] = ledger.lease(f"worker-{n}", 1, 60, begun=True)
        clock.advance(61)
    assert (again.attempts, ledger.job(again.job_id).crashes) == (0, 0)
    assert "lease_expired" in (ledger.job(again.job_id).last_error or "")


def test_crashes_do_not_use_up_the_tries_that_a_real_fault_needs(ledger, clock, enqueue):
    """A process that is killed says little about its job."""
    enqueue(max_attempts=3)
    for n in range(2):
        ledger.lease(f"w{n}", 1, 60)
        clock.advance(61)
    states = []
    for n in range(3):
        [job] = ledger.lease(f"x{n}", 1, 60)
        states.append(ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 0.0, 3, "busy")))
    assert states == ["queued", "queued", "error"]


def test_a_worker_that_slept_takes_its_waiting_job_back_for_free(ledger, clock, lease_one):
    """A laptop that was shut is no poison job."""
    job = lease_one("sleeper", ttl_s=60)
    for _ in range(5):
        clock.advance(3600)
        [job] = ledger.lease("sleeper", 1, 60)
    assert (job.attempts, job.fence) == (0, 6)


def test_heartbeat_extends_the_live_leases_of_its_worker_only(ledger, clock, enqueue):
    """QUE-10, JOB-09."""
    enqueue(2)
    [mine] = ledger.lease("mine", 1, 60)
    [other] = ledger.lease("other", 1, 60)
    clock.advance(50)
    assert ledger.heartbeat("mine", 60) == {mine.lease_id}
    clock.advance(50)
    assert [job.job_id for job in ledger.lease("third", 9, 60)] == [other.job_id]


def test_heartbeat_never_revives_an_expired_lease(ledger, clock, lease_one):
    """QUE-10."""
    lease_one("w", ttl_s=60)
    clock.advance(60)
    assert ledger.heartbeat("w", 60) == set()
    assert len(ledger.lease("other", 1, 60)) == 1


def test_heartbeat_with_a_short_time_does_not_shorten_a_lease(ledger, clock, lease_one):
    lease_one("w", ttl_s=600)
    ledger.heartbeat("w", 1)
    clock.advance(599)
    assert ledger.lease("other", 1, 60) == []


def test_a_worker_learns_of_a_cancel_at_its_next_heartbeat(ledger, enqueue):
    """JOB-15."""
    enqueue(2)
    called_off, kept = ledger.lease("w", 2, 60)
    assert ledger.cancel(called_off.job_id, "withdrawn", ticket="T-1")
    assert ledger.heartbeat("w", 60) == {kept.lease_id}
    assert ledger.history(called_off.job_id)[-1].ticket == "T-1"


def test_pause_stops_leasing_and_nothing_else(ledger, enqueue, lease_one):
    """CLI-20."""
    job = lease_one()
    enqueue()
    ledger.pause(reason="disk")
    assert ledger.is_paused()
    assert ledger.lease("w", 9, 60) == []
    assert ledger.finish(finish(job)) == "applied"
    ledger.resume()
    assert len(ledger.lease("w", 9, 60)) == 1


def test_failures_are_retried_until_the_attempts_are_used_up(ledger, clock, enqueue):
    """QUE-12, JOB-12."""
    [job_id] = enqueue()
    states = []
    for _ in range(3):
        [job] = ledger.lease("w", 1, 60)
        states.append(ledger.fail(Fail(job_id, job.fence, job.lease_id, 30, 3, "timeout")))
        assert ledger.lease("w", 1, 60) == []
        clock.advance(30)
    assert states == ["queued", "queued", "error"]
    assert (ledger.job(job_id).attempts, ledger.job(job_id).last_error) == (3, "timeout")


def test_release_counts_no_attempt_and_keeps_its_time(ledger, clock, lease_one):
    """QUE-12."""
    job = lease_one()
    ledger.release(Release(job.job_id, job.fence, job.lease_id, 10, host_key="example.org", why="crawl-delay"))
    assert ledger.lease("w", 1, 60) == []
    clock.advance(10)
    [again] = ledger.lease("w", 1, 60)
    assert (again.attempts, again.host_key, again.fence) == (0, "example.org", 2)


def test_release_waits_at_most_a_day(ledger, clock, lease_one):
    job = lease_one()
    ledger.release(Release(job.job_id, job.fence, job.lease_id, 1e9))
    assert ledger.next_eligible_at() == pytest.approx(clock.now() + 86400, abs=0.002)


def test_a_done_job_keeps_its_result_and_no_error(ledger, lease_one):
    """QUE-18."""
    job = lease_one()
    ledger.finish(finish(job, result={"sha256": "ab"}, outcome="success", last_error="ok"))
    row = ledger.job(job.job_id)
    assert (row.state, row.outcome, row.result_json, row.last_error) == ("done", "success", '{"sha256":"ab"}', None)
    assert (row.worker_id, row.lease_until) == (None, None)


def test_a_long_error_is_cut(ledger, lease_one):
    """QUE-19."""
    job = lease_one()
    ledger.finish(finish(job, JobState.ERROR, last_error="x" * 10_000 + "\ud800"))
    assert ledger.job(job.job_id).last_error == "x" * 500


@pytest.mark.parametrize("state", ["queued", "in_progress", "pending", "nonsense"])
def test_only_a_terminal_state_ends_a_job(state, ledger, lease_one):
    with pytest.raises(BadJob):
        ledger.submit_finish(finish(lease_one(), state))


@pytest.mark.parametrize("worker_id", ["", " ", "w" * 3000])
def test_a_lease_needs_a_name(worker_id, ledger):
    with pytest.raises(BadJob):
        ledger.lease(worker_id, 1, 60)


@pytest.mark.parametrize("ttl_s", [0, -1, float("nan"), float("inf")])
def test_a_lease_needs_a_sensible_length(ttl_s, ledger):
    with pytest.raises(BadJob):
        ledger.lease("w", 1, ttl_s)


def test_retry_failed_resets_attempts_also_of_exhausted_jobs(ledger, lease_one):
    """CLI-19."""
    job = lease_one()
    ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 0, 1, "dead"))
    assert ledger.retry_failed(reason="fixed the proxy") == 1
    row = ledger.job(job.job_id)
    assert (row.state, row.attempts, row.finished_at) == ("queued", 0, None)
    assert ledger.history(job.job_id)[-1].reason == "fixed the proxy"


def test_retry_failed_takes_only_what_it_is_asked_for(ledger, enqueue):
    first, second, third = enqueue(3)
    for job, state in zip(ledger.lease("w", 3, 60), ("error", "error", "skipped"), strict=True):
        ledger.finish(finish(job, JobState(state)))
    assert ledger.retry_failed(job_ids=[first, third]) == 1
    assert ledger.retry_failed(states=[JobState.SKIPPED]) == 1
    assert [ledger.job(n).state for n in (first, second, third)] == ["queued", "error", "queued"]
    with pytest.raises(BadJob):
        ledger.retry_failed(states=[JobState.IN_PROGRESS])


def test_a_cancel_needs_a_reason_and_a_job_that_is_not_over(ledger, lease_one):
    job = lease_one()
    with pytest.raises(BadJob):
        ledger.cancel(job.job_id, "  ")
    assert ledger.cancel(job.job_id, "wrong paper")
    assert not ledger.cancel(job.job_id, "again")


def test_lists_come_in_pages(ledger, enqueue):
    ids = enqueue(5)
    first = ledger.list_jobs(limit=3)
    rest = ledger.list_jobs(JobState.QUEUED, limit=9, after_id=first[-1].job_id)
    assert [job.job_id for job in first + rest] == ids
    assert ledger.list_jobs(JobState.DONE) == []


def test_stats_has_every_state_the_alias_and_the_total(ledger, enqueue):
    """QUE-17."""
    enqueue(3)
    ledger.lease("w", 1, 60)
    assert ledger.stats() == {
        "pending": 0, "queued": 2, "in_progress": 1, "leased": 1, "done": 0, "skipped": 0, "error": 0,
        "canceled": 0, "timed_out": 0, "total": 3,
    }  # fmt: skip


def test_depths_count_the_waiting_by_type_and_tenant(ledger):
    jobs = [NewJob("a", {}), NewJob("b", {}, tenant="lab"), NewJob("c", {}, tenant="lab", depends_on=["b"])]
    ledger.enqueue_many([*jobs, NewJob("d", {}, job_type="x.y")])
    assert ledger.depths() == {
        ("content.download", "default"): 1,
        ("content.download", "lab"): 2,
        ("x.y", "default"): 1,
    }
    ledger.lease("w", 9, 60)
    assert {key: n for key, n in ledger.depths().items() if n} == {("content.download", "lab"): 1}


def test_leasing_reads_no_delayed_job(enqueue, sql):
    """A hundred thousand delayed retries must not slow the lease: waiting jobs are not in its index."""
    enqueue(3, delay_s=100)
    enqueue(1)
    assert sql(
        "SELECT count(*) FROM jobs INDEXED BY jobs_due WHERE state = 'queued' AND due = 1 AND host_key IS NULL"
    ) == [(1,)]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("due_by_age", "jobs_due"),
        ("due_ids_by_age", "jobs_due"),
        ("due_of_hosts", "jobs_due_by_host"),
        ("due_by_age_of_type", "jobs_due_of_type (job_type=?)"),
        ("due_ids_by_age_of_type", "jobs_due_of_type (job_type=? AND priority=?)"),
        ("due_of_hosts_of_type", "jobs_due_by_host_of_type (job_type=? AND priority=? AND host_key=? AND id>?)"),
        ("next_moments_of_type", "jobs_waiting_of_type (job_type=?)"),
        ("grant", "PRIMARY KEY"),
        ("wake_waiting", "jobs_waiting"),
        ("expire_leases", "jobs_leased"),
        ("heartbeat", "jobs_leased"),
        ("free_worker", "jobs_leased"),
    ],
)
def test_the_hot_statements_use_their_index_and_sort_nothing(query, index, ledger, path):
    statement = schema.queries()[query]
    values = dict.fromkeys(re.findall(r":(\w+)", statement))
    with closing(sqlite3.connect(path)) as connection:
        for made in type_indexes.TYPE_INDEXES:
            connection.execute(made)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert any(index in step for step in plan)
    assert not [step for step in plan if "TEMP B-TREE" in step or step == "SCAN jobs"]


@pytest.mark.parametrize("rows", [1, 8, 64])
@pytest.mark.parametrize("query", ["finish", "fail", "release", "progress", "progress_hosts", "leases_of"])
def test_many_rows_are_looked_up_by_number_each(query, rows, ledger, enqueue, path):
    """Not by reading all that are in progress, however many those are."""
    enqueue(200)
    ledger.lease("w", 200, 60)
    statement = widened(schema.queries()[query], rows)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ANALYZE")
        marks = len(re.findall(r"\?(?!\d)", statement)) + ("?1" in statement)  # ?1 is the moment, wherever it is
        values = [None] * marks
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert any("SEARCH jobs USING INTEGER PRIMARY KEY" in step for step in plan), plan
