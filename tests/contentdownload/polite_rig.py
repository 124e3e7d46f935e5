"""A scripted web around the polite client, and what the tests of it hand to it and answer with."""

from __future__ import annotations

import asyncio
import hashlib
import io
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from DocsToKG.ContentDownload.api.gates import Gate, GateShut, NotYet
from DocsToKG.ContentDownload.api.ports import Call, OpenBody
from DocsToKG.ContentDownload.api.types import Attempt, Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits, HostStatus
from DocsToKG.ContentDownload.net.limits.retry_after import RetryAfterRules
from DocsToKG.ContentDownload.net.policy import HostCredentials, UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots
from DocsToKG.core.clock import ManualClock
from DocsToKG.core.urls import host_key
from DocsToKG.transport.adapters import AsyncEngineTransport
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl import CurlEngine
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames

PDF = b"%PDF-1.7\n" + b"x" * 5000 + b"\n%%EOF\n"
CALL = Call("doi:10.1/x")
PDF_SHA = hashlib.sha256(PDF).hexdigest()
URL = "https://cdn.publisher.org/article/abcd5678.pdf"

T = TypeVar("T")
Answer = httpx2.Response | Exception
Site = Callable[[httpx2.Request], Answer]


class HastyClock(ManualClock):
    """Moved by whoever sleeps, who is told of first."""

    def __init__(self, told: Callable[[float], None] = lambda seconds: None) -> None:
        super().__init__()
        self._told = told
        self.stands: asyncio.Event | None = None  # then it is for others to move; set when somebody sleeps

    async def sleep_until(self, moment: float) -> None:
        if self.stands is not None:
            self.stands.set()
            await super().sleep_until(moment)
            return
        self._told(moment - self.monotonic())
        self.advance(max(0.0, moment - self.monotonic()))
        await asyncio.sleep(0)


class HastyGates:
    """Permits of `limits`; who must wait for one moves the clock."""

    def __init__(self, limits: Callable[[], HostLimits], clock: ManualClock) -> None:
        self.asked: list[Gate] = []
        self.longest_s = math.inf  # that anybody waits here
        self.granted: Callable[[], None] = lambda: None
        self._limits = limits
        self._clock = clock

    async def permit(self, gate: Gate, call: Call) -> Any:
        self.asked.append(gate)
        while isinstance(answer := self._limits().ask(gate), NotYet):
            assert answer.at is not None, f"nobody will free {answer.key}"
            if (wait_s := answer.at - self._clock.monotonic()) > self.longest_s:
                raise GateShut(answer.at, answer.why)
            self._clock.advance(wait_s)
            await asyncio.sleep(0)
        self.granted()
        return answer


class Rig:
    """One client over a scripted web, a clock moved by those who wait, and everything it recorded."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = HastyClock(self._waited)
        self.runner = asyncio.Runner()
        self.attempts: list[Attempt] = []
        self.rate_waits: list[tuple[str, int, str, dict[str, str | None]]] = []
        self.requests: list[httpx2.Request] = []
        self.holds: list[dict[str, float]] = []  # for how long hosts were held back while a work waited
        self.waits: list[float] = []
        self.cas: dict[str, bytes] = {}
        self.site: Site = lambda request: httpx2.Response(404)
        self.limits = HostLimits(clock=self.clock, default_host=HostLimit(2))
        self.waiting = HastyGates(lambda: self.limits, self.clock)
        self.stacks: list[HttpStack] = []
        self.base_path = tmp_path / "cache"

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        self.rate_waits.append((key, delay_ms, why, about))

    def client(
        self,
        *,
        cache: bool = False,
        robots: bool = False,
        http_hosts: tuple[str, ...] = (),
        credentials: dict[str, HostCredentials] | None = None,
        always_revalidate: bool = False,
        peeking: bool = True,
        max_redirects: int = 10,
        timeout_read_s: float = 60.0,
        retry_after_rules: RetryAfterRules | None = None,
        breakers: Breakers | None = None,
        **policy: Any,
    ) -> RateRetryClient:
        stack = build_http_stack(
            httpx2.MockTransport(self._answer),
            user_agent="DocsToKG/1 (+mailto:me@example.org)",
            timeout_read_s=timeout_read_s,
            credentials=credentials,
            cache=CacheSettings(self.base_path, always_revalidate=always_revalidate) if cache else None,
            open_cas=lambda sha: io.BytesIO(self.cas[sha]) if sha in self.cas else None,
        )
        self.stacks.append(stack)
        url_policy = UrlPolicy(http_hosts=http_hosts, credentials=credentials)
        common: dict[str, Any] = {
            "gates": self.waiting,
            "limits": self.limits,
            "url_policy": url_policy,
            "attempts": self,
        }
        rules = Robots(http=stack.http, clock=self.clock, random=lambda: 0.5, **common) if robots else None
        return RateRetryClient(
            "unpaywall",
            http=stack.http,
            robots=rules,
            policy=SourcePolicy("unpaywall", **policy),
            clock=self.clock,
            random=lambda: 0.5,
            cache=stack.cache if peeking else None,
            max_redirects=max_redirects,
            retry_after_rules=retry_after_rules,
            breakers=breakers,
            **common,
        )

    @property
    def gates(self) -> list[Gate]:
        """Those that permits were asked for."""
        return self.waiting.asked

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def open(self, client: RateRetryClient, url: str = URL, call: Call | None = None, **kwargs: Any) -> Any:
        return self.run(client.open(url, Role.ARTIFACT, call or Call("doi:10.1/x"), **kwargs))

    def read(self, opened: OpenBody) -> list[bytes]:
        """What is left of the body."""

        async def every() -> list[bytes]:
            return [chunk async for chunk in opened.chunks()]

        return self.run(every())

    def close(self, opened: OpenBody) -> None:
        self.run(opened.aclose())

    def download(self, client: RateRetryClient, url: str = URL, *, keep: bool = True, **kwargs: Any) -> bytes:
        opened = self.open(client, url, **kwargs)
        try:
            data = b"".join(self.read(opened))
        finally:
            self.close(opened)
        if keep:
            self.cas[hashlib.sha256(data).hexdigest()] = data
            opened.confirm(hashlib.sha256(data).hexdigest())
        return data

    def fetch(self, client: RateRetryClient, url: str = URL, role: Role = Role.METADATA, **kwargs: Any) -> Any:
        return self.run(client.fetch(url, role, Call("doi:10.1/x"), **kwargs))

    def tokens(self) -> list[tuple[str, int | None, str | None]]:
        rows = [(a.status.value, a.http_status, a.reason.value if a.reason else None) for a in self.attempts]
        self.attempts.clear()
        return rows

    def slots_are_free(self) -> bool:
        return not any(host.limits["busy"] for host in self._standings().values())

    def _standings(self) -> dict[str, HostStatus]:
        return self.limits.statuses({host_key(gate.url) for gate in self.gates})

    def _waited(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.holds.append({host: held.wait_s for host, held in self._standings().items() if held.wait_s})

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.site(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(name="rig")
def given_rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    for stack in rig.stacks:
        rig.run(stack.aclose())
    rig.runner.close()


def reach(
    port: int, *, names: dict[str, list[str]] | None = None, places: dict[str, str] | None = None, **options: Any
) -> AsyncEngineTransport:
    """The real transport. Public names mean public addresses; only then is the connection led to the server here, or
    to another by `places`."""
    found = StaticNames({"*": ["93.184.215.14"], **(names or {})})
    target = ConnectTo({"*": f"plain://127.0.0.1:{port}", **(places or {})})
    return AsyncEngineTransport(CurlEngine(guard=AddressGuard(), names=found, connect_to=target, **options))


def pdf(**headers: str) -> httpx2.Response:
    sent = {"content-type": "application/pdf", "content-length": str(len(PDF))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return httpx2.Response(200, headers=sent, stream=Stream([PDF[:3000], PDF[3000:]]))


class Stream(httpx2.AsyncByteStream):
    def __init__(self, blocks: list[bytes], error: Exception | None = None) -> None:
        self.blocks, self.error, self.closed = blocks, error, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self.blocks:
            yield block
        if self.error is not None:
            raise self.error

    async def aclose(self) -> None:
        self.closed = True


def in_turn(*answers: Callable[[], Answer]) -> Site:
    left = list(answers)
    return lambda request: left.pop(0)()


def not_found() -> httpx2.Response:
    return httpx2.Response(404)


def redirect(to: str, status: int = 302, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, headers={"location": to, "content-length": "0", **headers})


class Budget:
    def __init__(self, attempts: int, seconds: float = 100.0) -> None:
        self.attempts, self.left = attempts, seconds

    def take_attempt(self, role: str = "artifact") -> None:
        if self.attempts == 0 or self.left <= 0:
            raise CandidateRejected(Reason.BUDGET_EXHAUSTED)
        self.attempts -= 1

    def seconds_left(self) -> float:
        return self.left

    def spend(self, seconds: float) -> None:
        self.left -= seconds
