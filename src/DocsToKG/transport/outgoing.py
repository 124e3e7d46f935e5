"""The request as it goes over the wire.

Knows the request line, the header fields as httpx2 gives them, and the two body framings. Promises: what could
end a line early (CR, LF, NUL) never leaves, and error texts name the header, not its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import httpx2

from DocsToKG.transport.messages import NO_BODY

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BAD_VALUE = re.compile(rb"[\r\n\0]")
_BAD_TARGET = re.compile(rb"[\x00-\x20\x7f-\xff]")
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"})


def may_be_sent_again(request: httpx2.Request) -> bool:
    """May a server see this request twice, and can we produce its body twice?"""
    return request.method in _IDEMPOTENT and isinstance(request.stream, httpx2.ByteStream)


def encode_head(request: httpx2.Request, target: bytes, extra: Sequence[tuple[bytes, bytes]] = ()) -> bytes:
    """Request line and header fields, with the empty line. `extra` are fields for a proxy."""
    method = request.method.encode("ascii", "replace")
    if _TOKEN.fullmatch(method) is None or not target or _BAD_TARGET.search(target):
        raise httpx2.LocalProtocolError("the method or the path of the request cannot be sent")
    template = getattr(request.headers, "template", None)
    if template is None or extra:
        return b"%s %s HTTP/1.1%s" % (method, target, encode_fields((*request.headers.raw, *extra)))
    if template.encoded is None:  # one host is told the same again and again
        template.encoded = encode_fields(tuple(template.raw))
    return b"%s %s HTTP/1.1%s" % (method, target, template.encoded)


def encode_fields(fields: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """What follows the request line, with the empty line."""
    if not any(name.lower() == b"host" for name, _ in fields):
        raise httpx2.LocalProtocolError("the request has no Host header")
    lines = [b""]
    for name, value in fields:
        if _TOKEN.fullmatch(name) is None or _BAD_VALUE.search(value):
            raise httpx2.LocalProtocolError(f"the request header {name[:60]!r} cannot be sent")
        lines.append(b"%s: %s" % (name, value))
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


def body_blocks(request: httpx2.Request) -> Iterator[bytes]:
    """The request's body, framed as its headers announce."""
    headers = request.headers
    if request.stream is NO_BODY and "content-length" not in headers and "transfer-encoding" not in headers:
        return iter(())
    blocks = (block for block in _stream(request) if block)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _chunked(blocks)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise httpx2.LocalProtocolError("the request's Content-Length is not a number")
    return _counted(blocks, int(length))


def _stream(request: httpx2.Request) -> Iterable[bytes]:
    if not isinstance(request.stream, httpx2.SyncByteStream):
        raise httpx2.LocalProtocolError("the request's body is asynchronous; this transport is not")
    return request.stream


def _chunked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        yield b"%x\r\n%s\r\n" % (len(block), block)
    yield b"0\r\n\r\n"


def _counted(blocks: Iterable[bytes], length: int) -> Iterator[bytes]:
    left = length
    for block in blocks:
        left -= len(block)
        if left < 0:
            break
        yield block
    if left != 0:
        raise httpx2.LocalProtocolError("the request's body is not as long as its Content-Length")
