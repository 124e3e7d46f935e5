from __future__ import annotations

import gc
import sqlite3
import threading
from concurrent.futures import Future, wait
from contextlib import closing

import pytest
from tests.traced import Traced
from tests.waiting import eventually

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import LeaseLost, LedgerBusy, LedgerClosed, LedgerError, LedgerUnusable
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Progress, Release
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.ledger.transaction import Transaction


def finish(job, state=JobState.DONE):
    return Finish(job.job_id, job.fence, job.lease_id, state)


@pytest.fixture
def held(path, ledger):
    """Hold the file's write lock, so that changes pile up behind it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_one_stale_write_does_not_undo_its_neighbours(ledger, enqueue, held):
    """Each row is fenced by itself."""
    held.execute("COMMIT")
    enqueue(3)
    good, stale, late = ledger.lease("w", 3, 60)
    held.execute("BEGIN IMMEDIATE")
    futures = [
        ledger.submit_finish(finish(good)),
        ledger.submit_finish(Finish(stale.job_id, stale.fence - 1, stale.lease_id, JobState.DONE)),
        ledger.submit_fail(Fail(late.job_id, late.fence, late.lease_id, 0, 3, "timeout")),
    ]
    held.execute("COMMIT")
    wait(futures, timeout=10)
    assert futures[0].result() == "applied"
    assert isinstance(futures[1].exception(), LeaseLost)
    assert futures[2].result() == "queued"
    assert [ledger.job(job.job_id).state for job in (good, stale, late)] == ["done", "in_progress", "queued"]


def test_ends_that_nobody_comes_after_wait_for_no_company(path):
    with SqliteLedger(path, linger_s=3600.0) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(2)])
        first, last = ledger.lease("w", 2, 6000)
        patient = ledger.submit_finishes([finish(first)])
        assert wait([patient], timeout=0.05).not_done
        assert ledger.submit_finishes([finish(last)], patient=False).result(timeout=60) == ["applied"]
        assert patient.result(timeout=60) == ["applied"]


class TickingClock(ManualClock):
    """Every look at it is a second later, so that each transaction has a time of its own."""

    def now(self) -> float:
        self.advance(1)
        return super().now()


def test_changes_that_pile_up_share_a_transaction(path, held, sql):
    held.execute("COMMIT")
    with SqliteLedger(path, clock=TickingClock()) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(40)])
        jobs = ledger.lease("w", 40, 6000)
        held.execute("BEGIN IMMEDIATE")
        futures = [ledger.submit_finish(finish(job)) for job in jobs]
        held.execute("COMMIT")
        assert [future.result(timeout=60) for future in futures] == ["applied"] * 40
    [(transactions,)] = sql("SELECT count(DISTINCT at) FROM job_history WHERE event = 'finished'")
    assert transactions <= 3


def test_ends_and_progress_that_pile_up_are_written_together(ledger, enqueue, held, monkeypatch):
    """Whatever order they came in: 20 jobs that each say where they are and then end."""
    held.execute("COMMIT")
    enqueue(20)
    jobs = ledger.lease("w", 20, 60)
    written: list[str] = []
    write_rows = Transaction.write_rows
    monkeypatch.setattr(
        Transaction, "write_rows", lambda tx, query, *given: written.append(query) or write_rows(tx, query, *given)
    )
    held.execute("BEGIN IMMEDIATE")
    futures: list[Future[object]] = []
    for job in jobs:
        futures.append(ledger.submit_progress(Progress(job.job_id, job.fence, job.lease_id, "fetch")))
        futures.append(ledger.submit_finish(finish(job)))
    held.execute("COMMIT")
    wait(futures, timeout=10)
    assert [future.result() for future in futures] == [None, "applied"] * 20
    assert written.count("progress") <= 2  # the first may have gone ahead alone
    assert written.count("finish") <= 2
    assert all(ledger.job(job.job_id).started_at is not None for job in jobs)


def test_of_two_words_of_one_lease_the_last_stage_and_the_first_end_count(ledger, lease_one, held):
    held.execute("COMMIT")
    one, two = lease_one(), lease_one()
    held.execute("BEGIN IMMEDIATE")
    futures: list[Future[object]] = [
        ledger.submit_progress(Progress(one.job_id, one.fence, one.lease_id, "fetch")),
        ledger.submit_progress(Progress(one.job_id, one.fence, one.lease_id, "store")),
        ledger.submit_progress(Progress(one.job_id, one.fence - 1, one.lease_id, "late")),
        ledger.submit_finish(finish(two)),
        ledger.submit_finish(finish(two)),
        ledger.submit_finish(finish(two, JobState.SKIPPED)),
    ]
    held.execute("COMMIT")
    wait(futures, timeout=10)
    assert [futures[place].result() for place in (0, 1, 3, 4)] == [None, None, "applied", "already"]
    assert [type(futures[place].exception()) for place in (2, 5)] == [LeaseLost, LeaseLost]
    assert ledger.job(one.job_id).stage == "store"
    assert ledger.job(two.job_id).state == "done"
    assert [row.event for row in ledger.history(two.job_id)] == ["enqueued", "leased", "finished"]


def test_changes_nobody_waits_for_gather_and_one_that_is_waited_for_takes_them_along(path):
    """A trickle costs few transactions; a caller who waits does not pay for that."""
    with SqliteLedger(path, linger_s=600) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(3)])
        one, two = ledger.lease("w", 2, 60)
        ends = [ledger.submit_finish(finish(job)) for job in (one, two)]
        assert not wait(ends, timeout=0.1).done
        assert len(ledger.lease("w", 1, 60)) == 1
        assert [end.result(timeout=60) for end in ends] == ["applied", "applied"]


def test_an_answer_comes_only_after_the_commit(ledger, lease_one, held):
    held.execute("COMMIT")
    job = lease_one()
    held.execute("BEGIN IMMEDIATE")
    future = ledger.submit_finish(finish(job))
    assert not wait([future], timeout=0.1).done
    held.execute("COMMIT")
    assert future.result(timeout=60) == "applied"
    assert ledger.job(job.job_id).state == "done"


def test_a_locked_file_is_waited_for(ledger, held):
    """FAIL-12: SQLITE_BUSY never reaches the user while the lock is let go in time."""
    answer: Future[object] = Future()
    caller = threading.Thread(target=lambda: answer.set_result(ledger.enqueue_many([NewJob("a:1", {})])))
    caller.start()
    assert not wait([answer], timeout=0.3).done
    held.execute("COMMIT")
    caller.join(timeout=10)
    assert answer.done()
    assert ledger.stats()["queued"] == 1


def test_a_file_locked_for_too_long_is_an_error_of_its_own(path, ledger, held):
    with SqliteLedger(path, busy_timeout_s=0.2) as impatient, pytest.raises(LedgerBusy, match="try again"):
        impatient.enqueue_many([NewJob("a:1", {})])


def test_a_change_that_breaks_does_not_take_its_neighbours_along(ledger, enqueue, held, sql):
    held.execute("COMMIT")
    enqueue(2)
    breaks, good = ledger.lease("w", 2, 60)
    sql(
        "CREATE TRIGGER broken BEFORE UPDATE ON jobs WHEN OLD.id = 1 AND NEW.state = 'done' "
        "BEGIN SELECT RAISE(ABORT, 'planted'); END"
    )
    held.execute("BEGIN IMMEDIATE")
    futures = [ledger.submit_finish(finish(job)) for job in (good, breaks)]
    held.execute("COMMIT")
    wait(futures, timeout=10)
    assert futures[0].result() == "applied"
    assert isinstance(futures[1].exception(), LedgerUnusable)
    assert (ledger.job(breaks.job_id).state, ledger.stats()["in_progress"]) == ("in_progress", 1)
    assert ledger.verify_history()


def test_a_canceled_future_is_not_written(ledger, lease_one, held):
    held.execute("COMMIT")
    job = lease_one()
    held.execute("BEGIN IMMEDIATE")
    first = ledger.submit_progress(Progress(job.job_id, job.fence, job.lease_id, "fetch"))
    eventually(first.running)  # the writer has taken the first and waits for the lock
    second = ledger.submit_finish(finish(job))
    assert second.cancel()
    held.execute("COMMIT")
    first.result(timeout=60)
    assert ledger.job(job.job_id).state == "in_progress"


def test_close_commits_what_was_submitted(path, enqueue, ledger):
    enqueue(20)
    jobs = ledger.lease("w", 20, 60)
    futures = [ledger.submit_release(Release(job.job_id, job.fence, job.lease_id)) for job in jobs]
    ledger.close()
    assert all(future.done() for future in futures)
    with SqliteLedger(path) as again:
        assert again.stats()["queued"] == 20


def test_a_closed_ledger_refuses_further_calls(ledger):
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerClosed):
        ledger.lease("w", 1, 60)
    with pytest.raises(LedgerClosed):
        ledger.stats()


def test_a_ledger_dropped_unclosed_still_commits(path, tmp_path):
    other = tmp_path / "dropped.sqlite"
    dropped = SqliteLedger(other)
    dropped.enqueue_many([NewJob("a:1", {})])
    [job] = dropped.lease("w", 1, 60)
    dropped.submit_finish(finish(job))
    del dropped
    gc.collect()
    with SqliteLedger(other) as again:
        assert again.stats()["done"] == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "ledger-writer"]


def test_a_callback_that_waits_for_the_ledger_is_told_so(ledger, enqueue, lease_one):
    """It would wait for itself for ever."""
    job = lease_one()
    told: Future[BaseException] = Future()

    def callback(_: object) -> None:
        try:
            ledger.lease("w", 1, 60)
        except LedgerError as error:
            told.set_result(error)

    ledger.submit_finish(finish(job)).add_done_callback(callback)
    assert "cannot wait" in str(told.result(timeout=60))


def test_an_enqueue_is_written_through_to_the_disk(path, clock, monkeypatch):
    """An acknowledged job survives power loss: its commit runs with synchronous=FULL, others with NORMAL."""
    traced = Traced(monkeypatch)

    def levels():
        said = [words.rpartition(" ")[2] for words in traced.statements if words.startswith("PRAGMA synchronous")]
        traced.clear()
        return said

    with SqliteLedger(path, clock=clock) as ledger:
        ledger.enqueue_many([NewJob("a:1", {})])
        assert levels() == ["FULL"]
        ledger.enqueue_many([NewJob("a:2", {})])
        assert levels() == []
        ledger.lease("w", 1, 60)
        assert levels() == ["NORMAL"]
