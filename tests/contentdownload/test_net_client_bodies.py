"""The polite client and bytes: lengths, caps, encodings, portions."""

from __future__ import annotations

import asyncio
import gc
import gzip
import weakref
from collections.abc import AsyncIterator

import httpx2
import pytest
from tests.contentdownload.polite_rig import PDF, PDF_SHA, URL, Rig, Stream, given_rig, in_turn, pdf, redirect  # noqa: F401

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.ranges import LEAST_BYTES, Whole
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.faults import Retryable
from DocsToKG.core.backoff import RetryPolicy

# bodies


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


def test_a_large_file_that_breaks_off_says_what_its_rest_can_be_asked_for_by(rig: Rig) -> None:
    block, known = bytes(LEAST_BYTES), {"etag": '"v1"', "content-length": "9999999"}
    rig.site = lambda request: httpx2.Response(200, headers=known, stream=Stream([block], httpx2.ReadError("reset")))
    with pytest.raises(Retryable) as caught:
        rig.download(rig.client())
    assert caught.value.whole == Whole(URL, 9_999_999, "etag", '"v1"')
    rig.site = lambda request: httpx2.Response(200, headers=known, stream=Stream([block]))
    with pytest.raises(Retryable) as caught:
        rig.download(rig.client())
    assert caught.value.whole == Whole(URL, 9_999_999, "etag", '"v1"')


def test_a_file_that_is_longer_than_announced_has_no_rest(rig: Rig) -> None:
    known = {"etag": '"v1"', "content-length": str(LEAST_BYTES)}
    rig.site = lambda request: httpx2.Response(200, headers=known, stream=Stream([bytes(LEAST_BYTES + 1)]))
    with pytest.raises(Retryable) as caught:
        rig.download(rig.client())
    assert (caught.value.reason, caught.value.whole) == (Reason.SIZE_MISMATCH, None)


def test_a_file_that_used_up_its_time_is_not_gone_on_with(rig: Rig) -> None:
    """Also where the transport does not know the deadline: another answer would spend the same time again."""

    class Late(Stream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield bytes(LEAST_BYTES)
            await asyncio.sleep(0.3)
            yield b"late"

    known = {"etag": '"v1"', "content-length": "9999999"}
    rig.site = lambda request: httpx2.Response(200, headers=known, stream=Late([]))
    with pytest.raises(Retryable) as caught:
        rig.download(rig.client(deadline_s=0.2))
    assert (caught.value.reason, caught.value.whole) == (Reason.TIMEOUT, None)


def test_pages_are_never_gone_on_with(rig: Rig) -> None:
    known = {"etag": '"v1"', "content-length": "9999999"}
    cut = Stream([bytes(LEAST_BYTES)], httpx2.ReadError("reset"))
    rig.site = lambda request: httpx2.Response(200, headers=known, stream=cut)
    with pytest.raises(Retryable) as caught:
        rig.fetch(rig.client(retry=RetryPolicy(max_attempts=2)))
    assert caught.value.whole is None
    assert not any("range" in request.headers for request in rig.requests)


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


def test_a_pdf_in_place_of_a_page_is_received_once(rig: Rig) -> None:
    """RES-14: the file that a DOI leads straight to is not asked for again."""
    stream, call = Stream([b"\n" + PDF[:3000], PDF[3000:]]), Call("doi:10.1/x")
    rig.site = lambda request: httpx2.Response(200, headers={"content-type": "text/html"}, stream=stream)
    page = rig.run(rig.client().fetch(URL, Role.LANDING, call))
    assert (page.is_pdf, page.body) == (True, b"")
    assert stream.closed
    assert rig.slots_are_free()
    opened = rig.run(rig.client().open(page.url, Role.ARTIFACT, call.of_branch("other"), max_bytes=9_999))
    assert b"".join(rig.read(opened)) == b"\n" + PDF
    assert len(rig.requests) == 1
    assert rig.tokens() == [("http-get", 200, None), ("http-200", 200, None)]
    rig.site = lambda request: pdf()
    again = rig.run(rig.client().open(page.url, Role.ARTIFACT, call))
    assert b"".join(rig.read(again)) == PDF
    assert len(rig.requests) == 2, "who asks a second time wants it anew"


def test_a_file_received_as_a_page_keeps_to_the_cap_of_files(rig: Rig) -> None:
    call = Call("doi:10.1/x")
    rig.site = lambda request: pdf()
    page = rig.run(rig.client().fetch(URL, Role.LANDING, call))
    with pytest.raises(CandidateRejected) as caught:
        rig.run(rig.client().open(page.url, Role.ARTIFACT, call, max_bytes=100))
    assert caught.value.reason == Reason.TOO_LARGE


@pytest.mark.parametrize("trouble", ["larger than a page may be", "broken off"])
def test_a_file_that_is_no_good_as_a_page_is_asked_for_as_a_file(rig: Rig, trouble: str) -> None:
    call, cut = Call("doi:10.1/x"), httpx2.ReadError("reset")
    rig.site = lambda request: httpx2.Response(
        200, stream=Stream([PDF[:3000], PDF[3000:]] if trouble.startswith("larger") else [PDF[:3000]], cut)
    )
    page = rig.run(rig.client(max_page_bytes=4_000).fetch(URL, Role.LANDING, call))
    assert page.is_pdf
    assert call.received == {}
    assert rig.slots_are_free()
    rig.site = lambda request: pdf()
    assert b"".join(rig.read(rig.open(rig.client(), page.url, call))) == PDF
    assert len(rig.requests) == 2


def test_a_file_received_as_a_page_is_in_the_cache_by_its_digest(rig: Rig) -> None:
    """CACHE-19: its bytes are stored once, and the next run is answered by the cache."""
    rig.site = lambda request: pdf(cache_control="max-age=600")
    call = Call("doi:10.1/x")
    client = rig.client(cache=True)
    page = rig.run(client.fetch(URL, Role.LANDING, call))
    opened = rig.run(client.open(page.url, Role.ARTIFACT, call))
    rig.cas[PDF_SHA] = b"".join(rig.read(opened))
    opened.confirm(PDF_SHA)
    later = Call("doi:10.1/x")
    assert rig.run(client.fetch(URL, Role.LANDING, later)).is_pdf
    again = rig.run(client.open(page.url, Role.ARTIFACT, later))
    assert (again.from_cache, b"".join(rig.read(again))) == (True, PDF)
    assert len(rig.requests) == 1
    kept = [path.read_bytes() for path in rig.base_path.rglob("*") if path.is_file()]
    assert kept
    assert not any(PDF[100:300] in data for data in kept)


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


@pytest.mark.parametrize(
    "body", [gzip.compress(PDF, mtime=0), gzip.compress(PDF[:2000], mtime=0) + gzip.compress(PDF[2000:], mtime=0)]
)
def test_a_page_may_come_compressed(rig: Rig, body: bytes) -> None:
    rig.site = lambda request: httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=Stream([body]))
    assert rig.fetch(rig.client()).body == PDF


def test_a_compressed_page_that_breaks_off_is_cut_though_its_length_is_right(rig: Rig) -> None:
    cut = gzip.compress(PDF, mtime=0)[:-12]
    head = {"content-encoding": "gzip", "content-length": str(len(cut))}
    rig.site = lambda request: httpx2.Response(200, headers=head, stream=Stream([cut]))
    with pytest.raises(TransientFailure) as caught:
        rig.fetch(rig.client(retry=RetryPolicy(max_attempts=1)))
    assert caught.value.reason == Reason.SIZE_MISMATCH


@pytest.mark.parametrize("named", ["utf-8", "none", "", "identity"])
def test_what_is_no_compression_is_read_as_it_comes(rig: Rig, named: str) -> None:
    rig.site = lambda request: httpx2.Response(200, headers={"content-encoding": named}, stream=Stream([b"{}"]))
    assert rig.fetch(rig.client()).body == b"{}"


# blocks


@pytest.mark.parametrize(("size", "blocks"), [(4096, [100_000]), (200_000, [7_000] * 100), (1 << 20, [30_000] * 3)])
def test_a_file_is_handed_on_in_portions(rig: Rig, size: int, blocks: list[int]) -> None:
    """download.chunk_size_bytes: never more at once; small blocks are joined, once the beginning was seen."""
    body = [bytes([number % 251]) * length for number, length in enumerate(blocks)]
    rig.site = lambda request: httpx2.Response(200, stream=Stream(list(body)))
    opened = rig.open(rig.client(chunk_bytes=size))
    portions = rig.read(opened)
    rig.close(opened)
    assert b"".join(portions) == b"".join(body)
    assert max(len(portion) for portion in portions) <= size
    later = [len(portion) for at, portion in enumerate(portions) if sum(map(len, portions[:at])) >= 65536]
    assert all(length == size for length in later[:-1])


def test_a_body_that_breaks_off_hands_on_no_end(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(200, stream=Stream([b"x" * 70_000] * 3, httpx2.ReadError("reset")))
    opened = rig.open(rig.client(chunk_bytes=200_000))
    with pytest.raises(TransientFailure):
        rig.read(opened)
    rig.close(opened)


def test_a_body_that_was_read_is_freed_at_once(rig: Rig) -> None:
    """With it goes all that an exchange holds; left to the garbage collector it would lie there by the thousand."""
    rig.site = lambda request: pdf()
    opened = rig.open(rig.client(chunk_bytes=4096))
    rig.read(opened)
    rig.close(opened)
    gone = weakref.ref(opened)
    gc.disable()
    try:
        del opened
        assert gone() is None
    finally:
        gc.enable()
