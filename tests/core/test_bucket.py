"""Rates in words, and the bucket that keeps them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.core.bucket import Rate, TokenBucket
from DocsToKG.core.clock import ManualClock


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("10/second", 10),
        ("0.33/second", 0.33),
        ("1/3 seconds", 1 / 3),
        ("60/minute", 1),
        ("1000/day", 1000 / 86400),
        ("5/s", 5),
    ],
)
def test_rates_are_read(text: str, per_second: float) -> None:
    """CFG-26."""
    assert Rate.parse(text).per_second == pytest.approx(per_second)


@pytest.mark.parametrize("text", ["", "10", "ten/second", "0/second", "1/0 seconds", "-1/second", "1/fortnight"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        Rate.parse(text)


def test_the_wait_named_is_enough_and_nothing_less() -> None:
    """LIM-08, LIM-14."""
    clock = ManualClock()
    bucket = TokenBucket(1, 0.33, clock=clock)
    assert bucket.consume() == 0.0
    wait = bucket.consume()
    assert wait == pytest.approx(1 / 0.33)
    clock.advance(wait - 0.001)
    assert bucket.consume() > 0
    clock.advance(0.002)
    assert bucket.consume() == 0.0


def test_a_refund_never_exceeds_the_brim() -> None:
    """LIM-08, LIM-10."""
    bucket = TokenBucket(2, 1, burst=1, clock=ManualClock())
    bucket.refund(10)
    assert [bucket.consume() for _ in range(3)] == [0.0, 0.0, 0.0]
    assert bucket.consume() > 0
    bucket.refund()
    assert bucket.consume() == 0.0


@given(
    capacity=st.integers(1, 5),
    refill=st.floats(0.1, 10),
    burst=st.integers(0, 5),
    gaps=st.lists(st.floats(0, 2), max_size=60),
)
def test_grants_never_exceed_what_the_rate_allows(capacity: int, refill: float, burst: int, gaps: list[float]) -> None:
    """LIM-09."""
    clock = ManualClock()
    bucket = TokenBucket(capacity, refill, burst, clock=clock)
    granted = 0
    for gap in gaps:
        clock.advance(gap)
        granted += bucket.consume() == 0.0
    assert granted <= capacity + burst + refill * sum(gaps) + 1e-6


def test_threads_share_one_bucket() -> None:
    """LIM-07, LIM-09: eight threads, ten tokens, no refill to speak of."""
    bucket = TokenBucket(10, 1e-9, clock=ManualClock())
    granted: list[bool] = []

    def take() -> None:
        granted.extend(bucket.consume() == 0.0 for _ in range(50))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 10
