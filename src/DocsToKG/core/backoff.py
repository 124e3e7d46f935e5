"""How often to try again, and what a server asks for. Pure; the waits between are worked out in `net.retries`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential from `base_s` to `cap_s`, plus up to `jitter_s`, for at most `max_attempts` tries in all."""

    max_attempts: int = 4
    base_s: float = 0.2
    cap_s: float = 4.0
    jitter_s: float = 0.1
    statuses: frozenset[int] = frozenset({429, 500, 502, 503, 504})


def parse_retry_after(value: str | None, *, now: float) -> float | None:
    """Seconds asked for by a `Retry-After` header (RFC 9110 section 10.2.3), or None when it says nothing usable."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)
