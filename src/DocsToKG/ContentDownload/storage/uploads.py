"""Uploads in parts that nobody will finish: found and aborted, since a bucket keeps and bills them unseen.

Knows the two requests of S3 for that and how they are signed (AWS Signature Version 4), because the library for objects
has neither. Signs with the key of the AWS_* variables or of the machine's role; where there is none, nothing is done
and the bucket's own rule must see to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from urllib.parse import quote, urlsplit

from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.ContentDownload.storage.credentials import Key, find_key

_LARGEST_ANSWER = 4 << 20
_MOST_PAGES = 100
_NO_BODY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Signer:
    key: Key
    region: str


def abort_orphans(bucket: Bucket, *, older_than_s: float) -> int:
    """Abort what was begun below the bucket's prefix longer ago than that; returns how many. A younger upload may be
    another machine's that is at work."""
    found = find_key()
    if found is None:
        return 0
    signer = Signer(found, os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1")
    aborted = 0
    for name, upload_id, begun in begun_uploads(bucket, signer):
        if (datetime.now(UTC) - begun).total_seconds() >= older_than_s:
            status, _ = ask(bucket, signer, "DELETE", f"/{name}", {"uploadId": upload_id})
            aborted += status in (200, 204)
    return aborted


def begun_uploads(bucket: Bucket, signer: Signer) -> list[tuple[str, str, datetime]]:
    found: list[tuple[str, str, datetime]] = []
    below = f"{bucket.prefix}/cas/" if bucket.prefix else "cas/"
    query = {"uploads": "", "prefix": below}
    for _ in range(_MOST_PAGES):
        status, text = ask(bucket, signer, "GET", "", query)
        if status != 200:
            raise OSError(f"listing uploads: status {status}")
        for one in text.split("<Upload>")[1:]:
            name = _field(one, "Key")
            if name.startswith(below):
                found.append((name, _field(one, "UploadId"), _moment(_field(one, "Initiated"))))
        if _field(text, "IsTruncated") != "true":
            break
        query |= {
            "key-marker": _field(text, "NextKeyMarker"),
            "upload-id-marker": _field(text, "NextUploadIdMarker"),
        }
    return found


def ask(bucket: Bucket, signer: Signer, method: str, path: str, query: Mapping[str, str]) -> tuple[int, str]:
    host, secure, base = _place(bucket, signer)
    full = quote(f"{base}{path}", safe="/-_.~")
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
    headers = _signed(signer, method, host, full, asked, datetime.now(UTC))
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    with contextlib.closing(kind(host, timeout=15)) as connection:
        try:
            connection.request(method, f"{full}?{asked}", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_LARGEST_ANSWER).decode("utf-8", "replace")
        except http.client.HTTPException as error:
            raise OSError(type(error).__name__) from None


def _place(bucket: Bucket, signer: Signer) -> tuple[str, bool, str]:
    """Host, whether TLS, and the path before the object's own; services of one's own have the bucket in the path."""
    if not bucket.endpoint:
        return f"s3.{signer.region}.amazonaws.com", True, f"/{bucket.name}"
    parts = urlsplit(bucket.endpoint)
    return parts.netloc.rpartition("@")[2], parts.scheme == "https", f"{parts.path.rstrip('/')}/{bucket.name}"


def _signed(signer: Signer, method: str, host: str, path: str, query: str, now: datetime) -> dict[str, str]:
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {"host": host, "x-amz-content-sha256": _NO_BODY, "x-amz-date": stamp}
    if signer.key.token:
        headers["x-amz-security-token"] = signer.key.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join((method, path, query, lines, names, _NO_BODY))
    scope = f"{day}/{signer.region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret = f"AWS4{signer.key.secret}".encode()
    for part in (day, signer.region, "s3", "aws4_request"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={signer.key.name}/{scope}"
    return headers | {"authorization": f"{credential}, SignedHeaders={names}, Signature={signature}"}


def _field(text: str, name: str) -> str:
    """Found by its ends alone: a pattern would look again from every beginning that has no end."""
    value, end, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return unescape(value) if end else ""


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
