"""May a request go to this host now? The one question that every request of ours asks before it is sent.

Puts together the blocklist, the breakers and the permits of rates, slots and pauses. Knows no HTTP, no robots rules.
Promises: no event loop waits for a server; every wait for a rate, an interval or a pause that a host asked for is
recorded, once the permit is there; a request that is refused has used up no token.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.gates import Gates, GateShut
from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.limits.blocklist import HostBlocklist
from DocsToKG.ContentDownload.net.limits.breakers import NO_REPORT, BreakerReport, Breakers
from DocsToKG.ContentDownload.net.limits.permits import HostPermit, TimedGate
from DocsToKG.ContentDownload.net.limits.state import INTERVAL
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import finished_in
from DocsToKG.core.urls import host_key, mask_url

_SHORTEST_TOLD_S = 0.001


class Admission:
    """Admits the requests of one process to hosts."""

    def __init__(
        self,
        *,
        gates: Gates,
        clock: Clock,
        attempts: AttemptSink,
        breakers: Breakers | None = None,
        blocklist: HostBlocklist | None = None,
    ) -> None:
        self._gates = gates
        self._clock = clock
        self._attempts = attempts
        self._breakers = breakers
        self._blocklist = blocklist

    async def look(self, url: str, index: str | None = None) -> None:
        """Raises what `enter` would raise at once; takes nothing. `index` is the source whose own service is asked."""
        if self._blocklist is not None:
            self._blocklist.look(url)
        if self._breakers is not None:
            if self._breakers.executor is None:
                self._breakers.look(url, index)
            else:
                await finished_in(self._breakers.executor, self._breakers.look, url, index)

    async def enter(
        self, url: str, resolver: str, role: str, call: Call, *, index: str | None = None, trial: bool = False
    ) -> HostPermit:
        """A permit for a request that is sent now, with the report that its breakers wait for. Of a `trial` only an
        answer counts, since having none was to be expected."""
        permit = await self._permit(url, resolver, role, call)
        try:
            permit.report = await self._entered(url, index, trial)
        except BaseException as error:
            if isinstance(error, CandidateRejected | TransientFailure):
                permit.refund()
            permit.release()
            raise
        return permit

    async def _permit(self, url: str, resolver: str, role: str, call: Call) -> HostPermit:
        """A task may come late to its grant. When another was later still, or the host has asked for a pause
        meanwhile, sending now would break the interval; then the permit is given back and asked for again."""
        gate = TimedGate(url, resolver, role)
        while True:
            call.cancel.raise_if_cancelled()
            try:
                permit: HostPermit = await self._gates.permit(gate, call)  # type: ignore[assignment]
            except GateShut as shut:
                left_s = max(0.0, shut.at - self._clock.monotonic())
                raise TransientFailure(Reason.RETRY_AFTER, shut.why, url=mask_url(url), retry_after_s=left_s) from None
            delay_s = await _started(permit, call)
            if delay_s == 0.0:
                if gate.delays.seconds:
                    self._record_waits(gate, call)
                return permit
            permit.refund()
            permit.release()
            gate.delays.add(f"host:{host_key(url)}", INTERVAL, delay_s)
            await call.pause(delay_s, self._clock)

    async def _entered(self, url: str, index: str | None, trial: bool) -> BreakerReport:
        """The host may have refused us, or its breaker may have opened, while this request waited for its permit."""
        if self._blocklist is not None:
            self._blocklist.look(url)
        if self._breakers is None:
            return NO_REPORT
        if self._breakers.executor is None:
            return self._breakers.enter(url, index, trial=trial)
        return await finished_in(self._breakers.executor, self._breakers.enter, url, index, trial)

    def _record_waits(self, gate: TimedGate, call: Call) -> None:
        for (key, rule), seconds in gate.delays.seconds.items():
            if seconds > _SHORTEST_TOLD_S:
                about = {"work_id": call.work_id, "resolver": gate.resolver, "role": str(gate.role)}
                self._attempts.rate_wait(key, round(seconds * 1000), why=rule, **about)


async def _started(permit: HostPermit, call: Call) -> float:
    """0.0 when it goes out now, otherwise how long it must still wait."""
    try:
        call.cancel.raise_if_cancelled()
        return await permit.started()
    except BaseException:
        permit.release()
        raise
