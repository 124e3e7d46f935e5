"""All hosts of the sandbox in one place: find the service, answer, and count.

Knows services, counters and politeness. Does not know sockets: the server tells it when an exchange begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Sandbox.counters import Counters
from DocsToKG.Sandbox.limits import Limits, robots_for
from DocsToKG.Sandbox.messages import Request, Response, text_response
from DocsToKG.Sandbox.politeness import Politeness
from DocsToKG.Sandbox.services import all_services
from DocsToKG.Sandbox.services.base import Context, Service
from DocsToKG.Sandbox.services.control import Control
from DocsToKG.Sandbox.world import World


@dataclass(slots=True)
class Exchange:
    """One exchange: from the request read to the last byte written. `limit_key` is None on the control pages."""

    request: Request
    response: Response
    limit_key: str | None
    began: float = 0.0


class Router:
    """The whole web of one world."""

    def __init__(
        self, *, world: World, limits: Limits, clock: Clock | None = None, slow_s: float = 2.0, stall_s: float = 30.0
    ) -> None:
        self._clock = clock or SystemClock()
        self._context = Context(world=world, limits=limits, clock=self._clock, slow_s=slow_s, stall_s=stall_s)
        self._counters = Counters()
        self._politeness = Politeness(limits=limits)
        self._control = Control(self._context, counters=self.counters, violations=self.violations, reset=self.reset)
        self._by_host: dict[str, Service] = {host: each for each in all_services(self._context) for host in each.hosts}

    def exchange(
        self, request: Request, *, own_address: str, settle: Callable[[str], None], late_s: float = 0.0
    ) -> Exchange:
        """Answer a request that came `late_s` ago. `own_address` is where we listen; asked for by that name, the
        control pages answer."""
        if request.host in (*self._control.hosts, own_address, own_address.replace("127.0.0.1", "localhost")):
            return Exchange(request, self._control.answer(request), None)
        service = self._by_host.get(request.host)
        began = self._clock.monotonic() - late_s
        limit_key = self._politeness.begin(request, began, settle=settle)
        self._counters.begun(host=request.host, service=service.name if service else "unknown")
        try:
            response = self._answer(service, request)
        except Exception as error:
            # A fault of the sandbox must not look like one it plays: it has a count of its own.
            self._counters.own_failures += 1
            response = text_response(f"the sandbox failed: {error!r:.500}\n", 500)
        return Exchange(request, response, limit_key, began)

    def begun(self, exchange: Exchange) -> None:
        """The response is about to leave: from now on its Retry-After is known to the client."""
        wait = exchange.response.headers.get("Retry-After")
        if wait and exchange.limit_key:
            self._politeness.hold(exchange.limit_key, self._clock.monotonic(), self._seconds(wait))

    def ended(self, exchange: Exchange, *, sent: int, whole: bool) -> None:
        if exchange.limit_key is None:
            return
        self._politeness.end(exchange.limit_key, took_s=self._clock.monotonic() - exchange.began if whole else 0.0)
        self._counters.answered(status=exchange.response.status, sent=sent)
        work = exchange.response.work
        if whole and work is not None and exchange.response.status == 200 and exchange.request.method == "GET":
            self._counters.file_sent(url=exchange.request.url, doi=self._context.world.work(work).doi)

    def counters(self) -> dict[str, Any]:
        hosts = {limit_key: record.as_dict() for limit_key, record in self._politeness.hosts.items()}
        met, factor = dict(self._context.faults_shown), self._context.limits.rate_factor
        return {**self._counters.as_dict(), "by_fault": met, "hosts": hosts, "rate_factor": factor}

    def violations(self) -> dict[str, Any]:
        return self._politeness.report()

    def reset(self) -> None:
        self._counters.reset()
        self._politeness.reset()
        self._context.reset()

    def now(self) -> float:
        return self._clock.now()

    def _answer(self, service: Service | None, request: Request) -> Response:
        if service is None:
            return text_response(f"the sandbox has no host {request.host[:200]!r}\n", 502)
        if request.path == "/robots.txt":
            rules = robots_for(request.host, self._context.limits.rate_factor)
            return text_response(rules.text() if rules.status == 200 else "no robots.txt\n", rules.status)
        if request.method not in ("GET", "HEAD", "POST"):
            return text_response("method not allowed\n", 405)
        return service.answer(request)

    def _seconds(self, retry_after: str) -> float:
        if retry_after.isdigit():
            return float(retry_after)
        return parsedate_to_datetime(retry_after).timestamp() - self._clock.now()
