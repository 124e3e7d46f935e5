from __future__ import annotations

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.ledger_time import LedgerTime
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


def test_a_clock_set_back_does_not_take_a_live_lease(ledger, clock, lease_one):
    job = lease_one("w", ttl_s=60)
    clock.step(-3600)
    assert ledger.lease("other", 1, 60) == []
    assert ledger.heartbeat("w", 60) == {job.lease_id}


def test_a_clock_set_back_does_not_revive_an_expired_lease(ledger, clock, lease_one):
    lease_one("w", ttl_s=60)
    clock.advance(61)
    ledger.pause()
    clock.step(-3600)
    assert ledger.heartbeat("w", 60) == set()


def test_leases_still_run_out_after_a_clock_was_set_back(ledger, clock, lease_one):
    """Time goes on at the pace of the monotonic clock, so no job is stuck until the wall clock has caught up."""
    lease_one("w", ttl_s=60)
    clock.step(-86400)
    clock.advance(61)
    assert len(ledger.lease("other", 1, 60)) == 1


def test_the_mark_holds_for_a_process_that_starts_with_a_slow_clock(ledger, path, clock, lease_one):
    lease_one("w", ttl_s=60)
    clock.advance(61)
    ledger.pause()
    ledger.resume()
    slow = ManualClock(clock.now() - 7200)
    with SqliteLedger(path, clock=slow) as other:
        [job] = other.lease("other", 1, 60)
        assert job.lease_until >= clock.now() + 60


def test_waiting_times_are_told_in_the_process_own_clock(ledger, clock, enqueue):
    """A process whose clock was set back sleeps as long as it should, not an hour more."""
    enqueue(delay_s=30)
    clock.step(-3600)
    assert ledger.next_eligible_at() == pytest.approx(clock.now() + 30, abs=0.01)


def test_times_in_the_history_never_step_back(ledger, clock, sql):
    for n, step in enumerate([0, -50, 10, -1000, 5]):
        clock.step(step)
        clock.advance(1)
        ledger.enqueue_many([NewJob(f"a:{n}", {})])
    times = [at for (at,) in sql("SELECT at FROM job_history ORDER BY seq")]
    assert times == sorted(times)
    assert len(set(times)) == 5


def test_ledger_time_follows_the_clock_when_nothing_is_odd():
    clock = ManualClock(1000.0)
    time = LedgerTime(clock)
    assert time.now_ms() == 1_000_000
    clock.advance(2.5)
    assert time.now_ms() == 1_002_500
    assert time.now_ms(stored_ms=2_000_000) == 2_000_000


def test_a_reader_that_starts_after_the_clock_was_set_back_reckons_from_the_ledger(ledger, path, clock, enqueue):
    [job] = enqueue(1, delay_s=60)
    clock.step(-3600)
    with SqliteLedger(path, clock=clock) as other:
        assert other.why(job).reason == "delayed"
        assert other.why(job).at == pytest.approx(clock.now() + 60)
