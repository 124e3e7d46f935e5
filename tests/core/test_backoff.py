"""What a server asks for."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from DocsToKG.core.backoff import parse_retry_after

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
