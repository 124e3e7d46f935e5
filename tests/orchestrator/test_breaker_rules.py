"""Breakers as they are stored behave as those in memory, whatever happens to them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from DocsToKG.core.breaker import Breaker, BreakerSettings, BreakerState
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.jobs.breakers import JOB_TYPE_SETTINGS, StoredBreaker, default_settings

SETTINGS = BreakerSettings(
    threshold=0.5, window_s=12, min_samples=4, open_s=8, longest_open_s=20, test_count=2, test_timeout_s=30
)
deeds = some.one_of(
    some.sampled_from(["success", "failure", "check", "force_open", "force_closed", "unforce"]),
    some.tuples(some.just("wait"), some.integers(1, 40)),
    some.tuples(some.just("retry_after"), some.integers(1, 60)),
)


@given(some.lists(deeds, max_size=60))
def test_a_stored_breaker_and_one_in_memory_agree(story):
    """BRK-02 to BRK-08: the same answers, step by step, though one of the two is read and written each time."""
    clock, names = ManualClock(), iter(range(10_000))
    changes = []
    model = Breaker(SETTINGS, clock, key="k", on_transition=lambda change: changes.append((change.old, change.new)))
    stored = ("closed", False, None, "{}")
    seen = []
    start = clock.monotonic()
    for deed in story:
        # Whole seconds from nought, so that both divide time into the same pieces.
        now = round((clock.monotonic() - start) * 1000) + round(start * 1000)
        breaker = StoredBreaker.read(SETTINGS, *stored)
        match deed:
            case ("wait", seconds):
                clock.advance(seconds)
            case ("retry_after", seconds):
                model.record_failure(retry_after_s=seconds)
                breaker.judge(now, failed=1, retry_after_s=seconds)
            case "success":
                model.record_success()
                breaker.judge(now, passed=1)
            case "failure":
                model.record_failure()
                breaker.judge(now, failed=1)
            case "check":
                theirs, ours = model.check(), breaker.look(now)
                assert (ours.allowed, ours.state) == (theirs.allowed, theirs.state)
                assert ours.failure_rate == pytest.approx(theirs.failure_rate)
                if theirs.retry_in_s is not None:
                    assert ours.retry_in_s == pytest.approx(theirs.retry_in_s, abs=0.01)
                if ours.allowed:
                    breaker.take([f"{next(names):05}"], now)
            case "force_open":
                model.force_open("x")
                breaker.force(BreakerState.OPEN, "x")
            case "force_closed":
                model.force_closed("x")
                breaker.force(BreakerState.CLOSED, "x")
            case "unforce":
                model.unforce("x")
                breaker.unforce("x")
        seen += [(change.old, change.new) for change in breaker.changes]
        stored = (breaker.state.value, breaker.forced, breaker.open_until, breaker.kept())
    final = StoredBreaker.read(SETTINGS, *stored)
    final.tick(round(clock.monotonic() * 1000))
    assert final.state == model.state
    seen += [(change.old, change.new) for change in final.changes]
    assert seen == changes


def test_only_the_answer_of_a_test_counts_for_it():
    """Jobs that were leased before the trouble end late: they neither close nor open a breaker that is tested."""
    breaker = StoredBreaker(SETTINGS, BreakerState.HALF_OPEN)
    breaker.take(["7", "8"], 0)
    assert breaker.places(0) == 0
    breaker.judge(1, passed=3, names={"1": True, "2": True, "3": True})
    assert breaker.state is BreakerState.HALF_OPEN
    breaker.judge(2, failed=1, names={"4": False})
    assert breaker.state is BreakerState.HALF_OPEN
    breaker.judge(3, passed=2, names={"7": True, "8": True})
    assert breaker.state is BreakerState.CLOSED


def test_a_test_that_says_nothing_gives_its_place_back():
    breaker = StoredBreaker(SETTINGS, BreakerState.HALF_OPEN)
    breaker.take(["7", "8"], 0)
    breaker.give_back(["7"])
    assert breaker.places(1) == 1
    assert breaker.places(30_000) == 2  # the other one has been silent for too long


def test_what_cannot_be_read_is_forgotten():
    for kept in ("no json", "[]", '{"tests": 3}', '{"window": {"a": 1}}', json.dumps({"reopenings": "x"})):
        breaker = StoredBreaker.read(SETTINGS, "open", False, 500, kept)
        assert (breaker.state, breaker.open_until, breaker.tests) == (BreakerState.OPEN, 500, {})


def test_job_types_are_judged_over_more_jobs():
    """BRK-13."""
    assert default_settings("jobtype:t") == JOB_TYPE_SETTINGS
    assert default_settings("service:x").min_samples == 10


def test_what_is_stored_stays_small():
    breaker = StoredBreaker(BreakerSettings(threshold=1.0))
    for now in range(0, 10_000_000, 500):
        breaker.judge(now, passed=1)
    assert len(breaker.kept()) < 1000
