"""Inputs that are nearly right: a seed with some bytes cut, put, repeated or joined to another; JSON with odd parts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st
from tests.contentdownload.scripted import like

LARGEST_BYTES = 400_000
TOKENS = [
    b"", b"\x00", b"\xff\xfe", b"\r\n", b"\n", b"<", b">", b"&#x0;", b"<!--", b"]]>", b"<![CDATA[", b'"', b"'",
    b"{", b"[", b"}", b"]", b",", b":", b"\\u0000", b"\\ud800", b"null", b"-1", b"1e999", b"NaN",
    b"9999999999999999999999999999999999999999", b"%00", b"%", b"%%EOF", b"endobj", b"stream\n", b"/Type/Page",
    b"<<", b">>", b"0 0 R", b"startxref\n0\n", b"!!python/object:x", b"&a [*a]", b"*", b"$", b"../",
    b"javascript:", b"https://[", b"\xe2\x80\xae", b"@article{", b"ER  - ", b"Content-Length: 1", b"\r\n\r\n",
    b"chunked", b";", b"=", "²".encode(), "٣".encode(), b"9" * 5000, b"2001-99-99", b"[[]]",
]  # fmt: skip
# What has surprised readers of every kind: too deep, too long, a digit that is no number, a date that cannot be.
ODD = [
    b"", b"[" * 100_000, b'{"a":' * 100_000, b"[" * 2000 + b"]" * 2000, b"<a>" * 50_000, b"(" * 100_000, b"- " * 5000,
    b"9" * 5000, b'{"a": ' + b"9" * 5000 + b"}", b"1e999", b"NaN", "²".encode(), "٣".encode(), b"2001-99-99",
    b"2001-01-01T00:00:00+99:99", b'"\\ud800"', b"\x00" * 1000, b"\xef\xbb\xbf", "a,b\n".encode("utf-16"),
    b'{"alg": ["HS256"]}', b"http://[::1", b"https://" + b"a." * 5000, b"*" * 50_000,
]  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 5))):
        data = draw(st.sampled_from(CHANGES))(draw, data, seeds)[:LARGEST_BYTES]
    return data


def _place(draw: st.DrawFn, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def _cut(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + data[at + draw(st.integers(1, 300)) :]


def _end(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    return data[: _place(draw, data)]


def _put(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + draw(st.sampled_from(TOKENS) | st.binary(max_size=20)) + data[at:]


def _repeat(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Much of the same: what makes a reader slow, deep or large."""
    at = _place(draw, data)
    part = data[at : at + draw(st.integers(1, 60))] or draw(st.sampled_from(TOKENS))
    return data[:at] + part * draw(st.sampled_from([2, 30, 1000, 20_000])) + data[at:]


def _join(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes]) -> bytes:
    other = draw(st.sampled_from(seeds))
    return data[: _place(draw, data)] + other[_place(draw, other) :]


CHANGES = (_cut, _end, _put, _repeat, _join)


def inputs(seeds: Sequence[bytes], *, is_json: bool) -> st.SearchStrategy[bytes]:
    found = changed(seeds) | st.binary(max_size=200)
    if is_json:
        for seed in seeds[:4]:
            try:
                found |= like(json.loads(seed)).map(lambda value: json.dumps(value).encode())
            except (ValueError, RecursionError):
                continue
    return found
