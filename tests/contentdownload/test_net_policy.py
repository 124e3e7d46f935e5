"""URL policy, headers, and the translation of every error of the HTTP library."""

from __future__ import annotations

import asyncio
import inspect
import ssl

import httpx2
import pytest

from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.rules import source_rules
from DocsToKG.ContentDownload.config.sources import PolicyConfig
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.httpx import client as promised_client
from DocsToKG.ContentDownload.httpx import hishel_build
from DocsToKG.ContentDownload.net import build, cache, client
from DocsToKG.ContentDownload.net.faults import FAULTS, WIRE_ERRORS, Retryable, describe, fault_of
from DocsToKG.ContentDownload.net.policy import (
    Admitted,
    CredentialTransport,
    HostCredentials,
    UrlPolicy,
    role_headers,
)
from DocsToKG.ContentDownload.way_out import source_policy
from DocsToKG.core.bucket import TokenBucket
from DocsToKG.transport.errors import (
    AddressRefused,
    BodyTooLarge,
    BodyTooShort,
    CertificateExpired,
    CertificateForAnotherName,
    CertificateUntrusted,
    ClosedEarly,
    CompressedBodyCut,
    ConnectionWentStale,
    DeadlineExceeded,
    HeadersTooLarge,
    NameNotFound,
    TlsFailed,
    TlsHandshakeFailed,
    TrustStoreUnreadable,
)


@pytest.mark.parametrize(
    ("url", "admitted"),
    [
        ("https://A.org", Admitted("https://a.org/")),
        ("https://me:pw@a.org/x#frag", Admitted("https://a.org/x")),
        ("http://a.org:80/x", Admitted("https://a.org/x", was_http=True)),
        ("http://a.org:8080/x", Admitted("https://a.org:8080/x", was_http=True)),
        ("http://old.org/x", Admitted("https://old.org/x", "http://old.org/x", True)),
        ("http://old.org:81/x", Admitted("https://old.org:81/x", "http://old.org:81/x", True)),
        ("http://odd.org:81/x", Admitted("https://odd.org:81/x", "http://odd.org:81/x", True)),
        ("http://odd.org/x", Admitted("https://odd.org/x", was_http=True)),
    ],
)
def test_http_becomes_https_and_stays_a_fallback_for_listed_hosts(url: str, admitted: Admitted) -> None:
    """NET-10"""
    assert UrlPolicy(http_hosts=["Old.org", "odd.org:81"]).admit(url) == admitted


@pytest.mark.parametrize(
    "url", ["", "ftp://a.org/", "javascript:alert(1)", "//a.org/x", "https://", "file:///etc/passwd"]
)
def test_what_is_no_web_address_is_a_bad_url(url: str) -> None:
    with pytest.raises(CandidateRejected) as caught:
        UrlPolicy().admit(url)
    assert caught.value.reason == Reason.BAD_URL


def test_a_key_is_dropped_only_when_the_redirect_leaves_the_host() -> None:
    """NET-13"""
    policy = UrlPolicy(credentials={"a.org": HostCredentials(params={"k": "0th3r"})})
    assert policy.leave("https://a.org/1?token=abc", "https://a.org/2?token=abc") == "https://a.org/2?token=abc"
    assert policy.leave("https://a.org/1?token=abc", "https://b.org/2?t=abc&v=1") == "https://b.org/2?v=1"
    assert policy.leave("https://a.org/1", "https://b.org/2?k=0th3r") == "https://b.org/2"
    signed = "https://b.org/2?X-Amz-Signature=new&X-Amz-Date=1"
    assert policy.leave("https://a.org/1?token=abc", signed) == signed


def test_a_key_of_a_header_does_not_leave_in_an_address() -> None:
    """SEC: a service may copy the key it was shown into where it sends us."""
    policy = UrlPolicy(credentials={"a.org": HostCredentials(headers={"Authorization": "Bearer s3cr3t-key"})})
    assert policy.leave("https://a.org/1", "https://b.org/2?k=s3cr3t-key&v=1") == "https://b.org/2?v=1"
    assert policy.leave("https://a.org/1", "https://b.org/2?to=x%3Ds3cr3t-key") == "https://b.org/2"
    assert policy.leave("https://a.org/1", "https://a.org/2?k=s3cr3t-key") == "https://a.org/2?k=s3cr3t-key"
    with pytest.raises(CandidateRejected, match="carry our key away") as caught:
        policy.leave("https://a.org/1", "https://b.org/s3cr3t%2Dkey/2")
    assert "s3cr3t" not in str(caught.value)


def test_a_redirect_keeps_what_only_records_hide() -> None:
    """Masking is for records: a request with another `code` or `policy` would be another request."""
    kept = "https://b.org/2?code=7&session=3B&policy=open"
    assert UrlPolicy().leave("https://a.org/1?code=7&session=3B&policy=open", kept) == kept


def test_credentials_go_to_their_host_over_https_only() -> None:
    seen: list[httpx2.Request] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200)

    held = {"a.org": HostCredentials({"x-key": "k"}, {"mailto": "me@x.org"})}
    transport = CredentialTransport(httpx2.MockTransport(serve), credentials=held)
    for url in ("https://a.org/w?x=1", "https://a.org/w", "http://a.org/w", "https://b.org/w"):
        asyncio.run(transport.handle_async_request(httpx2.Request("GET", url)))
    assert [str(request.url) for request in seen] == [
        "https://a.org/w?x=1&mailto=me%40x.org",
        "https://a.org/w?mailto=me%40x.org",
        "http://a.org/w",
        "https://b.org/w",
    ]
    assert ["x-key" in request.headers for request in seen] == [True, True, False, False]
    assert "me@x.org" not in repr(held)


def test_headers_follow_the_role_and_a_source_may_override_them() -> None:
    """NET-14, NET-15"""
    headers = role_headers(Role.METADATA, "DocsToKG/0.1 (+mailto:me@x.org)", {"Accept": "application/vnd.x+json"})
    assert headers["accept"] == "application/vnd.x+json"
    assert headers["user-agent"] == "DocsToKG/0.1 (+mailto:me@x.org)"
    assert role_headers(Role.ARTIFACT, "a", {"User-Agent": "b"})["user-agent"] == "b"


def test_every_error_of_the_library_has_a_meaning_of_ours() -> None:
    """A new release with a new exception fails here, until somebody has thought about it."""
    found = [kind for _, kind in inspect.getmembers(httpx2, inspect.isclass) if issubclass(kind, Exception)]
    assert len(found) > 20
    for kind in found:
        assert issubclass(kind, WIRE_ERRORS), f"{kind.__name__} would pass untranslated"
        assert any(ancestor in FAULTS for ancestor in kind.__mro__), f"{kind.__name__} is unmapped"


@pytest.mark.parametrize(
    ("error", "reason", "kind"),
    [
        (httpx2.ConnectTimeout("x"), Reason.TIMEOUT, Retryable),
        (DeadlineExceeded("x"), Reason.TIMEOUT, TransientFailure),  # of a file, whose time is long
        (httpx2.ConnectError("x"), Reason.CONN_ERROR, Retryable),
        (httpx2.ReadError("x"), Reason.CONN_ERROR, Retryable),
        (httpx2.ProxyError("x"), Reason.CONN_ERROR, Retryable),
        (AddressRefused("x"), Reason.SECURITY_POLICY, CandidateRejected),
        (TlsFailed("x"), Reason.TLS_ERROR, CandidateRejected),
        (CertificateUntrusted("x"), Reason.TLS_ERROR, CandidateRejected),
        (CertificateExpired("x"), Reason.TLS_ERROR, CandidateRejected),
        (CertificateForAnotherName("x"), Reason.TLS_ERROR, CandidateRejected),
        (TlsHandshakeFailed("x"), Reason.TLS_ERROR, Retryable),
        (TrustStoreUnreadable("x"), Reason.TLS_ERROR, TransientFailure),
        (NameNotFound("x"), Reason.CONN_ERROR, Retryable),
        (ConnectionWentStale("x"), Reason.CONN_ERROR, Retryable),
        (ClosedEarly("x"), Reason.CONN_ERROR, Retryable),
        (HeadersTooLarge("x"), Reason.DOWNLOAD_ERROR, CandidateRejected),
        (CompressedBodyCut(received=1), Reason.SIZE_MISMATCH, Retryable),
        (BodyTooLarge(limit=1), Reason.TOO_LARGE, CandidateRejected),
        (BodyTooShort(expected=9, received=1), Reason.SIZE_MISMATCH, Retryable),
        (httpx2.RemoteProtocolError("x"), Reason.DOWNLOAD_ERROR, CandidateRejected),
        (httpx2.UnsupportedProtocol("x"), Reason.BAD_URL, CandidateRejected),
        (httpx2.InvalidURL("x"), Reason.BAD_URL, CandidateRejected),
        (httpx2.DecodingError("x"), Reason.DOWNLOAD_ERROR, TransientFailure),
        (ConnectionResetError("x"), Reason.CONN_ERROR, Retryable),
    ],
)
def test_an_error_says_what_to_do_next(error: Exception, reason: Reason, kind: type[Exception]) -> None:
    """NET-08, NET-09"""
    failure = fault_of(error).failure("https://a.org/x?token=s3cret", describe(error))
    assert type(failure) is kind
    assert failure.reason == reason  # type: ignore[attr-defined]
    assert "s3cret" not in f"{failure} {failure.url}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", [Role.METADATA, Role.LANDING])
def test_a_small_answer_that_took_all_its_time_is_worth_another_try(role: Role) -> None:
    assert fault_of(DeadlineExceeded("x"), role=role).retry
    assert not fault_of(DeadlineExceeded("x"), role=Role.ARTIFACT).retry


def test_a_certificate_that_is_not_trusted_is_a_tls_error_whatever_wraps_it() -> None:
    """NET-11"""
    error = httpx2.ConnectError("x")
    error.__cause__ = ssl.SSLCertVerificationError("bad")
    assert fault_of(error).failure("https://a.org/", "").reason == Reason.TLS_ERROR  # type: ignore[attr-defined]


def test_promised_names_are_the_real_ones() -> None:
    assert promised_client.RateRetryClient is client.RateRetryClient
    assert promised_client.TokenBucket is TokenBucket
    assert hishel_build.build_cache_transport is cache.build_cache_transport
    assert hishel_build.build_http_stack is build.build_http_stack


def test_a_source_with_a_timeout_of_its_own_waits_that_long() -> None:
    """NET-16: the policy wins for its source; the general read timeout is for those without one."""
    cfg = load_config(
        None, {"http": {"timeout_read_s": 4}, "policies": {"unpaywall_pdf": {"timeout_s": 90}}}, environ={}
    )
    assert source_policy(cfg, source_rules(cfg, "unpaywall"), "DocsToKG/1").wait_s == 90.0
    cfg.policies["unpaywall_pdf"] = PolicyConfig()
    assert source_policy(cfg, source_rules(cfg, "unpaywall"), "DocsToKG/1").wait_s == 4.0
