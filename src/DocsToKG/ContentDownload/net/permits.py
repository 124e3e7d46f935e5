"""Get through the gates, and be on time: the one way a request of ours obtains its permit.

Promises: every wait for a rate, an interval or a pause that a host asked for is recorded, once the permit is there.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.gates import Gates, GateShut
from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.net.delays import INTERVAL, TimedGate
from DocsToKG.ContentDownload.net.host_permits import HostPermit
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key, mask_url

_SHORTEST_TOLD_S = 0.001


async def admission(
    url: str, resolver: str, role: str, *, gates: Gates, clock: Clock, call: Call, attempts: AttemptSink
) -> HostPermit:
    """A permit for an exchange that is sent now.

    A task may come late to its grant. When another was later still, or the host has asked for a pause
    meanwhile, sending now would break the interval; then the permit is given back and asked for again.
    """
    gate = TimedGate(url, resolver, role)
    while True:
        call.cancel.raise_if_cancelled()
        try:
            permit: HostPermit = await gates.permit(gate, call)  # type: ignore[assignment]  # what `Limits` grants
        except GateShut as shut:
            left_s = max(0.0, shut.at - clock.monotonic())
            raise TransientFailure(Reason.RETRY_AFTER, shut.why, url=mask_url(url), retry_after_s=left_s) from None
        delay_s = _started(permit, call)
        if delay_s == 0.0:
            if gate.delays.seconds:
                _tell(gate, call, attempts)
            return permit
        permit.refund()
        permit.release()
        gate.delays.add(f"host:{host_key(url)}", INTERVAL, delay_s)
        await call.pause(delay_s, clock)


def _started(permit: HostPermit, call: Call) -> float:
    """0.0 when it goes out now, otherwise how long it must still wait."""
    try:
        call.cancel.raise_if_cancelled()
        return permit.start()
    except BaseException:
        permit.release()
        raise


def _tell(gate: TimedGate, call: Call, attempts: AttemptSink) -> None:
    for (key, rule), seconds in gate.delays.seconds.items():
        if seconds > _SHORTEST_TOLD_S:
            about = {"work_id": call.work_id, "resolver": gate.resolver, "role": str(gate.role)}
            attempts.rate_wait(key, round(seconds * 1000), why=rule, **about)
