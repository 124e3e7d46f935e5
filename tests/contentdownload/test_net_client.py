"""The polite client: the worked example, what is asked for and how, and what others ask of it."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx2
import pytest
from tests.contentdownload.polite_rig import (  # noqa: F401
    PDF,
    PDF_SHA,
    URL,
    Budget,
    Rig,
    Stream,
    given_rig,
    not_found,
    pdf,
    redirect,
)

from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.net.client import RateRetryClient
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.bucket import Rate

# the worked example


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

    rig.run(rig.stacks.pop().aclose())
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
    rig.limits = HostLimits(clock=rig.clock, default_host=HostLimit(2, {"*": (Rate(1, 60),)}))
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


# what is asked for, and how


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
    rig.close(rig.open(client, f"{URL}?v=2", call=call))
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


# what others ask of it


def test_the_interval_of_a_host_is_its_slowest_rule(rig: Rig) -> None:
    """LIM-05"""
    rate = HostLimit(2, {"artifact": (Rate(1, 3), Rate(1000, 86400)), "metadata": (Rate(1, 9),)})
    rig.limits = HostLimits(
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
    opened = rig.open(client)
    data = b"".join(rig.read(opened))
    rig.close(opened)
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
    late = rig.open(client)
    assert (late.from_cache, len(rig.requests)) == (False, 3)
    rig.read(late)
    rig.close(late)
    late.reject()
    late.confirm(PDF_SHA)
    last = rig.open(client)
    rig.close(last)
    assert (last.from_cache, len(rig.requests)) == (False, 4)
