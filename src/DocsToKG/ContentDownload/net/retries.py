"""When a failed request is tried again, by tenacity's rules. Pure: whoever asks does the waiting.

Knows how often and how far apart, and that a server's wish goes before. Does not know what failed. tenacity is loaded
with the first failure, as every source has its `Retries` and few ever need them.
tenacity's own jitter draws from the module's random numbers; ours is one more wait added to its growth, so that a test
can say what was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from DocsToKG.core.backoff import RetryPolicy

if TYPE_CHECKING:
    from tenacity import RetryCallState
    from tenacity.wait import wait_base


class Retries:
    """The waits of one policy; `random` gives 0..1. Who asks for longer than `longest_asked_s` is not waited for."""

    def __init__(self, policy: RetryPolicy, *, random: Callable[[], float], longest_asked_s: float = math.inf) -> None:
        self._policy = policy
        self._random = random
        self._longest_asked_s = longest_asked_s

    def pause_s(self, attempt: int, *, most: int, asked_s: float | None, left_s: float) -> float | None:
        """Seconds until the next try, where the server asked for `asked_s` and the work has `left_s`; None when there
        is none in this run of the job."""
        if self.is_over(attempt, most=most) or left_s <= 0:
            return None
        if asked_s is None:
            return self.delay_s(attempt)
        return None if asked_s > min(left_s, self._longest_asked_s) else asked_s + self.jitter_s()

    @cached_property
    def _wait(self) -> wait_base:
        from tenacity import wait_combine, wait_exponential

        growth = wait_exponential(multiplier=self._policy.base_s, max=self._policy.cap_s)
        return wait_combine(growth, lambda state: self.jitter_s())

    def is_over(self, attempt: int, *, most: int | None = None) -> bool:
        """Was failed try number `attempt` (the first is 1) the last? `most` replaces the policy's number."""
        from tenacity import stop_after_attempt

        return stop_after_attempt(most or self._policy.max_attempts)(_after(attempt))

    def delay_s(self, attempt: int) -> float:
        """Seconds to wait after failed try number `attempt`."""
        return self._wait(_after(attempt))

    def jitter_s(self) -> float:
        """Those who were sent away together must not come back in the same instant."""
        return self._random() * self._policy.jitter_s


def _after(attempt: int) -> RetryCallState:
    from tenacity import RetryCallState, Retrying

    state = RetryCallState(Retrying(), None, (), {})  # a state belongs to a loop; this one never runs
    state.attempt_number = attempt
    return state
