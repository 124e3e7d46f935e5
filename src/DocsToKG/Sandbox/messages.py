"""One request and one response, as values.

Knows how HTTP/1.1 text becomes a `Request` and how a `Response` becomes header bytes (RFC 9112). Does no I/O.
A response may ask to be delivered badly: slowly, in part, or cut off; the server carries that out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_HEAD_BYTES = 32 * 1024
MAX_BODY_BYTES = 1024 * 1024


class BadRequest(Exception):
    """The bytes are not a request we answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is percent-decoded, `target` is as sent; header names are lower case."""

    method: str
    host: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    keep_alive: bool
    body: bytes = b""

    @property
    def url(self) -> str:
        return f"https://{self.host}{self.target}"

    @property
    def raw_query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the body leaves: `whole`, `slow`, `stall`, `cut`, `chunked`, `chunked-cut` or `reset`.

    `share` is how much of it is sent before the fault, `seconds` how long the fault lasts.
    """

    mode: str = "whole"
    share: float = 0.5
    seconds: float = 0.0


WHOLE = Delivery()


def unknown_parameter(request: Request, known: Iterable[str]) -> str | None:
    """The first parameter that a stand-in would ignore: it is refused, so that nobody takes silence for an answer."""
    names = [name for name, _ in parse_qsl(request.raw_query, keep_blank_values=True)]
    return next((name for name in names if name not in set(known)), None)


@dataclass(slots=True)
class Response:
    """`work` is the index of the work whose file this is; only such bodies count as files sent.

    `later` builds the body in another thread, for the few answers that take long.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    delivery: Delivery = WHOLE
    work: int | None = None
    later: Callable[[], bytes] | None = None


def json_response(value: Any, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Response(status, body, "application/json", dict(headers or {}))


def text_response(text: str, status: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    return Response(status, text.encode(), content_type)


def html_response(title: str, inner: str, status: int = 200) -> Response:
    page = f"<!DOCTYPE html>\n<html lang='en'><head><title>{title}</title></head><body>{inner}</body></html>\n"
    return Response(status, page.encode())


def redirect(location: str, status: int = 302) -> Response:
    response = html_response("Moved", f"<a href='{location}'>Moved</a>", status)
    response.headers["Location"] = location
    return response


def parse_head(head: bytes) -> Request:
    """The request line and the headers, without the blank line that ends them."""
    line, *rest = head.decode("latin-1").split("\r\n")
    method, _, tail = line.partition(" ")
    target, _, version = tail.partition(" ")
    if not method.isalpha() or not target or version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(400, "malformed request line")
    headers = dict(_header(text) for text in rest)
    host, target = _host_and_target(target, headers.get("host", ""))
    path, _, query = target.partition("?")
    return Request(
        method=method.upper(),
        host=host,
        target=target,
        path=unquote(path),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers=headers,
        keep_alive=_keeps_alive(version, headers.get("connection", "")),
    )


def body_length(request: Request) -> int:
    if "transfer-encoding" in request.headers:
        raise BadRequest(411, "send a Content-Length")
    text = request.headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(400, "malformed Content-Length")
    if len(text) > 9 or int(text) > MAX_BODY_BYTES:
        raise BadRequest(413, "request body too large")
    return int(text)


def render_head(response: Response, *, now: float, keep_alive: bool) -> bytes:
    """Status line and headers. Length or chunking follows from the body and its delivery."""
    lines = [f"HTTP/1.1 {response.status} {_phrase(response.status)}", f"Date: {formatdate(now, usegmt=True)}"]
    if response.body or response.status not in (204, 304):
        lines.append(f"Content-Type: {response.content_type}")
        if response.delivery.mode.startswith("chunked"):
            lines.append("Transfer-Encoding: chunked")
        else:
            lines.append(f"Content-Length: {len(response.body)}")
    lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}")
    lines.extend(f"{name}: {value}" for name, value in response.headers.items())
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or name != name.strip():
        raise BadRequest(400, "malformed header")
    return name.lower(), value.strip()


def _host_and_target(target: str, host: str) -> tuple[str, str]:
    # RFC 9112 section 3.2.2: a server accepts the absolute form too, and then ignores the Host header.
    if target.startswith(("http://", "https://")):
        parts = urlsplit(target)
        host, target = parts.netloc, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.startswith("/"):
        raise BadRequest(400, "malformed target")
    host = host.lower()
    for port in (":443", ":80"):
        host = host.removesuffix(port)
    return host, target


def _keeps_alive(version: str, connection: str) -> bool:
    words = connection.lower()
    return "close" not in words if version == "HTTP/1.1" else "keep-alive" in words


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
