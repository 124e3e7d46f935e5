"""Retry policy: when a failed job is tried again, and when it is given up. Pure rules."""

from __future__ import annotations

from collections.abc import Callable

BACKOFF_CAP_S = 3600.0
RELEASE_CAP_S = 24 * 3600.0
DEFAULT_MAX_ATTEMPTS = 3
# Workers in a row that ended while they were at work on a job: after so many it is a suspect, which is tried alone, and
# after so many, the last ones alone with it, the job has ended them. The ledgers' statements have the same numbers.
SUSPECT_AFTER = 2
ENDED_AFTER = 4


def job_backoff_s(
    attempts: int, *, base_s: float, jitter_s: float, random: Callable[[], float], cap_s: float = BACKOFF_CAP_S
) -> float:
    """Seconds until a job that has now failed `attempts` times is tried again; `random` gives 0..1.

    The first failure waits `base_s`, each further one twice as long, up to `cap_s`; jitter comes on top.
    """
    doublings = min(max(attempts, 1) - 1, 30)
    return float(min(cap_s, base_s * 2.0**doublings) + random() * jitter_s)
