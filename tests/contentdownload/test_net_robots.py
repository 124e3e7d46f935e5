"""robots.txt: RFC 9309's reading of answers, shared, fetched once, and heard by the limiter."""

from __future__ import annotations

import asyncio
import logging
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import httpx2
import pytest
from protego import Protego
from tests.contentdownload.polite_rig import HastyClock, HastyGates

from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.types import Attempt
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.retry_after import RetryAfterRules
from DocsToKG.ContentDownload.net.policy import HostCredentials, UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots, RobotsVerdict, held_bytes
from DocsToKG.core.bucket import Rate

T = TypeVar("T")
PAGE = "https://pub.org/article/1"


class Scene:
    def __init__(self) -> None:
        self.clock = HastyClock()
        self.gates = HastyGates(lambda: self.limits, self.clock)
        self.runner = asyncio.Runner()
        self.attempts: list[Attempt] = []
        self.rate_waits: list[tuple[str, int, str, dict[str, str | None]]] = []
        self.asked: list[str] = []
        self.shared_cache: Any = None  # that it shares with other nodes
        self.answer: Callable[[httpx2.Request], Any] = lambda request: rules(b"")
        self.stack: HttpStack = build_http_stack(httpx2.MockTransport(self._serve), user_agent="DocsToKG/1")
        self.use(HostLimits(clock=self.clock, default_host=HostLimit(2)))

    def use(self, limits: HostLimits, url_policy: UrlPolicy | None = None, **more: Any) -> None:
        self.limits = limits
        self.robots = Robots(
            http=self.stack.http,
            gates=self.gates,
            limits=limits,
            url_policy=url_policy or UrlPolicy(),
            attempts=self,
            clock=self.clock,
            random=lambda: 0.0,
            **more,
        )

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        self.rate_waits.append((key, delay_ms, why, about))

    def check(self, url: str = PAGE, call: Call | None = None) -> RobotsVerdict:
        return self.run(self.robots.check(url, call or Call("w")))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def permit(self, gate: Gate) -> Any:
        return self.run(self.gates.permit(gate, Call("w")))

    def _serve(self, request: httpx2.Request) -> Any:
        self.asked.append(str(request.url))
        return self.answer(request)


def rules(text: bytes) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/plain"}, content=text)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.run(scene.stack.aclose())
    scene.runner.close()


def test_rules_are_fetched_once_a_day_per_origin_and_leave_a_line(scene: Scene) -> None:
    """ROB-08"""
    scene.answer = lambda request: rules(b"User-agent: *\nDisallow: /admin")
    assert scene.check().state == "allowed"
    assert not scene.check("https://pub.org/admin/x").allowed
    assert scene.asked == ["https://pub.org/robots.txt"]
    [line] = scene.attempts
    assert (line.status, line.verb, line.http_status) == ("robots-fetch", "ROBOTS", 200)
    scene.clock.advance(86401)
    scene.check()
    assert len(scene.asked) == 2


@pytest.mark.parametrize("name", ["DocsToKG", "LibraryBot", "librarybot/2.1"])
def test_a_group_for_the_name_that_requests_carry_is_for_us(scene: Scene, name: str) -> None:
    """ROB-09"""
    scene.stack.http.headers["user-agent"] = "LibraryBot/2.0 (+mailto:me@example.org)"
    scene.use(scene.limits)
    scene.answer = lambda request: rules(b"User-agent: *\nAllow: /\n\nUser-agent: %s\nDisallow: /" % name.encode())
    assert scene.check().state == "blocked"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/a/b.pdf", False),
        ("/a/b.pdf?x=1", True),
        ("/open/b.pdf", True),
        ("/private/x", False),
        ("/private/open/x", True),
        ("/tie", True),
    ],
)
def test_wildcards_anchors_and_the_longest_match_decide(scene: Scene, path: str, allowed: bool) -> None:
    """TEST-10, ROB-09"""
    scene.answer = lambda request: rules(
        b"User-agent: otherbot\nDisallow: /\n\nUser-agent: *\nDisallow: /*.pdf$\nAllow: /open/*.pdf$\n"
        b"Disallow: /private\nAllow: /private/open\nAllow: /tie\nDisallow: /tie\n"
    )
    assert scene.check(f"https://pub.org{path}").allowed is allowed


def test_a_group_for_our_product_beats_the_group_for_all(scene: Scene) -> None:
    """ROB-09"""
    scene.answer = lambda request: rules(b"User-agent: *\nDisallow: /\n\nUser-agent: docstokg\nDisallow: /x\n")
    assert scene.check().allowed
    assert scene.check("https://pub.org/x").state == "blocked"


def test_a_group_for_thousands_of_robots_costs_no_more_than_its_lines(scene: Scene) -> None:
    """SEC-07"""
    names = b"".join(b"User-agent: bot%d\n" % number for number in range(4_000))
    listed = b"".join(b"Disallow: /no/%d/\n" % number for number in range(4_000))
    scene.answer = lambda request: rules(names + b"User agent: DocsToKG # and we\n" + listed + names + b"Disallow: /\n")
    began = time.thread_time()
    assert not scene.check("https://pub.org/no/7/x").allowed
    assert scene.check("https://pub.org/yes").allowed
    assert time.thread_time() - began < 3


def test_a_byte_order_mark_does_not_hide_the_first_group(scene: Scene) -> None:
    scene.answer = lambda request: rules("\ufeffUser-agent: *\nDisallow: /".encode())
    assert not scene.check().allowed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_missing_file_allows_all(scene: Scene, status: int) -> None:
    """ROB-07"""
    scene.answer = lambda request: httpx2.Response(status)
    verdict = scene.check()
    assert (verdict.allowed, verdict.transient_s) == (True, None)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_file_that_cannot_be_read_denies_for_a_while(scene: Scene, status: int) -> None:
    """ROB-07"""
    scene.answer = lambda request: httpx2.Response(status)
    verdict = scene.check()
    assert (verdict.allowed, verdict.state) == (False, "unreachable")
    assert verdict.transient_s == pytest.approx(300.0)
    asked = len(scene.asked)
    scene.check()
    assert len(scene.asked) == asked
    scene.clock.advance(301)
    scene.answer = lambda request: rules(b"")
    assert scene.check().allowed


@pytest.mark.parametrize(
    ("error", "state"), [(httpx2.ConnectError("x"), "unreachable"), (httpx2.ReadTimeout("x"), "timeout")]
)
def test_no_answer_is_tried_again_and_then_denies(scene: Scene, error: Exception, state: str) -> None:
    """ROB-06, ROB-07"""

    def answer(request: httpx2.Request) -> httpx2.Response:
        raise error

    scene.answer = answer
    assert scene.check().state == state
    assert len(scene.asked) == 2
    assert {line.reason for line in scene.attempts} == {"conn-error" if state == "unreachable" else "timeout"}


def test_a_passing_server_error_is_outlived(scene: Scene) -> None:
    scene.answer = lambda request: httpx2.Response(503) if len(scene.asked) == 1 else rules(b"")
    assert scene.check().allowed


def test_retry_after_on_robots_holds_the_host(scene: Scene) -> None:
    scene.answer = lambda request: httpx2.Response(429, headers={"retry-after": "900"})
    assert scene.check().transient_s == pytest.approx(900.0)
    assert isinstance(scene.limits.ask(Gate(PAGE, "r", "landing")), NotYet)
    assert len(scene.asked) == 1


def test_five_redirects_are_followed_each_through_its_own_gate(scene: Scene) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        step = len(scene.asked)
        if step <= 5:
            return httpx2.Response(301, headers={"location": f"https://h{step}.org/robots.txt"})
        return rules(b"User-agent: *\nDisallow: /")

    scene.answer = answer
    assert not scene.check().allowed
    assert scene.asked[-1] == "https://h5.org/robots.txt"
    assert len(scene.asked) == 6


def test_endless_redirects_count_as_no_file(scene: Scene) -> None:
    scene.answer = lambda request: httpx2.Response(301, headers={"location": "/robots.txt"})
    assert scene.check().allowed
    assert len(scene.asked) == 6


def test_a_redirect_of_robots_txt_carries_no_key_of_ours_away(scene: Scene) -> None:
    """As with every other request."""
    held = {"pub.org": HostCredentials(params={"api_key": "SESAME"})}
    scene.use(scene.limits, UrlPolicy(credentials=held))
    scene.answer = lambda request: (
        rules(b"")
        if request.url.host == "other.org"
        else httpx2.Response(301, headers={"location": "https://other.org/robots.txt?api_key=SESAME"})
    )
    assert scene.check().allowed
    assert scene.asked == ["https://pub.org/robots.txt", "https://other.org/robots.txt"]


def test_only_the_first_500_kib_are_read(scene: Scene) -> None:
    scene.answer = lambda request: rules(
        b"User-agent: *\nDisallow: /early\n" + b"# pad\n" * 90_000 + b"Disallow: /late\n"
    )
    assert not scene.check("https://pub.org/early").allowed
    assert scene.check("https://pub.org/late").allowed


def test_crawl_delay_reaches_the_limiter(scene: Scene) -> None:
    """TEST-10, ROB-05"""
    scene.answer = lambda request: rules(b"User-agent: *\nCrawl-delay: 2.5")
    assert scene.check().crawl_delay_s == 2.5
    waiting = scene.limits.ask(Gate(PAGE, "r", "landing"))
    assert isinstance(waiting, NotYet)
    assert waiting.at == scene.clock.monotonic() + 2.5


def test_the_next_request_keeps_its_distance_from_when_robots_txt_was_asked_for(scene: Scene) -> None:
    """A look-up and a handshake come first, and the server sees none of that."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        scene.clock.advance(1.0)
        assert request.extensions["goes_out"]() == 0.0
        request.extensions["sent"]()
        return rules(b"")

    scene.use(HostLimits(clock=scene.clock, default_host=HostLimit(2, rates={"*": (Rate(1, 3.0),)})))
    scene.answer = answer
    scene.check()
    scene.clock.advance(2.0)
    assert scene.permit(Gate(PAGE, "r", "landing")).start() == pytest.approx(1.0)


def test_a_wait_for_the_hosts_pause_is_recorded(scene: Scene) -> None:
    """LIM-12"""
    scene.limits.hold("pub.org", scene.clock.monotonic() + 4, "Retry-After")
    scene.check()
    about = {"work_id": "w", "resolver": "robots", "role": "metadata"}
    assert scene.rate_waits == [("host:pub.org", 4_000, "hold", about)]


def test_an_absurd_crawl_delay_is_capped_aloud(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.answer = lambda request: rules(b"User-agent: *\nCrawl-delay: 86400")
    with caplog.at_level(logging.WARNING):
        assert scene.check().crawl_delay_s == 30.0
    assert "crawl-delay of 86400 s; 30 s is kept" in caplog.text


class Held:
    """Rules that are not answered before they are let go."""

    def __init__(self, scene: Scene) -> None:
        self.asked, self.free = asyncio.Event(), asyncio.Event()
        scene.answer = self._answer

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.set()
        await self.free.wait()
        return rules(b"User-agent: *\nDisallow: /x")


def test_askers_of_one_origin_wait_while_one_fetches(scene: Scene) -> None:
    async def ask() -> tuple[RobotsVerdict, RobotsVerdict]:
        held = Held(scene)
        first = asyncio.create_task(scene.robots.check(PAGE, Call("w1")))
        second = asyncio.create_task(scene.robots.check("https://pub.org/x", Call("w2")))
        await held.asked.wait()
        held.free.set()
        return await first, await second

    first, second = scene.run(ask())
    assert (first.allowed, second.allowed) == (True, False)
    assert len(scene.asked) == 1


def test_the_next_asker_takes_over_when_the_first_is_called_off(scene: Scene) -> None:
    async def ask() -> RobotsVerdict:
        held = Held(scene)
        first = asyncio.create_task(scene.robots.check(PAGE, Call("w1")))
        await held.asked.wait()
        second = asyncio.create_task(scene.robots.check("https://pub.org/x", Call("w2")))
        first.cancel()
        held.free.set()
        verdict = await second
        assert first.cancelled()
        return verdict

    assert not scene.run(ask()).allowed
    assert len(scene.asked) == 2


def test_a_cancelled_asker_stops_waiting(scene: Scene) -> None:
    async def ask() -> None:
        held = Held(scene)
        first = asyncio.create_task(scene.robots.check(PAGE, Call("w1")))
        await held.asked.wait()
        second = asyncio.create_task(scene.robots.check(PAGE, Call("w2")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        held.free.set()
        assert (await first).allowed

    scene.run(ask())
    assert len(scene.asked) == 1


def test_garbage_allows_and_is_survived(scene: Scene) -> None:
    scene.answer = lambda request: rules(bytes(range(256)) * 100)
    assert scene.check().allowed


def test_origins_are_told_apart_by_port(scene: Scene) -> None:
    scene.answer = lambda request: rules(b"User-agent: *\nDisallow: /" if request.url.port == 8443 else b"")
    assert scene.check().allowed
    assert not scene.check("https://pub.org:8443/x").allowed


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_answer_to_robots_txt_holds_the_whole_host(scene: Scene, status: int) -> None:
    """The limiter hears of every answer, also of this one."""
    scene.answer = lambda request: httpx2.Response(status, headers={"retry-after": "120"})
    assert not scene.check().allowed
    assert (
        scene.limits.statuses(["pub.org"])["pub.org"].limits["rateScale"] == 1.0
    )  # one refusal is a pause: decision 50
    held = scene.limits.ask(Gate(PAGE, "landing", "landing"))
    assert isinstance(held, NotYet)
    assert held.at == pytest.approx(scene.clock.monotonic() + 120, abs=1)


def test_what_robots_txt_says_of_limits_is_believed(scene: Scene) -> None:
    scene.answer = lambda request: httpx2.Response(
        404, headers={"x-rate-limit-limit": "1", "x-rate-limit-interval": "10s"}
    )
    assert scene.check().allowed
    gate = Gate(PAGE, "landing", "landing")
    scene.permit(gate).release()
    assert isinstance(scene.limits.ask(gate), NotYet)


def test_a_host_known_to_want_a_pause_gets_it_for_robots_txt_too(scene: Scene) -> None:
    scene.use(scene.limits, retry_after_rules=RetryAfterRules({"pub.org": 60.0}))
    scene.answer = lambda request: httpx2.Response(429)
    assert not scene.check().allowed
    held = scene.limits.ask(Gate(PAGE, "landing", "landing"))
    assert isinstance(held, NotYet)
    assert held.at == pytest.approx(scene.clock.monotonic() + 60, abs=1)


def test_every_decision_is_logged_and_counted(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """ROB-06"""
    files = {"a.org": rules(b"User-agent: *\nDisallow: /no"), "b.org": httpx2.Response(503)}
    scene.answer = lambda request: files[request.url.host]
    with caplog.at_level(logging.DEBUG, logger="DocsToKG.ContentDownload.net.robots.check"):
        for url in ("https://a.org/yes", "https://a.org/no?key=s3cret", "https://a.org/yes/2", "https://b.org/x"):
            scene.check(url)
    assert scene.robots.decisions == {"allowed": 2, "blocked": 1, "unreachable": 1}
    told = [record.getMessage() for record in caplog.records if record.name.endswith("net.robots.check")]
    assert "robots.txt of https://a.org: blocked" in told
    assert len(told) == 4
    assert "s3cret" not in " ".join(told)


def test_an_exempt_place_is_not_asked_for_its_rules(scene: Scene) -> None:
    """ROB-03: archives of record, and the part of a host that is published for programs."""
    robots = Robots(
        http=scene.stack.http,
        gates=scene.gates,
        limits=scene.limits,
        url_policy=UrlPolicy(),
        attempts=NullSink(),
        clock=scene.clock,
        random=lambda: 0.0,
        exempt=("Web.archive.org", "zenodo.org/api/"),
    )
    for url in ("https://web.archive.org/web/2020id_/https://a.org/x.pdf", "https://zenodo.org/api/records/1/files/x"):
        assert scene.run(robots.check(url, Call("w"))).allowed
    assert scene.asked == []
    # The pages of the same host are asked, and so is a host that only begins alike.
    for url in ("https://zenodo.org/records/1", "https://web.archive.org.evil.example/x"):
        assert scene.run(robots.check(url, Call("w"))).allowed
    assert len(scene.asked) == 2


def test_an_exempt_place_is_counted_and_logged_as_such(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """ROB-06"""
    scene.use(scene.limits, exempt=("zenodo.org/api/",))
    with caplog.at_level(logging.DEBUG, logger="DocsToKG.ContentDownload.net.robots.check"):
        assert scene.check("https://zenodo.org/api/records/1?token=s3cret").state == "exempt"
        scene.robots.excuse("https://api.crossref.org/works/10.1/x")
    assert scene.robots.decisions == {"exempt": 2}
    told = [record.getMessage() for record in caplog.records if record.name.endswith("net.robots.check")]
    assert told == ["robots.txt of https://zenodo.org: exempt", "robots.txt of https://api.crossref.org: exempt"]


def wildcards(count: int) -> bytes:
    return b"User-agent:*\n" + b"".join(b"Allow:/%x*\n" % number for number in range(count))


def test_what_is_remembered_is_bounded_by_what_it_takes_in_memory(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the bytes that came: parsed rules take many times as much."""
    monkeypatch.setattr("DocsToKG.ContentDownload.net.robots.check.MOST_BYTES", 200 * 1024)
    scene.answer = lambda request: rules(wildcards(100))
    for number in range(5):
        assert scene.check(f"https://h{number}.org/x").allowed
    assert len(wildcards(100)) * 5 < 10 * 1024
    scene.asked.clear()
    for number in (4, 3, 2):
        assert scene.check(f"https://h{number}.org/x").allowed
    assert scene.asked == ["https://h2.org/robots.txt"]
    assert 2 * held_bytes(wildcards(100)) <= 200 * 1024


@pytest.mark.slow
def test_the_estimate_of_the_memory_is_not_too_low() -> None:
    large = wildcards(36_000)
    assert 460_000 < len(large) < 500 * 1024
    tracemalloc.start()
    try:
        parsed = Protego.parse(large.decode())
        parsed.can_fetch("https://a.org/x", "DocsToKG")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 20 * len(large) < held <= held_bytes(large)
