"""The polite client: hops, retries, budgets, bodies, and the line each exchange leaves."""

from __future__ import annotations

import gzip
import hashlib
import io
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx2
import pytest

from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.steps import Gate, NotYet, Steps, Wait
from DocsToKG.ContentDownload.api.types import Attempt, Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.breakers import Breakers
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits import HostLimit, Limits
from DocsToKG.ContentDownload.net.pauses import Pauses
from DocsToKG.ContentDownload.net.policy import HostCredentials, UrlPolicy
from DocsToKG.ContentDownload.net.robots import Robots
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.breaker import BreakerSettings
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import ManualClock
from DocsToKG.transport.errors import DeadlineExceeded

PDF = b"%PDF-1.7\n" + b"x" * 5000 + b"\n%%EOF\n"
CALL = Call("doi:10.1/x")
PDF_SHA = hashlib.sha256(PDF).hexdigest()
URL = "https://cdn.publisher.org/article/abcd5678.pdf"

Answer = httpx2.Response | Exception
Site = Callable[[httpx2.Request], Answer]


class Rig:
    """One client over a scripted web, a clock moved by the steps themselves, and everything it recorded."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = ManualClock()
        self.attempts: list[Attempt] = []
        self.rate_waits: list[tuple[str, int, str, dict[str, str | None]]] = []
        self.requests: list[httpx2.Request] = []
        self.gates: list[Gate] = []
        self.waits: list[float] = []
        self.cas: dict[str, bytes] = {}
        self.site: Site = lambda request: httpx2.Response(404)
        self.limits = Limits(clock=self.clock, default_host=HostLimit(2))
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
        pauses: Pauses | None = None,
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
        common: dict[str, Any] = {"limits": self.limits, "url_policy": url_policy, "attempts": self}
        rules = Robots(http=stack.http, clock=self.clock, random=lambda: 0.5, **common) if robots else None
        return RateRetryClient(
            "unpaywall",
            http=stack.http,
            gate=self.limits,
            robots=rules,
            policy=SourcePolicy("unpaywall", **policy),
            clock=self.clock,
            random=lambda: 0.5,
            cache=stack.cache if peeking else None,
            max_redirects=max_redirects,
            pauses=pauses,
            **common,
        )

    def run(self, steps: Steps[Any]) -> Any:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = self._permit(step) if isinstance(step, Gate) else self._sleep(step)

    def download(self, client: RateRetryClient, url: str = URL, *, keep: bool = True, **kwargs: Any) -> bytes:
        opened = self.run(client.open(url, Role.ARTIFACT, Call("doi:10.1/x"), **kwargs))
        try:
            data = b"".join(opened.chunks())
        finally:
            opened.close()
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
        return all(host.busy == 0 for host in self.limits._hosts.values())

    def _permit(self, gate: Gate) -> Any:
        self.gates.append(gate)
        while isinstance(answer := self.limits.ask(gate), NotYet):
            assert answer.at is not None, f"nobody will free {answer.key}"
            self.clock.advance(answer.at - self.clock.monotonic())
        return answer

    def _sleep(self, step: Any) -> None:
        assert isinstance(step, Wait)
        self.waits.append(step.until - self.clock.monotonic())
        self.clock.advance(max(0.0, self.waits[-1]))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.site(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    for stack in rig.stacks:
        stack.close()


def pdf(**headers: str) -> httpx2.Response:
    sent = {"content-type": "application/pdf", "content-length": str(len(PDF))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return httpx2.Response(200, headers=sent, stream=Stream([PDF[:3000], PDF[3000:]]))


class Stream(httpx2.SyncByteStream):
    def __init__(self, blocks: list[bytes], error: Exception | None = None) -> None:
        self.blocks, self.error, self.closed = blocks, error, False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.blocks
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed = True


def in_turn(*answers: Callable[[], Answer]) -> Site:
    left = list(answers)
    return lambda request: left.pop(0)()


# --- the worked example -------------------------------------------------------------------------------------------


def test_three_runs_leave_the_promised_lines(rig: Rig) -> None:
    """TEST-06, TEL-06, CACHE-01..04: fetched, then a hit without network, then revalidated."""

    def site(request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("if-none-match") == '"v1"':
            return httpx2.Response(304, headers={"etag": '"v1"', "cache-control": "max-age=600"})
        if request.method == "HEAD":
            return httpx2.Response(200, headers={"content-type": "application/pdf"})
        return pdf(etag='"v1"', cache_control="max-age=600")

    rig.site = site
    client = rig.client(cache=True)
    rig.run(client.head(URL, Role.ARTIFACT, Call("doi:10.1/x")))
    assert rig.download(client) == PDF
    assert [a.bytes_written for a in rig.attempts] == [None, None, len(PDF)]
    assert rig.attempts[-1].content_length_hdr == len(PDF)
    assert rig.tokens() == [("http-head", 200, None), ("http-get", 200, None), ("http-200", 200, None)]

    before = len(rig.requests)
    assert rig.download(client) == PDF
    assert rig.tokens() == [("http-get", 200, None), ("cache-hit", 200, "ok")]
    assert len(rig.requests) == before

    rig.stacks.pop().close()
    assert rig.download(rig.client(cache=True, always_revalidate=True)) == PDF
    assert rig.tokens() == [("http-get", 304, None), ("http-304", 304, "not-modified")]
    assert len(rig.requests) == before + 1


def test_a_cache_hit_waits_for_no_rate_slot_or_robots(rig: Rig) -> None:
    """LIM-10"""
    rig.site = lambda request: pdf(cache_control="max-age=600") if "robots" not in str(request.url) else not_found()
    client = rig.client(cache=True, robots=True)
    rig.download(client)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 3600, "Retry-After")
    rig.gates.clear()
    assert rig.download(client) == PDF
    assert rig.gates == []


def test_a_hit_found_only_after_the_gate_refunds_its_token(rig: Rig) -> None:
    """LIM-10: and a revalidation does not."""
    rig.limits = Limits(clock=rig.clock, default_host=HostLimit(2, {"*": (Rate(1, 60),)}))
    rig.site = lambda request: (
        httpx2.Response(304) if "if-none-match" in request.headers else pdf(cache_control="max-age=600", etag='"1"')
    )
    client = rig.client(cache=True, peeking=False)
    rig.download(client)
    rig.clock.advance(60)
    for _ in range(3):
        began = rig.clock.monotonic()
        assert rig.download(client) == PDF
        assert rig.clock.monotonic() == began
    rig.download(rig.client(cache=True, always_revalidate=True))
    assert isinstance(rig.limits.ask(Gate(URL, "unpaywall", Role.ARTIFACT)), NotYet)


def test_an_answer_of_one_source_is_a_hit_for_another(rig: Rig) -> None:
    """CACHE-09, CACHE-23: one cache, keyed by the canonical URL."""
    rig.site = lambda request: httpx2.Response(200, headers={"cache-control": "max-age=60"}, content=b"{}")
    client = rig.client(cache=True)
    rig.fetch(client, "https://api.org/w?b=2&a=1&utm_source=x")
    assert rig.fetch(client, "https://API.org/w?a=1&b=2").from_cache
    assert len(rig.requests) == 1


# --- redirects ----------------------------------------------------------------------------------------------------


def not_found() -> httpx2.Response:
    return httpx2.Response(404)


def redirect(to: str, status: int = 302, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, headers={"location": to, "content-length": "0", **headers})


def test_every_redirect_hop_passes_its_own_hosts_gate_and_robots(rig: Rig) -> None:
    """NET-12: the commonest path is doi.org to a publisher."""

    def site(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/robots.txt":
            return not_found()
        return redirect("https://pub.org/landing") if request.url.host == "doi.org" else pdf()

    rig.site = site
    client = rig.client(robots=True)
    opened = rig.run(client.open("https://doi.org/10.1/x", Role.ARTIFACT, Call("w")))
    opened.close()
    assert [gate.url for gate in rig.gates] == [
        "https://doi.org/robots.txt",
        "https://doi.org/10.1/x",
        "https://pub.org/robots.txt",
        "https://pub.org/landing",
    ]
    assert [(hop.url, hop.status) for hop in opened.hops] == [
        ("https://doi.org/10.1/x", 302),
        ("https://pub.org/landing", 200),
    ]
    assert rig.slots_are_free()


def test_a_redirect_to_a_disallowed_page_is_not_followed(rig: Rig) -> None:
    """ROB-03"""

    def site(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/robots.txt":
            rules = b"User-agent: *\nDisallow: /private" if request.url.host == "pub.org" else b""
            return httpx2.Response(200, content=rules)
        return redirect("https://pub.org/private/a.pdf")

    rig.site = site
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(robots=True), "https://doi.org/10.1/x")
    assert caught.value.reason == Reason.ROBOTS
    assert "https://pub.org/private/a.pdf" not in [str(request.url) for request in rig.requests]
    assert rig.tokens()[-1] == ("robots-disallowed", None, "robots")


def test_a_redirect_loop_is_named(rig: Rig) -> None:
    rig.site = lambda request: redirect("https://a.org/2" if request.url.path == "/1" else "https://a.org/1")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "https://a.org/1")
    assert caught.value.reason == Reason.REDIRECT_LOOP
    assert len(rig.requests) == 2
    assert rig.slots_are_free()


def test_ten_redirects_are_followed_and_eleven_are_too_many(rig: Rig) -> None:
    """NET-09"""

    def site(request: httpx2.Request) -> httpx2.Response:
        step = int(request.url.path[1:])
        return pdf() if step == 0 else redirect(f"https://a.org/{step - 1}")

    rig.site = site
    assert rig.download(rig.client(), "https://a.org/10") == PDF
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "https://a.org/11")
    assert caught.value.reason == Reason.TOO_MANY_REDIRECTS


@pytest.mark.parametrize("most", [0, 3])
def test_the_number_of_redirects_can_be_set(rig: Rig, most: int) -> None:
    def site(request: httpx2.Request) -> httpx2.Response:
        number = int(request.url.path.strip("/"))
        return redirect(f"https://a.org/{number - 1}") if number else pdf()

    rig.site = site
    client = rig.client(max_redirects=most)
    assert rig.download(client, f"https://a.org/{most}") == PDF
    with pytest.raises(CandidateRejected) as caught:
        rig.download(client, f"https://a.org/{most + 1}")
    assert caught.value.reason == Reason.TOO_MANY_REDIRECTS


def test_a_site_may_set_a_cookie_and_send_us_back_to_the_same_url(rig: Rig) -> None:
    def site(request: httpx2.Request) -> httpx2.Response:
        return pdf() if "seen=1" in request.headers.get("cookie", "") else redirect(URL, **{"set-cookie": "seen=1"})

    rig.site = site
    client = rig.client()
    assert rig.download(client) == PDF
    assert rig.download(client) == PDF
    assert ["cookie" in request.headers for request in rig.requests] == [False, True, False, True]


def test_credentials_stay_on_their_host(rig: Rig) -> None:
    """NET-13: neither the key we add, nor the headers of the source, nor a key copied into the redirect."""
    held = {"api.org": HostCredentials(headers={"x-api-key": "s3cret"}, params={"api_key": "t0psecret"})}
    rig.site = lambda request: (
        redirect("https://cdn.org/f.pdf?api_key=t0psecret&email=me%40x.org&v=2")
        if request.url.host == "api.org"
        else pdf()
    )
    client = rig.client(credentials=held, headers={"X-Token": "s3cret"})
    rig.download(client, "https://api.org/f?email=me%40x.org")
    first, second = rig.requests
    assert first.headers["x-api-key"] == "s3cret"
    assert "api_key=t0psecret" in str(first.url)
    assert str(second.url) == "https://cdn.org/f.pdf?v=2"
    assert not {"x-api-key", "x-token"} & set(second.headers)
    assert second.headers["user-agent"].startswith("DocsToKG/")


def test_an_http_link_is_asked_as_https_first(rig: Rig) -> None:
    """NET-10"""
    rig.site = lambda request: pdf()
    rig.download(rig.client(), "http://old.org:8080/a.pdf")
    assert str(rig.requests[0].url) == "https://old.org:8080/a.pdf"


def test_plain_http_is_tried_only_for_listed_hosts(rig: Rig) -> None:
    """NET-10"""
    rig.site = lambda request: pdf() if request.url.scheme == "http" else httpx2.ConnectError("refused")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "http://old.org/a.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY
    assert {request.url.scheme for request in rig.requests} == {"https"}
    assert rig.download(rig.client(http_hosts=("old.org",)), "http://old.org/a.pdf") == PDF


def test_a_listed_host_without_https_is_reached_although_its_https_rules_are_not(rig: Rig) -> None:
    """NET-10, ROB-07"""

    def site(request: httpx2.Request) -> Answer:
        if request.url.scheme == "https":
            return httpx2.ConnectError("refused")
        return not_found() if request.url.path == "/robots.txt" else pdf()

    rig.site = site
    assert rig.download(rig.client(robots=True, http_hosts=("old.org",)), "http://old.org/a.pdf") == PDF
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(robots=True), "http://old.org/a.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY


def test_an_unreadable_robots_file_sends_the_work_back_for_later(rig: Rig) -> None:
    """ROB-07"""
    rig.site = lambda request: httpx2.Response(503)
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client(robots=True))
    assert (caught.value.reason, caught.value.retry_after_s) == (Reason.ROBOTS, pytest.approx(300.0))
    assert {request.url.path for request in rig.requests} == {"/robots.txt"}


def test_a_site_that_turns_https_into_http_is_refused_unless_listed(rig: Rig) -> None:
    rig.site = lambda request: pdf() if request.url.scheme == "http" else redirect("http://old.org/a.pdf")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "https://old.org/a.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY
    assert rig.download(rig.client(http_hosts=("old.org",)), "https://old.org/a.pdf") == PDF


# --- retries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_waited_for_in_full_and_holds_the_host(rig: Rig, form: str) -> None:
    """NET-05, NET-07: both forms, not cut by the longest backoff."""
    value = "30" if form == "seconds" else formatdate(rig.clock.now() + 30, usegmt=True)
    rig.site = in_turn(lambda: httpx2.Response(429, headers={"retry-after": value}), pdf)
    began = rig.clock.monotonic()
    assert rig.download(rig.client()) == PDF
    assert rig.clock.monotonic() - began >= 30
    assert rig.tokens() == [("retry", 429, "retry-after"), ("http-get", 200, None), ("http-200", 200, None)]
    assert rig.limits._hosts["cdn.publisher.org"].hold_until == pytest.approx(began + 30)


def test_a_host_that_asks_for_a_second_gets_it_and_one_line_says_so(rig: Rig) -> None:
    """TEST-07"""
    rig.site = in_turn(lambda: httpx2.Response(429, headers={"retry-after": "1"}), pdf)
    began = rig.clock.monotonic()
    assert rig.download(rig.client()) == PDF
    assert 1.0 <= rig.clock.monotonic() - began < 1.2
    [retry] = [line for line in rig.attempts if line.status == "retry"]
    assert (retry.reason, retry.retry_after_s, retry.http_status) == ("retry-after", 1.0, 429)


def test_a_long_retry_after_goes_back_to_the_ledger(rig: Rig) -> None:
    """NET-06"""
    rig.site = lambda request: httpx2.Response(503, headers={"retry-after": "3600"})
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert (caught.value.reason, caught.value.retry_after_s) == (Reason.RETRY_AFTER, 3600.0)
    assert len(rig.requests) == 1
    assert rig.tokens() == [("http-get", 503, None)]
    assert isinstance(rig.limits.ask(Gate(URL, "other", Role.ARTIFACT)), NotYet)


def test_server_errors_are_retried_with_backoff_and_then_given_up(rig: Rig) -> None:
    """NET-03, NET-04"""
    rig.site = lambda request: httpx2.Response(503)
    with pytest.raises(TransientFailure) as caught:
        rig.fetch(rig.client(retry=RetryPolicy(max_attempts=4, base_s=1.0, cap_s=3.0, jitter_s=0.0)))
    assert caught.value.http_status == 503
    assert rig.waits == pytest.approx([1.0, 2.0, 3.0])
    assert rig.tokens() == [("retry", 503, "backoff")] * 3 + [("http-get", 503, None)]


def test_a_status_outside_the_list_is_final_at_the_first_answer(rig: Rig) -> None:
    """NET-03"""
    rig.site = lambda request: httpx2.Response(501)
    with pytest.raises(TransientFailure):
        rig.fetch(rig.client())
    assert len(rig.requests) == 1
    rig.site = lambda request: httpx2.Response(403)
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client())
    assert (caught.value.reason, caught.value.http_status) == (Reason.HTTP_STATUS, 403)


def test_a_challenge_is_not_retried(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(503, headers={"cf-mitigated": "challenge"})
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client())
    assert caught.value.reason == Reason.CHALLENGE
    assert len(rig.requests) == 1


@pytest.mark.parametrize(
    ("error", "reason"), [(httpx2.ConnectError("x"), "conn-error"), (httpx2.ReadTimeout("x"), "timeout")]
)
def test_a_broken_connection_is_retried_and_named_when_it_stays_broken(rig: Rig, error: Exception, reason: str) -> None:
    """NET-08"""
    rig.site = lambda request: error
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert caught.value.reason == reason
    assert {attempt.elapsed_ms for attempt in rig.attempts} == {0}
    assert rig.tokens() == [("retry", None, "conn-error")] * 3 + [("download-error", None, reason)]
    assert rig.slots_are_free()


def test_every_try_asks_for_its_own_permit(rig: Rig) -> None:
    """LIM-11"""
    rig.limits = Limits(clock=rig.clock, default_host=HostLimit(1))
    rig.site = in_turn(lambda: httpx2.Response(500), lambda: httpx2.ReadError("cut"), pdf)
    rig.download(rig.client())
    assert len(rig.gates) == 3


def test_retries_spread_out(rig: Rig) -> None:
    """NET-18: the wait is longer than asked by a random part."""
    rig.site = in_turn(lambda: httpx2.Response(429, headers={"retry-after": "2"}), pdf)
    rig.download(rig.client(retry=RetryPolicy(jitter_s=1.0)))
    assert rig.waits[0] == pytest.approx(2.5)


# --- budgets and cancelling -----------------------------------------------------------------------------------------


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


def test_tries_end_with_the_budget(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(500)
    with pytest.raises(CandidateRejected) as caught:
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(2))))
    assert caught.value.reason == Reason.BUDGET_EXHAUSTED
    assert len(rig.requests) == 2


def test_no_request_starts_without_time(rig: Rig) -> None:
    with pytest.raises(CandidateRejected) as caught:
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(9, seconds=0.0))))
    assert caught.value.reason == Reason.BUDGET_EXHAUSTED
    assert rig.requests == []


def test_a_host_that_is_held_back_costs_no_attempt(rig: Rig) -> None:
    """RES-26: only what is sent is counted; a pause longer than we wait for is none of it."""
    budget = Budget(3)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 500, "Retry-After")

    for number in range(4):
        steps = rig.client().open(f"{URL}?{number}", Role.ARTIFACT, Call("w", budget=budget))
        assert isinstance(next(steps), Gate)
        with pytest.raises(TransientFailure):
            steps.throw(TransientFailure(Reason.RETRY_AFTER, "the gate stays shut"))
    assert (budget.attempts, rig.requests) == (3, [])


def test_a_budget_that_is_used_up_gives_the_place_back(rig: Rig) -> None:
    rig.limits = Limits(clock=rig.clock, default_host=HostLimit(1, {"*": (Rate(1, 30),)}))
    with pytest.raises(CandidateRejected):
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(0))))
    rig.site = lambda request: pdf()
    rig.download(rig.client())
    assert rig.rate_waits == []


def test_time_is_spent_in_exchanges_and_not_while_parked(rig: Rig) -> None:
    def slow(answer: Callable[[], Answer]) -> Callable[[], Answer]:
        def site() -> Answer:
            rig.clock.advance(3)
            return answer()

        return site

    rig.site = in_turn(slow(lambda: httpx2.Response(429, headers={"retry-after": "20"})), slow(pdf))
    budget = Budget(9)
    rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=budget))).close()
    assert budget.left == pytest.approx(94.0)


@pytest.mark.parametrize(
    ("role", "policy_s", "shared_s", "budget_s", "wait_s", "whole_s"),
    [
        (Role.METADATA, 10.0, 60.0, None, 10.0, 10.0),
        (Role.LANDING, 100.0, 60.0, None, 100.0, 100.0),
        (Role.ARTIFACT, 10.0, 60.0, None, 10.0, 900.0),
        (Role.ARTIFACT, 100.0, 7.0, None, 100.0, 900.0),
        (Role.METADATA, 10.0, 60.0, 4.0, 10.0, 4.0),
        (Role.ARTIFACT, 10.0, 60.0, 40.0, 10.0, 40.0),
    ],
)
def test_a_request_carries_the_wait_of_its_policy_and_the_time_of_its_role(
    rig: Rig, role: Role, policy_s: float, shared_s: float, budget_s: float | None, wait_s: float, whole_s: float
) -> None:
    """CFG-14, CFG-23, NET-16: the policy wins over the shared client's wait; only a connection takes the shorter."""
    rig.site = lambda request: pdf()
    client = rig.client(timeout_s=policy_s, timeout_read_s=shared_s)
    budget = None if budget_s is None else Budget(9, budget_s)
    before = time.monotonic()
    rig.run(client.fetch(URL, role, Call("w", budget=budget)))
    [request] = rig.requests
    assert request.extensions["timeout"]["read"] == wait_s
    assert request.extensions["timeout"]["connect"] == min(policy_s, 10.0)
    assert request.extensions["deadline"] - before == pytest.approx(whole_s, abs=0.5)


def test_a_timeout_that_used_up_the_budget_is_still_a_timeout(rig: Rig) -> None:
    budget = Budget(9, 1.0)

    def site(request: httpx2.Request) -> Answer:
        rig.clock.advance(1.0)
        return DeadlineExceeded("over")

    rig.site = site
    with pytest.raises(TransientFailure) as caught:
        rig.run(rig.client().fetch(URL, Role.METADATA, Call("w", budget=budget)))
    assert caught.value.reason == Reason.TIMEOUT
    assert len(rig.requests) == 1


def test_waits_for_a_rate_an_interval_or_a_pause_are_recorded(rig: Rig) -> None:
    """LIM-12, CAT-11: with the work, the source and the role; a gate that is open leaves nothing."""
    host_rate = HostLimit(2, {"*": (Rate(1, 3),)})
    rig.limits = Limits(clock=rig.clock, default_host=host_rate, resolver_rates={"unpaywall": Rate(1, 10)})
    rig.site = lambda request: httpx2.Response(200)
    client = rig.client()
    rig.fetch(client)
    assert rig.rate_waits == []
    rig.fetch(client)
    about = {"work_id": "doi:10.1/x", "resolver": "unpaywall", "role": "metadata"}
    assert rig.rate_waits == [("resolver:unpaywall", 10_000, "rate", about)]
    rig.clock.advance(10)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 7, "Retry-After")
    rig.fetch(client, role=Role.LANDING)
    assert rig.rate_waits[1:] == [("host:cdn.publisher.org", 7_000, "hold", about | {"role": "landing"})]
    rig.limits.set_crawl_delay("cdn.publisher.org", 20.0)
    rig.fetch(client)
    assert rig.rate_waits[2:] == [("host:cdn.publisher.org", 20_000, "interval", about)]


def test_a_pause_asked_for_between_grant_and_sending_is_recorded(rig: Rig) -> None:
    """LIM-12"""
    rig.site = lambda request: httpx2.Response(200)
    steps = rig.client().fetch(URL, Role.METADATA, Call("w"))
    permit = rig.limits.ask(next(steps))
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 7, "Retry-After")
    wait = steps.send(permit)
    assert isinstance(wait, Wait)
    rig.clock.advance(wait.until - rig.clock.monotonic())
    with pytest.raises(StopIteration):
        steps.send(rig.limits.ask(next(steps)))
    assert [(key, delay_ms) for key, delay_ms, *_ in rig.rate_waits] == [("host:cdn.publisher.org", 7_000)]


def test_a_wait_of_a_millisecond_is_not_worth_a_line(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(200)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 0.001, "Retry-After")
    rig.fetch(rig.client())
    assert rig.rate_waits == []


@pytest.mark.parametrize(("asked_s", "left_s"), [(20, 10.0), (61, 10_000.0)])
def test_a_retry_after_beyond_the_budget_or_the_cap_is_not_waited_for(rig: Rig, asked_s: int, left_s: float) -> None:
    """NET-06"""
    rig.site = lambda request: httpx2.Response(429, headers={"retry-after": str(asked_s)})
    with pytest.raises(TransientFailure):
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(9, seconds=left_s))))
    assert rig.waits == []


def test_a_cancelled_call_sends_nothing(rig: Rig) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", cancel)))
    assert rig.requests == []


def test_cancelling_during_the_wait_for_the_gate_gives_the_permit_back(rig: Rig) -> None:
    cancel = CancelToken()
    steps = rig.client().open(URL, Role.ARTIFACT, Call("w", cancel))
    step = next(steps)
    cancel.cancel()
    with pytest.raises(Cancelled):
        steps.send(rig.limits.ask(step))
    assert rig.slots_are_free()


def test_a_closed_generator_keeps_no_slot(rig: Rig) -> None:
    rig.site = in_turn(lambda: httpx2.Response(500))
    steps = rig.client().open(URL, Role.ARTIFACT, Call("w"))
    step = next(steps)
    assert isinstance(steps.send(rig.limits.ask(step)), Wait)
    steps.close()
    assert rig.slots_are_free()


def test_the_slot_is_held_until_the_body_is_closed(rig: Rig) -> None:
    rig.site = lambda request: pdf()
    opened = rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w")))
    assert not rig.slots_are_free()
    opened.close()
    opened.close()
    assert rig.slots_are_free()


# --- bodies -------------------------------------------------------------------------------------------------------


def test_a_body_shorter_than_announced_is_a_size_mismatch(rig: Rig) -> None:
    """TEST-08, TEL-02: and it leaves a line of its own."""
    rig.site = lambda request: pdf(content_length="500000")
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert caught.value.reason == Reason.SIZE_MISMATCH
    assert rig.tokens() == [("http-get", 200, None), ("size-mismatch", 200, "size-mismatch")]
    assert rig.slots_are_free()


def test_a_body_cut_by_the_server_is_a_size_mismatch(rig: Rig) -> None:
    cut = httpx2.RemoteProtocolError("peer closed")
    rig.site = lambda request: httpx2.Response(200, stream=Stream([PDF[:100]], cut))
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert caught.value.reason == Reason.SIZE_MISMATCH


def test_decoded_bytes_count_against_the_cap(rig: Rig) -> None:
    """SEC-06: 10 MB of zeros travel as 10 KB."""
    bomb = gzip.compress(bytes(10_000_000))
    rig.site = lambda request: httpx2.Response(
        200,
        headers={"content-encoding": "gzip"},
        stream=Stream([bomb[i : i + 1000] for i in range(0, len(bomb), 1000)]),
    )
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), max_bytes=100_000)
    assert caught.value.reason == Reason.TOO_LARGE
    with pytest.raises(CandidateRejected):
        rig.fetch(rig.client(max_page_bytes=100_000))
    assert rig.slots_are_free()


def test_an_announced_size_above_the_cap_is_refused_before_a_byte_is_read(rig: Rig) -> None:
    rig.site = lambda request: pdf(content_length="99999999")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), max_bytes=1_000_000)
    assert caught.value.reason == Reason.TOO_LARGE


def test_files_are_asked_for_without_encoding_and_pages_with(rig: Rig) -> None:
    """NET-14, NET-15"""
    rig.site = lambda request: pdf()
    client = rig.client()
    rig.download(client)
    rig.fetch(client, role=Role.LANDING)
    file, page = rig.requests
    assert (file.headers["accept-encoding"], page.headers["accept-encoding"]) == ("identity", "gzip, deflate")
    assert file.headers["accept"].startswith("application/pdf")
    assert page.headers["accept"].startswith("text/html")
    assert "mailto:me@example.org" in file.headers["user-agent"]


def test_a_landing_page_that_is_a_pdf_is_cut_and_named(rig: Rig) -> None:
    stream = Stream([b"\n" + PDF[:3000], PDF[3000:]])
    rig.site = lambda request: httpx2.Response(200, headers={"content-type": "text/html"}, stream=stream)
    page = rig.fetch(rig.client(), role=Role.LANDING)
    assert (page.is_pdf, page.body) == (True, b"")
    assert stream.closed
    assert rig.slots_are_free()


def test_a_page_cut_half_way_is_fetched_again(rig: Rig) -> None:
    rig.site = in_turn(
        lambda: httpx2.Response(200, stream=Stream([b"{"], httpx2.ReadError("reset"))),
        lambda: httpx2.Response(200, content=b"{}"),
    )
    page = rig.fetch(rig.client())
    assert page.body == b"{}"
    assert len(page.hops) == 1
    assert [token for token, _, _ in rig.tokens()] == ["http-get", "retry", "http-get", "http-200"]


def test_not_found_is_an_answer_to_fetch(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(404, content=b"no such work")
    page = rig.fetch(rig.client())
    assert (page.status, page.body) == (404, b"no such work")
    assert rig.tokens() == [("http-get", 404, None)]


def test_secrets_in_a_url_are_masked_in_attempts_and_errors(rig: Rig) -> None:
    """SEC-04"""
    rig.site = lambda request: httpx2.ConnectError(f"cannot reach {request.url}")
    with pytest.raises(TransientFailure) as caught:
        rig.fetch(rig.client(), "https://api.org/w?api_key=s3cret")
    told = f"{caught.value} {caught.value.url} {caught.value.__cause__} {rig.attempts}"
    assert "s3cret" not in told


def test_links_that_lead_nowhere_are_bad_urls(rig: Rig) -> None:
    rig.site = lambda request: redirect("mailto:author@a.org")
    for url in ("ftp://a.org/x", "not a url", "https://a.org/x", "https://a.org/" + "x" * 9000):
        with pytest.raises(CandidateRejected) as caught:
            rig.download(rig.client(), url)
        assert caught.value.reason == Reason.BAD_URL


def test_blocking_calls_walk_the_same_steps(rig: Rig) -> None:
    rig.site = lambda request: pdf()
    client = rig.client()
    assert client.get(URL).status == 200
    assert client.request("head", URL).body == b""
    with client.stream(URL) as opened:
        assert b"".join(opened.chunks()) == PDF
    assert rig.slots_are_free()
    with pytest.raises(ValueError, match="only GET and HEAD"):
        client.request("POST", URL)


# --- what is asked for, and how -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["application/xml", "text/html"])
def test_a_file_in_another_form_is_asked_for_as_that_on_every_hop(rig: Rig, kind: str) -> None:
    """NET-14: what the caller accepts goes before the header of the role, whatever its case."""
    rig.site = lambda request: redirect("https://cdn.org/x") if request.url.host != "cdn.org" else pdf()
    rig.download(rig.client(headers={"accept": "application/json"}), headers={"Accept": kind})
    assert [request.headers["accept"] for request in rig.requests] == [kind, kind]
    assert all(request.headers["accept-encoding"] == "identity" for request in rig.requests)


def test_a_budget_learns_what_each_try_was_for(rig: Rig) -> None:
    """RES-26"""
    roles: list[str] = []

    class Listening(Budget):
        def take_attempt(self, role: str = "artifact") -> None:
            roles.append(role)

    rig.site = lambda request: pdf()
    client, call = rig.client(), Call("w", budget=Listening(9, 9.0))
    rig.run(client.fetch(URL, Role.METADATA, call))
    rig.run(client.fetch(URL, Role.LANDING, call))
    rig.run(client.open(URL, Role.ARTIFACT, call)).close()
    assert roles == ["metadata", "landing", "artifact"]


@pytest.mark.parametrize("status", [403, 405, 501])
def test_who_does_not_answer_head_is_asked_for_a_few_bytes(rig: Rig, status: int) -> None:
    """RES-24: the answer to the small GET counts, told as HEAD would have told it."""
    part = httpx2.Response(206, headers={"content-range": f"bytes 0-1023/{len(PDF)}"}, content=PDF[:1024])
    rig.site = lambda request: httpx2.Response(status) if request.method == "HEAD" else part
    page = rig.run(rig.client().head(URL, Role.ARTIFACT, Call("w"), headers={"Accept": "application/pdf"}))
    assert (page.status, page.headers["content-length"], page.body) == (200, str(len(PDF)), b"")
    assert [request.method for request in rig.requests] == ["HEAD", "GET"]
    assert rig.requests[1].headers["range"] == "bytes=0-1023"
    assert rig.requests[1].headers["accept"] == "application/pdf"
    assert [token for token, _, _ in rig.tokens()] == ["http-head", "http-get"]
    assert rig.slots_are_free()


@pytest.mark.parametrize(("answer", "seen"), [(404, 404), (403, 403), (200, 200)])
def test_the_second_answer_is_the_one_that_counts(rig: Rig, answer: int, seen: int) -> None:
    """RES-21, RES-24. A server that ignores the range sends the whole file, which is not read."""
    stream = Stream([PDF])
    whole = httpx2.Response(answer, headers={"content-length": str(len(PDF))}, stream=stream)
    rig.site = lambda request: httpx2.Response(405) if request.method == "HEAD" else whole
    page = rig.run(rig.client(cache=True).head(URL, Role.ARTIFACT, Call("w")))
    assert (page.status, page.body, page.headers["content-length"]) == (seen, b"", str(len(PDF)))
    assert stream.closed


def test_a_small_get_that_meets_a_busy_server_is_a_passing_failure(rig: Rig) -> None:
    """RES-21: 429 and 5xx go to backoff, on HEAD and on what stands in for it."""
    rig.site = lambda request: httpx2.Response(405 if request.method == "HEAD" else 503)
    with pytest.raises(TransientFailure) as caught:
        rig.run(rig.client(retry=RetryPolicy(max_attempts=1)).head(URL, Role.ARTIFACT, Call("w")))
    assert caught.value.http_status == 503


@pytest.mark.parametrize("status", [200, 404, 410])
def test_a_plain_answer_to_head_is_believed(rig: Rig, status: int) -> None:
    """RES-24: no second request."""
    rig.site = lambda request: httpx2.Response(status)
    assert rig.run(rig.client().head(URL, Role.ARTIFACT, Call("w"))).status == status
    assert len(rig.requests) == 1


def test_a_length_that_nobody_knows_is_not_made_up(rig: Rig) -> None:
    part = httpx2.Response(206, headers={"content-range": "bytes 0-1023/*"}, content=b"x" * 1024)
    rig.site = lambda request: httpx2.Response(501) if request.method == "HEAD" else part
    page = rig.run(rig.client().head(URL, Role.ARTIFACT, Call("w")))
    assert page.status == 200
    assert "content-length" not in page.headers


# --- archives -----------------------------------------------------------------------------------------------------

CAPTURE = "https://web.archive.org/web/20200101000000id_/https://pub.org/x.pdf"
MEMENTO = {"memento-datetime": "Wed, 01 Jan 2020 00:00:00 GMT"}


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_a_replayed_error_is_what_another_server_said_long_ago(rig: Rig, status: int) -> None:
    """Final for this capture; neither the archive's pace nor its next request suffers."""
    rig.site = lambda request: httpx2.Response(status, headers={**MEMENTO, "retry-after": "3600"})
    client = rig.client()
    with pytest.raises(CandidateRejected) as caught:
        rig.download(client, CAPTURE)
    assert (caught.value.reason, caught.value.http_status) == (Reason.HTTP_STATUS, status)
    assert len(rig.requests) == 1
    assert rig.tokens() == [("http-get", status, None)]
    assert rig.limits.scale_of("web.archive.org") == 1.0
    assert not isinstance(rig.limits.ask(Gate(CAPTURE, "other", Role.ARTIFACT)), NotYet)


def test_only_an_archive_is_believed_to_replay(rig: Rig) -> None:
    """Anybody can send the header; a host that is busy is busy."""
    rig.site = lambda request: httpx2.Response(429, headers={**MEMENTO, "retry-after": "3600"})
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert caught.value.retry_after_s == 3600.0
    assert isinstance(rig.limits.ask(Gate(URL, "other", Role.ARTIFACT)), NotYet)


def test_a_host_can_be_known_to_want_a_pause_after_a_429(rig: Rig) -> None:
    """A 429 of the archive itself names no time; a minute is kept, and a longer wish is honoured."""
    answers = [httpx2.Response(429), httpx2.Response(429, headers={"retry-after": "90"}), httpx2.Response(503)]
    rig.site = lambda request: answers.pop(0)
    client = rig.client(retry=RetryPolicy(max_attempts=1), pauses=Pauses({"web.archive.org": 60.0}))
    seen = []
    for _ in range(3):
        with pytest.raises(TransientFailure) as caught:
            rig.download(client, CAPTURE)
        seen.append(caught.value.retry_after_s)
    assert seen == [60.0, 90.0, None]
    assert rig.clock.monotonic() >= 150.0  # the gate held the host for as long each time


# --- blocks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "blocks"), [(4096, [100_000]), (200_000, [7_000] * 100), (1 << 20, [30_000] * 3)])
def test_a_file_is_handed_on_in_portions(rig: Rig, size: int, blocks: list[int]) -> None:
    """download.chunk_size_bytes: never more at once; small blocks are joined, once the beginning was seen."""
    body = [bytes([number % 251]) * length for number, length in enumerate(blocks)]
    rig.site = lambda request: httpx2.Response(200, stream=Stream(list(body)))
    opened = rig.run(rig.client(chunk_bytes=size).open(URL, Role.ARTIFACT, Call("w")))
    portions = list(opened.chunks())
    opened.close()
    assert b"".join(portions) == b"".join(body)
    assert max(len(portion) for portion in portions) <= size
    later = [len(portion) for at, portion in enumerate(portions) if sum(map(len, portions[:at])) >= 65536]
    assert all(length == size for length in later[:-1])


def test_a_body_that_breaks_off_hands_on_no_end(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(200, stream=Stream([b"x" * 70_000] * 3, httpx2.ReadError("reset")))
    opened = rig.run(rig.client(chunk_bytes=200_000).open(URL, Role.ARTIFACT, Call("w")))
    with pytest.raises(TransientFailure):
        list(opened.chunks())
    opened.close()


# --- guards ---------------------------------------------------------------------------------------------------------

GUARDED = b"<html><head><title>Just a moment...</title></head><script>window._cf_chl_opt={}</script></html>"
BUSY = b"<html><head><title>503 Service Unavailable</title></head><body>Come back later.</body></html>"


def html(status: int, body: bytes, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, headers={"content-type": "text/html; charset=utf-8", **headers}, content=body)


@pytest.mark.parametrize("status", [202, 403, 429, 503])
@pytest.mark.parametrize("ask", ["fetch", "open"])
def test_a_bot_check_is_refused_at_once_and_held_against_nobody(rig: Rig, status: int, ask: str) -> None:
    """API-FACTS 22: it will be there next time too, and says nothing about the health of the host."""
    told: list[str] = []
    breakers = Breakers(clock=rig.clock, settings=BreakerSettings(min_samples=1), sink=NullSink())
    client = rig.client()
    client._breakers = breakers
    rig.site = lambda request: html(status, GUARDED, **{"retry-after": "3600"})
    for number in range(3):
        with pytest.raises(CandidateRejected) as caught:
            rig.run(getattr(client, ask)(f"{URL}?{number}", Role.LANDING, CALL))
        told.append(caught.value.reason)
    assert told == [Reason.CHALLENGE] * 3
    assert len(rig.requests) == 3
    assert (rig.waits, rig.rate_waits) == ([], [])
    assert [status.failure_rate for status in breakers.statuses()] == [0.0]
    assert [(attempt.status, attempt.http_status) for attempt in rig.attempts] == [("http-get", status)] * 3


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_with_a_page_of_its_own_is_asked_again(rig: Rig, status: int) -> None:
    rig.site = in_turn(lambda: html(status, BUSY), lambda: html(200, b"<html>here it is</html>"))
    page = rig.run(rig.client().fetch(URL, Role.LANDING, CALL))
    assert (page.body, len(rig.requests)) == (b"<html>here it is</html>", 2)


def test_a_page_that_was_looked_at_is_read_whole(rig: Rig) -> None:
    body = b"<html><title>Forbidden</title>" + bytes(range(32, 127)) * 1000 + b"</html>"
    rig.site = lambda request: html(403, body)
    assert rig.run(rig.client().fetch(URL, Role.LANDING, CALL)).body == body


def test_only_the_beginning_of_a_refusal_is_looked_at(rig: Rig) -> None:
    read: list[int] = []

    class Endless(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                read.append(4096)
                yield b"<p>" * 1365 + b" "

    rig.site = lambda request: httpx2.Response(503, headers={"content-type": "text/html"}, stream=Endless())
    with pytest.raises(TransientFailure):
        rig.run(rig.client(retry=RetryPolicy(max_attempts=1)).open(URL, Role.ARTIFACT, CALL))
    assert 4096 <= sum(read) <= 20_480


def test_a_refusal_that_breaks_off_is_still_a_busy_server(rig: Rig) -> None:
    class Cut(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"<html>"
            raise httpx2.ReadError("cut")

    rig.site = lambda request: httpx2.Response(503, headers={"content-type": "text/html"}, stream=Cut())
    with pytest.raises(TransientFailure) as caught:
        rig.run(rig.client(retry=RetryPolicy(max_attempts=1)).open(URL, Role.ARTIFACT, CALL))
    assert caught.value.http_status == 503
    assert [attempt.status for attempt in rig.attempts] == ["http-get"]


@pytest.mark.parametrize("status", [429, *range(500, 600)])
def test_who_reads_a_page_never_meets_a_busy_server(rig: Rig, status: int) -> None:
    """Sources rely on it: whatever says "not now" is raised."""
    rig.site = lambda request: httpx2.Response(status, content=b"{}")
    with pytest.raises(TransientFailure) as caught:
        rig.run(rig.client(retry=RetryPolicy(max_attempts=1)).fetch(URL, Role.METADATA, CALL))
    assert caught.value.http_status == status


# --- what others ask of it ------------------------------------------------------------------------------------------


def test_the_interval_of_a_host_is_its_slowest_rule(rig: Rig) -> None:
    """LIM-05"""
    rate = HostLimit(2, {"artifact": (Rate(1, 3), Rate(1000, 86400)), "metadata": (Rate(1, 9),)})
    rig.limits = Limits(
        clock=rig.clock,
        default_host=HostLimit(2),
        hosts={"slow.org": rate},
        groups={"*.grouped.org": HostLimit(2, {"*": (Rate(1, 2),)})},
    )
    client = rig.client()
    assert client.interval_s("https://free.org/a.pdf") == 0.0
    assert client.interval_s("https://slow.org/a.pdf") == pytest.approx(3.0)
    assert client.interval_s("https://a.grouped.org/a.pdf") == pytest.approx(2.0)
    rig.limits.set_crawl_delay("free.org", 20.0)
    assert client.interval_s("https://free.org/a.pdf") == 20.0


def read_and_confirm(rig: Rig, client: RateRetryClient) -> Any:
    opened = rig.run(client.open(URL, Role.ARTIFACT, CALL))
    data = b"".join(opened.chunks())
    opened.close()
    rig.cas[hashlib.sha256(data).hexdigest()] = data
    opened.confirm(hashlib.sha256(data).hexdigest())
    return opened


def test_a_rejected_body_leaves_the_cache_wherever_it_came_from(rig: Rig) -> None:
    """DL-11, FAIL-07: a cached file that fails its proof would fail it for ever."""
    client = rig.client(cache=True)
    rig.site = lambda request: pdf(**{"cache-control": "max-age=600"})
    read_and_confirm(rig, client)
    cached = read_and_confirm(rig, client)
    assert (cached.from_cache, len(rig.requests)) == (True, 1)
    cached.reject()
    fresh = read_and_confirm(rig, client)
    assert (fresh.from_cache, len(rig.requests)) == (False, 2)
    fresh.reject()
    late = rig.run(client.open(URL, Role.ARTIFACT, CALL))
    assert (late.from_cache, len(rig.requests)) == (False, 3)
    list(late.chunks())
    late.close()
    late.reject()
    late.confirm(PDF_SHA)
    last = rig.run(client.open(URL, Role.ARTIFACT, CALL))
    last.close()
    assert (last.from_cache, len(rig.requests)) == (False, 4)
