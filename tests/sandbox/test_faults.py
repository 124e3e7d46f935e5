"""Every fault really behaves as its name says, and the passing ones pass."""

from __future__ import annotations

import http.client
import io
import time
import zlib
from email.utils import parsedate_to_datetime

import pikepdf
import pytest

from DocsToKG.core.backoff import parse_retry_after

KINDS = ("publisher", "repository", "arxiv")


def _good_publisher(work, copy):
    return copy.publisher is None or copy.publisher.state == "open"


@pytest.fixture
def faulty(troubled, first_with):
    """A sandbox with one fault everywhere, and the first publisher's copy that has it."""

    def start(fault, **options):
        sandbox = troubled(fault, **options)
        work, copy = first_with(
            sandbox, "publisher", lambda w, c: _good_publisher(w, c) and c.publisher.style != "direct"
        )
        assert copy.fault == fault
        return sandbox, work, copy

    return start


def test_a_busy_server_says_when_to_come_back_in_both_spellings(troubled, ask, first_with):
    sandbox = troubled("rate_limited")
    words = set()
    for index in range(12):
        work = sandbox.world.work(index)
        copy = work.copies[0]
        if not _good_publisher(work, copy):
            continue
        busy = ask(sandbox, copy.pdf_url)
        wait = parse_retry_after(busy.headers["Retry-After"], now=time.time())
        assert busy.status == 429
        assert 0 < wait <= 3.1
        words.add("date" if "GMT" in busy.headers["Retry-After"] else "seconds")
        assert ask(sandbox, copy.pdf_url).status == 200
    assert words == {"date", "seconds"}


def test_index_services_are_busy_too_and_recover(troubled, ask):
    sandbox = troubled("rate_limited")
    url = f"https://api.unpaywall.org/v2/{sandbox.world.work(1).doi}?email=me@university.edu"
    assert [ask(sandbox, url).status for _ in range(2)] == [429, 200]


def test_a_burst_of_server_errors_ends(faulty, ask):
    sandbox, _, copy = faulty("server_error")
    statuses = [ask(sandbox, copy.pdf_url).status for _ in range(3)]
    assert statuses[0] in (500, 503)
    assert statuses[2] == 200


def test_a_slow_body_arrives_whole_in_the_end(faulty, ask):
    sandbox, work, copy = faulty("slow")
    start = time.monotonic()
    assert ask(sandbox, copy.pdf_url).body == sandbox.world.file_of(work, copy)
    assert time.monotonic() - start > 0.35


def _broken_read(sandbox, copy):
    """The status and what was read before the stream broke."""
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=10)
    host, _, rest = copy.pdf_url.removeprefix("https://").partition("/")
    received = b""
    try:
        connection.request("GET", f"/{rest}", headers={"Host": host, "User-Agent": "t (mailto:t@t.t)"})
        response = connection.getresponse()
        length = response.headers["Content-Length"]
        while piece := response.read1(4096):
            received += piece
        return length, received, None
    except (http.client.IncompleteRead, ConnectionError) as error:
        return length, received, error
    finally:
        connection.close()


@pytest.mark.parametrize("fault", ["truncated_length", "stalled"])
def test_a_cut_body_is_shorter_than_it_said(faulty, ask, fault):
    sandbox, work, copy = faulty(fault)
    length, received, _ = _broken_read(sandbox, copy)
    assert int(length) == len(sandbox.world.file_of(work, copy))
    assert 0 < len(received) < int(length)
    assert ask(sandbox, copy.pdf_url).body == sandbox.world.file_of(work, copy), "the next try is good"


def test_a_cut_chunked_body_has_no_end(faulty, ask):
    sandbox, work, copy = faulty("truncated_chunked")
    length, received, error = _broken_read(sandbox, copy)
    assert length is None
    assert isinstance(error, http.client.IncompleteRead)
    assert len(received) < len(sandbox.world.file_of(work, copy))
    assert ask(sandbox, copy.pdf_url).body == sandbox.world.file_of(work, copy)


def test_a_reset_connection_is_really_reset(faulty, ask):
    sandbox, work, copy = faulty("reset", size_bytes=600_000)
    _, _, error = _broken_read(sandbox, copy)
    assert isinstance(error, ConnectionResetError)
    assert ask(sandbox, copy.pdf_url).body == sandbox.world.file_of(work, copy)


def test_a_page_under_the_name_of_a_pdf(faulty, ask):
    sandbox, _, copy = faulty("html_as_pdf")
    answer = ask(sandbox, copy.pdf_url)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/pdf")
    assert answer.body.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(("fault", "status"), [("challenge_403", 403), ("challenge_200", 200)])
def test_a_challenge_stands_before_page_and_file(faulty, ask, fault, status):
    sandbox, _, copy = faulty(fault)
    for url in (copy.landing_url, copy.pdf_url):
        answer = ask(sandbox, url)
        assert answer.status == status
        assert "Just a moment..." in answer.text
        assert answer.headers["Cache-Control"] == "max-age=3600", "a trap for caches"


@pytest.mark.parametrize(("fault", "length"), [("cookie_loop", 2), ("redirect_loop", 3)])
def test_loops_come_back_to_where_they_began(faulty, ask, fault, length):
    sandbox, _, copy = faulty(fault)
    url, seen = copy.pdf_url, []
    for _ in range(length):
        answer = ask(sandbox, url)
        assert answer.status == 302
        url = answer.headers["Location"]
        seen.append(url)
    assert url == copy.pdf_url
    assert len(set(seen)) == length
    if fault == "cookie_loop":
        assert answer.headers["Set-Cookie"]


def test_redirects_to_private_places_and_a_client_that_follows_is_seen(troubled, ask, first_with):
    sandbox = troubled("redirect_private")
    places = set()
    for index in range(sandbox.world.count):
        work = sandbox.world.work(index)
        if _good_publisher(work, work.copies[0]):
            places.add(ask(sandbox, work.copies[0].pdf_url).headers["Location"])
    assert {place.split("/")[2] for place in places} == {
        "169.254.169.254",
        "10.0.0.5",
        "localhost",
        "intranet.sandbox.example",
    }
    for place in places:
        ask(sandbox, place)
    kinds = [violation["kind"] for violation in sandbox.violations()]
    assert kinds.count("private-address") == 4


def test_the_wrong_article_is_a_good_pdf_of_another_paper(faulty, ask):
    sandbox, work, copy = faulty("wrong_article")
    body = ask(sandbox, copy.pdf_url).body
    assert body not in sandbox.world.acceptable_files(work).values()
    with pikepdf.open(io.BytesIO(body)) as pdf, pdf.open_metadata() as xmp:
        other = xmp["dc:identifier"].removeprefix("doi:")
    assert other != work.doi
    assert sandbox.world.by_doi(other) is not None


@pytest.mark.slow
def test_a_gzip_bomb_unpacks_to_far_more_than_it_weighs(faulty, ask):
    sandbox, _, copy = faulty("gzip_bomb")
    answer = ask(sandbox, copy.pdf_url)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.body) < 2_000_000
    unpacker = zlib.decompressobj(31)
    first = unpacker.decompress(answer.body, 1024)
    assert first.startswith(b"%PDF-1.7")
    total, pending = len(first), unpacker.unconsumed_tail
    while pending:
        total += len(unpacker.decompress(pending, 16 * 1024 * 1024))
        pending = unpacker.unconsumed_tail
    assert total > 250 * 1024 * 1024
    assert unpacker.eof, "the stream is whole, checksum and all"


def test_a_stub_is_too_small_to_be_a_paper(faulty, ask):
    sandbox, _, copy = faulty("tiny_stub")
    body = ask(sandbox, copy.pdf_url).body
    assert body.startswith(b"%PDF-")
    assert len(body) < 1024


def test_a_wrong_content_type_hides_a_good_file(faulty, ask):
    sandbox, work, copy = faulty("wrong_content_type")
    answer = ask(sandbox, copy.pdf_url)
    assert answer.headers["Content-Type"] != "application/pdf"
    assert answer.body == sandbox.world.file_of(work, copy)


def test_a_server_without_head_still_gives_the_file(faulty, ask):
    sandbox, work, copy = faulty("no_head")
    assert ask(sandbox, copy.pdf_url, method="HEAD").status == 405
    assert ask(sandbox, copy.pdf_url).body == sandbox.world.file_of(work, copy)


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [("robots_disallow", 200, "Disallow: /"), ("robots_down", 503, ""), ("crawl_delay", 200, "Crawl-delay: 1\n")],
)
def test_robots_files_forbid_fail_and_delay(troubled, ask, first_with, fault, status, text):
    """ROB-05, ROB-07: hosts a client must leave alone, or must approach slowly."""
    sandbox = troubled(fault)
    _, copy = first_with(sandbox, "publisher", lambda w, c: c.publisher.state == "open")
    answer = ask(sandbox, f"https://{copy.publisher.host}/robots.txt")
    assert answer.status == status
    assert text in answer.text
    assert copy.open == (fault == "crawl_delay")


def test_faults_met_are_counted_and_tries_forgotten_on_reset(faulty, ask):
    sandbox, _, copy = faulty("server_error")
    first = ask(sandbox, copy.pdf_url).status
    assert sandbox.counters()["by_fault"] == {"server_error": 1}
    sandbox.reset()
    assert sandbox.counters()["by_fault"] == {}
    assert ask(sandbox, copy.pdf_url).status == first, "the same trouble again"


def test_retry_after_dates_are_whole_seconds_in_the_future(troubled, ask):
    sandbox = troubled("rate_limited")
    for index in range(12):
        busy = ask(sandbox, f"https://doi.org/{sandbox.world.work(index).doi}")
        if "GMT" in (busy.headers["Retry-After"] or ""):
            assert parsedate_to_datetime(busy.headers["Retry-After"]).timestamp() > time.time()
            return
    raise AssertionError("no date among twelve")
