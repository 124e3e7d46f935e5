"""Static quotas: how much a tenant may run at once and start in an hour. Pure arithmetic.

A limit for a job type counts the tenant's jobs of that type; one for `*` counts all of them together, and both hold.
A limit of the tenant `*` applies to every tenant without its own. Starts are counted by a token bucket of `burst`
tokens (at least one) that refills at `max_per_hour`: no hour sees more than `max_per_hour + burst`. Times are
milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

EVERY = "*"
_HOUR_MS = 3_600_000
_HAIR = 1e-9  # what rounding may have taken from a whole token


@dataclass(frozen=True, slots=True)
class Quota:
    """What one tenant may have of one job type."""

    max_active: int = 100
    max_per_hour: int = 1000
    burst: int = 10

    def __post_init__(self) -> None:
        if min(self.max_active, self.max_per_hour, self.burst) < 0:
            raise ValueError("maxActive, maxPerHour and burst must not be negative")


class Bucket(NamedTuple):
    """Tokens left at a moment."""

    tokens: float
    at: int


Key = tuple[str, str]  # tenant, job type


def limits_of(quotas: Mapping[Key, Quota], tenant: str, job_type: str) -> list[tuple[Key, Quota]]:
    """The limits that hold for a tenant's job type, each with what it counts."""
    found = []
    for counted in (job_type, EVERY):
        quota = quotas.get((tenant, counted)) or quotas.get((EVERY, counted))
        if quota is not None:
            found.append(((tenant, counted), quota))
    return found


def full(quota: Quota, now: int) -> Bucket:
    return Bucket(float(max(1, quota.burst)), now)


def filled(quota: Quota, bucket: Bucket | None, now: int) -> Bucket:
    """The bucket as it is now; a new one is full, and one that has become too small loses what it cannot hold."""
    if bucket is None:
        return full(quota, now)
    gained = max(0, now - bucket.at) * quota.max_per_hour / _HOUR_MS
    return Bucket(min(float(max(1, quota.burst)), bucket.tokens + gained), max(now, bucket.at))


def starts_left(quota: Quota, bucket: Bucket) -> int:
    """How many may start now."""
    return max(0, math.floor(bucket.tokens + _HAIR)) if quota.max_per_hour > 0 else 0


def spent(bucket: Bucket, starts: int) -> Bucket:
    return Bucket(bucket.tokens - starts, bucket.at)


def next_start_at(quota: Quota, bucket: Bucket) -> int | None:
    """When the next job may start; None when never."""
    if quota.max_per_hour <= 0:
        return None
    return bucket.at + math.ceil(max(0.0, 1.0 - bucket.tokens) * _HOUR_MS / quota.max_per_hour)
