"""Get through a gate, and be on time: the one way a request of ours obtains its permit."""

from __future__ import annotations

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.steps import Gate, Permit, Steps, Wait
from DocsToKG.ContentDownload.net.limits import HostPermit
from DocsToKG.core.clock import Clock


def admission(gate: Gate, clock: Clock, call: Call) -> Steps[Permit]:
    """A permit for an exchange that is sent now.

    A thread may come late to its grant. When another was later still, or the host has asked for a pause
    meanwhile, sending now would break the interval; then the permit is given back and asked for again.
    """
    while True:
        call.cancel.raise_if_cancelled()
        permit: Permit = yield gate
        delay_s = 0.0
        try:
            call.cancel.raise_if_cancelled()
            delay_s = permit.start() if isinstance(permit, HostPermit) else 0.0
        except BaseException:
            permit.release()
            raise
        if delay_s == 0.0:
            return permit
        permit.refund()
        permit.release()
        yield Wait(clock.monotonic() + delay_s, f"interval of {gate.url.split('/')[2]}")
