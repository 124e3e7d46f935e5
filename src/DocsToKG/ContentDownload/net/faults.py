"""What went wrong on the wire, in our words. The one place that knows the HTTP library's errors.

Promises: every error of the library becomes `CandidateRejected` or `TransientFailure`, and no text of
the library (which may quote a URL with its secrets) reaches ours.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2

from DocsToKG.ContentDownload.api.ranges import Whole
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, ContentDownloadError, LimitsAway, TransientFailure
from DocsToKG.core.backoff import parse_retry_after
from DocsToKG.core.cancel import Cancelled
from DocsToKG.core.urls import mask_url
from DocsToKG.transport.errors import (
    AddressRefused,
    BodyTooLarge,
    BodyTooShort,
    ClosedEarly,
    DeadlineExceeded,
    TlsFailed,
    TlsHandshakeFailed,
    TrustStoreUnreadable,
)


class Retryable(TransientFailure):
    """Worth another try at once. Carries what the record needs when there will be none."""

    elapsed_s: float | None = None
    content_type: str | None = None
    whole: Whole | None = None  # of a file that broke off, where its rest may be asked for by itself


class OutOfTime(Retryable):
    """The work's own time was up before the answer came: nothing against the server, and no time for another try."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error means. `passing`: it may be gone later. `retry`: worth another try at once."""

    reason: Reason
    passing: bool = False
    retry: bool = False

    def failure(self, url: str, detail: str) -> ContentDownloadError:
        if self.retry:
            return Retryable(self.reason, detail, url=mask_url(url))
        kind = TransientFailure if self.passing else CandidateRejected
        return kind(self.reason, detail, url=mask_url(url))


_CONN = Fault(Reason.CONN_ERROR, passing=True, retry=True)
_TIMEOUT = Fault(Reason.TIMEOUT, passing=True, retry=True)
_BROKEN = Fault(Reason.DOWNLOAD_ERROR, passing=True)
_BAD_URL = Fault(Reason.BAD_URL)
_LONGEST_PAUSE_S = 365 * 86_400.0
_COME_BACK_S = 5.0

# The nearest class in an error's ancestry decides, so a new subclass keeps its family's meaning.
FAULTS: dict[type[BaseException], Fault] = {
    AddressRefused: Fault(Reason.SECURITY_POLICY),
    TlsFailed: Fault(Reason.TLS_ERROR),
    TlsHandshakeFailed: Fault(Reason.TLS_ERROR, passing=True, retry=True),
    TrustStoreUnreadable: Fault(Reason.TLS_ERROR, passing=True),  # ours, and no fault of the host
    BodyTooLarge: Fault(Reason.TOO_LARGE),
    BodyTooShort: Fault(Reason.SIZE_MISMATCH, passing=True, retry=True),
    # The long time that a file may take is spent; another try would spend it again.
    DeadlineExceeded: Fault(Reason.TIMEOUT, passing=True),
    httpx2.TimeoutException: _TIMEOUT,
    httpx2.NetworkError: _CONN,
    httpx2.ProxyError: _CONN,
    ClosedEarly: _CONN,
    httpx2.ProtocolError: Fault(Reason.DOWNLOAD_ERROR),
    httpx2.UnsupportedProtocol: _BAD_URL,
    httpx2.InvalidURL: _BAD_URL,
    httpx2.TooManyRedirects: Fault(Reason.TOO_MANY_REDIRECTS),
    httpx2.DecodingError: _BROKEN,
    httpx2.SSEError: _BROKEN,
    httpx2.TransportError: _CONN,
    httpx2.HTTPStatusError: Fault(Reason.HTTP_STATUS),
    httpx2.RequestError: _BROKEN,
    httpx2.HTTPError: _BROKEN,
    httpx2.StreamError: _BROKEN,
    httpx2.CookieConflict: _BROKEN,
    ssl.SSLCertVerificationError: Fault(Reason.TLS_ERROR),
    ssl.SSLError: Fault(Reason.TLS_ERROR, passing=True, retry=True),
    OSError: _CONN,
    # A header or URL that cannot be encoded comes from outside and will not get better.
    UnicodeError: _BAD_URL,
}

WIRE_ERRORS: tuple[type[BaseException], ...] = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    httpx2.CookieConflict,
    OSError,
    UnicodeError,
)
# The same, or a cancelling that reached the transport.
WIRE_ERRORS_OR_CUT: tuple[type[BaseException], ...] = (*WIRE_ERRORS, Cancelled)


def fault_of(error: BaseException, *, in_body: bool = False, role: Role = Role.ARTIFACT) -> Fault:
    """The meaning of one of `WIRE_ERRORS`. A connection that breaks off inside a body left it short."""
    if isinstance(error, DeadlineExceeded) and role is not Role.ARTIFACT:
        # The whole time of a small answer is as short as one wait.
        return _TIMEOUT
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return _nearest(type(cause))
    if in_body and isinstance(error, httpx2.RemoteProtocolError):
        return FAULTS[BodyTooShort]
    return _nearest(type(error))


def asked_pause_s(retry_after: str | None, *, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, at most a year: dates further off name no moment we know."""
    try:
        asked_s = parse_retry_after(retry_after, now=now)
    except OverflowError:
        return None
    return None if asked_s is None else min(asked_s, _LONGEST_PAUSE_S)


def cut_off(url: str) -> LimitsAway:
    """What an exchange ends with that we cut ourselves because its slots may soon be another's."""
    detail = "the server of the shared limits was out of reach for too long"
    return LimitsAway(Reason.BACKOFF, detail, url=mask_url(url), retry_after_s=_COME_BACK_S)


def describe(error: BaseException) -> str:
    """A text that quotes nothing from outside."""
    causes = [type(cause).__name__ for cause in _causes(error)]
    return " from ".join(dict.fromkeys(causes))


def _nearest(kind: type[BaseException]) -> Fault:
    for ancestor in kind.__mro__:
        if ancestor in FAULTS:
            return FAULTS[ancestor]
    return _BROKEN


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__
