"""libcurl's error codes in our named errors, so that callers never see a number.

Texts name hosts and numbers only: libcurl's own may quote a URL with its secrets.
"""

from __future__ import annotations

from typing import NamedTuple

import httpx2

from DocsToKG.transport.errors import (
    BodyTooShort,
    CertificateExpired,
    CertificateForAnotherName,
    CertificateUntrusted,
    ClosedEarly,
    HeadersTooLarge,
    NameNotFound,
    NotSent,
    TlsFailed,
    TlsHandshakeFailed,
    TrustStoreUnreadable,
)

UNSUPPORTED_PROTOCOL, COULDNT_CONNECT, WEIRD_SERVER_REPLY, HTTP2 = 1, 7, 8, 16
PARTIAL_FILE, WRITE_ERROR, OPERATION_TIMEDOUT, ABORTED_BY_CALLBACK = 18, 23, 28, 42
GOT_NOTHING, SEND_ERROR, RECV_ERROR, PEER_FAILED_VERIFICATION = 52, 55, 56, 60
BAD_CONTENT_ENCODING, HTTP2_STREAM = 61, 92

# How each code is told. What is not here is a fault of libcurl's own making, or of a protocol we never speak.
_ERRORS: dict[int, tuple[type[httpx2.RequestError], str]] = {
    1: (httpx2.RemoteProtocolError, "the response of {host} does not begin with an HTTP status line"),
    3: (httpx2.UnsupportedProtocol, "libcurl cannot read the address at {host}"),
    5: (httpx2.ProxyError, "the proxy for {host} has no address"),
    6: (NameNotFound, "the host name {host} has no address"),
    7: (httpx2.ConnectError, "no connection to {host}"),
    8: (httpx2.RemoteProtocolError, "the response of {host} is not HTTP as it should be"),
    16: (httpx2.RemoteProtocolError, "{host} broke the HTTP/2 connection"),
    23: (httpx2.ReadError, "the response of {host} could not be taken"),
    26: (httpx2.LocalProtocolError, "the body of the request to {host} could not be read"),
    28: (httpx2.ReadTimeout, "{host} took too long"),
    33: (httpx2.RemoteProtocolError, "{host} does not give ranges"),
    35: (TlsHandshakeFailed, "no TLS connection to {host}: the handshake failed"),
    36: (httpx2.RemoteProtocolError, "{host} does not go on where the file broke off"),
    42: (NotSent, "the request to {host} was taken back before it was sent"),
    47: (httpx2.TooManyRedirects, "{host} redirects without end"),
    52: (ClosedEarly, "{host} closed the connection without a response"),
    53: (TlsHandshakeFailed, "no TLS connection to {host}: the crypto engine is missing"),
    54: (TlsHandshakeFailed, "no TLS connection to {host}: the crypto engine cannot be used"),
    55: (httpx2.WriteError, "the connection to {host} broke while the request was sent"),
    56: (httpx2.ReadError, "the connection to {host} broke"),
    58: (TlsHandshakeFailed, "no TLS connection to {host}: our own certificate cannot be used"),
    59: (TlsHandshakeFailed, "no TLS connection to {host}: no cipher in common"),
    60: (CertificateUntrusted, "the certificate of {host} is not trusted"),
    61: (httpx2.DecodingError, "the body of {host} comes in an encoding we do not read"),
    64: (TlsHandshakeFailed, "no TLS connection to {host}: TLS is required"),
    65: (httpx2.WriteError, "the body of the request to {host} cannot be sent again"),
    66: (TlsHandshakeFailed, "no TLS connection to {host}: the crypto engine did not start"),
    67: (httpx2.ProxyError, "the proxy for {host} does not take our user and password"),
    77: (TrustStoreUnreadable, "the file of trusted certificate authorities cannot be read"),
    80: (TlsHandshakeFailed, "the TLS connection to {host} did not close"),
    81: (httpx2.ReadError, "the connection to {host} was not ready"),
    82: (TrustStoreUnreadable, "the list of revoked certificates cannot be read"),
    83: (CertificateUntrusted, "the issuer of the certificate of {host} is another than the one required"),
    89: (httpx2.ConnectError, "no connection to {host} was free"),
    90: (CertificateUntrusted, "the key of {host} is another than the one required"),
    91: (CertificateUntrusted, "the certificate of {host} may have been revoked"),
    92: (httpx2.RemoteProtocolError, "{host} broke the HTTP/2 stream"),
    94: (httpx2.ProxyError, "the proxy for {host} does not take our credentials"),
    95: (httpx2.RemoteProtocolError, "{host} broke the HTTP/3 connection"),
    96: (httpx2.ConnectError, "no QUIC connection to {host}"),
    97: (httpx2.ProxyError, "the proxy did not connect to {host}"),
    98: (TlsHandshakeFailed, "no TLS connection to {host}: the server asks for a certificate of ours"),
    100: (HeadersTooLarge, "the head of the response of {host} exceeds what libcurl reads"),
    101: (TlsHandshakeFailed, "no TLS connection to {host}: encrypted client hello is required"),
}
_VERIFY_EXPIRED = frozenset({9, 10, 13, 14})  # not yet valid, expired, and both fields unreadable
_VERIFY_OTHER_NAME = frozenset({62, 63, 64})


class Failure(NamedTuple):
    """What libcurl says of an exchange that failed. Its text only serves to tell kinds apart and is never shown."""

    code: int
    text: str
    host: str
    proxied: bool = False
    connect_status: int = 0  # what a proxy answered to CONNECT
    verify_result: int = 0  # OpenSSL's judgement of the certificate
    head_seen: bool = False
    announced: int | None = None
    received: int = 0


def error_of(failure: Failure) -> Exception:
    """The error that a caller catches."""
    code, host = failure.code, repr(failure.host[:255])
    if code == PARTIAL_FILE or (code in (RECV_ERROR, HTTP2) and failure.head_seen and _was_cut(failure)):
        return BodyTooShort(expected=failure.announced, received=failure.received)
    if failure.proxied and (proxy_error := _proxy_error(failure, host)) is not None:
        return proxy_error
    if code == RECV_ERROR and "too large response headers" in failure.text.lower():
        return HeadersTooLarge(f"the head of the response of {host} exceeds what libcurl reads")
    if code == BAD_CONTENT_ENCODING and not failure.head_seen:
        return httpx2.RemoteProtocolError(f"the response of {host} uses a transfer coding we did not ask for")
    if code == PEER_FAILED_VERIFICATION:
        return _certificate_error(failure, host)
    kind, text = _ERRORS.get(code, (httpx2.TransportError, "libcurl failed with code {code} at {host}"))
    return kind(text.format(host=host, code=code))


def _was_cut(failure: Failure) -> bool:
    """TLS ended without its closing word, a chunked body without its last chunk or with one that cannot be read."""
    text = failure.text.lower()
    return "unexpected eof" in text or "missing close_notify" in text or "chunk" in text


def _proxy_error(failure: Failure, host: str) -> Exception | None:
    if failure.connect_status and not 200 <= failure.connect_status < 300:
        return httpx2.ProxyError(f"the proxy did not open a tunnel to {host}: status {failure.connect_status}")
    text = failure.text.lower()
    if failure.code == COULDNT_CONNECT or (not failure.head_seen and ("connect tunnel" in text or "proxy" in text)):
        return httpx2.ProxyError(f"the proxy did not connect to {host}")
    return None


def _certificate_error(failure: Failure, host: str) -> TlsFailed:
    text = failure.text.lower()
    if failure.verify_result in _VERIFY_EXPIRED or "expired" in text or "not yet valid" in text:
        return CertificateExpired(f"the certificate of {host} is out of date or not valid yet")
    # libcurl compares the names itself, and leaves OpenSSL's judgement at "fine" or "unspecified".
    if failure.verify_result in _VERIFY_OTHER_NAME or (failure.verify_result in (0, 1) and "match" in text):
        return CertificateForAnotherName(f"the certificate does not name {host}")
    return CertificateUntrusted(f"the certificate of {host} is not trusted (code {failure.verify_result})")
