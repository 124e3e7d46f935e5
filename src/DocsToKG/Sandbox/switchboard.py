"""All hosts of the sandbox behind one door: find the service, answer, and count.

Knows services, counters and politeness. Does not know sockets: the server tells it when an exchange begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Sandbox.counters import Counters
from DocsToKG.Sandbox.exchange import Reply, Request, text_reply
from DocsToKG.Sandbox.limits import Limits, robots_for
from DocsToKG.Sandbox.politeness import Politeness
from DocsToKG.Sandbox.services import all_services
from DocsToKG.Sandbox.services.control import Control
from DocsToKG.Sandbox.web import Service, Web
from DocsToKG.Sandbox.world import World


@dataclass(slots=True)
class Visit:
    """One exchange: from the request read to the last byte written. `lane` is None on the control pages."""

    request: Request
    reply: Reply
    lane: str | None
    began: float = 0.0


class Switchboard:
    """The whole web of one world."""

    def __init__(
        self, *, world: World, limits: Limits, clock: Clock | None = None, slow_s: float = 2.0, stall_s: float = 30.0
    ) -> None:
        self._clock = clock or SystemClock()
        self._web = Web(world=world, limits=limits, clock=self._clock, slow_s=slow_s, stall_s=stall_s)
        self._counters = Counters()
        self._politeness = Politeness(limits=limits)
        self._control = Control(self._web, counters=self.counters, violations=self.violations, reset=self.reset)
        self._by_host: dict[str, Service] = {host: each for each in all_services(self._web) for host in each.hosts}

    def visit(self, request: Request, *, own_address: str, settle: Callable[[str], None], late_s: float = 0.0) -> Visit:
        """Answer a request that came `late_s` ago. `own_address` is where we listen; asked for by that name, the
        control pages answer."""
        if request.host in (*self._control.hosts, own_address, own_address.replace("127.0.0.1", "localhost")):
            return Visit(request, self._control.answer(request), None)
        service = self._by_host.get(request.host)
        began = self._clock.monotonic() - late_s
        lane = self._politeness.begin(request, began, settle=settle)
        self._counters.begun(host=request.host, service=service.name if service else "unknown")
        try:
            reply = self._answer(service, request)
        except Exception as error:
            # A fault of the sandbox must not look like one it plays: it has a count of its own.
            self._counters.own_failures += 1
            reply = text_reply(f"the sandbox failed: {error!r:.500}\n", 500)
        return Visit(request, reply, lane, began)

    def begun(self, visit: Visit) -> None:
        """The reply is about to leave: from now on its Retry-After is known to the client."""
        wait = visit.reply.headers.get("Retry-After")
        if wait and visit.lane:
            self._politeness.hold(visit.lane, self._clock.monotonic(), self._seconds(wait))

    def ended(self, visit: Visit, *, sent: int, whole: bool) -> None:
        if visit.lane is None:
            return
        self._politeness.end(visit.lane, took_s=self._clock.monotonic() - visit.began if whole else 0.0)
        self._counters.answered(status=visit.reply.status, sent=sent)
        work = visit.reply.work
        if whole and work is not None and visit.reply.status == 200 and visit.request.method == "GET":
            self._counters.file_sent(url=visit.request.url, doi=self._web.world.work(work).doi)

    def counters(self) -> dict[str, Any]:
        lanes = {lane: record.as_dict() for lane, record in self._politeness.lanes.items()}
        met, factor = dict(self._web.met), self._web.limits.rate_factor
        return {**self._counters.as_dict(), "by_fault": met, "hosts": lanes, "rate_factor": factor}

    def violations(self) -> dict[str, Any]:
        return self._politeness.report()

    def reset(self) -> None:
        self._counters.reset()
        self._politeness.reset()
        self._web.reset()

    def now(self) -> float:
        return self._clock.now()

    def _answer(self, service: Service | None, request: Request) -> Reply:
        if service is None:
            return text_reply(f"the sandbox has no host {request.host[:200]!r}\n", 502)
        if request.path == "/robots.txt":
            rules = robots_for(request.host, self._web.limits.rate_factor)
            return text_reply(rules.text() if rules.status == 200 else "no robots.txt\n", rules.status)
        if request.method not in ("GET", "HEAD", "POST"):
            return text_reply("method not allowed\n", 405)
        return service.answer(request)

    def _seconds(self, retry_after: str) -> float:
        if retry_after.isdigit():
            return float(retry_after)
        return parsedate_to_datetime(retry_after).timestamp() - self._clock.now()
