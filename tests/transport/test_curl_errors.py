"""Every code of libcurl has an error that callers know, and no text of libcurl's reaches them."""

from __future__ import annotations

import httpx2
import pycurl
import pytest

from DocsToKG.ContentDownload.net.faults import FAULTS, WIRE_ERRORS
from DocsToKG.transport.curl.failures import Failure, error_of
from DocsToKG.transport.errors import (
    BodyTooShort,
    CertificateExpired,
    CertificateForAnotherName,
    CertificateUntrusted,
    TlsFailed,
)

CODES = sorted(
    {
        value
        for name, value in vars(pycurl).items()
        if name.startswith("E_") and not name.startswith("E_MULTI") and isinstance(value, int) and value > 0
    }
    | set(range(1, 110))
)
SECRET = "https://papers.example.org/x?key=hunter2"


@pytest.mark.parametrize("code", CODES)
def test_every_code_becomes_a_named_error_without_libcurls_text(code):
    for proxied in (False, True):
        for head_seen in (False, True):
            error = error_of(Failure(code, SECRET, "papers.example.org", proxied=proxied, head_seen=head_seen))
            assert isinstance(error, httpx2.RequestError)
            assert isinstance(error, WIRE_ERRORS)
            assert any(kind in FAULTS for kind in type(error).__mro__)
            assert "hunter2" not in str(error)
            assert str(error)


@pytest.mark.parametrize("code", [c for c in CODES if "SSL" in str(error_of(Failure(c, "", "h"))) or c in (35, 60, 77)])
def test_tls_codes_are_tls_failures(code):
    assert isinstance(error_of(Failure(code, "", "h")), TlsFailed)


@pytest.mark.parametrize(
    ("verify", "text", "kind"),
    [
        (10, "SSL certificate problem: certificate has expired", CertificateExpired),
        (9, "SSL certificate problem: certificate is not yet valid", CertificateExpired),
        (18, "SSL certificate problem: self-signed certificate", CertificateUntrusted),
        (20, "SSL certificate problem: unable to get local issuer certificate", CertificateUntrusted),
        (62, "", CertificateForAnotherName),
        (1, "SSL: no alternative certificate subject name matches target hostname 'h'", CertificateForAnotherName),
        (0, "SSL: certificate subject name 'x' does not match target hostname 'h'", CertificateForAnotherName),
        (0, "", CertificateUntrusted),
    ],
)
def test_the_one_code_for_certificates_is_told_apart(verify, text, kind):
    assert type(error_of(Failure(60, text, "h", verify_result=verify))) is kind


def test_a_short_body_says_how_short():
    error = error_of(Failure(18, "", "h", head_seen=True, announced=100, received=7))
    assert isinstance(error, BodyTooShort)
    assert (error.expected, error.received) == (100, 7)
