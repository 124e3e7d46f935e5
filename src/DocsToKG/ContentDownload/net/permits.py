"""Get through the gates, and be on time: the one way a request of ours obtains its permit.

Behind the gates of host and source stands the number of connections. Who finds none free gives its place back and
comes again; it holds nothing while it waits.
Promises: every wait for a rate, an interval or a pause that a host asked for is recorded, once the gate has opened.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.steps import GateShut, Wait
from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.net.connections import Connections
from DocsToKG.ContentDownload.net.delays import INTERVAL, TimedGate
from DocsToKG.ContentDownload.net.limits import HostPermit
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key, mask_url

_SHORTEST_TOLD_S = 0.001
_LOOK_AGAIN_S = 0.02
_LONGEST_LOOK_S = 0.1


async def admission(
    url: str, resolver: str, role: str, *, clock: Clock, call: Call, attempts: AttemptSink, connections: Connections
) -> HostPermit:
    """A permit for an exchange that is sent now, on a connection of our own.

    A thread may come late to its grant. When another was later still, or the host has asked for a pause
    meanwhile, sending now would break the interval; then the permit is given back and asked for again.
    """
    gate, pause_s = TimedGate(url, resolver, role), _LOOK_AGAIN_S
    while True:
        call.cancel.raise_if_cancelled()
        # The gates are asked only when there is something to ask for: they may be shared by many processes.
        if not connections.is_full:
            try:
                permit: HostPermit = await gate
            except GateShut as shut:
                left_s = max(0.0, shut.at - clock.monotonic())
                raise TransientFailure(Reason.RETRY_AFTER, shut.why, url=mask_url(url), retry_after_s=left_s) from None
            delay_s = _started(permit, call)
            if delay_s == 0.0 and connections.take():
                permit.afterwards = connections.give_back
                if gate.delays.seconds:
                    _tell(gate, call, attempts)
                return permit
            permit.refund()
            permit.release()
            if delay_s > 0.0:
                host = host_key(url)
                gate.delays.add(f"host:{host}", INTERVAL, delay_s)
                await Wait(clock.monotonic() + delay_s, f"interval of {host}")
                continue
        await Wait(clock.monotonic() + pause_s, "a free connection")
        pause_s = min(_LONGEST_LOOK_S, pause_s * 2)


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
