"""The polite client and refusals: bot checks and busy servers, and errors that an archive replays."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.contentdownload.polite_rig import CALL, URL, Rig, given_rig, in_turn, pdf  # noqa: F401

from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.api.ports import NullSink
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.retry_after import RetryAfterRules
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.breaker import BreakerSettings

# archives


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
    assert rig.limits.statuses(["web.archive.org"])["web.archive.org"].limits["rateScale"] == 1.0
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
    client = rig.client(retry=RetryPolicy(max_attempts=1), retry_after_rules=RetryAfterRules({"web.archive.org": 60.0}))
    seen = []
    for _ in range(3):
        with pytest.raises(TransientFailure) as caught:
            rig.download(client, CAPTURE)
        seen.append(caught.value.retry_after_s)
    assert seen == [60.0, 90.0, None]
    assert rig.clock.monotonic() >= 150.0  # the gate held the host for as long each time


# guards


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
    client = rig.client(breakers=breakers)
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

    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                read.append(4096)
                yield b"<p>" * 1365 + b" "

    rig.site = lambda request: httpx2.Response(503, headers={"content-type": "text/html"}, stream=Endless())
    with pytest.raises(TransientFailure):
        rig.run(rig.client(retry=RetryPolicy(max_attempts=1)).open(URL, Role.ARTIFACT, CALL))
    assert 4096 <= sum(read) <= 20_480


def test_a_refusal_that_breaks_off_is_still_a_busy_server(rig: Rig) -> None:
    class Cut(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
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
