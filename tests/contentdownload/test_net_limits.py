"""Limits grant all or nothing, never too early, and say when to come back."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.asked_limits import gate, granted, refused
from tests.examples import examples

from DocsToKG.ContentDownload.api.gates import NotYet
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.permits import TimedGate
from DocsToKG.ContentDownload.net.limits.rates import GCRA, BucketSpec, Quota
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import ManualClock, SystemClock


def limits_with(
    clock: ManualClock, rate: str | None = None, *, burst: float = 1.0, slots: int = 99, **more
) -> HostLimits:
    rates = {"*": (Rate.parse(rate),)} if rate else {}
    return HostLimits(clock=clock, default_host=HostLimit(slots, rates, burst), default_resolver_slots=99, **more)


def test_requests_to_one_host_are_spaced_by_its_interval(clock: ManualClock) -> None:
    """LIM-14: 0.33/second means about three seconds apart."""
    limits = limits_with(clock, "1/3 seconds")
    granted(limits.ask(gate())).release()
    wait = refused(limits.ask(gate()))
    assert (wait.key, wait.at) == ("host:a.org", clock.monotonic() + 3.0)
    clock.advance(2.999)
    refused(limits.ask(gate()))
    clock.advance(0.001)
    granted(limits.ask(gate()))


def test_hosts_do_not_wait_for_each_other(clock: ManualClock) -> None:
    limits = limits_with(clock, "1/minute")
    granted(limits.ask(gate("a.org")))
    granted(limits.ask(gate("b.org")))


def test_a_role_may_have_a_rate_of_its_own(clock: ManualClock) -> None:
    limits = HostLimits(clock=clock, default_host=HostLimit(9, {Role.LANDING: (Rate(1, 60),)}))
    granted(limits.ask(gate(role=Role.LANDING)))
    refused(limits.ask(gate(role=Role.LANDING)))
    granted(limits.ask(gate(role=Role.ARTIFACT)))


def test_a_rate_holds_whichever_source_asks(clock: ManualClock) -> None:
    """LIM-13"""
    limits = limits_with(clock, "1/minute")
    granted(limits.ask(gate(resolver="unpaywall")))
    assert refused(limits.ask(gate(resolver="crossref"))).key == "host:a.org"


def test_a_refusal_takes_nothing(clock: ManualClock) -> None:
    """The host's slot is taken, so neither the rate nor the source's token may be spent by asking."""
    limits = limits_with(clock, "1/second", slots=1, resolver_rates={"unpaywall": BucketSpec(2, 0.001)})
    first = granted(limits.ask(gate()))
    clock.advance(10)
    for _ in range(50):
        assert refused(limits.ask(gate())).at is None
    first.release()
    granted(limits.ask(gate()))


def test_slots_bound_what_runs_at_once_per_source_and_per_host(clock: ManualClock) -> None:
    """LIM-06"""
    limits = HostLimits(
        clock=clock, default_host=HostLimit(1), resolver_slots={"unpaywall": 2}, default_resolver_slots=9
    )
    held = granted(limits.ask(gate("a.org")))
    assert refused(limits.ask(gate("a.org"))).key == "host:a.org"
    granted(limits.ask(gate("b.org")))
    assert refused(limits.ask(gate("c.org"))).key == "resolver:unpaywall"
    held.release()
    granted(limits.ask(gate("a.org")))


def test_a_source_that_nobody_limited_has_as_many_as_are_asked_for(clock: ManualClock) -> None:
    """CFG-09. A number of one process would bind all that share the record together."""
    limits = HostLimits(clock=clock, default_host=HostLimit(1))
    for number in range(100):
        granted(limits.ask(gate(f"{number}.org")))


def test_release_twice_frees_one_slot(clock: ManualClock) -> None:
    limits = limits_with(clock, slots=2)
    first = granted(limits.ask(gate()))
    granted(limits.ask(gate()))
    first.release()
    first.release()
    granted(limits.ask(gate()))
    refused(limits.ask(gate()))


def test_retry_after_holds_the_whole_host_and_is_never_shortened(clock: ManualClock) -> None:
    """NET-06"""
    limits = limits_with(clock)
    limits.hold("a.org", clock.monotonic() + 30, "Retry-After")
    limits.hold("a.org", clock.monotonic() + 5, "Retry-After")
    wait = refused(limits.ask(gate()))
    assert (wait.at, wait.why) == (clock.monotonic() + 30, "a.org: Retry-After")
    granted(limits.ask(gate("b.org")))


def test_the_larger_of_crawl_delay_and_rate_holds(clock: ManualClock) -> None:
    """LIM-16"""
    limits = limits_with(clock, "1/2 seconds")
    granted(limits.ask(gate())).release()
    limits.set_crawl_delay("a.org", 10.0)
    assert refused(limits.ask(gate())).at == clock.monotonic() + 10
    clock.advance(10)
    granted(limits.ask(gate())).release()
    limits.set_crawl_delay("a.org", 1.0)
    assert refused(limits.ask(gate())).at == clock.monotonic() + 2


def test_a_refund_gives_the_interval_back(clock: ManualClock) -> None:
    """LIM-10"""
    limits = limits_with(clock, "1/minute", resolver_rates={"unpaywall": BucketSpec(1, 0.001)})
    permit = granted(limits.ask(gate()))
    assert permit.start() == 0.0
    permit.refund()
    permit.release()
    granted(limits.ask(gate()))


def test_an_old_refund_never_brings_two_starts_together() -> None:
    spacing, memory = GCRA(1.0), []
    first = spacing.take(memory, 0.0)
    spacing.take(memory, 5.0)
    spacing.give_back(memory, first, 5.0)
    assert spacing.ready_at(memory, 5.0) == 6.0


def test_a_late_thread_does_not_meet_the_next_one_at_the_server(clock: ManualClock) -> None:
    limits = limits_with(clock, "1/second")
    late = granted(limits.ask(gate()))
    clock.advance(1.0)
    punctual = granted(limits.ask(gate()))
    assert late.start() == 0.0
    assert 0.0 < punctual.start() < 0.1  # the other is still connecting: look again soon
    clock.advance(0.3)
    late.on_sent()
    assert punctual.start() == pytest.approx(1.0)  # a whole interval from the moment it was on the wire
    clock.advance(1.0)
    assert punctual.start() == 0.0


def test_a_request_that_never_gets_onto_the_wire_holds_nobody_up(clock: ManualClock) -> None:
    limits = limits_with(clock, "1/second")
    stuck = granted(limits.ask(gate()))
    assert stuck.start() == 0.0
    clock.advance(1.0)
    next_one = granted(limits.ask(gate()))
    assert next_one.start() > 0.0
    stuck.release()
    assert next_one.start() == 0.0


def test_a_host_that_asked_for_a_pause_is_not_sent_what_was_granted_before(clock: ManualClock) -> None:
    limits = limits_with(clock)
    permit = granted(limits.ask(gate()))
    limits.hold("a.org", clock.monotonic() + 7, "Retry-After")
    assert permit.start() == 7.0


def test_a_rate_per_day_is_an_allowance_and_not_a_spacing(clock: ManualClock) -> None:
    limits = limits_with(clock, "3/day")
    for _ in range(3):
        granted(limits.ask(gate())).release()
    assert refused(limits.ask(gate())).at == clock.monotonic() + 86400


def test_a_quota_counts_any_window_exactly() -> None:
    quota, memory = Quota(2, 100.0), []
    quota.take(memory, 0.0)
    quota.take(memory, 60.0)
    assert quota.ready_at(memory, 60.0) == 100.0
    assert quota.ready_at(memory, 100.0) == 100.0


def test_rate_factor_speeds_every_rate_up(clock: ManualClock) -> None:
    limits = limits_with(clock, "1/second", rate_factor=20.0)
    granted(limits.ask(gate()))
    assert refused(limits.ask(gate())).at == pytest.approx(clock.monotonic() + 0.05)


def test_a_limit_may_be_given_for_all_hosts_below_a_name(clock: ManualClock) -> None:
    limits = limits_with(clock, hosts={"*.example.org": HostLimit(1), "free.example.org": HostLimit(3)})
    granted(limits.ask(gate("a.example.org")))
    refused(limits.ask(gate("a.example.org")))
    granted(limits.ask(gate("free.example.org")))
    granted(limits.ask(gate("free.example.org")))


def test_whoever_waits_is_told_when_a_slot_is_free_or_a_time_moved(clock: ManualClock) -> None:
    limits = limits_with(clock, slots=1)
    told: list[str] = []
    limits.on_free(told.append)
    granted(limits.ask(gate())).release()
    limits.hold("b.org", clock.monotonic() + 1, "Retry-After")
    limits.set_crawl_delay("c.org", 4)
    assert told == ["resolver:unpaywall", "host:a.org", "host:b.org", "host:c.org"]


def test_a_callback_may_ask_again_at_once(clock: ManualClock) -> None:
    limits = limits_with(clock, slots=1)
    answers: list[object] = []
    limits.on_free(lambda key: answers.append(limits.ask(gate())))
    granted(limits.ask(gate())).release()
    granted(answers[0])


def test_a_gate_remembers_which_rules_it_stood_for_and_how_long(clock: ManualClock) -> None:
    """LIM-12: a wait for a free slot is none of them, and coming late is not the rule's doing."""
    limits = limits_with(clock, "1/3 seconds", slots=1, resolver_rates={"unpaywall": Rate(1, 10)})
    first, timed = granted(limits.ask(gate())), TimedGate(*dataclasses.astuple(gate()))
    assert refused(limits.ask(timed)).key == "resolver:unpaywall"
    clock.advance(4)
    limits.hold("a.org", clock.monotonic() + 30, "Retry-After")
    assert refused(limits.ask(timed)).key == "host:a.org"
    clock.advance(31)
    assert refused(limits.ask(timed)).at is None
    clock.advance(50)
    first.release()
    granted(limits.ask(timed))
    assert timed.delays.seconds == {("resolver:unpaywall", "rate"): 4.0, ("host:a.org", "hold"): 30.0}


@pytest.mark.slow
@given(
    burst=st.integers(1, 5),
    slots=st.integers(1, 4),
    moves=st.lists(st.tuples(st.sampled_from(["ask", "start", "free", "refund"]), st.floats(0, 3)), max_size=60),
)
@examples(150)
def test_sent_requests_stay_within_rate_burst_and_slots_in_any_order(
    burst: int, slots: int, moves: list[tuple[str, float]]
) -> None:
    """LIM-09: whatever the order of asking, sending, freeing and refunding."""
    clock = ManualClock()
    limits = limits_with(clock, "1/second", burst=burst, slots=slots)
    waiting: list[HostPermit] = []
    running: list[HostPermit] = []
    sent: list[float] = []
    for move, pause in moves:
        clock.advance(pause)
        if move == "ask" and isinstance(answer := limits.ask(gate()), HostPermit):
            waiting.append(answer)
        elif move == "start" and waiting and waiting[0].start() == 0.0:
            running.append(waiting.pop(0))
            sent.append(clock.monotonic())
        elif move == "free" and running:
            running.pop(0).release()
        elif move == "refund" and waiting:
            waiting[0].refund()
            waiting.pop(0).release()
        assert len(waiting) + len(running) <= slots
    for first, start in enumerate(sent):
        for count, end in enumerate(sent[first:], 1):
            assert count <= (end - start) * 1.0 + burst + 1e-6


def test_threads_never_exceed_a_host_cap() -> None:
    """LIM-02, LIM-06: counted by the threads themselves."""
    limits = HostLimits(clock=SystemClock(), default_host=HostLimit(2), default_resolver_slots=99)
    lock, running, peak, served = threading.Lock(), [0], [0], [0]

    def work() -> None:
        done = 0
        while done < 50:
            answer = limits.ask(gate())
            if isinstance(answer, NotYet):
                continue
            with lock:
                running[0] += 1
                peak[0] = max(peak[0], running[0])
            with lock:
                running[0] -= 1
                served[0] += 1
            answer.release()
            done += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert served[0] == 400
    assert 1 <= peak[0] <= 2


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
