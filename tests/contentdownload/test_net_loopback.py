"""The whole stack over real sockets on loopback: engine, credentials, cache, limits, client."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.contentdownload.polite_rig import reach

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.api.types import Attempt, Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.policy import UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread

PDF = b"%PDF-1.7\n" + b"x" * 200_000 + b"\n%%EOF\n"
LEFT_ALONE_S = 60.0  # as long as a transfer stalls or drips, and a source may take, when nothing ends it


class Publisher(BaseHTTPRequestHandler):
    """Serves one paper in several moods and notes when each request came."""

    protocol_version = "HTTP/1.1"
    log: list[tuple[float, str]]
    release: threading.Event

    def do_GET(self) -> None:
        type(self).log.append((time.monotonic(), self.path))
        moods: dict[str, Callable[[], None]] = {
            "/short.pdf": lambda: self._send(200, PDF, {"Content-Length": str(len(PDF) + 9), "Connection": "close"}),
            "/stall.pdf": self._stall,
            "/drip": self._drip,
            "/private.pdf": lambda: self._send(302, b"", {"Location": "https://inside.org/secret"}),
            "/robots.txt": lambda: self._send(200, b"User-agent: *\nDisallow: /closed/\n", {}),
        }
        moods.get(self.path, self._paper)()

    def _paper(self) -> None:
        headers = {"ETag": '"v1"', "Cache-Control": "max-age=600", "Content-Type": "application/pdf"}
        if self.headers.get("If-None-Match") == '"v1"':
            return self._send(304, b"", headers)
        return self._send(200, PDF, headers)

    def _stall(self) -> None:
        self._send(200, PDF[:1000], {"Content-Length": str(len(PDF))})
        self.wfile.flush()
        type(self).release.wait(LEFT_ALONE_S)
        self.close_connection = True

    def _drip(self) -> None:
        """A byte now and then, so that no single wait is long."""
        self._send(200, b"<", {"Content-Length": "1000"})
        for _ in range(round(LEFT_ALONE_S / 0.05)):
            if type(self).release.wait(0.05):
                break
            try:
                self.wfile.write(b"p")
            except OSError:
                break
        self.close_connection = True

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        if status != 304:
            headers = {"Content-Length": str(len(body))} | headers
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return None


class World:
    def __init__(self, port: int, handler: type[Publisher], tmp_path: Path) -> None:
        self.handler = handler
        self.attempts: list[Attempt] = []
        self.rate_waits: list[tuple[str, int, str, dict[str, str | None]]] = []
        self.cas: dict[str, bytes] = {}
        self._port = port
        self._cache = CacheSettings(tmp_path / "cache")
        self.stacks: list[HttpStack] = []
        self.loop = LoopThread()

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        self.rate_waits.append((key, delay_ms, why, about))

    def client(
        self,
        *,
        rate: Rate | None = None,
        always_revalidate: bool = False,
        timeout_read_s: float = 60.0,
        **policy: float | RetryPolicy,
    ) -> RateRetryClient:
        clock = SystemClock()
        stack = build_http_stack(
            reach(self._port, names={"inside.org": ["10.0.0.1"]}),
            user_agent="DocsToKG/test",
            timeout_read_s=timeout_read_s,
            cache=CacheSettings(self._cache.base_path, always_revalidate=always_revalidate),
            open_cas=lambda sha: io.BytesIO(self.cas[sha]) if sha in self.cas else None,
        )
        self.stacks.append(stack)
        limits = HostLimits(clock=clock, default_host=HostLimit(4, {"*": (rate,)} if rate else {}))
        url_policy = UrlPolicy()
        gates = PermitQueues(limits, clock=clock)
        robots = Robots(
            http=stack.http,
            gates=gates,
            limits=limits,
            url_policy=url_policy,
            attempts=self,
            clock=clock,
            random=lambda: 0.5,
        )
        return RateRetryClient(
            "unpaywall",
            http=stack.http,
            gates=gates,
            limits=limits,
            robots=robots,
            url_policy=url_policy,
            policy=SourcePolicy("unpaywall", **policy),  # type: ignore[arg-type]
            attempts=self,
            clock=clock,
            random=lambda: 0.5,
            cache=stack.cache,
        )

    def get(self, client: RateRetryClient, url: str, role: Role) -> Page:
        return self.loop.run(client.fetch(url, role, Call("w")))

    def download(self, client: RateRetryClient, url: str) -> bytes:
        return self.loop.run(self.downloading(client, url))

    async def downloading(self, client: RateRetryClient, url: str, call: Call | None = None) -> bytes:
        opened = await client.open(url, Role.ARTIFACT, call or Call("w"))
        try:
            data = b"".join([block async for block in opened.chunks()])
        finally:
            await opened.aclose()
        self.cas[hashlib.sha256(data).hexdigest()] = data
        opened.confirm(hashlib.sha256(data).hexdigest())
        return data

    def tokens(self) -> list[str]:
        found = [attempt.status.value for attempt in self.attempts]
        self.attempts.clear()
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    handler = type("Here", (Publisher,), {"log": [], "release": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    world = World(server.server_address[1], handler, tmp_path)
    yield world
    handler.release.set()
    for stack in world.stacks:
        world.loop.run(stack.aclose())
    world.loop.close()
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_fetch_hit_and_revalidation_over_real_sockets(world: World) -> None:
    """TEST-11, TEL-06, TEL-07: the origin's own log agrees."""
    client = world.client()
    assert world.download(client, "https://pub.org/a.pdf") == PDF
    assert world.tokens() == ["robots-fetch", "http-get", "http-200"]
    assert world.download(client, "https://pub.org/a.pdf") == PDF
    assert world.tokens() == ["http-get", "cache-hit"]
    assert world.download(world.client(always_revalidate=True), "https://pub.org/a.pdf") == PDF
    assert world.tokens() == ["robots-fetch", "http-get", "http-304"]
    assert [path for _, path in world.handler.log] == ["/robots.txt", "/a.pdf", "/robots.txt", "/a.pdf"]


def test_a_body_cut_short_is_a_size_mismatch_and_leaves_nothing_in_the_cache(world: World) -> None:
    client = world.client()
    for _ in range(2):
        with pytest.raises(TransientFailure) as caught:
            world.download(client, "https://pub.org/short.pdf")
        assert caught.value.reason == Reason.SIZE_MISMATCH
    assert world.tokens()[-2:] == ["http-get", "size-mismatch"]


def test_a_disallowed_path_is_never_asked_for(world: World) -> None:
    """ROB-03"""
    with pytest.raises(CandidateRejected):
        world.download(world.client(), "https://pub.org/closed/a.pdf")
    assert [path for _, path in world.handler.log] == ["/robots.txt"]


def test_a_redirect_to_a_private_address_is_refused_by_policy(world: World) -> None:
    """SEC-05: not even robots.txt is asked for there."""
    with pytest.raises(CandidateRejected) as caught:
        world.download(world.client(), "https://pub.org/private.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY
    assert [path for _, path in world.handler.log] == ["/robots.txt", "/private.pdf"]


def test_cancelling_cuts_a_stalled_transfer(world: World) -> None:
    cancel = CancelToken()
    client = world.client(timeout_s=LEFT_ALONE_S)
    timer = threading.Timer(0.2, cancel.cancel)
    began = time.monotonic()
    timer.start()
    with pytest.raises(Cancelled):
        world.loop.run(world.downloading(client, "https://pub.org/stall.pdf", Call("w", cancel)), cancel)
    timer.join()
    assert time.monotonic() - began < LEFT_ALONE_S / 2


def test_a_deadline_ends_a_stalled_transfer(world: World) -> None:
    client = world.client(timeout_s=LEFT_ALONE_S, deadline_s=0.3)
    with pytest.raises(TransientFailure) as caught:
        world.download(client, "https://pub.org/stall.pdf")
    assert caught.value.reason == Reason.TIMEOUT


@pytest.mark.parametrize("role", [Role.METADATA, Role.LANDING])
@pytest.mark.slow
def test_a_page_that_drips_is_given_up_after_the_sources_timeout_and_tried_again(world: World, role: Role) -> None:
    """NET-16: however busily the server is sending."""
    client = world.client(timeout_s=0.4, retry=RetryPolicy(max_attempts=2, base_s=0.01))
    began = time.monotonic()
    with pytest.raises(TransientFailure) as caught:
        world.get(client, "https://pub.org/drip", role)
    assert caught.value.reason == Reason.TIMEOUT
    assert [path for _, path in world.handler.log] == ["/robots.txt", "/drip", "/drip"]
    assert 0.7 < time.monotonic() - began < LEFT_ALONE_S / 2


@pytest.mark.slow
def test_a_file_that_drips_is_given_the_long_deadline(world: World) -> None:
    client = world.client(timeout_s=0.4, deadline_s=1.0)
    began = time.monotonic()
    with pytest.raises(TransientFailure):
        world.download(client, "https://pub.org/drip")
    assert 0.9 < time.monotonic() - began < LEFT_ALONE_S / 2


def test_the_longest_single_wait_ends_a_silent_transfer(world: World) -> None:
    """CFG-14, CFG-23: where a source has no timeout of its own, the general one says how long that is."""
    began = time.monotonic()
    with pytest.raises(TransientFailure) as caught:
        world.download(world.client(timeout_s=LEFT_ALONE_S, wait_s=0.3), "https://pub.org/stall.pdf")
    assert caught.value.reason == Reason.TIMEOUT
    assert time.monotonic() - began < LEFT_ALONE_S / 2


@pytest.mark.slow
def test_the_server_sees_no_gap_shorter_than_the_interval(world: World) -> None:
    """TEST-11, LIM-14, counted by the server, with more tasks than the rate can feed."""
    client = world.client(rate=Rate(4, 1.0))

    async def crowd() -> None:
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            for number in range(5):
                tasks.create_task(world.downloading(client, f"https://pub.org/{number}.pdf"))

    world.loop.run(crowd())
    times = sorted(moment for moment, _ in world.handler.log)
    assert len(times) == 6
    assert min(after - before for before, after in itertools.pairwise(times)) > 0.25 - 0.1


def test_landing_pages_over_real_sockets_tell_a_pdf(world: World) -> None:
    page = world.get(world.client(), "https://pub.org/a.pdf", Role.LANDING)
    assert page.is_pdf
