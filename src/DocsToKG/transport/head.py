"""The head of an answer: status line, header fields, and how the body that follows is framed (RFC 9112).

Pure: bytes in, values out. Lenient where the RFC lets a client be (LF alone ends a line, folded lines, space before the
colon) and strict where two readings would differ (lengths that disagree, unknown transfer codings, stray CR or NUL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import httpx2

from DocsToKG.transport.errors import HeadersTooLarge

MAX_FIELDS = 200

_STATUS_LINE = re.compile(rb"(HTTP/1\.[01])[ \t]+([1-9][0-9]{2})(?:[ \t](.*))?")
_LENGTH = re.compile(r"[0-9]{1,18}")
_FIELD = re.compile(r"^([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*:[ \t]*(.*)$", re.MULTILINE)

Pairs = list[tuple[str, str]]


class Head(NamedTuple):
    """`length` counts the body's bytes; None with `chunked` unset means that the end of the connection ends it.

    `text` are the fields in the order and spelling they came in, read by `encoding`; `named` are they by name."""

    version: bytes
    status: int
    reason: bytes
    text: Pairs
    named: dict[str, str]
    encoding: str
    length: int | None
    chunked: bool
    keep_alive: bool

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """As bytes."""
        return [(name.encode(self.encoding), value.encode(self.encoding)) for name, value in self.text]


def parse_head(block: bytes, method: str) -> Head:
    """Read the head of an answer to `method`. `block` ends with the empty line."""
    first, encoding, fields = _read(block.rstrip(b"\r\n"))
    match = _STATUS_LINE.fullmatch(first)
    if match is None:
        raise httpx2.RemoteProtocolError("the answer does not begin with an HTTP/1 status line")
    version, status = match[1], int(match[2])
    named = by_name(fields)
    lengths = _items(named["content-length"]) if "content-length" in named else []
    codings = _items(named["transfer-encoding"]) if "transfer-encoding" in named else []
    options = _items(named["connection"]) if "connection" in named else []
    length = _length(lengths) if lengths else None
    chunked = bool(codings) and _is_chunked(codings)
    if chunked or len(lengths) > 1:
        fields = _with_length(fields, None if chunked else length)
        named = by_name(fields)
    if method == "HEAD" or status in (204, 304) or status < 200:
        length, chunked = 0, False
    framed = chunked or length is not None
    doubtful = bool(codings) and (bool(lengths) or version != b"HTTP/1.1")
    stays = "close" not in options and (version == b"HTTP/1.1" or "keep-alive" in options)
    keep_alive = framed and not doubtful and stays
    length = None if chunked else length
    return Head(version, status, match[3] or b"", fields, named, encoding, length, chunked, keep_alive)


def _read(text: bytes) -> tuple[bytes, str, Pairs]:
    """The status line, the encoding of the fields below it, and what they say."""
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
    encoding = _encoding(rest)
    fields: Pairs = _FIELD.findall(rest.decode(encoding))
    if len(fields) != count:
        raise httpx2.RemoteProtocolError("the answer has a malformed header line")
    return first, encoding, fields


def _encoding(lines: bytes) -> str:
    """As httpx2 reads fields: the first encoding that fits all of them."""
    if lines.isascii():
        return "ascii"
    try:
        lines.decode("utf-8")
    except UnicodeDecodeError:
        return "iso-8859-1"
    return "utf-8"


def by_name(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What is said under each name, in lower case; what is said in several fields is one list."""
    named: dict[str, str] = {}
    for spelled, value in fields:
        name = spelled.lower()
        named[name] = f"{named[name]}, {value}" if name in named else value
    return named


def _items(value: str) -> list[str]:
    """The items of a list, in lower case; letters beyond ASCII, which may only look alike, stay."""
    text = value.lower() if value.isascii() else value
    return [item.strip(" \t") for item in text.split(",")]


def _tidied(lines: bytes) -> bytes:
    """The lines without blanks at their ends, and folded ones made whole."""
    whole: list[bytes] = []
    for line in lines.split(b"\n"):
        if line[:1] in (b" ", b"\t") and whole:
            whole[-1] += b" " + line.strip(b" \t")
        else:
            whole.append(line)
    return b"\n".join(line.rstrip(b" \t") for line in whole)


def _length(given: list[str]) -> int:
    if len(set(given)) > 1:
        raise httpx2.RemoteProtocolError("the answer announces two different lengths")
    if _LENGTH.fullmatch(given[0]) is None:
        raise httpx2.RemoteProtocolError("the answer's Content-Length is not a number of bytes")
    return int(given[0])


def _is_chunked(codings: list[str]) -> bool:
    named = [coding for coding in codings if coding not in ("", "identity")]
    if named and named != ["chunked"]:
        raise httpx2.RemoteProtocolError("the answer uses a transfer coding we did not ask for")
    return bool(named)


def _with_length(fields: Pairs, length: int | None) -> Pairs:
    """The fields with this one length, or none: chunked beats a length (RFC 9112 section 6.3), and nobody further on
    should believe what was overruled, or read a repeated length as a list."""
    others = [(name, value) for name, value in fields if name.lower() != "content-length"]
    return others if length is None else [*others, ("Content-Length", str(length))]
