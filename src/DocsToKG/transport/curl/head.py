"""The head of a response, from the lines that libcurl hands over.

libcurl has read the framing; what it lets pass and two readers could take in two ways is refused here (RFC 9112):
lengths that are no numbers, transfer codings nobody asked for, malformed fields, stray CR.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import httpx2

from DocsToKG.transport.engine import Headers

_STATUS_LINE = re.compile(r"(HTTP/[0-9.]+)[ \t]+([1-9][0-9]{2})(?:[ \t]([^\r\n]*))?\r?\n")
_FIELD = re.compile(r"^([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*:[ \t]*([^\r\n\0]*)\r?$", re.MULTILINE)
_LENGTH = re.compile(r"[0-9]{1,18}")


class Head(NamedTuple):
    """`length` is what Content-Length announces, None when chunks, a frame or the end of the connection end the
    body. `doubtful` is one whose end others may see elsewhere (RFC 9112, section 6.1)."""

    http_version: str
    status: int
    reason: str
    headers: Headers
    length: int | None
    doubtful: bool = False


def status_of(line: bytes) -> int:
    """The status in a status line; 0 when it is none."""
    match = _STATUS_LINE.match(line.decode("latin-1"))
    return int(match[2]) if match else 0


def parse_head(lines: list[bytes]) -> Head:
    """`lines` begin with the status line and end with the empty one."""
    first = _STATUS_LINE.fullmatch(lines[0].decode("latin-1"))
    if first is None:
        raise httpx2.RemoteProtocolError("the response does not begin with an HTTP status line")
    block = b"".join(lines[1:-1])
    text = _decoded(block)
    count = len(lines) - 2
    if "\n " in text or " \r" in text or " \n" in text or "\t" in text:
        text = _tidied(text)
        count = text.count("\n")
    fields = _FIELD.findall(text)
    if len(fields) != count:
        raise httpx2.RemoteProtocolError("the response has a malformed header line")
    headers = Headers(fields)
    length, doubtful = None, False
    if "content-length" in headers:
        length = _length(headers)
        fields, headers = _with_one_length(fields, headers, length)
    if "transfer-encoding" in headers and _is_chunked(headers["transfer-encoding"]):
        # Chunks beat a length (RFC 9112, section 6.3), and nobody further on should believe what was overruled.
        doubtful = length is not None or first[1] != "HTTP/1.1"
        length = None
        headers = Headers([(name, value) for name, value in fields if name.lower() != "content-length"])
    return Head(first[1], int(first[2]), first[3] or "", headers, length, doubtful)


def _decoded(block: bytes) -> str:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        return block.decode("latin-1")


def _tidied(text: str) -> str:
    """Lines without blanks at their ends, and folded ones made whole."""
    whole: list[str] = []
    for line in text.split("\n"):
        said = line.removesuffix("\r").rstrip(" \t")
        if line[:1] in (" ", "\t") and whole:
            whole[-1] += " " + said.lstrip(" \t")
        else:
            whole.append(said)
    tidy = "\n".join(whole)
    if "\r" in tidy:
        raise httpx2.RemoteProtocolError("the response's head holds a stray CR")
    return tidy


def _length(headers: Headers) -> int:
    text = headers["content-length"]
    if _LENGTH.fullmatch(text) is not None:
        return int(text)
    given = {item.strip(" \t") for item in text.split(",")}
    if len(given) > 1:
        raise httpx2.RemoteProtocolError("the response announces two different lengths")
    [text] = given
    if _LENGTH.fullmatch(text) is None:
        raise httpx2.RemoteProtocolError("the response's Content-Length is not a number of bytes")
    return int(text)


def _with_one_length(
    fields: list[tuple[str, str]], headers: Headers, length: int
) -> tuple[list[tuple[str, str]], Headers]:
    if headers["content-length"] == str(length):
        return fields, headers
    others = [(name, value) for name, value in fields if name.lower() != "content-length"]
    fields = [*others, ("Content-Length", str(length))]
    return fields, Headers(fields)


def _is_chunked(value: str) -> bool:
    named = [item.strip(" \t") for item in value.lower().split(",")]
    codings = [coding for coding in named if coding not in ("", "identity")]
    if codings and codings != ["chunked"]:
        raise httpx2.RemoteProtocolError("the response uses a transfer coding we did not ask for")
    return bool(codings)
