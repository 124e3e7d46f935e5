"""Where a body ends, and that it says so when it ended somewhere else."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.transport.body import ChunkReader
from DocsToKG.transport.errors import BodyTooShort, HeadersTooLarge

URL = "http://papers.example.org/a.pdf"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def feed_often(reader, block):
    for _ in range(1000):
        reader.feed(block)


def test_body_shorter_than_its_length_raises(answering, reach):
    server = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
    with pytest.raises(BodyTooShort) as error:
        reach(server).get(URL)
    assert (error.value.expected, error.value.received) == (1000, 9)


@pytest.mark.parametrize(
    "cut", [b"", b"4", b"4\r\nab", b"4\r\nabcd\r\n", b"4\r\nabcd\r\n0\r\n", b"4\r\nabcd\r\n0\r\nX: 1\r\n"]
)
def test_chunked_body_without_its_end_raises(answering, reach, cut):
    with pytest.raises(BodyTooShort):
        reach(answering(CHUNKED + cut)).get(URL)


def test_reset_in_the_middle_of_a_body_raises(serve, reach):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart")
        talk.reset()

    with pytest.raises(httpx2.TransportError):
        reach(serve(script)).get(URL)


def test_body_until_close_is_read_to_its_end(answering, reach):
    server = answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300_000)
    assert len(reach(server).get(URL).content) == 300_000


def test_large_body_arrives_whole_and_in_large_blocks(answering, reach):
    body = bytes(range(256)) * 20_000
    server = answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body, stay=True)
    with reach(server).stream("GET", URL) as response:
        blocks = list(response.iter_raw())
    assert b"".join(blocks) == body
    assert max(map(len, blocks)) <= 128 * 1024


def test_chunked_body_with_extensions_and_trailers_is_read(answering, reach):
    server = answering(CHUNKED + b"5;name=value\r\nhello\r\n0A \r\n0123456789\r\n000\r\nX-Sum: 1\r\n\r\n", stay=True)
    assert reach(server).get(URL).content == b"hello0123456789"


def test_length_beside_chunks_is_not_shown_to_the_caller(answering, reach):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    response = reach(answering(answer)).get(URL)
    assert response.content == b"ok"
    assert "content-length" not in response.headers


@pytest.mark.parametrize(
    "chunks",
    [
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5_0\r\nhello\r\n0\r\n\r\n",
        b"\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"4\r\nhello\r\n0\r\n\r\n",
        b"5;" + b"x" * 5000 + b"\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_chunk_sizes_that_make_no_sense_are_refused(answering, reach, chunks):
    with pytest.raises(httpx2.RemoteProtocolError):
        reach(answering(CHUNKED + chunks, stay=True)).get(URL)


def test_chunks_that_are_nearly_all_framing_are_refused():
    """SEC-07: much to read for little data."""
    with pytest.raises(httpx2.RemoteProtocolError):
        feed_often(ChunkReader(), b"1;" + b"x" * 2000 + b"\r\na\r\n")


@pytest.mark.parametrize("block", [b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\n"])
def test_lines_between_chunks_end_with_crlf_and_nothing_less(block):
    with pytest.raises(httpx2.RemoteProtocolError, match="CRLF"):
        ChunkReader().feed(block)


def test_many_honest_small_chunks_are_accepted():
    reader = ChunkReader()
    assert reader.feed(b"1\r\na\r\n" * 20_000) == b"a" * 20_000


def test_trailers_without_end_are_refused():
    reader = ChunkReader()
    reader.feed(b"0\r\n")
    with pytest.raises(HeadersTooLarge):
        feed_often(reader, b"X-Trailer: " + b"x" * 1000 + b"\r\n")


@examples(150)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=12), st.binary(max_size=9), st.integers(1, 17))
def test_chunks_read_the_same_however_the_network_cuts_them(pieces, after, step):
    wire = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n" + after
    reader = ChunkReader()
    data = b"".join(reader.feed(wire[at : at + step]) for at in range(0, len(wire), step) if not reader.finished)
    assert data == b"".join(pieces)
    assert reader.finished
    assert after.startswith(reader.excess)


@pytest.mark.slow
@examples(300)
@given(st.lists(st.binary(max_size=30), max_size=10))
def test_hostile_chunks_give_data_or_one_kind_of_error(blocks):
    reader = ChunkReader()
    try:
        for block in blocks:
            assert len(reader.feed(block)) <= len(block)
    except httpx2.RemoteProtocolError:
        pass
