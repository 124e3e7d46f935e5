"""What can go wrong between us and a server, in the words of httpx2, so that callers catch what they know.

httpx2.TransportError
├── NotSent                the caller took the request back before a byte of it went out
└── BodyTooLarge           the body is larger than the caller takes
httpx2.ConnectError
├── AddressRefused         the host means an address we do not talk to
├── NameNotFound           the host has no address
└── TlsFailed              no trusted TLS connection to this host name
    ├── CertificateUntrusted       no authority we trust vouches for the certificate
    ├── CertificateExpired         the certificate is out of date, or not valid yet
    ├── CertificateForAnotherName  the certificate does not name this host
    ├── TlsHandshakeFailed         both sides could not agree, or the server speaks no TLS
    └── TrustStoreUnreadable       our own file of trusted authorities cannot be read
httpx2.ReadTimeout
└── DeadlineExceeded       the time given to the whole exchange is over
httpx2.ReadError
└── ConnectionWentStale    a kept connection was closed before it answered
httpx2.RemoteProtocolError
├── BodyTooShort           the body ended before its announced end
│   └── CompressedBodyCut  the compressed stream inside the body has no end
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


class CertificateUntrusted(TlsFailed):
    """No authority that we trust vouches for the server's certificate."""


class CertificateExpired(TlsFailed):
    """The server's certificate is out of date, or not valid yet."""


class CertificateForAnotherName(TlsFailed):
    """The server's certificate does not name the host that was asked for."""


class TlsHandshakeFailed(TlsFailed):
    """Client and server could not agree on a TLS connection, or the server does not speak TLS."""


class TrustStoreUnreadable(TlsFailed):
    """The file of trusted certificate authorities is missing or damaged. Set SSL_CERT_FILE to a good one."""


class NotSent(httpx2.TransportError):
    """The caller's `before_send` said no: nothing of the request went out."""


class BodyTooLarge(httpx2.TransportError):
    """The body is larger than the caller takes. `announced` is its Content-Length, None when it was counted."""

    def __init__(self, *, limit: int, announced: int | None = None) -> None:
        size = "grew beyond" if announced is None else f"is announced with {announced} bytes, more than"
        super().__init__(f"the body {size} the limit of {limit} bytes")
        self.limit = limit
        self.announced = announced


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


class CompressedBodyCut(BodyTooShort):
    """The body has its announced length, but the compressed stream inside it breaks off."""

    def __init__(self, *, received: int) -> None:
        httpx2.RemoteProtocolError.__init__(self, f"the compressed body breaks off after {received} decoded bytes")
        self.expected = None
        self.received = received


class ClosedEarly(httpx2.RemoteProtocolError):
    """The server closed the connection before its answer's head was complete."""


class HeadersTooLarge(httpx2.RemoteProtocolError):
    """More header bytes or fields than we are willing to read."""
