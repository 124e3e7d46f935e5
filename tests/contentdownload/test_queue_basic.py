"""The work queue through its promised face (TEST-01)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from DocsToKG.ContentDownload.orchestrator.models import Job, JobState, LeasedJobDict
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost

ARTIFACT = {"doi": "10.1/x"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "workqueue.sqlite"


@pytest.fixture
def queue(path, clock):
    with WorkQueue(str(path), wal_mode=True, clock=clock) as opened:
        yield opened


def leased(queue, worker="w", limit=1, ttl=600) -> LeasedJobDict:
    [job] = queue.lease(worker, limit, ttl)
    return job


def test_enqueueing_twice_gives_false_and_one_row(queue, path):
    """QUE-04."""
    assert queue.enqueue("doi:10.1/x", ARTIFACT) is True
    assert queue.enqueue("doi:10.1/x", ARTIFACT) is False
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM jobs_v1").fetchone() == (1,)


def test_an_artifact_may_be_a_dict_or_json_text(queue):
    """QUE-04."""
    assert queue.enqueue("doi:10.1/x", ARTIFACT, resolver_hint="unpaywall")
    assert queue.enqueue("doi:10.1/y", json.dumps(ARTIFACT))
    one, two = queue.lease("w", 2, 60)
    assert json.loads(one["artifact_json"]) == json.loads(two["artifact_json"]) == ARTIFACT
    assert (one["resolver_hint"], two["resolver_hint"]) == ("unpaywall", None)


@pytest.mark.slow
def test_bulk_import_counts_the_new_rows(queue):
    """QUE-05."""
    queue.enqueue("a:1", {})
    rows = ((f"a:{n % 3000}", {}, None) for n in range(6000))
    assert queue.bulk_import(rows) == 2999
    assert queue.stats()["queued"] == 3000


def test_a_lease_moves_jobs_to_in_progress_for_its_worker(queue, clock):
    """QUE-06."""
    queue.bulk_import((f"a:{n}", {}, None) for n in range(3))
    jobs = queue.lease("w", limit=2, lease_ttl_sec=600)
    assert [job["artifact_id"] for job in jobs] == ["a:0", "a:1"]
    assert {job["state"] for job in jobs} == {"in_progress"}
    row = queue.job(jobs[0]["id"])
    assert (row.state, row.worker_id) == (JobState.IN_PROGRESS, "w")
    assert row.lease_expires_at == jobs[0]["lease_expires_at"] == utc_iso(clock.now() + 600)
    assert isinstance(row, Job)


@pytest.mark.parametrize("outcome", ["done", "skipped", "error"])
def test_an_ack_ends_the_job_and_clears_the_lease(outcome, queue):
    """QUE-11."""
    queue.enqueue("a:1", {})
    job = leased(queue)
    queue.ack(job["id"], outcome, last_error="robots")
    row = queue.job(job["id"])
    assert (row.state, row.worker_id, row.lease_expires_at) == (outcome, None, None)
    assert row.last_error == (None if outcome == "done" else "robots")
    assert queue.stats()[outcome] == 1


@pytest.mark.parametrize("outcome", ["queued", "in_progress", "success", ""])
def test_an_ack_with_another_word_is_rejected(outcome, queue):
    """QUE-11."""
    queue.enqueue("a:1", {})
    job = leased(queue)
    with pytest.raises(ValueError, match="done, skipped, error"):
        queue.ack(job["id"], outcome)
    assert queue.job(job["id"]).state == "in_progress"


def test_failures_requeue_with_a_delay_until_the_attempts_are_used_up(queue, clock):
    """QUE-12."""
    queue.enqueue("a:1", {})
    for attempts in (1, 2):
        job = leased(queue)
        queue.fail_and_retry(job["id"], 60, 3, "timeout")
        assert (queue.job(job["id"]).state, queue.job(job["id"]).attempts) == ("queued", attempts)
        assert queue.lease("w", 1, 600) == []
        clock.advance(60)
    job = leased(queue)
    queue.fail_and_retry(job["id"], 60, 3, "timeout")
    row = queue.job(job["id"])
    assert (row.state, row.attempts, row.last_error) == ("error", 3, "timeout")


def test_release_gives_the_job_back_without_an_attempt(queue, clock):
    """QUE-12."""
    queue.enqueue("a:1", {})
    job = leased(queue)
    queue.release(job["id"], 30, host_key="example.org", why="crawl-delay")
    assert queue.lease("w", 1, 60) == []
    clock.advance(30)
    again = leased(queue)
    assert (again["attempts"], again["host_key"]) == (0, "example.org")


def test_heartbeat_keeps_a_lease_for_as_long_as_it_was_given(queue, clock):
    """QUE-10."""
    queue.enqueue("a:1", {})
    job = leased(queue, ttl=100)
    for _ in range(5):
        clock.advance(90)
        assert queue.heartbeat("w") == {job["lease_id"]}
    assert queue.lease("other", 1, 100) == []
    clock.advance(101)
    assert queue.heartbeat("w") == set()


def test_a_worker_that_lost_its_job_is_refused(queue, clock):
    """QUE-09."""
    queue.enqueue("a:1", {})
    late = leased(queue, "late", ttl=60)
    clock.advance(61)
    owner = leased(queue, "owner", ttl=60)
    named = {"fence": late["fence"], "lease_id": late["lease_id"]}
    with pytest.raises(LeaseLost):
        queue.ack(late["id"], "done", **named)
    with pytest.raises(LeaseLost):
        queue.fail_and_retry(late["id"], 0, 3, "late", **named)
    with pytest.raises(LeaseLost):
        queue.release(late["id"], **named)
    with pytest.raises(LeaseLost):
        queue.ack(late["id"], "done", fence=late["fence"])
    queue.ack(owner["id"], "done", fence=owner["fence"], lease_id=owner["lease_id"])
    assert queue.job(owner["id"]).state == "done"


def test_an_ack_by_id_alone_is_fenced_by_the_lease_this_queue_gave_out(queue, path, clock):
    """QUE-09: the second process took the job over; the first one's plain ack changes nothing."""
    queue.enqueue("a:1", {})
    job = leased(queue, ttl=60)
    clock.advance(61)
    with WorkQueue(path, clock=clock) as other:
        leased(other, "other")
        with pytest.raises(LeaseLost):
            queue.ack(job["id"], "done")
        other.ack(job["id"], "skipped")
    assert queue.job(job["id"]).state == "skipped"


def test_a_job_that_was_never_leased_cannot_be_acknowledged(queue):
    queue.enqueue("a:1", {})
    with pytest.raises(LeaseLost):
        queue.ack(1, "done")
    assert queue.job(1).state == "queued"


def test_a_finished_job_can_be_acknowledged_only_once_by_id(queue):
    queue.enqueue("a:1", {})
    job = leased(queue)
    queue.ack(job["id"], "done")
    with pytest.raises(LeaseLost):
        queue.ack(job["id"], "error")
    assert queue.job(job["id"]).state == "done"


def test_leases_of_one_worker_never_overlap(queue):
    """Six jobs, leased two by two, run six times."""
    queue.bulk_import((f"a:{n}", {}, None) for n in range(6))
    ran = []
    while jobs := queue.lease("w", 2, 600):
        ran += [job["id"] for job in jobs]
    assert ran == [1, 2, 3, 4, 5, 6]


def test_a_bad_artifact_is_refused(queue):
    with pytest.raises(BadJob):
        queue.enqueue("a:1", "[]")
    assert queue.stats()["total"] == 0


def test_a_queue_can_do_without_wal(tmp_path):
    """QUE-03."""
    with WorkQueue(tmp_path / "plain.sqlite", wal_mode=False) as queue:
        queue.enqueue("a:1", {})
        job = leased(queue)
        queue.ack(job["id"], "done")
        assert queue.stats()["done"] == 1
    assert not (tmp_path / "plain.sqlite-wal").exists()


def test_jobs_survive_closing_and_opening(path, clock):
    with WorkQueue(path, clock=clock) as queue:
        queue.enqueue("a:1", {})
    with WorkQueue(path, clock=clock) as queue:
        assert queue.enqueue("a:1", {}) is False
        assert leased(queue)["artifact_id"] == "a:1"


def test_a_suspect_is_leased_when_nothing_else_is_due(queue):
    """Whoever works on the queue by its promised face has no process to try it in."""
    queue.enqueue("doi:10.1/suspect", ARTIFACT)
    for life in range(2):
        job = leased(queue, f"w{life}")
        queue.ledger.release_worker(f"w{life}", [job["id"]])
    queue.enqueue("doi:10.1/other", ARTIFACT)
    assert [leased(queue)["artifact_id"] for _ in range(2)] == ["doi:10.1/other", "doi:10.1/suspect"]
