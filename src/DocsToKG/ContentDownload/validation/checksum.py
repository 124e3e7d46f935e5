"""Digests that somebody else published, compared with ours.

Knows the forms in which repositories and servers state a digest. A digest it cannot read, or whose
algorithm we do not compute, proves nothing either way and is passed over.
Promises: `CandidateRejected(checksum-mismatch)` when a readable digest differs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.source import Source, open_source

_HEX = re.compile(r"(?:[0-9a-f]{2}){16,64}", re.ASCII)
_BYTES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_BY_LENGTH = {2 * size: name for name, size in _BYTES.items()}
_NAMES = {
    "md5": "md5", "sha1": "sha1", "sha-1": "sha1", "sha": "sha1", "sha256": "sha256", "sha-256": "sha256",
    "sha512": "sha512", "sha-512": "sha512",
}  # fmt: skip
# `Digest: SHA-256=<base64>, MD5=<base64>` (RFC 3230) and `Repr-Digest: sha-256=:<base64>:` (RFC 9530).
_ITEM = re.compile(r"\s*([A-Za-z0-9-]{1,20})=:?([A-Za-z0-9+/=]{1,200}):?\s*")
_STATED_IN = frozenset(
    {"digest", "repr-digest", "content-digest", "content-md5", "x-amz-checksum-sha256", "x-amz-checksum-sha1"}
)
_MD5_ETAG = re.compile(r'"[0-9a-fA-F]{32}"')


def check_published(checksum: str | None, *, md5: str, sha256: str, file: Source | None = None) -> None:
    """Compare with a digest from a repository's record: `md5:<hex>`, `sha1:<hex>`, ... or the bare hex.

    `file` is for digests that nobody computed while it came; without it they are passed over.
    """
    if not checksum:
        return
    name, _, value = checksum.strip().lower().rpartition(":")
    if not _HEX.fullmatch(value):
        return
    by_length = _BY_LENGTH.get(len(value))
    algorithm = _NAMES.get(name) if name else by_length
    if algorithm is not None and algorithm == by_length:
        _compare("published record", algorithm, value, {"md5": md5, "sha256": sha256}, file)


def check_headers(headers: Mapping[str, str], md5: str, sha256: str, url: str, file: Source | None = None) -> None:
    """Compare with every digest the answer's headers state about the bytes. Header names are lower case."""
    # These digests are of the bytes as sent; once they were decoded there is nothing to compare.
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        return
    for header, algorithm, value in _stated(headers, url):
        _compare(f"header {header}", algorithm, value, {"md5": md5, "sha256": sha256}, file)


def _stated(headers: Mapping[str, str], url: str) -> Iterator[tuple[str, str, str]]:
    """(header, algorithm, hex) of each readable digest."""
    if not _STATED_IN.isdisjoint(headers):
        yield from _in_headers_of_digests(headers)
    if _etag_is_md5(headers, url):
        yield "etag", "md5", headers["etag"].strip('"').lower()


def _in_headers_of_digests(headers: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for header in ("digest", "repr-digest", "content-digest"):
        for item in headers[header][:2000].split(",") if header in headers else ():
            match = _ITEM.fullmatch(item)
            if match and (algorithm := _NAMES.get(match[1].lower())):
                yield from _readable(header, algorithm, match[2])
    yield from _readable("content-md5", "md5", headers.get("content-md5", ""))
    # A multipart upload's checksum is of its parts' checksums, and says so.
    if headers.get("x-amz-checksum-type", "").upper() != "COMPOSITE":
        for algorithm in ("sha256", "sha1"):
            header = f"x-amz-checksum-{algorithm}"
            yield from _readable(header, algorithm, headers.get(header, ""))


def _readable(header: str, algorithm: str, text: str) -> Iterator[tuple[str, str, str]]:
    text = text.strip()
    if not text:
        return
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
    etag = headers.get("etag", "")
    if not _MD5_ETAG.fullmatch(etag):
        return False
    host = (urlsplit(url).hostname or "").lower()
    encrypted = headers.get("x-amz-server-side-encryption", "").lower().startswith("aws:kms")
    customer_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    s3 = host == "amazonaws.com" or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
    return s3 and not encrypted and not customer_key


def _compare(where: str, algorithm: str, stated: str, known: Mapping[str, str], file: Source | None) -> None:
    ours = known.get(algorithm) or (_digest(file, algorithm) if file is not None else None)
    if ours is not None and stated != ours:
        raise CandidateRejected(Reason.CHECKSUM_MISMATCH, f"{where} states {algorithm} {stated}, the bytes have {ours}")


def _digest(source: Source, algorithm: str) -> str:
    with open_source(source) as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
