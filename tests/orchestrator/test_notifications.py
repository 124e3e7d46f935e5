from __future__ import annotations

import subprocess
import sys
import threading
import time

from tests.traced import Traced

from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.ledger.base import Finish, JobState, NewJob, Release
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.notifications.local import LocalSignal


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


FOR_EVER_S, PATIENCE_S = 1000.0, 60.0


def woken(ledger: SqliteLedger, deed) -> bool:
    """Whether `deed` wakes a thread that waits for work, long before it would look again by itself."""
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(ledger.wait_for_work(FOR_EVER_S)), daemon=True)
    waiter.start()
    deed()
    waiter.join(timeout=PATIENCE_S)
    return answers == [True]


def test_an_enqueue_wakes_a_waiting_worker(path):
    with SqliteLedger(path, poll_s=FOR_EVER_S) as ledger:
        assert woken(ledger, lambda: ledger.enqueue_many([NewJob("a:1", {})]))


def test_a_release_a_retry_and_a_resume_wake_a_waiting_worker(path):
    with SqliteLedger(path, poll_s=FOR_EVER_S) as ledger:
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

    with SqliteLedger(path, poll_s=FOR_EVER_S, signal=LateSignal()) as ledger:
        answers: list[bool] = []
        waiter = threading.Thread(target=lambda: answers.append(ledger.wait_for_work(FOR_EVER_S)), daemon=True)
        waiter.start()
        waiter.join(timeout=PATIENCE_S)
        assert answers == [True]


_PRODUCER = """
import sys, time
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

with SqliteLedger(sys.argv[1]) as ledger:
    for line in sys.stdin:
        ledger.enqueue_many([NewJob(line.strip(), {})])
        print(time.monotonic(), flush=True)
"""


def test_an_enqueue_of_another_process_is_noticed_within_fifty_milliseconds(path):
    """The monotonic clock is one for all processes of a machine. The best of some tries is not the machine's load."""
    with (
        SqliteLedger(path) as ledger,
        subprocess.Popen(
            [sys.executable, "-c", _PRODUCER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as producer,
    ):
        late = []
        for n in range(8):
            producer.stdin.write(f"a:{n}\n")
            producer.stdin.flush()
            assert ledger.wait_for_work(30)
            noticed = time.monotonic()
            late.append(noticed - float(producer.stdout.readline()))
            assert len(ledger.lease("w", 10, 600)) == 1
        producer.stdin.close()
    assert min(late) < 0.05


def test_waiting_for_another_process_costs_next_to_nothing(path, monkeypatch):
    """Counted: a number is read some forty times a second, and the ledger's contents once."""
    traced = Traced(monkeypatch, reading=True)
    with SqliteLedger(path, poll_s=0.025) as ledger:
        ledger.wait_for_work(0)
        traced.clear()
        assert not ledger.wait_for_work(0.4)
        looks = traced.statements.count("PRAGMA data_version")
        assert 2 <= looks <= 18
        assert len(traced.statements) - looks <= 3
        assert traced.steps <= 100 * looks


def test_two_ledgers_on_one_file_share_no_signal_and_still_hear_each_other(path):
    with SqliteLedger(path) as ledger, SqliteLedger(path) as other:
        assert woken(ledger, lambda: other.enqueue_many([NewJob("a:1", {})]))


def test_waiting_ends_when_a_delay_or_a_lease_is_over(path):
    with SqliteLedger(path, clock=SystemClock(), poll_s=FOR_EVER_S) as ledger:
        ledger.enqueue_many([NewJob("a:1", {}, delay_s=0.05)])
        assert ledger.wait_for_work(5)
        assert len(ledger.lease("w", 1, 0.05)) == 1
        assert ledger.wait_for_work(5)
        assert len(ledger.lease("other", 1, 60)) == 1


def test_waiting_without_work_ends_in_time(ledger):
    assert not ledger.wait_for_work(0.05)
