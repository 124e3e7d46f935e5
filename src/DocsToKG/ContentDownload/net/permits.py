"""Get through a gate, and be on time: the one way a request of ours obtains its permit.

Promises: every wait for a rate, an interval or a pause that a host asked for is recorded, once the gate has opened.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.steps import Gate, GateShut, Permit, Steps, Wait
from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.net.delays import INTERVAL, TimedGate
from DocsToKG.ContentDownload.net.limits import HostPermit
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key, mask_url

_SHORTEST_TOLD_S = 0.001


def admission(gate: Gate, clock: Clock, call: Call, *, attempts: AttemptSink) -> Steps[Permit]:
    """A permit for an exchange that is sent now.

    A thread may come late to its grant. When another was later still, or the host has asked for a pause
    meanwhile, sending now would break the interval; then the permit is given back and asked for again.
    """
    timed = TimedGate(gate.url, gate.resolver, gate.role)
    while True:
        call.cancel.raise_if_cancelled()
        try:
            permit: Permit = yield timed
        except GateShut as shut:
            left_s = max(0.0, shut.at - clock.monotonic())
            raise TransientFailure(Reason.RETRY_AFTER, shut.why, url=mask_url(gate.url), retry_after_s=left_s) from None
        delay_s = 0.0
        try:
            call.cancel.raise_if_cancelled()
            delay_s = permit.start() if isinstance(permit, HostPermit) else 0.0
            if delay_s == 0.0:
                _tell(timed, call, attempts)
                return permit
        except BaseException:
            permit.release()
            raise
        permit.refund()
        permit.release()
        host = host_key(gate.url)
        timed.delays.add(f"host:{host}", INTERVAL, delay_s)
        yield Wait(clock.monotonic() + delay_s, f"interval of {host}")


def _tell(gate: TimedGate, call: Call, attempts: AttemptSink) -> None:
    for key, rule, seconds in gate.delays:
        if seconds > _SHORTEST_TOLD_S:
            about = {"work_id": call.work_id, "resolver": gate.resolver, "role": str(gate.role)}
            attempts.rate_wait(key, round(seconds * 1000), why=rule, **about)
