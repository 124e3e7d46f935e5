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
_LENGTH = re.compile(rb"[0-9]{1,18}")
_FIELD = re.compile(rb"^([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*:[ \t]*(.*)$", re.MULTILINE)

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
    first, fields = _read(block.rstrip(b"\r\n"))
    match = _STATUS_LINE.fullmatch(first)
    if match is None:
        raise httpx2.RemoteProtocolError("the answer does not begin with an HTTP/1 status line")
    version, status = match[1], int(match[2])
    lengths: list[bytes] = []
    codings: list[bytes] = []
    options: list[bytes] = []
    framing = {b"content-length": lengths, b"transfer-encoding": codings, b"connection": options}
    for name, value in fields:
        if (items := framing.get(name.lower())) is not None:
            items += [item.strip(b" \t").lower() for item in value.split(b",")]
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


def _read(text: bytes) -> tuple[bytes, Fields]:
    """The status line, and the fields below it."""
    count = text.count(b"\n")
    if count > MAX_FIELDS:
        raise HeadersTooLarge(f"the answer has more than {MAX_FIELDS} header lines")
    text = text.replace(b"\r\n", b"\n")
    if b"\r" in text or b"\0" in text:
        raise httpx2.RemoteProtocolError("the answer's headers hold a stray CR or NUL")
    first, _, rest = text.partition(b"\n")
    if b"\n " in text or b" \n" in text or b"\t" in text or text.endswith(b" "):
        rest = _tidied(rest)
        count = rest.count(b"\n") + 1 if count else 0
    fields: Fields = _FIELD.findall(rest)
    if len(fields) != count:
        raise httpx2.RemoteProtocolError("the answer has a malformed header line")
    return first, fields


def _tidied(lines: bytes) -> bytes:
    """The lines without blanks at their ends, and folded ones made whole."""
    whole: list[bytes] = []
    for line in lines.split(b"\n"):
        if line[:1] in (b" ", b"\t") and whole:
            whole[-1] += b" " + line.strip(b" \t")
        else:
            whole.append(line)
    return b"\n".join(line.rstrip(b" \t") for line in whole)


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
