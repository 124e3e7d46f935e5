"""When a failed request is tried again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.net.retries import Retries
from DocsToKG.core.backoff import RetryPolicy


def test_delays_double_up_to_the_cap_with_jitter_on_top() -> None:
    """NET-04, NET-18."""
    policy = RetryPolicy(base_s=0.2, cap_s=1.0, jitter_s=0.1)
    steady = Retries(policy, random=lambda: 0.0)
    assert [steady.delay_s(n) for n in (1, 2, 3, 4, 99)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert Retries(policy, random=lambda: 1.0).delay_s(1) == pytest.approx(0.3)


def test_what_is_drawn_is_the_callers() -> None:
    """NET-18: two who fail together wait differently, and a test can say how."""
    draws: Iterator[float] = iter([0.0, 0.5, 1.0])
    retries = Retries(RetryPolicy(base_s=1.0, cap_s=1.0, jitter_s=2.0), random=lambda: next(draws))
    assert [retries.delay_s(1) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_tries_end_at_the_policys_number_or_at_the_one_given() -> None:
    """NET-03."""
    retries = Retries(RetryPolicy(max_attempts=3), random=lambda: 0.5)
    assert [retries.is_over(n) for n in (1, 2, 3, 4)] == [False, False, True, True]
    assert retries.is_over(1, most=1)
    assert not retries.is_over(4, most=5)


@given(
    attempt=st.integers(1, 5000),
    base_s=st.floats(0, 600),
    cap_s=st.floats(0, 600),
    jitter_s=st.floats(0, 60),
    drawn=st.floats(0, 1),
)
def test_no_wait_is_negative_or_beyond_cap_and_jitter(
    attempt: int, base_s: float, cap_s: float, jitter_s: float, drawn: float
) -> None:
    """NET-04, for every setting that the configuration takes."""
    policy = RetryPolicy(base_s=base_s, cap_s=cap_s, jitter_s=jitter_s)
    assert 0.0 <= Retries(policy, random=lambda: drawn).delay_s(attempt) <= cap_s + jitter_s + 1e-6
