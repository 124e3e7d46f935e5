"""Heads of answers: what is read, what is refused, and that no head is read without end."""

from __future__ import annotations

import contextlib

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.transport.errors import HeadersTooLarge
from DocsToKG.transport.head import parse_head

URL = "http://papers.example.org/"


def head(*lines, method="GET"):
    return parse_head(b"\r\n".join([b"HTTP/1.1 200 OK", *lines]) + b"\r\n\r\n", method)


def test_fields_keep_order_case_and_repetition():
    assert head(b"X-B: 1", b"x-a:2", b"X-B:\t3 ").fields == [(b"X-B", b"1"), (b"x-a", b"2"), (b"X-B", b"3")]


def test_lines_that_end_with_lf_alone_are_read():
    answer = parse_head(b"HTTP/1.1 200 OK\nContent-Length: 3\nX: y\n\n", "GET")
    assert (answer.length, answer.fields[1]) == (3, (b"X", b"y"))


def test_folded_lines_are_joined():
    assert head(b"X-Long: one", b"\ttwo", b"  three").fields == [(b"X-Long", b"one two three")]


def test_space_before_the_colon_is_dropped():
    assert head(b"Content-Length : 7").length == 7


@pytest.mark.parametrize("line", [b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.0 200 Fine  by me"])
def test_reason_may_be_missing(line):
    assert parse_head(line + b"\r\n\r\n", "GET").status == 200


@pytest.mark.parametrize(
    "line",
    [b"", b"<html>", b"HTTP/2 200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 2000 OK", b"ICY 200 OK", b"HTTP/1.1 099 OK"],
)
def test_what_is_not_a_status_line_is_refused(line):
    with pytest.raises(httpx2.RemoteProtocolError):
        parse_head(line + b"\r\n\r\n", "GET")


@pytest.mark.parametrize(
    "line", [b"no colon", b": no name", b"two words: x", b"X: a\rb", b"X: a\0b", b"X\x80: a", b"X(: a"]
)
def test_malformed_header_lines_are_refused(line):
    with pytest.raises(httpx2.RemoteProtocolError):
        head(line)


@pytest.mark.parametrize(
    ("lines", "length", "chunked"),
    [
        ([b"Content-Length: 5"], 5, False),
        ([b"Content-Length: 5", b"content-length: 5"], 5, False),
        ([b"Content-Length: 5, 5"], 5, False),
        ([b"Transfer-Encoding: Chunked"], None, True),
        ([b"Transfer-Encoding: identity", b"Content-Length: 5"], 5, False),
        ([], None, False),
    ],
)
def test_framing_is_read(lines, length, chunked):
    answer = head(*lines)
    assert (answer.length, answer.chunked) == (length, chunked)


def test_a_length_said_twice_is_shown_once():
    assert head(b"Content-Length: 5", b"X: 1", b"Content-Length: 5").fields == [(b"X", b"1"), (b"Content-Length", b"5")]


@pytest.mark.parametrize(
    "lines",
    [
        [b"Content-Length: 5", b"Content-Length: 6"],
        [b"Content-Length: 5, 6"],
        [b"Content-Length: -5"],
        [b"Content-Length: +5"],
        [b"Content-Length: 0x5"],
        [b"Content-Length: 5 5"],
        [b"Content-Length:"],
        [b"Content-Length: 9999999999999999999"],
        [b"Transfer-Encoding: gzip, chunked"],
        [b"Transfer-Encoding: chunked, chunked"],
        [b"Transfer-Encoding: xchunked"],
    ],
)
def test_framing_that_can_be_read_two_ways_is_refused(lines):
    with pytest.raises(httpx2.RemoteProtocolError):
        head(*lines)


def test_body_until_close_keeps_no_connection():
    assert head(b"Connection: keep-alive").keep_alive is False
    assert head(b"Content-Length: 0").keep_alive is True


def test_too_many_fields_are_refused():
    assert len(head(*[b"X: 1"] * 200).fields) == 200
    with pytest.raises(HeadersTooLarge):
        head(*[b"X: 1"] * 201)
    with pytest.raises(HeadersTooLarge):
        head(b"X: 1", *[b" fold"] * 201)


@pytest.mark.parametrize(
    "bomb",
    [b"X-Bomb: " + b"x" * 200_000, b"X: 1\r\n" * 40_000, b"X: 1\r\n" + b" \r\n" * 60_000],
    ids=["one-long-line", "many-fields", "many-folds"],
)
def test_header_bombs_are_stopped(answering, reach, bomb):
    server = answering(b"HTTP/1.1 200 OK\r\n" + bomb + b"\r\n\r\n", stay=True)
    with pytest.raises(HeadersTooLarge):
        reach(server).get(URL)
    assert server.client_left.wait(5)


def test_the_cap_on_a_head_is_the_one_that_was_set(answering, reach):
    server = answering(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2000 + b"\r\nContent-Length: 0\r\n\r\n")
    assert reach(server, max_header_bytes=3000).get(URL).status_code == 200
    with pytest.raises(HeadersTooLarge):
        reach(server, max_header_bytes=1000).get(URL)


def test_head_that_comes_in_small_pieces_is_read(serve, reach):
    def script(talk):
        talk.read_request()
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":
            talk.send(bytes([byte]))

    assert reach(serve(script)).get(URL).content == b"ok"


@pytest.mark.slow
@examples(300)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_hostile_heads_give_a_head_or_one_kind_of_error(lines):
    with contextlib.suppress(httpx2.RemoteProtocolError):
        assert head(*lines).status == 200
