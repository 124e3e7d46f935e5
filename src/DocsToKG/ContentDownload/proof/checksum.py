"""Digests that somebody else published, compared with ours.

Knows the forms in which repositories and servers state a digest. A digest it cannot read, or whose
algorithm we do not compute, proves nothing either way and is passed over.
Promises: `CandidateRejected(checksum-mismatch)` when a readable digest differs.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected

_HEX = re.compile(r"[0-9a-f]{32}(?:[0-9a-f]{32})?", re.ASCII)
_BYTES = {"md5": 16, "sha256": 32}
_NAMES = {"md5": "md5", "sha256": "sha256", "sha-256": "sha256"}
# `Digest: SHA-256=<base64>, MD5=<base64>` (RFC 3230) and `Repr-Digest: sha-256=:<base64>:` (RFC 9530).
_ITEM = re.compile(r"\s*([A-Za-z0-9-]{1,20})=:?([A-Za-z0-9+/=]{1,200}):?\s*")


def check_published(checksum: str | None, *, md5: str, sha256: str) -> None:
    """Compare with a digest from a repository's record: `md5:<hex>`, `sha256:<hex>` or the bare hex."""
    name, _, value = (checksum or "").strip().lower().rpartition(":")
    if not _HEX.fullmatch(value):
        return
    by_length = "md5" if len(value) == 32 else "sha256"
    algorithm = _NAMES.get(name) if name else by_length
    if algorithm == by_length:
        _compare("published record", algorithm, value, {"md5": md5, "sha256": sha256})


def check_headers(headers: Mapping[str, str], md5: str, sha256: str, url: str) -> None:
    """Compare with every digest the answer's headers state about the bytes. Header names are lower case."""
    # These digests are of the bytes as sent; once they were decoded there is nothing to compare.
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        return
    for header, algorithm, value in _stated(headers, url):
        _compare(f"header {header}", algorithm, value, {"md5": md5, "sha256": sha256})


def _stated(headers: Mapping[str, str], url: str) -> Iterator[tuple[str, str, str]]:
    """(header, algorithm, hex) of each readable digest."""
    for header in ("digest", "repr-digest", "content-digest"):
        for item in headers.get(header, "")[:2000].split(","):
            match = _ITEM.fullmatch(item)
            if match and (algorithm := _NAMES.get(match[1].lower())):
                yield from _readable(header, algorithm, match[2])
    yield from _readable("content-md5", "md5", headers.get("content-md5", ""))
    # A multipart upload's checksum is of its parts' checksums, and says so.
    if headers.get("x-amz-checksum-type", "").upper() != "COMPOSITE":
        yield from _readable("x-amz-checksum-sha256", "sha256", headers.get("x-amz-checksum-sha256", ""))
    if _etag_is_md5(headers, url):
        yield "etag", "md5", headers["etag"].strip('"').lower()


def _readable(header: str, algorithm: str, text: str) -> Iterator[tuple[str, str, str]]:
    text = text.strip()
    # Some servers write hex where base64 belongs.
    if len(text) == 2 * _BYTES[algorithm] and _HEX.fullmatch(text.lower()):
        yield header, algorithm, text.lower()
        return
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return
    if len(raw) == _BYTES[algorithm]:
        yield header, algorithm, raw.hex()


def _etag_is_md5(headers: Mapping[str, str], url: str) -> bool:
    """Only S3 makes the ETag the MD5, and not for multipart uploads (a dash) or objects under a customer's key."""
    host = (urlsplit(url).hostname or "").lower()
    etag = headers.get("etag", "")
    encrypted = headers.get("x-amz-server-side-encryption", "").lower().startswith("aws:kms")
    customer_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    s3 = host == "amazonaws.com" or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
    return s3 and not encrypted and not customer_key and bool(re.fullmatch(r'"[0-9a-fA-F]{32}"', etag))


def _compare(where: str, algorithm: str, stated: str, ours: Mapping[str, str]) -> None:
    if stated != ours[algorithm]:
        raise CandidateRejected(
            Reason.CHECKSUM_MISMATCH, f"{where} states {algorithm} {stated}, the bytes have {ours[algorithm]}"
        )
