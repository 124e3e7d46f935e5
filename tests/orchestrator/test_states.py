from __future__ import annotations

import itertools
import sqlite3

from DocsToKG.Orchestrator.jobs.retry import job_backoff_s
from DocsToKG.Orchestrator.jobs.states import API_STATUS, TERMINAL, JobState, may_become


def test_the_database_allows_exactly_the_transitions_of_the_diagram(enqueue, sql):
    """QUE-16: the trigger and the rule say the same, for every pair of states."""
    pairs = list(itertools.permutations(JobState, 2))
    moves = list(zip(enqueue(len(pairs)), pairs, strict=True))
    _put_into({job_id: before for job_id, (before, _) in moves}, sql)
    allowed = {pair for job_id, pair in moves if _moves(job_id, pair[1], sql)}
    assert allowed == {pair for pair in pairs if may_become(*pair)}


def _put_into(states, sql):
    [(trigger,)] = sql("SELECT sql FROM sqlite_master WHERE name = 'jobs_keep_to_the_diagram'")
    sql("DROP TRIGGER jobs_keep_to_the_diagram")
    for job_id, state in states.items():
        sql("UPDATE jobs SET state = ? WHERE id = ?", state, job_id)
    sql(trigger)


def _moves(job_id, state, sql):
    try:
        sql("UPDATE jobs SET state = ? WHERE id = ?", state, job_id)
    except sqlite3.IntegrityError:
        return False
    return True


def test_every_state_has_an_api_status():
    """JOB-17."""
    assert {state: API_STATUS[state] for state in JobState} == {
        "pending": "pending",
        "queued": "queued",
        "in_progress": "leased",
        "done": "succeeded",
        "skipped": "succeeded",
        "error": "failed",
        "canceled": "canceled",
        "timed_out": "timed_out",
    }


def test_a_terminal_state_is_left_only_by_a_retry():
    back = [JobState.PENDING, JobState.QUEUED]
    assert all([after for after in JobState if may_become(state, after)] == back for state in TERMINAL)


def test_job_backoff_doubles_from_the_base_and_is_capped():
    """ORC-09."""
    waits = [job_backoff_s(n, base_s=60, jitter_s=15, random=lambda: 0.0) for n in (1, 2, 3, 4, 40)]
    assert waits == [60, 120, 240, 480, 3600]


def test_job_backoff_adds_at_most_the_jitter():
    assert job_backoff_s(1, base_s=60, jitter_s=15, random=lambda: 1.0) == 75
