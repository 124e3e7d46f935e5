"""Answers that break the rules of HTTP, of time or of size (NET, SEC, FAIL-02..04): each costs one candidate, with its
reason, and the next candidate of the same host is obtained."""

from __future__ import annotations

import functools
import gzip
import ssl
import time
import zlib

import pytest

from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.transport.curl.trust import TrustStore

pytestmark = pytest.mark.slow  # seconds of real sockets and processes; part of `make test`

PATIENCE_S = 16.0  # for a busy machine; what is not ended lasts for twenty seconds and more
OK = b"HTTP/1.1 200 OK\r\n"
PDF = b"%PDF-1.7\n" + b"x" * 4000 + b"\n%%EOF\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(PDF)


@functools.cache
def bomb(layers: int = 1, megabytes: int = 200) -> bytes:
    """Zeros that unpack to `megabytes`; further layers pack the packed bytes again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(megabytes)) + packer.flush()
    for _ in range(layers - 1):
        packed = gzip.compress(packed)
    return packed


@pytest.fixture(scope="module", autouse=True)
def bombs_packed() -> None:
    """Before a client waits for them."""
    bomb(), bomb(3)


def drip_head(talk):
    talk.send(OK)
    talk.drip(b"X-Slow: 1\r\n")


def drip_body(talk):
    talk.send(OK + b"Content-Length: 100000\r\n\r\n%PDF-1.7\n")
    talk.drip(b"x")


def endless_head(talk):
    talk.send(OK)
    talk.flood(b"X-More: " + b"y" * 2000 + b"\r\n")


def endless_body(talk):
    talk.send(OK + b"\r\n%PDF-1.7\n")
    talk.flood(b"x" * 65536)


def endless_chunks(talk):
    talk.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    talk.flood(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def endless_after_gzip(talk):
    """The unpacked size stays small, whatever is sent after the end of the gzip stream."""
    talk.send(OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"<html>"))
    talk.flood(b"\0" * 65536)


def tiny_chunks(talk):
    """Much framing for little data."""
    talk.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    talk.flood(b"1;" + b"e" * 3000 + b"\r\nx\r\n")


def silence(talk):
    talk.hold()


def half_head(talk):
    talk.send(OK + b"Content-Le")


def reset_in_head(talk):
    talk.send(OK)
    talk.reset()


def reset_in_body(talk):
    talk.send(OK + LENGTH + PDF[:2000])
    talk.reset()


def half_close(talk):
    """Our side is closed for reading; the other direction stays open, silent."""
    talk.sock.shutdown(1)
    talk.hold()


def chunked(body):
    return lambda talk: talk.send(OK + b"Transfer-Encoding: chunked\r\n\r\n" + body)


def raw(data):
    return lambda talk: talk.send(data)


def head(*lines, body=PDF):
    return raw(OK + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body)


R = Reason
REFUSED = {
    "slow-loris headers": (drip_head, {R.TIMEOUT}),
    "slow-loris body": (drip_body, {R.TIMEOUT}),
    "endless headers": (endless_head, {R.DOWNLOAD_ERROR}),
    "endless body without length": (endless_body, {R.TOO_LARGE}),
    "endless chunks": (endless_chunks, {R.TOO_LARGE}),
    "endless bytes after the end of a gzip stream": (endless_after_gzip, {R.TOO_LARGE}),
    "more framing than data": (tiny_chunks, {R.TIMEOUT}),  # of data, hardly any comes
    "accepted and silent": (silence, {R.TIMEOUT}),
    "closed right after the request": (lambda talk: None, {R.CONN_ERROR}),
    "closed in the headers": (half_head, {R.CONN_ERROR}),
    "reset before the headers": (lambda talk: talk.reset(), {R.CONN_ERROR}),
    "reset in the headers": (reset_in_head, {R.CONN_ERROR}),
    # What the kernel had not handed over when the reset came is lost, so the head may be lost with it.
    "reset in the body": (reset_in_body, {R.CONN_ERROR, R.SIZE_MISMATCH}),
    "half-closed without an answer": (half_close, {R.CONN_ERROR}),
    "length longer than the body": (head(b"Content-Length: 9999"), {R.SIZE_MISMATCH}),
    "huge length": (head(b"Content-Length: 999999999999999999"), {R.TOO_LARGE, R.SIZE_MISMATCH}),
    "two lengths": (head(b"Content-Length: 5", b"Content-Length: 6"), {R.DOWNLOAD_ERROR}),
    "two lengths in one line": (head(b"Content-Length: 5, 6"), {R.DOWNLOAD_ERROR}),
    "negative length": (head(b"Content-Length: -1"), {R.DOWNLOAD_ERROR}),
    "length with a sign": (head(b"Content-Length: +4016"), {R.DOWNLOAD_ERROR}),
    "length in hex": (head(b"Content-Length: 0xfb0"), {R.DOWNLOAD_ERROR}),
    "length too long for a number": (head(b"Content-Length: " + b"9" * 400), {R.DOWNLOAD_ERROR}),
    "chunks cut": (chunked(b"fb0\r\n" + PDF[:100]), {R.SIZE_MISMATCH}),
    "no last chunk": (chunked(b"5\r\n%PDF-\r\n"), {R.SIZE_MISMATCH}),
    "chunk size that is no number": (chunked(b"zz\r\n" + PDF), {R.SIZE_MISMATCH}),
    "negative chunk size": (chunked(b"-5\r\n" + PDF), {R.SIZE_MISMATCH}),
    "chunk size without end": (chunked(b"F" * 5000 + b"\r\n"), {R.SIZE_MISMATCH}),
    "chunk longer than its size": (chunked(b"3\r\n%PDF-1.7\r\n0\r\n\r\n"), {R.SIZE_MISMATCH}),
    "endless trailer": (chunked(b"5\r\n%PDF-\r\n0\r\n" + (b"T: " + b"x" * 3000 + b"\r\n") * 20), {R.SIZE_MISMATCH}),
    "unknown transfer coding": (head(b"Transfer-Encoding: gzip, chunked"), {R.DOWNLOAD_ERROR}),
    "1 MB header line": (head(b"X-Big: " + b"x" * 1_000_000), {R.DOWNLOAD_ERROR}),
    "10,000 headers": (head(*[b"X-%d: 1" % number for number in range(10_000)]), {R.DOWNLOAD_ERROR}),
    "header without a colon": (head(b"no colon here"), {R.DOWNLOAD_ERROR}),
    "header name with spaces": (head(b"bad name: 1"), {R.DOWNLOAD_ERROR}),
    "NUL in a header": (head(b"X-Nul: a\0b"), {R.DOWNLOAD_ERROR}),
    "CR in a header": (head(b"X-Cr: a\rb"), {R.DOWNLOAD_ERROR}),
    "garbage for a status line": (raw(b"\x00\xff\xfegarbage\r\n\r\n"), {R.DOWNLOAD_ERROR}),
    "status 99999": (raw(b"HTTP/1.1 99999 OK\r\n\r\n"), {R.DOWNLOAD_ERROR}),
    "status 000": (raw(b"HTTP/1.1 000 OK\r\n\r\n"), {R.DOWNLOAD_ERROR}),
    "HTTP/0.9": (raw(b"<html>no head at all\r\n\r\n</html>"), {R.DOWNLOAD_ERROR}),
    "HTTP/2 preface": (raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"), {R.DOWNLOAD_ERROR}),
    "interim answers without end": (raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 500), {R.DOWNLOAD_ERROR}),
    "switch to another protocol": (raw(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n"), {R.DOWNLOAD_ERROR}),
    "204 with a body": (raw(b"HTTP/1.1 204 No Content\r\n" + LENGTH + PDF), {R.HTTP_STATUS}),
    "304 unasked": (raw(b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n"), {R.NOT_MODIFIED}),
    "206 unasked": (
        raw(b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-9/99\r\nContent-Length: 10\r\n\r\n0123456789"),
        {R.HTTP_STATUS},
    ),
    "status 600": (raw(b"HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n"), {R.HTTP_STATUS}),
    "gzip bomb": (lambda talk: talk.answer(bomb(), b"Content-Encoding: gzip"), {R.TOO_LARGE}),
    "gzip in gzip in gzip": (lambda talk: talk.answer(bomb(3), b"Content-Encoding: gzip, gzip, gzip"), {R.TOO_LARGE}),
    "more codings than anybody needs": (
        lambda talk: talk.answer(PDF, b"Content-Encoding: " + b"gzip," * 200),
        {R.DOWNLOAD_ERROR},
    ),
    "gzip that is none": (lambda talk: talk.answer(PDF, b"Content-Encoding: gzip"), {R.DOWNLOAD_ERROR}),
    "deflate that is none": (lambda talk: talk.answer(PDF, b"Content-Encoding: deflate"), {R.DOWNLOAD_ERROR}),
}


@pytest.mark.parametrize("behaviour", REFUSED)
def test_a_hostile_answer_costs_one_candidate(rig, behaviour):
    script, reasons = REFUSED[behaviour]
    # Only where nothing but time ends it; a busy machine may need longer than that for an answer of nonsense.
    client, began = rig.client(patient=R.TIMEOUT not in reasons), time.monotonic()
    with pytest.raises((CandidateRejected, TransientFailure)) as caught:
        rig.download(client, rig.play(script))
    assert caught.value.reason in reasons
    assert time.monotonic() - began < PATIENCE_S
    assert rig.goes_on(client)
    assert any(attempt.reason in reasons or attempt.http_status is not None for attempt in rig.attempts)


TOLERATED = {
    "folded header": head(b"X-Folded: a", b"  b", b"Content-Length: 4016"),
    "invalid UTF-8 in a header": head(b"X-Bytes: \xff\xfe\x80", b"Content-Length: 4016"),
    "invalid UTF-8 in the content type": head(b"Content-Type: application/\xffpdf", b"Content-Length: 4016"),
    "lines ended by LF alone": raw(b"HTTP/1.1 200 OK\nContent-Length: 4016\n\n" + PDF),
    "length shorter than the body": head(b"Content-Length: 4016", b"Connection: close", body=PDF + b"evil tail"),
    "the same length twice": head(b"Content-Length: 4016", b"Content-Length: 4016"),
    "a few interim answers": raw(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 3 + OK + LENGTH + PDF),
    "chunks and a length": head(
        b"Transfer-Encoding: chunked", b"Content-Length: 3", body=b"fb0\r\n" + PDF + b"\r\n0\r\n\r\n"
    ),
    "content type that lies": head(b"Content-Type: text/html", b"Content-Length: 4016"),
    "a coding we did not ask for and do not know": head(b"Content-Encoding: br", b"Content-Length: 4016"),
    "a flood of cookies": head(*[b"Set-Cookie: c%d=%s" % (n, b"v" * 200) for n in range(150)], b"Content-Length: 4016"),
    "a path for a file name": head(
        b'Content-Disposition: attachment; filename="../../../etc/cron.d/x%00.pdf"', b"Content-Length: 4016"
    ),
    "no reason phrase": raw(b"HTTP/1.1 200\r\n" + LENGTH + PDF),
    "a date that no calendar has": head(b"Date: Fri, 31 Dec 2027 23:59:59 +" + b"9" * 20, b"Content-Length: 4016"),
}


@pytest.mark.parametrize("behaviour", TOLERATED)
def test_an_odd_answer_that_has_one_meaning_is_read(rig, behaviour):
    client = rig.client()
    assert rig.download(client, rig.play(TOLERATED[behaviour])) == PDF
    assert rig.goes_on(client)


@pytest.mark.parametrize("role", [Role.METADATA, Role.LANDING])
@pytest.mark.parametrize("behaviour", ["gzip bomb", "gzip in gzip in gzip", "endless body without length"])
def test_pages_are_bounded_like_files(rig, behaviour, role):
    """SEC: the unpacked size counts."""
    client = rig.client()
    script = REFUSED[behaviour][0] if behaviour != "endless body without length" else endless_page
    with pytest.raises(CandidateRejected) as caught:
        rig.page(client, rig.play(script), role)
    assert caught.value.reason == Reason.TOO_LARGE
    assert rig.goes_on(client)


def endless_page(talk):
    talk.send(OK + b"\r\n<html>")
    talk.flood(b"<p>" * 20000)


def test_bytes_swallowed_by_the_decoder_count_on_pages_too(rig):
    client = rig.client()
    with pytest.raises(CandidateRejected) as caught:
        rig.page(client, rig.play(endless_after_gzip))
    assert caught.value.reason == Reason.TOO_LARGE


def test_a_first_byte_that_never_comes_is_not_waited_for_twice(rig):
    """The deadline of the whole exchange bounds all tries of a page together with their waits."""
    client, began = rig.client(retries=1, patient=False), time.monotonic()
    with pytest.raises(TransientFailure) as caught:
        rig.page(client, rig.play(silence))
    assert caught.value.reason == Reason.TIMEOUT
    assert time.monotonic() - began < PATIENCE_S
    assert [attempt.status for attempt in rig.attempts] == ["retry", "download-error"]


def test_a_trickle_does_not_use_up_the_time_of_the_other_copies(rig):
    """No single wait is long and the deadline is far off, yet next to nothing comes."""
    client, began = rig.client(deadline_s=60.0, trickle_s=0.3), time.monotonic()
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, rig.play(drip_body))
    assert caught.value.reason == Reason.TIMEOUT
    assert time.monotonic() - began < PATIENCE_S
    assert rig.goes_on(client)


def test_a_body_that_falls_silent_is_left_sooner_than_one_that_has_not_begun(rig):
    """A slot at a host that has one must not wait for bytes as long as for an answer."""

    def script(talk):
        talk.pause(0.6)
        talk.send(OK + b"Content-Length: 100000\r\n\r\n%PDF-1.7\n")
        talk.pause(30.0)

    client, began = rig.client(deadline_s=60.0, trickle_s=0.3), time.monotonic()
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, rig.play(script))
    assert caught.value.reason == Reason.TIMEOUT
    assert 0.9 <= time.monotonic() - began < PATIENCE_S
    assert rig.goes_on(client)


def test_a_slow_body_that_keeps_coming_is_waited_for(rig):
    def script(talk):
        talk.send(OK + b"Content-Length: 40000\r\n\r\n")
        for _ in range(20):
            talk.pause(0.02)
            talk.send(b"x" * 2000)

    assert len(rig.download(rig.client(deadline_s=60.0, trickle_s=0.3), rig.play(script))) == 40_000


def test_a_stray_answer_is_not_taken_for_the_next_one(rig, raw):
    """Request smuggling's mirror: bytes after an answer on a kept connection never answer the next request."""
    forged = OK + b"Content-Length: 6\r\n\r\nforged"

    def script(talk):
        while talk.read_request()[0]:
            talk.send(OK + LENGTH + PDF + forged)

    rig.lead("kept.example", raw(script).port)
    client = rig.client(cached=False)
    assert [rig.download(client, f"https://kept.example/{n}.pdf") for n in range(3)] == [PDF] * 3


# before the request


def test_a_server_that_closes_at_once_costs_one_candidate(rig, raw):
    rig.lead("shut.example", raw(lambda talk: None).port)
    client = rig.client(retries=1)
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, "https://shut.example/a.pdf")
    assert caught.value.reason == Reason.CONN_ERROR
    assert rig.goes_on(client)


def test_a_reset_instead_of_a_connection_costs_one_candidate(rig, raw):
    rig.lead("reset.example", raw(lambda talk: talk.reset()).port)
    client = rig.client()
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, "https://reset.example/a.pdf")
    assert caught.value.reason == Reason.CONN_ERROR
    assert rig.goes_on(client)


def test_a_closed_port_costs_one_candidate(rig, raw):
    gone = raw(lambda talk: None)
    gone.close()
    rig.lead("gone.example", gone.port)
    client = rig.client()
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, "https://gone.example/a.pdf")
    assert caught.value.reason == Reason.CONN_ERROR
    assert rig.goes_on(client)


# TLS


def secure(folder, *, cut=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    def script(talk):
        talk.start_tls(context)
        talk.read_request()
        talk.send(OK + b"Connection: close\r\n\r\n" + PDF)
        if cut:
            talk.cut()

    return script


def tls_client(rig, server, trusted=None, **options):
    rig.lead("tls.example", server.port, tls=True)
    return rig.client(trust=TrustStore(str(trusted / "cert.pem")) if trusted else None, **options)


@pytest.mark.parametrize("flaw", ["self-signed", "wrong name", "expired"])
def test_a_certificate_that_proves_nothing_is_refused(rig, raw, make_certificate, flaw):
    """NET-11."""
    folder = make_certificate("other.example" if flaw == "wrong name" else "tls.example", expired=flaw == "expired")
    client = tls_client(rig, raw(secure(folder)), None if flaw == "self-signed" else folder)
    with pytest.raises(CandidateRejected) as caught:
        rig.download(client, "https://tls.example/a.pdf")
    assert caught.value.reason == Reason.TLS_ERROR
    assert rig.goes_on(client)


def test_a_tls_stream_cut_on_the_way_is_short(rig, raw, make_certificate):
    folder = make_certificate("tls.example")
    client = tls_client(rig, raw(secure(folder, cut=True)), folder)
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, "https://tls.example/a.pdf")
    assert caught.value.reason == Reason.SIZE_MISMATCH
    assert rig.goes_on(client)


@pytest.mark.parametrize(
    "script",
    [raw(b"HTTP/1.1 400 Speak TLS\r\n\r\n"), lambda talk: talk.flood(b"\x16\x03\x01\xff\xff" + b"x" * 60000)],
    ids=["plain HTTP", "garbage records"],
)
def test_a_tls_port_that_speaks_no_tls_is_refused(rig, raw, script):
    client = tls_client(rig, raw(script))
    with pytest.raises((CandidateRejected, TransientFailure)) as caught:
        rig.download(client, "https://tls.example/a.pdf")
    assert caught.value.reason == Reason.TLS_ERROR
    assert rig.goes_on(client)


def test_a_handshake_that_never_ends_is_bounded(rig, raw):
    client, began = tls_client(rig, raw(silence), patient=False), time.monotonic()
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, "https://tls.example/a.pdf")
    assert caught.value.reason == Reason.TIMEOUT
    assert time.monotonic() - began < PATIENCE_S


# what Retry-After may say


@pytest.mark.parametrize(
    ("value", "told_s"),
    [
        (b"-5", None),
        (b"1e99", None),
        (b"9" * 400, 31_536_000.0),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", 31_536_000.0),
        (b"Fri, 31 Dec 99999999999 23:59:59 GMT", None),
        (b"Fri, 31 Dec 2027 23:59:59 +99999999999999999999", None),
        (b"Mon, 01 Jan 0001 00:00:00 GMT", 0.0),
        (b"\xff\xfe", None),
        (b"soon", None),
    ],
)
def test_an_absurd_retry_after_neither_crashes_nor_means_forever(rig, value, told_s):
    client = rig.client()
    url = rig.play(lambda talk: talk.answer(b"", b"Retry-After: " + value, status=b"503 Busy"), "busy.example")
    with pytest.raises(TransientFailure) as caught:
        rig.download(client, url)
    assert caught.value.retry_after_s == told_s
    assert caught.value.reason == (Reason.HTTP_STATUS if told_s is None else Reason.RETRY_AFTER)
    assert rig.goes_on(client)
