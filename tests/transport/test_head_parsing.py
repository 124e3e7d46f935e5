"""Heads as libcurl hands them over: read, or refused with one kind of error. What they mean is in test_curl_limits."""

from __future__ import annotations

import contextlib

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.transport.curl.head import parse_head


def lines_of(*lines):
    return [b"HTTP/1.1 200 OK\r\n", *(line.replace(b"\n", b"") + b"\r\n" for line in lines), b"\r\n"]


@examples(100)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_hostile_heads_give_a_head_or_one_kind_of_error(lines):
    with contextlib.suppress(httpx2.RemoteProtocolError):
        assert parse_head(lines_of(*lines)).status == 200


@examples(100)
@given(st.lists(st.tuples(st.sampled_from(["A", "b", "Link"]), st.text("xyz \t,", max_size=9)), max_size=6))
def test_fields_come_out_as_they_were_said_without_the_blanks_around_them(fields):
    said = parse_head(lines_of(*(f"{name}: {value}".encode() for name, value in fields))).headers
    assert list(said.raw) == [(name, value.strip(" \t")) for name, value in fields]


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("length", [True, False])
def test_two_ways_to_see_the_end_of_a_body_are_doubtful(version, length):
    fields = [b"Transfer-Encoding: chunked\r\n", *([b"Content-Length: 5\r\n"] if length else [])]
    head = parse_head([b"HTTP/" + version + b" 200 OK\r\n", *fields, b"\r\n"])
    assert head.doubtful == (length or version == b"1.0")
    assert head.length is None
