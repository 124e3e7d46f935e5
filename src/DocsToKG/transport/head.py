"""The head of an answer: status line, header fields, and how the body that follows is framed (RFC 9112).

Pure: bytes in, values out. Lenient where the RFC lets a client be (LF alone ends a line, folded lines, space before the
colon) and strict where two readings would differ (lengths that disagree, unknown transfer codings, stray CR or NUL).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import httpx2

from DocsToKG.transport.errors import HeadersTooLarge

MAX_FIELDS = 200

_STATUS_LINE = re.compile(rb"(HTTP/1\.[01])[ \t]+([1-9][0-9]{2})(?:[ \t](.*))?")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_STRAY = re.compile(rb"\r(?!\n)|\0")
_FOLD = re.compile(rb"\n[ \t]")

Fields = list[tuple[bytes, bytes]]


class Head(NamedTuple):
    """`length` counts the body's bytes; None with `chunked` unset means that the end of the connection ends it."""

    version: bytes
    status: int
    reason: bytes
    fields: Fields
    length: int | None
    chunked: bool
    keep_alive: bool


def parse_head(block: bytes, method: str) -> Head:
    """Read the head of an answer to `method`. `block` ends with the empty line."""
    lines = _lines(block.rstrip(b"\r\n"))
    match = _STATUS_LINE.fullmatch(lines[0])
    if match is None:
        raise httpx2.RemoteProtocolError("the answer does not begin with an HTTP/1 status line")
    version, status = match[1], int(match[2])
    lengths: list[bytes] = []
    codings: list[bytes] = []
    options: list[bytes] = []
    fields = _read_fields(lines, {b"content-length": lengths, b"transfer-encoding": codings, b"connection": options})
    length = _length(lengths) if lengths else None
    chunked = bool(codings) and _is_chunked(codings)
    if chunked or len(lengths) > 1:
        fields = _with_length(fields, None if chunked else length)
    if method == "HEAD" or status in (204, 304) or status < 200:
        length, chunked = 0, False
    framed = chunked or length is not None
    doubtful = bool(codings) and (bool(lengths) or version != b"HTTP/1.1")
    stays = b"close" not in options and (version == b"HTTP/1.1" or b"keep-alive" in options)
    keep_alive = framed and not doubtful and stays
    return Head(version, status, match[3] or b"", fields, None if chunked else length, chunked, keep_alive)


def _lines(text: bytes) -> list[bytes]:
    if text.count(b"\n") > MAX_FIELDS:
        raise HeadersTooLarge(f"the answer has more than {MAX_FIELDS} header lines")
    if _STRAY.search(text):
        raise httpx2.RemoteProtocolError("the answer's headers hold a stray CR or NUL")
    lines = text.replace(b"\r\n", b"\n").split(b"\n")
    return lines if _FOLD.search(text) is None else _unfolded(lines)


def _unfolded(folded: list[bytes]) -> list[bytes]:
    lines: list[bytes] = []
    for line in folded:
        if line[:1] in (b" ", b"\t") and len(lines) > 1:
            lines[-1] += b" " + line.strip(b" \t")
        else:
            lines.append(line)
    return lines


def _read_fields(lines: list[bytes], framing: dict[bytes, list[bytes]]) -> Fields:
    """The fields below the status line. The items of those that `framing` names are put there."""
    fields: Fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        name, value = name.rstrip(b" \t"), value.strip(b" \t")
        if not colon or _TOKEN.fullmatch(name) is None:
            raise httpx2.RemoteProtocolError("the answer has a malformed header line")
        fields.append((name, value))
        if (items := framing.get(name.lower())) is not None:
            items += [item.strip(b" \t").lower() for item in value.split(b",")]
    return fields


def _length(given: list[bytes]) -> int:
    if len(set(given)) > 1:
        raise httpx2.RemoteProtocolError("the answer announces two different lengths")
    if _LENGTH.fullmatch(given[0]) is None:
        raise httpx2.RemoteProtocolError("the answer's Content-Length is not a number of bytes")
    return int(given[0])


def _is_chunked(codings: list[bytes]) -> bool:
    named = [coding for coding in codings if coding not in (b"", b"identity")]
    if named and named != [b"chunked"]:
        raise httpx2.RemoteProtocolError("the answer uses a transfer coding we did not ask for")
    return bool(named)


def _with_length(fields: Fields, length: int | None) -> Fields:
    """The fields with this one length, or none: chunked beats a length (RFC 9112 section 6.3), and nobody further on
    should believe what was overruled, or read a repeated length as a list."""
    others = [(name, value) for name, value in fields if name.lower() != b"content-length"]
    return others if length is None else [*others, (b"Content-Length", b"%d" % length)]
