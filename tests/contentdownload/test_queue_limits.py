from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.api.gates import Gate, NotYet, Permit
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.rates import BucketSpec
from DocsToKG.ContentDownload.orchestrator import limits
from DocsToKG.ContentDownload.orchestrator.limits import KeyedLimiter
from DocsToKG.core import urls
from DocsToKG.core.bucket import TokenBucket
from DocsToKG.core.clock import ManualClock


def test_a_key_has_its_own_limit_or_the_default_and_at_least_one():
    """LIM-01."""
    limiter = KeyedLimiter(0, {"unpaywall": 2, "doi": -3})
    assert [limiter.limit(key) for key in ("unpaywall", "doi", "other")] == [2, 1, 1]


def test_keys_do_not_affect_each_other():
    """LIM-02."""
    limiter = KeyedLimiter(1)
    assert limiter.acquire("a")
    assert limiter.acquire("b", blocking=False)
    assert not limiter.acquire("a", blocking=False)
    limiter.release("a")
    assert limiter.acquire("a", blocking=False)


def test_holders_never_exceed_the_limit():
    """LIM-02: many threads, one key."""
    limiter, lock = KeyedLimiter(8, {"host": 3}), threading.Lock()
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(20):
            with limiter.holding("host"):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.0005)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert (most, limiter.in_use("host")) == (3, 0)


def test_a_waiting_thread_goes_on_when_a_place_is_freed():
    limiter, entered = KeyedLimiter(1), threading.Event()
    limiter.acquire("a")

    def wait_for_place() -> None:
        limiter.acquire("a")
        entered.set()

    thread = threading.Thread(target=wait_for_place)
    thread.start()
    assert not entered.wait(0.05)
    limiter.release("a")
    assert entered.wait(10)
    thread.join(timeout=10)


def test_a_raised_limit_lets_a_waiting_thread_in():
    """EXT-04: a changed limit holds for live keys."""
    limiter = KeyedLimiter(1)
    limiter.acquire("a")
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(limiter.acquire("a", timeout=10)))
    thread.start()
    limiter.set_limit("a", 2)
    thread.join(timeout=20)
    assert (answers, limiter.in_use("a")) == ([True], 2)


def test_a_lowered_limit_holds_as_soon_as_places_are_freed():
    """EXT-04"""
    limiter = KeyedLimiter(3)
    for _ in range(3):
        limiter.acquire("a")
    limiter.set_limit("a", 1)
    limiter.release("a")
    limiter.release("a")
    assert not limiter.acquire("a", blocking=False)
    limiter.release("a")
    assert limiter.acquire("a", blocking=False)


def test_waiting_can_be_bounded():
    limiter = KeyedLimiter(1)
    limiter.acquire("a")
    assert not limiter.acquire("a", timeout=0.01)


def test_a_place_that_was_not_taken_cannot_be_freed():
    limiter = KeyedLimiter(1)
    with pytest.raises(ValueError, match="'a'"):
        limiter.release("a")


def test_a_place_is_freed_also_when_the_body_fails():
    limiter = KeyedLimiter(1)
    with pytest.raises(RuntimeError), limiter.holding("a"):
        raise RuntimeError
    assert limiter.in_use("a") == 0


def test_host_key_is_the_one_of_core():
    """LIM-03."""
    assert limits.host_key is urls.host_key
    assert limits.host_key("https://User:pw@Example.ORG:443/x") == "example.org"


def asked(of: HostLimits) -> Permit | NotYet:
    return of.ask(Gate("https://a.org/", "unpaywall", "artifact"))


@given(limit=st.integers(-1, 3), moves=st.lists(st.booleans(), max_size=40))
def test_a_limiter_gives_its_slots_as_the_program_gives_those_of_a_source(limit: int, moves: list[bool]):
    """LIM-01, LIM-02, LIM-04: True asks, False lets go."""
    limiter = KeyedLimiter(9, {"unpaywall": limit})
    running = HostLimits(clock=ManualClock(), default_host=HostLimit(99), resolver_slots={"unpaywall": limit})
    held: list[Permit] = []
    for asks in moves:
        if asks:
            answer = asked(running)
            assert limiter.acquire("unpaywall", blocking=False) == (not isinstance(answer, NotYet))
            if not isinstance(answer, NotYet):
                held.append(answer)
        elif held:
            held.pop().release()
            limiter.release("unpaywall")
        assert limiter.in_use("unpaywall") == len(held)


@given(
    capacity=st.integers(1, 4),
    refill=st.floats(0.1, 10),
    burst=st.integers(0, 3),
    moves=st.lists(st.tuples(st.floats(0, 2), st.booleans()), max_size=40),
)
def test_a_bucket_grants_as_the_program_does_for_a_source(
    capacity: int, refill: float, burst: int, moves: list[tuple[float, bool]]
):
    """LIM-07, LIM-08, LIM-10: at the same moments, after the same waits, and what goes back comes again."""
    clock = ManualClock()
    bucket = TokenBucket(capacity, refill, burst, clock=clock)
    spec = BucketSpec(capacity, refill, burst)
    running = HostLimits(clock=clock, default_host=HostLimit(99), resolver_rates={"unpaywall": spec})
    for gap, refunds in moves:
        clock.advance(gap)
        answer, wait_s = asked(running), bucket.consume()
        if isinstance(answer, NotYet):
            assert answer.at is not None
            assert wait_s == pytest.approx(answer.at - clock.monotonic(), abs=1e-6)
            continue
        assert wait_s == 0.0
        if refunds:
            answer.refund()
            bucket.refund()
        answer.release()
