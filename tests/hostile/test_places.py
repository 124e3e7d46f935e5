"""Where a server would like us to go: loops, private addresses, other schemes, and cookies on the way (URL, SEC)."""

from __future__ import annotations

import time

import pytest

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure

pytestmark = pytest.mark.slow  # seconds of real sockets and processes; part of `make test`

PDF = b"%PDF-1.7\n" + b"x" * 4000 + b"\n%%EOF\n"


def moving(place, *lines, status=b"302 Found"):
    return lambda talk: talk.answer(b"", b"Location: " + place, *lines, status=status)


def refusal(rig, client, url):
    with pytest.raises((CandidateRejected, TransientFailure)) as caught:
        rig.download(client, url)
    return caught.value


PRIVATE = {
    "loopback": b"https://127.0.0.1/x",
    "loopback by name": b"https://localhost/x",
    "private": b"https://10.1.2.3/x",
    "private behind a public name": b"https://inside.example/x",
    "link-local": b"https://169.254.1.1/x",
    "cloud metadata": b"http://169.254.169.254/latest/meta-data/",
    "decimal": b"https://2130706433/x",
    "octal": b"https://0177.0.0.1/x",
    "hex": b"https://0x7f.1/x",
    "short form": b"https://127.1/x",
    "full-width digits": "https://１２７.0.0.1/x".encode(),
    "dots of another script": "https://127。0。0。1/x".encode(),
    "IPv6 loopback": b"https://[::1]/x",
    "IPv6-mapped": b"https://[::ffff:127.0.0.1]/x",
    "IPv6-mapped in hex": b"https://[::ffff:7f00:1]/x",
    "NAT64": b"https://[64:ff9b::7f00:1]/x",
    "unique local": b"https://[fd00::1]/x",
    "unspecified": b"https://0.0.0.0/x",
    "unspecified IPv6": b"https://[::]/x",
    "multicast": b"https://224.0.0.1/x",
    "broadcast": b"https://255.255.255.255/x",
    "carrier's own": b"https://100.64.0.1/x",
    "user info that looks like the host": b"https://good.example@127.0.0.1/x",
}


@pytest.mark.parametrize("place", PRIVATE)
def test_no_redirect_leads_to_an_address_that_is_not_public(rig, place):
    rig.names |= {"inside.example": ["10.0.0.1"], "localhost": ["127.0.0.1"]}
    client = rig.client()
    failure = refusal(rig, client, rig.play(moving(PRIVATE[place])))
    assert failure.reason == Reason.SECURITY_POLICY
    assert isinstance(failure, CandidateRejected)
    assert len(rig.server.requests) == 1
    assert rig.goes_on(client)


NOWHERE = {
    "file": b"file:///etc/passwd",
    "javascript": b"javascript:alert(1)",
    "data": b"data:application/pdf,%25PDF-1.7",
    "ftp": b"ftp://evil.example/x.pdf",
    "gopher": b"gopher://evil.example:70/_x",
    "a host that is none": b"https://exa mple/",
    "an address that is none": b"https://1.2.3.4.5/",
    "a port that is none": b"https://evil.example:99999/",
    "an endless address": b"https://evil.example/" + b"a" * 20_000,
    "an unclosed bracket": b"https://[::1/",
}


@pytest.mark.parametrize("place", NOWHERE)
def test_a_redirect_to_nowhere_is_a_bad_url(rig, place):
    client = rig.client()
    failure = refusal(rig, client, rig.play(moving(NOWHERE[place])))
    assert failure.reason == Reason.BAD_URL
    assert rig.goes_on(client)


def test_a_redirect_loop_is_seen_at_its_first_return(rig):
    rig.play(moving(b"/b.pdf"), path="/a.pdf")
    rig.play(moving(b"/a.pdf"), path="/b.pdf")
    client = rig.client()
    assert refusal(rig, client, "https://evil.example/a.pdf").reason == Reason.REDIRECT_LOOP
    assert len(rig.server.requests) == 2
    assert rig.goes_on(client)


def test_a_chain_of_fifty_redirects_is_cut(rig):
    for number in range(50):
        rig.play(moving(b"/%d.pdf" % (number + 1)), path=f"/{number}.pdf")
    client = rig.client()
    assert refusal(rig, client, "https://evil.example/0.pdf").reason == Reason.TOO_MANY_REDIRECTS
    assert len(rig.server.requests) == 11
    assert rig.goes_on(client)


def test_a_redirect_to_itself_with_ever_new_cookies_is_cut(rig):
    seen = []

    def script(talk):
        seen.append(1)
        talk.answer(b"", b"Location: /paper.pdf", b"Set-Cookie: n=%d" % len(seen), status=b"302 Found")

    client = rig.client()
    assert refusal(rig, client, rig.play(script)).reason in (Reason.TOO_MANY_REDIRECTS, Reason.REDIRECT_LOOP)
    assert len(seen) <= 11
    assert rig.goes_on(client)


COOKIES = {
    "unreadable bytes": b"a=\xff\xfe\x80",
    "unreadable name": b"\xff\xfe=1",
    "no name": b"=;=;=",
    "a date that is none": b"a=b; Expires=Thu, 99 Foo 2026 99:99:99 GMT",
    "an age without end": b"a=b; Max-Age=" + b"9" * 3000,
    "longer than any": b"a=" + b"x" * 30_000,
    "for everybody": b"a=b; Domain=example",
    "control characters": b"a=\x01\x02\x7f",
}


@pytest.mark.parametrize("cookie", COOKIES)
def test_a_cookie_from_hell_does_not_stop_the_journey(rig, cookie):
    rig.play(moving(b"/file.pdf", b"Set-Cookie: " + COOKIES[cookie]), path="/start.pdf")
    rig.play(lambda talk: talk.answer(PDF), path="/file.pdf")
    assert rig.download(rig.client(), "https://evil.example/start.pdf") == PDF
    assert b"xxxxx" not in rig.server.requests[-1]


def test_a_flood_of_cookies_is_not_carried_on(rig):
    flood = [b"Set-Cookie: c%d=%s" % (number, b"v" * 250) for number in range(190)]
    rig.play(moving(b"/file.pdf", *flood), path="/start.pdf")
    rig.play(lambda talk: talk.answer(PDF), path="/file.pdf")
    assert rig.download(rig.client(), "https://evil.example/start.pdf") == PDF
    assert len(rig.server.requests[-1]) < 20_000


def test_cookies_stay_with_their_host(rig):
    rig.play(moving(b"https://other.example/file.pdf", b"Set-Cookie: session=secret; Domain=other.example"))
    rig.play(lambda talk: talk.answer(PDF), "other.example", "/file.pdf")
    assert rig.download(rig.client(), "https://evil.example/paper.pdf") == PDF
    assert b"secret" not in rig.server.requests[-1]


def test_user_info_and_fragments_of_a_redirect_are_not_sent_on(rig):
    rig.play(moving(b"https://user:hunter2@good.example/file.pdf#frag"))
    rig.play(lambda talk: talk.answer(PDF), "good.example", "/file.pdf")
    assert rig.download(rig.client(), "https://evil.example/paper.pdf") == PDF
    sent = rig.server.requests[-1].lower()
    assert b"hunter2" not in sent
    assert b"authorization" not in sent
    assert b"frag" not in sent
    assert not any("hunter2" in attempt.url for attempt in rig.attempts)


@pytest.mark.parametrize("place", [b"file.pdf", b"./a/../file.pdf", b"//evil.example/file.pdf", b"/file.pdf?#x"])
def test_a_relative_redirect_stays_on_its_host(rig, place):
    rig.play(moving(place), path="/start")
    rig.play(lambda talk: talk.answer(PDF), path="/file.pdf")
    assert rig.download(rig.client(), "https://evil.example/start") == PDF


@pytest.mark.parametrize("place", [b"\\\\other.example/x", b"?x=/../y", b"/%2e%2e/%2e%2e/etc/passwd", b":443/x", b" "])
def test_a_relative_redirect_in_odd_clothes_stays_on_its_host(rig, place):
    client = rig.client()
    failure = refusal(rig, client, rig.play(moving(place)))
    assert failure.reason in (Reason.REDIRECT_LOOP, Reason.TOO_MANY_REDIRECTS, Reason.HTTP_STATUS, Reason.BAD_URL)
    assert all(b"host: evil.example" in request.lower() for request in rig.server.requests)
    assert rig.goes_on(client)


def test_a_redirect_without_a_place_is_a_status(rig):
    client = rig.client()
    assert refusal(rig, client, rig.play(moving(b""))).reason == Reason.HTTP_STATUS
    assert rig.goes_on(client)


def test_two_places_are_none(rig):
    client = rig.client()
    url = rig.play(moving(b"https://good.example/a", b"Location: https://other.example/b"))
    assert refusal(rig, client, url).reason == Reason.DOWNLOAD_ERROR  # libcurl takes no such answer
    assert len(rig.server.requests) == 1
    assert rig.goes_on(client)


def test_the_same_place_twice_is_one(rig):
    rig.play(moving(b"/file.pdf", b"Location: /file.pdf"), path="/start.pdf")
    rig.play(lambda talk: talk.answer(PDF), path="/file.pdf")
    assert rig.download(rig.client(), "https://evil.example/start.pdf") == PDF


@pytest.mark.parametrize("place", [b"/caf\xff\xfe.pdf", "/é.pdf".encode(), b"/a%zz%00.pdf"])
def test_a_place_in_unreadable_bytes_is_asked_for_or_refused(rig, place):
    client = rig.client()
    assert refusal(rig, client, rig.play(moving(place))).reason in (Reason.HTTP_STATUS, Reason.BAD_URL)
    assert rig.goes_on(client)


def test_a_redirect_whose_body_never_ends_is_followed_at_once(rig):
    def script(talk):
        talk.send(b"HTTP/1.1 302 Found\r\nLocation: /file.pdf\r\n\r\n")
        talk.flood(b"x" * 65536)

    rig.play(script, path="/start.pdf")
    rig.play(lambda talk: talk.answer(PDF), path="/file.pdf")
    began = time.monotonic()
    assert rig.download(rig.client(deadline_s=60.0), "https://evil.example/start.pdf") == PDF
    assert time.monotonic() - began < 30


def test_a_redirect_whose_body_drips_is_followed_soon(rig):
    def script(talk):
        talk.send(b"HTTP/1.1 302 Found\r\nLocation: /file.pdf\r\nContent-Length: 60000\r\n\r\n")
        talk.drip(b"x")

    rig.play(script, path="/start.pdf")
    rig.play(lambda talk: talk.answer(PDF), path="/file.pdf")
    began = time.monotonic()
    assert rig.download(rig.client(deadline_s=60.0), "https://evil.example/start.pdf") == PDF
    assert time.monotonic() - began < 30


# names


def test_a_name_without_an_address_costs_one_candidate(rig):
    rig.names["nowhere.example"] = []
    client = rig.client()
    failure = refusal(rig, client, "https://nowhere.example/a.pdf")
    assert failure.reason in (Reason.CONN_ERROR, Reason.SECURITY_POLICY)
    assert rig.goes_on(client)


@pytest.mark.parametrize("answers", [["10.0.0.1"], ["::1", "fe80::1%1"], ["127.0.0.1", "0.0.0.0"], ["rubbish", ""]])
def test_a_name_with_private_answers_alone_is_refused(rig, answers):
    rig.names["rebound.example"] = answers
    client = rig.client()
    assert refusal(rig, client, "https://rebound.example/a.pdf").reason == Reason.SECURITY_POLICY
    assert rig.server.requests == []
    assert rig.goes_on(client)


def test_a_name_with_a_thousand_answers_is_bounded(rig, raw):
    """Few are tried, and each has its share of the time."""
    gone = raw(lambda talk: None)
    gone.close()
    rig.names["many.example"] = [f"93.184.{number // 250}.{number % 250 + 1}" for number in range(1000)]
    rig.lead("many.example", gone.port)
    client, began = rig.client(), time.monotonic()
    assert refusal(rig, client, "https://many.example/a.pdf").reason == Reason.CONN_ERROR
    assert time.monotonic() - began < 30
    assert rig.goes_on(client)
