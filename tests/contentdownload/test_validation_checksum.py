"""Published digests are compared where they can be read, and only there."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.checksum import check_headers, check_published

BODY = b"the paper"
MD5 = hashlib.md5(BODY).hexdigest()
SHA = hashlib.sha256(BODY).hexdigest()
OTHER_MD5 = hashlib.md5(b"other").hexdigest()
OTHER_SHA = hashlib.sha256(b"other").hexdigest()
S3 = "https://pmc-oa-opendata.s3.amazonaws.com/PMC1.1/PMC1.1.pdf"


def b64(hexdigest: str) -> str:
    return base64.b64encode(bytes.fromhex(hexdigest)).decode()


def published(checksum: str | None) -> None:
    check_published(checksum, md5=MD5, sha256=SHA)


def headers(url: str = "https://example.org/a.pdf", **named: str) -> None:
    check_headers({name.replace("_", "-"): value for name, value in named.items()}, md5=MD5, sha256=SHA, url=url)


@pytest.mark.parametrize("right", [f"md5:{MD5}", f"sha256:{SHA}", f"SHA-256:{SHA.upper()}", MD5, SHA])
def test_the_right_digest_passes(right):
    published(right)


@pytest.mark.parametrize("wrong", [f"md5:{OTHER_MD5}", f"sha256:{OTHER_SHA}", OTHER_MD5, f"MD5:{OTHER_MD5.upper()}"])
def test_another_digest_is_a_mismatch(wrong):
    """FAIL-07: found by digest."""
    with pytest.raises(CandidateRejected) as caught:
        published(wrong)
    assert caught.value.reason == Reason.CHECKSUM_MISMATCH


@pytest.mark.parametrize(
    "unreadable",
    [None, "", "md5:", "md5:xyz", "crc32:12345678", f"sha1:{OTHER_MD5}", f"sha256:{OTHER_MD5}", f"sha1:{'0' * 40}"],
)
def test_what_cannot_be_read_proves_nothing(unreadable):
    published(unreadable)


GOOD_HEADERS = [
    {"content_md5": b64(MD5)},
    {"content_md5": MD5},
    {"digest": f"SHA-256={b64(SHA)}, MD5={b64(MD5)}"},
    {"repr_digest": f"sha-256=:{b64(SHA)}:"},
    {"content_digest": f"sha-256=:{b64(SHA)}:, sha-512=:AAAA:"},
    {"x_amz_checksum_sha256": b64(SHA)},
]


@pytest.mark.parametrize("stated", GOOD_HEADERS)
def test_a_header_that_states_our_digest_passes(stated):
    headers(**stated)


@pytest.mark.parametrize("stated", GOOD_HEADERS)
def test_a_header_that_states_another_digest_is_a_mismatch(stated):
    swapped = {
        name: value.replace(b64(MD5), b64(OTHER_MD5)).replace(b64(SHA), b64(OTHER_SHA)).replace(MD5, OTHER_MD5)
        for name, value in stated.items()
    }
    with pytest.raises(CandidateRejected, match="checksum-mismatch"):
        headers(**swapped)


def test_the_second_digest_of_a_list_counts_too():
    with pytest.raises(CandidateRejected, match="checksum-mismatch"):
        headers(digest=f"SHA-256={b64(SHA)}, MD5={b64(OTHER_MD5)}")


def test_an_etag_is_a_digest_on_s3_alone():
    headers(url="https://example.org/a.pdf", etag=f'"{OTHER_MD5}"')
    headers(url="https://amazonaws.com.evil.example/a.pdf", etag=f'"{OTHER_MD5}"')
    headers(url=S3, etag=f'"{MD5}"')
    with pytest.raises(CandidateRejected, match="checksum-mismatch"):
        headers(url=S3, etag=f'"{OTHER_MD5}"')


@pytest.mark.parametrize(
    "stated",
    [
        {"etag": f'"{OTHER_MD5}-4"'},
        {"etag": f'W/"{OTHER_MD5}"'},
        {"etag": f'"{OTHER_MD5}"', "x_amz_server_side_encryption": "aws:kms"},
        {"etag": f'"{OTHER_MD5}"', "x_amz_server_side_encryption_customer_algorithm": "AES256"},
        {"x_amz_checksum_sha256": b64(OTHER_SHA), "x_amz_checksum_type": "COMPOSITE"},
        {"x_amz_checksum_sha256": b64(OTHER_SHA) + "-3"},
    ],
)
def test_digests_of_parts_or_of_encrypted_objects_are_passed_over(stated):
    headers(url=S3, **stated)


def test_digests_of_encoded_bytes_are_passed_over():
    """DL-06: what was compressed on the way has another digest on the way."""
    headers(content_md5=b64(OTHER_MD5), content_encoding="gzip")


@pytest.mark.parametrize("garbage", ["", "=", "!!!", "A" * 5000, "sha-256", "sha-256=::", "md5=" + "A" * 22])
def test_garbage_in_a_header_proves_nothing(garbage):
    headers(digest=garbage, repr_digest=garbage, content_md5=garbage, x_amz_checksum_sha256=garbage)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "body"
    path.write_bytes(BODY)
    return path


@pytest.mark.parametrize("name", ["sha1", "SHA-1", "sha512", "sha-512", ""])
def test_digests_that_nobody_computed_on_the_way_are_computed_from_the_file(file, name):
    algorithm = "sha512" if "512" in name else "sha1"
    right, wrong = hashlib.new(algorithm, BODY).hexdigest(), hashlib.new(algorithm, b"other").hexdigest()
    prefix = f"{name}:" if name else ""
    check_published(prefix + right, md5=MD5, sha256=SHA, file=file)
    with pytest.raises(CandidateRejected, match=f"states {algorithm}"):
        check_published(prefix + wrong, md5=MD5, sha256=SHA, file=file)


@pytest.mark.parametrize("header", ["digest", "x-amz-checksum-sha1"])
def test_a_sha1_in_a_header_is_compared(file, header):
    lead = "SHA=" if header == "digest" else ""
    right, wrong = (lead + b64(hashlib.sha1(body).hexdigest()) for body in (BODY, b"other"))
    check_headers({header: right}, MD5, SHA, "https://example.org/a", file)
    with pytest.raises(CandidateRejected):
        check_headers({header: wrong}, MD5, SHA, "https://example.org/a", file)
    check_headers({header: wrong}, MD5, SHA, "https://example.org/a")
