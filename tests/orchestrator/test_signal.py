from __future__ import annotations

import threading
import time

from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.ledger.base import Finish, JobState, NewJob, Release
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signal.local import LocalSignal


def test_a_notice_between_asking_and_waiting_is_not_lost():
    signal = LocalSignal()
    mark = signal.mark()
    signal.notify("content.download")
    assert signal.wait(0, since=mark)
    assert not signal.wait(0)


def test_every_waiter_hears_a_notice():
    signal, heard = LocalSignal(), []
    mark = signal.mark()
    waiters = [threading.Thread(target=lambda: heard.append(signal.wait(10, since=mark))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    signal.notify("content.download")
    for waiter in waiters:
        waiter.join(timeout=10)
    assert heard == [True, True, True]


def woken(ledger: SqliteLedger, deed) -> bool:
    """Whether `deed` wakes a thread that waits for work."""
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(ledger.wait_for_work(10)))
    waiter.start()
    started = time.monotonic()
    deed()
    waiter.join(timeout=20)
    return answers == [True] and time.monotonic() - started < 5


def test_an_enqueue_wakes_a_waiting_worker(path):
    with SqliteLedger(path, poll_s=10) as ledger:
        assert woken(ledger, lambda: ledger.enqueue_many([NewJob("a:1", {})]))


def test_a_release_a_retry_and_a_resume_wake_a_waiting_worker(path):
    with SqliteLedger(path, poll_s=10) as ledger:
        ledger.enqueue_many([NewJob("a:1", {})])
        [job] = ledger.lease("w", 1, 60)
        assert woken(ledger, lambda: ledger.release(Release(job.job_id, job.fence, job.lease_id)))
        [job] = ledger.lease("w", 1, 60)
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR))
        assert woken(ledger, ledger.retry_failed)
        ledger.pause()
        assert not ledger.wait_for_work(0)
        assert woken(ledger, ledger.resume)


def test_work_that_comes_between_looking_and_waiting_is_not_slept_over(path):
    class LateSignal(LocalSignal):
        """Work arrives just before the wait begins."""

        def wait(self, timeout_s, *, since=None):
            with SqliteLedger(path, signal=self) as other:
                other.enqueue_many([NewJob("a:1", {})])
            return super().wait(timeout_s, since=since)

    with SqliteLedger(path, poll_s=10, signal=LateSignal()) as ledger:
        started = time.monotonic()
        assert ledger.wait_for_work(10)
        assert time.monotonic() - started < 5


def test_another_process_enqueue_is_noticed_by_polling(path):
    """Another ledger object shares no signal, as another process would not."""
    with SqliteLedger(path, poll_s=0.02) as ledger, SqliteLedger(path) as other:
        assert woken(ledger, lambda: other.enqueue_many([NewJob("a:1", {})]))


def test_waiting_ends_when_a_delay_or_a_lease_is_over(path):
    with SqliteLedger(path, clock=SystemClock(), poll_s=10) as ledger:
        ledger.enqueue_many([NewJob("a:1", {}, delay_s=0.05)])
        assert ledger.wait_for_work(5)
        assert len(ledger.lease("w", 1, 0.05)) == 1
        assert ledger.wait_for_work(5)
        assert len(ledger.lease("other", 1, 60)) == 1


def test_waiting_without_work_ends_in_time(ledger):
    assert not ledger.wait_for_work(0.05)
