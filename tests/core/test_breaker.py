"""The breaker engine: when it opens, whom it lets through as a test, how it closes, what is forced."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.examples import examples

from DocsToKG.core.breaker import (
    JOB_TYPE_SETTINGS,
    Breaker,
    BreakerSettings,
    BreakerState,
    CheckResult,
    Ticket,
    Transition,
)
from DocsToKG.core.clock import ManualClock

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class Scene:
    """A breaker, its clock, and what it told."""

    def __init__(self, **chosen: float) -> None:
        self.clock = ManualClock()
        self.told: list[Transition] = []
        self.settings = BreakerSettings(**chosen)  # type: ignore[arg-type]
        self.breaker = Breaker(self.settings, self.clock, key="host:a.org", on_transition=self.told.append)

    def fail(self, times: int = 1, **kwargs: float) -> None:
        for _ in range(times):
            self.breaker.record_failure(ticket=self.breaker.check().ticket, **kwargs)

    def succeed(self, times: int = 1) -> None:
        for _ in range(times):
            self.breaker.record_success(ticket=self.breaker.check().ticket)

    def tripped(self) -> Scene:
        self.fail(self.settings.min_samples)
        assert self.breaker.state is OPEN
        return self

    def testing(self) -> Scene:
        self.tripped()
        self.clock.advance(self.settings.open_s)
        assert self.breaker.state is HALF_OPEN
        return self


@pytest.fixture
def scene() -> Scene:
    return Scene()


def ticket_of(result: CheckResult) -> Ticket:
    assert result.ticket is not None
    return result.ticket


def test_the_shipped_numbers_are_the_promised_ones() -> None:
    """BRK-13."""
    shipped = BreakerSettings()
    assert (shipped.threshold, shipped.window_s, shipped.min_samples) == (0.5, 60.0, 10)
    assert (shipped.open_s, shipped.longest_open_s, shipped.test_count) == (30.0, 600.0, 3)
    assert (JOB_TYPE_SETTINGS.threshold, JOB_TYPE_SETTINGS.window_s, JOB_TYPE_SETTINGS.min_samples) == (0.5, 300.0, 20)


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": -0.1},
        {"threshold": 1.1},
        {"threshold": float("nan")},
        {"window_s": 0},
        {"min_samples": 0},
        {"test_count": 0},
        {"open_s": 0},
        {"open_s": 60, "longest_open_s": 30},
    ],
)
def test_settings_without_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        BreakerSettings(**wrong)  # type: ignore[arg-type]


# closed


def test_it_opens_at_the_threshold_not_above_it(scene: Scene) -> None:
    """BRK-02, BRK-05: five of ten are enough."""
    scene.succeed(5)
    scene.fail(4)
    assert scene.breaker.check().allowed
    scene.fail()
    result = scene.breaker.check()
    assert (result.allowed, result.state, result.failure_rate, result.retry_in_s) == (False, OPEN, 0.5, 30.0)
    assert scene.told == [Transition("host:a.org", CLOSED, OPEN, "5 of 10 failed", 30.0)]


def test_a_threshold_of_one_trips_when_everything_fails() -> None:
    """BRK-05, N16."""
    scene = Scene(threshold=1.0)
    scene.fail(9)
    assert scene.breaker.state is CLOSED
    scene.fail()
    assert scene.breaker.state is OPEN


def test_a_threshold_of_zero_needs_a_failure() -> None:
    scene = Scene(threshold=0.0)
    scene.succeed(50)
    assert scene.breaker.state is CLOSED
    scene.fail()
    assert scene.breaker.state is OPEN


def test_the_sample_that_completes_the_minimum_may_be_a_success(scene: Scene) -> None:
    scene.fail(9)
    scene.succeed()
    assert scene.breaker.state is OPEN


def test_old_samples_leave_the_window(scene: Scene) -> None:
    """BRK-05: the window slides."""
    scene.fail(9)
    scene.clock.advance(61)
    scene.fail(9)
    assert scene.breaker.check().failure_rate == 1.0
    assert scene.breaker.state is CLOSED
    scene.clock.advance(30)
    scene.fail()
    assert scene.breaker.state is OPEN


def test_without_samples_the_rate_is_zero_and_the_breaker_is_idle(scene: Scene) -> None:
    assert scene.breaker.check().failure_rate == 0.0
    assert scene.breaker.is_idle()
    scene.succeed()
    assert not scene.breaker.is_idle()
    scene.clock.advance(61)
    assert scene.breaker.is_idle()


# open


def test_an_open_breaker_counts_down(scene: Scene) -> None:
    """BRK-03, BRK-06."""
    scene.tripped()
    scene.clock.advance(12)
    result = scene.breaker.check()
    assert (result.allowed, result.retry_in_s, result.ticket) == (False, 18.0, None)


@pytest.mark.parametrize(("asked_s", "open_s"), [(5.0, 30.0), (90.0, 90.0), (2000.0, 2000.0), (1e9, 86_400.0)])
def test_retry_after_lengthens_the_open_time(scene: Scene, asked_s: float, open_s: float) -> None:
    """BRK-13: also beyond the doubling's end, but not for ever."""
    scene.fail(9)
    scene.fail(retry_after_s=asked_s)
    assert scene.breaker.check().retry_in_s == open_s


def test_a_late_failure_with_retry_after_lengthens_an_open_time_but_is_no_sample(scene: Scene) -> None:
    late = scene.breaker.check().ticket
    scene.tripped()
    scene.breaker.record_failure(retry_after_s=70, ticket=late)
    assert scene.breaker.check().retry_in_s == 70
    assert len(scene.told) == 1


# half-open


def test_after_its_time_it_lets_exactly_the_tests_through(scene: Scene) -> None:
    """BRK-04, BRK-07."""
    scene.testing()
    results = [scene.breaker.check() for _ in range(5)]
    assert [result.allowed for result in results] == [True, True, True, False, False]
    assert results[-1].retry_in_s == 30.0


def test_looking_takes_no_place(scene: Scene) -> None:
    scene.testing()
    assert all(scene.breaker.look().allowed for _ in range(9))
    assert scene.breaker.look().ticket is None


def test_it_closes_when_all_tests_have_passed(scene: Scene) -> None:
    """BRK-04."""
    scene.testing().succeed(2)
    assert scene.breaker.state is HALF_OPEN
    scene.succeed()
    result = scene.breaker.check()
    assert (result.state, result.failure_rate) == (CLOSED, 0.0)
    assert [(change.old, change.new) for change in scene.told] == [
        (CLOSED, OPEN),
        (OPEN, HALF_OPEN),
        (HALF_OPEN, CLOSED),
    ]


def test_each_reopening_doubles_the_time_up_to_the_end(scene: Scene) -> None:
    """BRK-13."""
    scene.tripped()
    times = []
    for _ in range(7):
        times.append(scene.breaker.check().retry_in_s)
        scene.clock.advance(times[-1] or 0.0)
        scene.fail()
    assert times == [30, 60, 120, 240, 480, 600, 600]


def test_closing_forgets_the_doubling(scene: Scene) -> None:
    scene.testing().fail()
    scene.clock.advance(60)
    scene.succeed(3)
    assert scene.tripped().breaker.check().retry_in_s == 30


def test_results_from_before_do_not_count_as_tests(scene: Scene) -> None:
    late = [ticket_of(scene.breaker.check()) for _ in range(6)]
    scene.testing()
    running = ticket_of(scene.breaker.check())
    for ticket in late[:3]:
        scene.breaker.record_success(ticket=ticket)
    scene.breaker.record_failure(ticket=late[3])
    scene.breaker.record_nothing(late[4])
    assert [scene.breaker.check().allowed for _ in range(3)] == [True, True, False]
    scene.breaker.record_success(ticket=running)
    assert scene.breaker.state is HALF_OPEN


def test_a_test_reports_once(scene: Scene) -> None:
    ticket = scene.testing().breaker.check().ticket
    for _ in range(3):
        scene.breaker.record_success(ticket=ticket)
    assert scene.breaker.state is HALF_OPEN


def test_who_reports_without_a_ticket_reports_for_the_oldest_test(scene: Scene) -> None:
    """BRK-07: a service's callers know only its name."""
    scene.testing()
    scene.breaker.record_failure()
    assert scene.breaker.state is HALF_OPEN, "no test was running"
    scene.breaker.check()
    scene.breaker.record_failure()
    assert scene.breaker.state is OPEN


def test_a_test_that_says_nothing_gives_its_place_back(scene: Scene) -> None:
    scene.testing()
    tickets = [ticket_of(scene.breaker.check()) for _ in range(3)]
    scene.breaker.record_nothing(tickets[1])
    assert [scene.breaker.check().allowed for _ in range(2)] == [True, False]


def test_a_silent_test_loses_its_place_after_a_while(scene: Scene) -> None:
    scene.testing()
    silent = [scene.breaker.check().ticket for _ in range(3)]
    scene.clock.advance(100)
    assert scene.breaker.check().retry_in_s == 20
    scene.clock.advance(20)
    assert [scene.breaker.check().allowed for _ in range(4)] == [True, True, True, False]
    for ticket in silent:
        scene.breaker.record_success(ticket=ticket)
    assert scene.breaker.state is HALF_OPEN, "who comes too late is not counted"


# forced


def test_forced_open_holds_until_changed(scene: Scene) -> None:
    """BRK-08."""
    scene.breaker.force_open("maintenance at the publisher")
    scene.clock.advance(1e6)
    scene.breaker.record_success()
    result = scene.breaker.check()
    assert (result.allowed, result.state, result.retry_in_s) == (False, OPEN, None)
    assert scene.breaker.forced
    scene.breaker.unforce("they are back")
    assert scene.breaker.state is HALF_OPEN
    assert [change.why for change in scene.told] == [
        "forced open: maintenance at the publisher",
        "no longer forced: they are back",
    ]


def test_forced_closed_holds_against_any_failure(scene: Scene) -> None:
    """BRK-08."""
    scene.tripped().breaker.force_closed("we know")
    scene.fail(50)
    assert scene.breaker.check().allowed
    assert scene.breaker.check().failure_rate == 1.0
    scene.breaker.unforce("enough")
    scene.fail(9)
    assert scene.breaker.state is CLOSED, "it starts without samples"
    scene.fail()
    assert scene.breaker.state is OPEN


def test_forcing_twice_tells_once_and_unforcing_nothing_tells_nothing(scene: Scene) -> None:
    scene.breaker.unforce("nothing")
    scene.breaker.force_open("a")
    scene.breaker.force_open("b")
    assert len(scene.told) == 1


# properties


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=60))
def test_it_opens_exactly_when_an_exact_count_says_so(samples: list[tuple[bool, float]]) -> None:
    """BRK-05, against a plain list of events; a sample's age is known to a twelfth of the window."""
    scene = Scene(threshold=0.6, min_samples=5, window_s=60)
    events: list[tuple[float, bool]] = []
    for failed, pause_s in samples:
        scene.clock.advance(pause_s)
        now = scene.clock.monotonic()
        events.append((now, failed))
        (scene.fail if failed else scene.succeed)()
        live = [bad for at, bad in events if at // 5.0 > now // 5.0 - 12]
        should = len(live) >= 5 and sum(live) / len(live) >= 0.6
        assert (scene.breaker.state is OPEN) == should
        if should:
            return


@given(st.integers(1, 9), st.floats(0.0, 1.0), st.lists(st.booleans(), max_size=40))
def test_it_never_opens_below_the_minimum_of_samples(least: int, threshold: float, samples: list[bool]) -> None:
    scene = Scene(min_samples=least, threshold=threshold)
    for failed in samples[: least - 1]:
        (scene.fail if failed else scene.succeed)()
    assert scene.breaker.state is CLOSED


class BreakerLife(RuleBasedStateMachine):
    """Any order of checks, reports, silence and time."""

    @initialize(test_count=st.integers(1, 4), min_samples=st.integers(1, 6))
    def begin(self, test_count: int, min_samples: int) -> None:
        self.scene = Scene(test_count=test_count, min_samples=min_samples, test_timeout_s=40)
        self.breaker = self.scene.breaker
        self.held: list[Ticket] = []
        self.forced: BreakerState | None = None
        self.admitted: dict[int, dict[int, float]] = {}  # when each test was let through, by period

    @rule()
    def check(self) -> None:
        result = self.breaker.check()
        assert result.allowed == (result.ticket is not None)
        assert result.allowed or result.retry_in_s is None or result.retry_in_s > 0
        if result.ticket is not None:
            self.held.append(result.ticket)
            if result.state is HALF_OPEN:
                tests = self.admitted.setdefault(result.ticket.period, {})
                tests[result.ticket.number] = self.scene.clock.monotonic()

    @precondition(lambda self: self.held)
    @rule(data=st.data(), ending=st.sampled_from(["success", "failure", "nothing"]))
    def report(self, data: st.DataObject, ending: str) -> None:
        ticket = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        if ending == "nothing":
            self.breaker.record_nothing(ticket)
            self.admitted.get(ticket.period, {}).pop(ticket.number, None)
        else:
            getattr(self.breaker, f"record_{ending}")(ticket=ticket)

    @rule(seconds=st.sampled_from([0.5, 7.0, 31.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.scene.clock.advance(seconds)

    @rule(state=st.sampled_from([OPEN, CLOSED, None]))
    def force(self, state: BreakerState | None) -> None:
        {OPEN: self.breaker.force_open, CLOSED: self.breaker.force_closed, None: self.breaker.unforce}[state]("test")
        self.forced = state

    @invariant()
    def no_more_tests_than_allowed(self) -> None:
        """BRK-07: in any period, within the time a test may be silent."""
        for tests in getattr(self, "admitted", {}).values():
            recent = [at for at in tests.values() if at > max(tests.values()) - 40]
            assert len(recent) <= self.scene.settings.test_count

    @invariant()
    def a_forced_state_holds(self) -> None:
        """BRK-08."""
        if getattr(self, "forced", None) is not None:
            assert self.breaker.state is self.forced

    @invariant()
    def changes_follow_each_other(self) -> None:
        told = self.scene.told if hasattr(self, "scene") else []
        assert all(before.new is after.old for before, after in itertools.pairwise(told))

    def teardown(self) -> None:
        """Whatever happened, an unforced breaker lets somebody through again in the end."""
        self.breaker.unforce("the end")
        self.scene.clock.advance(86_400)
        assert self.breaker.check().allowed


BreakerLife.TestCase.settings = examples(60, stateful_step_count=40)
test_promises_hold_in_any_order = BreakerLife.TestCase


# threads


def test_a_crowd_never_gets_more_than_the_tests() -> None:
    """BRK-07: many threads ask at the same instant, again and again."""
    scene = Scene(longest_open_s=30.0).tripped()
    barrier = threading.Barrier(16)

    def rush(_: int) -> Ticket | None:
        barrier.wait(10)
        return scene.breaker.check().ticket

    with ThreadPoolExecutor(16) as pool:
        for _ in range(25):
            scene.clock.advance(30)
            tickets = [ticket for ticket in pool.map(rush, range(16)) if ticket is not None]
            assert len(tickets) == 3
            scene.breaker.record_failure(ticket=tickets[0])


def test_a_crowd_of_reports_opens_once() -> None:
    scene = Scene()

    def hammer(_: int) -> None:
        for _ in range(200):
            scene.breaker.record_failure(ticket=scene.breaker.check().ticket)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(hammer, range(8)))
    assert [(change.old, change.new) for change in scene.told] == [(CLOSED, OPEN)]


def test_it_says_whether_the_trouble_has_lasted_through_a_test(scene: Scene) -> None:
    scene.testing()
    assert not scene.breaker.look().tested
    scene.fail()
    assert scene.breaker.look().tested
    scene.breaker.force_open("by hand")
    assert not scene.breaker.look().tested
