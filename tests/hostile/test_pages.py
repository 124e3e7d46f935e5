"""Pages, index answers and robots.txt that are made to hurt their reader (ROB, SEC): bounded time, honest verdicts."""

from __future__ import annotations

import time

import pytest

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Reason, Role, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.landing.page import extract
from DocsToKG.ContentDownload.resolvers.landing_scrape import LandingResolver
from DocsToKG.ContentDownload.resolvers.unpaywall import UnpaywallResolver

pytestmark = pytest.mark.slow  # seconds of real sockets and processes; part of `make test`

PDF = b"%PDF-1.7\n" + b"x" * 4000 + b"\n%%EOF\n"
URL = "https://evil.example/page"


# robots.txt


def robots(rig, script, **options):
    rig.play(script, path="/robots.txt")
    rig.play(lambda talk: talk.answer(PDF))
    return rig.client(robots=True, **options)


def lines(text):
    return lambda talk: talk.answer(text)


def endless_robots(talk):
    talk.send(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nAllow: /\n")
    talk.flood(b"Disallow: /private/\n" * 3000)


READABLE = {
    "5 MB": lines(b"User-agent: *\nDisallow: /no\n" + b"# padding\n" * 500_000),
    "endless": endless_robots,
    "binary": lines(bytes(range(256)) * 400),
    "a page": lines(b"<!doctype html><html><title>Not found</title>" + b"<p>x" * 1000),
    "one endless line": lines(b"Disallow: /" + b"x" * 400_000),
    "a hundred thousand agents": lines(b"User-agent: a\n" * 30_000 + b"Disallow: /\n"),
    "thousands of rules for thousands of agents": lines(
        b"".join(b"User-agent: a%d\n" % n for n in range(14_000))
        + b"".join(b"Disallow: /%d\n" % n for n in range(14_000))
    ),
    "stars": lines(b"User-agent: *\nDisallow: /" + b"*p" * 5_000 + b"$\n"),
    "absurd delays": lines(b"User-agent: *\nCrawl-delay: -1\nRequest-rate: 1/0\nVisit-time: 9999-0000\n"),
    "redirect to another scheme's end": lambda talk: talk.answer(b"", b"Location:", status=b"301 Moved"),
}


@pytest.mark.parametrize("kind", READABLE)
def test_robots_rules_that_say_nothing_about_us_allow(rig, kind):
    """ROB: RFC 9309 reads at least 500 KiB, and whatever is not a rule is none."""
    client, began = robots(rig, READABLE[kind]), time.thread_time()
    assert rig.download(client, "https://evil.example/paper.pdf") == PDF
    assert time.thread_time() - began < 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_robots_rules_are_obeyed_in_any_clothes(rig, encoding):
    client = robots(rig, lines("User-agent: *\r\nDisallow: /paper.pdf\r\n# é\r\n".encode(encoding)))
    with pytest.raises(CandidateRejected) as caught:
        rig.download(client, "https://evil.example/paper.pdf")
    assert caught.value.reason == Reason.ROBOTS


def test_a_robots_redirect_loop_counts_as_no_rules(rig):
    """RFC 9309 section 2.3.1.2."""
    client = robots(rig, lambda talk: talk.answer(b"", b"Location: /robots.txt", status=b"302 FullTextLink"))
    assert rig.download(client, "https://evil.example/paper.pdf") == PDF
    assert len(rig.server.requests) <= 8


UNREADABLE = {
    "silence": (lambda talk: talk.hold(), Reason.TIMEOUT),
    "slow loris": (lambda talk: (talk.send(b"HTTP/1.1 200 OK\r\n\r\n"), talk.drip(b"#")), Reason.TIMEOUT),
    "reset": (lambda talk: talk.reset(), Reason.CONN_ERROR),
    "garbage": (lambda talk: talk.send(b"\0\0\r\n\r\n"), Reason.DOWNLOAD_ERROR),
    "busy": (lambda talk: talk.answer(b"", status=b"503 Busy"), Reason.ROBOTS),
    "busy until the end of time": (
        lambda talk: talk.answer(b"", b"Retry-After: Fri, 31 Dec 99999999999 23:59:59 GMT", status=b"429 No"),
        Reason.ROBOTS,
    ),
    "a private place": (
        lambda talk: talk.answer(b"", b"Location: https://127.0.0.1/robots.txt", status=b"301 Moved"),
        Reason.SECURITY_POLICY,
    ),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_robots_rules_that_cannot_be_read_shut_the_host_and_no_other(rig, kind):
    script, reason = UNREADABLE[kind]
    client, began = robots(rig, script, patient=False), time.thread_time()
    with pytest.raises((CandidateRejected, TransientFailure)) as caught:
        rig.download(client, "https://evil.example/paper.pdf")
    assert caught.value.reason == reason
    assert time.thread_time() - began < 4
    assert not any(b"GET /paper.pdf" in request for request in rig.server.requests)
    rig.play(lambda talk: talk.answer(PDF), "good.example")
    assert rig.obtains(client, "https://good.example/paper.pdf")


# answers of an index

JSON = {
    "a depth bomb": b"[" * 500_000,
    "a depth bomb in an object": b'{"a":' * 300_000 + b"1" + b"}" * 300_000,
    "a number without end": b'{"oa_locations": ' + b"9" * 100_000 + b"}",
    "unreadable bytes": b'{"doi": "\xff\xfe", "oa_locations": []}',
    "half of it": b'{"doi": "10.1/x", "oa_loc',
    "nothing": b"",
    "a list": b"[1, 2, 3]",
    "null": b"null",
    "a page": b"<html>Service unavailable</html>",
    "wrong types": b'{"doi": 5, "oa_locations": {"a": 1}, "title": [], "year": "x", "best_oa_location": 7}',
    "wrong types inside": b'{"oa_locations": [1, null, "x", [], {"url_for_pdf": {}, "version": [], "license": 9}]}',
    "addresses that are none": b'{"oa_locations": [{"url_for_pdf": "javascript:x"}, {"url_for_pdf": "\\u0000"}]}',
    "another paper": b'{"doi": "10.9999/other", "oa_locations": [{"url_for_pdf": "https://evil.example/x.pdf"}]}',
    "a hundred thousand places": b'{"oa_locations": [' + b"{}," * 300_000 + b"{}]}",
}


@pytest.mark.parametrize("kind", JSON)
def test_an_index_answer_of_any_shape_gives_no_plan_and_no_crash(rig, kind):
    resolver = UnpaywallResolver(settings=ResolverSettings(email="me@example.org"))
    work = WorkArtifact("doi:10.1/x", doi="10.1/x")
    rig.play(lambda talk: talk.answer(JSON[kind], b"Content-Type: application/json"), "api.unpaywall.org", "/v2/10.1/x")
    client, began = rig.client(), time.thread_time()
    result = rig.run(resolver.resolve(work, client, Call("doi:10.1/x")))
    assert result.plans == ()
    known = ("malformed_answer", "no_open_copy", "closed", "embargo", "no_oa_pdf", "wrong-article")
    assert result.notes[0].partition(":")[0] in known
    assert time.thread_time() - began < 4
    assert rig.goes_on(client)


def test_an_index_answer_of_fifty_megabytes_is_not_read_to_its_end(rig):
    def script(talk):
        talk.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
        for _ in range(800):
            talk.send(b"1," * 32_768)

    client = rig.client()
    with pytest.raises(CandidateRejected) as caught:
        rig.page(client, rig.play(script), Role.METADATA)
    assert caught.value.reason == Reason.TOO_LARGE
    assert rig.goes_on(client)


# landing pages

HTML = {
    "a hundred thousand nested tags": b"<div>" * 100_000 + b"<a href=x.pdf>PDF</a>",
    "megabytes of links": b"".join(b"<a href=/%d.pdf>PDF</a>" % number for number in range(90_000)),
    "an attribute without end": b"<a href='" + b"x" * 1_900_000 + b"'>PDF</a>",
    "a tag crowded with attributes": b"<a " + b" ".join(b"a%d" % n for n in range(250_000)) + b">PDF</a>",
    "links in links around many empty elements": b"<a href=/1.pdf><div>" * 120 + b"<b></b>" * 250_000,
    "entities in entities": b'<!DOCTYPE html [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + b"&b;&amp;" * 100_000,
    "an entity from a file": b'<!DOCTYPE html [<!ENTITY f SYSTEM "file:///etc/passwd">]><title>&f;</title>',
    "comments in comments": b"<!--" * 400_000,
    "nothing but signs": b"<" * 1_500_000,
    "nothing but zeros": b"\0" * 1_500_000,
    "formatting never closed": b"<b><i><u><font>" * 100_000,
    "a script bomb": b"<script type=application/ld+json>" + b"[" * 900_000 + b"</script>",
    "half characters": b"\xff\xfe" + b"\xd8\x00" * 700_000,
    "a charset that is none": b"<meta charset=punycode>" + b"\xff" * 500_000,
    "tags without end": b"<meta name=citation_pdf_url content=/x.pdf>" * 40_000,
    "links in a box with a class without end": b"<div class='"
    + b"-" * 900_000
    + b"'>"
    + b"<a href=/x.pdf>PDF</a>" * 5000,
    "links below a base without end": b"<base href='/" + b"x" * 900_000 + b"/'>" + b"<a href=x.pdf>PDF</a>" * 5000,
    "escapes in escapes": b"<base href='/" + b"%" * 900_000 + b"3" * 900_001 + b"'><a href=x.pdf>PDF</a>",
}


@pytest.mark.parametrize("kind", HTML)
def test_a_page_made_to_hurt_its_reader_is_read_in_bounded_time(kind):
    began = time.thread_time()
    facts = extract(URL, HTML[kind], {"content-type": "text/html"})
    assert time.thread_time() - began < 3
    assert len(facts.pdf_links) <= 6
    assert "root:" not in (facts.title or "")


def test_a_link_header_made_to_hurt_is_read_in_bounded_time():
    for value in ("<a>" + " ; a=b" * 3000, "<" * 16_000, "<a>;" + " " * 16_000, ("<a>;" + " " * 10) * 1000):
        began = time.thread_time()
        extract(URL, b"<html>", {"link": value})
        assert time.thread_time() - began < 4


def landing(rig, client, html, *headers):
    rig.play(lambda talk: talk.answer(html, b"Content-Type: text/html", *headers), path="/page")
    work = WorkArtifact("url:x", landing_urls=(URL,))
    return rig.run(LandingResolver(settings=ResolverSettings()).resolve(work, client, Call("url:x")))


@pytest.mark.parametrize("place", ["/page", "https://evil.example/page#again", "/PAGE/../page", "//evil.example/page?"])
def test_a_page_that_refreshes_to_itself_is_read_once(rig, place):
    result = landing(rig, rig.client(), f'<meta http-equiv=refresh content="0;url={place}">'.encode())
    assert result.plans == ()
    assert len(rig.server.requests) <= 2


def test_pages_that_point_on_without_end_are_followed_twice(rig):
    for number in range(20):
        html = b'<meta http-equiv=refresh content="0;url=/p%d">' % (number + 1)
        rig.play(lambda talk, html=html: talk.answer(html, b"Content-Type: text/html"), path=f"/p{number}")
    result = landing(rig, rig.client(), b'<meta http-equiv=refresh content="0;url=/p0">')
    assert result.plans == ()
    assert len(rig.server.requests) <= 4


@pytest.mark.parametrize(
    "base",
    ["file:///etc/", "javascript:", "data:,", "https://169.254.169.254/", "//[::1]/", "https://user:pw@x/", "\\\\"],
)
def test_a_base_that_leads_astray_gives_no_private_file(rig, base):
    """Links are proposals; what is asked for in the end is judged by the guard."""
    html = f'<base href="{base}"><meta name="citation_pdf_url" content="paper.pdf">'.encode()
    client = rig.client()
    for plan in landing(rig, client, html).plans:
        assert plan.url.startswith("https://")
        with pytest.raises((CandidateRejected, TransientFailure)) as caught:
            rig.download(client, plan.url)
        assert caught.value.reason in (Reason.SECURITY_POLICY, Reason.HTTP_STATUS)
    assert rig.goes_on(client)
