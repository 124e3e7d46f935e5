"""What an HTTP engine does: one request in, one response out, its body as a stream.

Knows only values. `transport.curl` speaks to the network, `transport.memory` answers from a function; callers and
tests depend on this module alone. Promises of every engine: redirects are never followed; a cancelled task ends its
exchange at once; after `aclose` nothing is left open.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import httpx2

from DocsToKG.transport.errors import BodyTooLarge

# Methods that a server may see twice (RFC 9110, section 9.2.2), so that a lost connection may be replaced.
REPEATABLE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one exchange. None means no bound; `deadline` is in the clock's monotonic seconds."""

    connect_s: float | None = 10.0  # the name, the connection and TLS together
    first_byte_s: float | None = 60.0  # from the sent request to the whole head
    silence_s: float | None = 30.0  # between two pieces of the body
    deadline: float | None = None  # of the whole exchange, the body included
    max_bytes: int | None = None  # of the body, decoded
    max_announced: int | None = None  # of Content-Length
    max_header_bytes: int = 64 * 1024
    max_header_lines: int = 200


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Request:
    """`before_send` is called on the loop right before the bytes go out, on a new and on a kept connection; when it
    returns False, nothing is sent and the exchange ends with `NotSent`. `on_sent` is called right after it.
    With `decode` the response may come as gzip and is decoded; without, `identity` is asked for."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    limits: Limits = NO_LIMITS
    before_send: Callable[[], bool] | None = field(default=None, repr=False)
    on_sent: Callable[[], None] | None = field(default=None, repr=False)
    decode: bool = False
    http2: bool = True


class Timings(NamedTuple):
    """Seconds since the exchange began, None for what has not happened. Zero: it was not needed."""

    name: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None
    total: float | None = None


class Headers(Mapping[str, str]):
    """The fields of a head. Names are found in any case; what several fields say is one list, joined by commas.

    `raw` keeps every field in the order and spelling it came in; `named` is what is found, by name in lower case.
    """

    __slots__ = ("named", "raw")

    def __init__(self, raw: Sequence[tuple[str, str]] = ()) -> None:
        self.raw = raw
        self.named: dict[str, str] = {spelled.lower(): value for spelled, value in raw}
        if len(self.named) < len(raw):
            self.named = by_name(raw)

    def __getitem__(self, name: str) -> str:
        return self.named[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self.named

    def __iter__(self) -> Iterator[str]:
        return iter(self.named)

    def __len__(self) -> int:
        return len(self.named)

    def get_list(self, name: str) -> list[str]:
        """What each field of this name says."""
        wanted = name.lower()
        return [value for spelled, value in self.raw if spelled.lower() == wanted]

    def __repr__(self) -> str:
        return f"Headers({list(self.named)})"  # values may be secrets


def by_name(raw: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What is said under each name, in lower case; what is said in several fields is one list."""
    index: dict[str, str] = {}
    for spelled, value in raw:
        name = spelled.lower()
        index[name] = f"{index[name]}, {value}" if name in index else value
    return index


class Response(Protocol):
    """A complete head, and a body that is read once: by `async for` or by `read`."""

    @property
    def status(self) -> int: ...

    @property
    def reason(self) -> str: ...

    @property
    def http_version(self) -> str: ...

    @property
    def headers(self) -> Headers: ...

    @property
    def url(self) -> str: ...

    @property
    def peer(self) -> str:
        """The address connected to; that of the proxy, when there is one."""
        ...

    @property
    def timings(self) -> Timings: ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Pieces of the body as they come. A reader that stops asking stops the server."""
        ...

    async def read(self, max_bytes: int | None = None) -> bytes:
        """The whole body; raises `BodyTooLarge` beyond `max_bytes`."""
        ...

    async def aclose(self) -> None:
        """Done with it. A body that has not come to its end is cut off, and its connection with it."""
        ...


class Engine(Protocol):
    async def fetch(self, request: Request) -> Response:
        """Send the request; returns when the head of the response is complete."""
        ...

    async def aclose(self) -> None:
        """End every exchange and close every connection."""
        ...


async def read_all(blocks: AsyncIterable[bytes], max_bytes: int | None) -> bytes:
    """The whole body, bounded."""
    received: list[bytes] = []
    size = 0
    async for block in blocks:
        size += len(block)
        if max_bytes is not None and size > max_bytes:
            raise BodyTooLarge(limit=max_bytes)
        received.append(block)
    return b"".join(received)


_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BAD_VALUE = re.compile(r"[\r\n\0]")


def check_sendable(method: str, headers: Iterable[tuple[str, str]]) -> None:
    """Refuse what could end a line early. The error names the header and never shows its value."""
    if _TOKEN.fullmatch(method) is None:
        raise httpx2.LocalProtocolError("the method of the request cannot be sent")
    for name, value in headers:
        if _TOKEN.fullmatch(name) is None or _BAD_VALUE.search(value):
            raise httpx2.LocalProtocolError(f"the request header {name[:60]!r} cannot be sent")
