"""How long to wait before trying again."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from DocsToKG.core.backoff import RetryPolicy, parse_retry_after, retry_delay

NOW = 1_750_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        (" 0 ", 0.0),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        (None, None),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("٣", None),
    ],
)
def test_retry_after_in_both_forms(value: str | None, seconds: float | None) -> None:
    """NET-05."""
    assert parse_retry_after(value, now=NOW) == seconds


def test_delays_double_up_to_the_cap_with_jitter_on_top() -> None:
    """NET-04, NET-18."""
    policy = RetryPolicy(base_s=0.2, cap_s=1.0, jitter_s=0.1)
    assert [retry_delay(n, policy, random=lambda: 0.0) for n in (1, 2, 3, 4, 99)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert retry_delay(1, policy, random=lambda: 1.0) == pytest.approx(0.3)
