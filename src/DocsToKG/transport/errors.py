"""What can go wrong between us and a server, in the words of httpx2, so that callers catch what they know.

httpx2.ConnectError
├── AddressRefused         the host means an address we do not talk to
├── NameNotFound           the host has no address
└── TlsFailed              no trusted TLS connection to this host name
httpx2.ReadTimeout
└── DeadlineExceeded       the time given to the whole exchange is over
httpx2.ReadError
└── ConnectionWentStale    a kept connection was closed before it answered
httpx2.RemoteProtocolError
├── BodyTooShort           the body ended before its announced end
├── ClosedEarly            the connection ended before the head of the answer did
└── HeadersTooLarge        the head of the answer exceeds the caps

Messages name hosts and numbers, never URLs or header values, so no key can leak through them.
"""

from __future__ import annotations

import httpx2


class AddressRefused(httpx2.ConnectError):
    """Not a public address, or a name that only means something inside a private network."""


class NameNotFound(httpx2.ConnectError):
    """The host name has no address."""


class TlsFailed(httpx2.ConnectError):
    """The certificate is not trusted, is for another name, or the handshake failed."""


class DeadlineExceeded(httpx2.ReadTimeout):
    """The total time for connecting, headers and body is used up, however busily the server was sending."""


class ConnectionWentStale(httpx2.ReadError):
    """The server closed a kept connection before a byte of the answer came."""


class BodyTooShort(httpx2.RemoteProtocolError):
    """The body ended early. `expected` is None when the length was not announced."""

    def __init__(self, *, expected: int | None, received: int) -> None:
        wanted = "its last chunk" if expected is None else f"{expected} bytes"
        super().__init__(f"the body ended after {received} bytes, before {wanted}")
        self.expected = expected
        self.received = received


class ClosedEarly(httpx2.RemoteProtocolError):
    """The server closed the connection before its answer's head was complete."""


class HeadersTooLarge(httpx2.RemoteProtocolError):
    """More header bytes or fields than we are willing to read."""
