"""Run one generator of steps by blocking the caller. For single calls; many are run by the frontier."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from DocsToKG.ContentDownload.api.steps import (
    Arrival,
    ExchangeOver,
    Gate,
    Gatekeeper,
    NotYet,
    Permit,
    Step,
    Steps,
    Until,
    Wait,
)
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock

T = TypeVar("T")

# A missed wake-up or a clock moved by hand costs at most this much.
_LONGEST_NAP_S = 0.25


def drive(steps: Steps[T], *, gate: Gatekeeper, clock: Clock, cancel: CancelToken) -> T:
    """The value of `steps`, its gates and waits waited for here."""
    bell = threading.Event()
    answer: Any = None
    with cancel.calling(bell.set):
        try:
            while True:
                step = steps.send(answer)
                answer = _pass(step, gate, clock, cancel, bell)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            steps.close()


def _pass(
    step: Step, gate: Gatekeeper, clock: Clock, cancel: CancelToken, bell: threading.Event
) -> Permit | bool | None:
    if isinstance(step, Gate):
        return _permit(step, gate, clock, cancel, bell)
    if isinstance(step, Wait):
        _wait_until(step.until, clock, cancel, bell)
        return None
    if isinstance(step, ExchangeOver):
        return None
    if isinstance(step, Arrival):
        return True  # whoever reads waits
    if isinstance(step, Until):
        done = threading.Event()
        step.start(done.set)
        done.wait()
        return None
    raise TypeError(f"{type(step).__name__} cannot be run by blocking here")


def _permit(step: Gate, gate: Gatekeeper, clock: Clock, cancel: CancelToken, bell: threading.Event) -> Permit:
    while isinstance(answer := gate.ask(step), NotYet):
        # Without a time the slot of another exchange is waited for; a short nap needs no subscription.
        _wait_until(answer.at if answer.at is not None else clock.monotonic() + 0.02, clock, cancel, bell)
    return answer


def _wait_until(until: float, clock: Clock, cancel: CancelToken, bell: threading.Event) -> None:
    while (left_s := until - clock.monotonic()) > 0:
        cancel.raise_if_cancelled()
        bell.wait(min(left_s, _LONGEST_NAP_S))
    cancel.raise_if_cancelled()
