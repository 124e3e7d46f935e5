"""A bucket: reached, listed, an object written, read, removed; by its date the service's clock.

The object lies below the configured prefix in a folder of its own, away from everything that is counted as a file.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.doctor import remote
from DocsToKG.ContentDownload.doctor.base import Finding, failed, missing_extra, ok
from DocsToKG.ContentDownload.errors import ConfigError, StorageError
from DocsToKG.ContentDownload.storage.bucket import Bucket, BucketAway

_ANSWER_S = 5.0
_RETRY_S = 2.0
_WHOLE_SECONDS_S = 1.0  # a service tells no finer time


@dataclass(slots=True)
class BucketCheck:
    """The bucket that `setting` names, below `prefix`."""

    name: str
    bucket: str
    prefix: str
    setting: str
    needed: bool = True

    def look(self) -> Iterator[Finding]:
        try:
            import obstore  # noqa: F401
        except ImportError:
            yield missing_extra("s3")
            return
        step = "reachable"
        try:
            bucket = Bucket(self.bucket, prefix=self.prefix, timeout_s=_ANSWER_S, retry_s=_RETRY_S)
            bucket.check()
            where = _address(bucket)
            yield ok("reachable", f"{bucket.url} at {where or 'Amazon S3'}")
            step = "permissions"
            encrypted = not bucket.endpoint.startswith("http://")
            yield remote.encryption(where, encrypted, "use https:// in AWS_ENDPOINT_URL")
            yield from _try(bucket)
        except (ConfigError, StorageError, BucketAway, FileNotFoundError) as error:
            yield failed(step, str(error) or "not found", _advice(self.setting))


def _try(bucket: Bucket) -> Iterator[Finding]:
    key, body = f".docstokg-doctor/{secrets.token_hex(8)}", secrets.token_bytes(64)
    before = time.time()
    bucket.put(key, body, len(body), name="probe.bin")
    after = time.time()
    try:
        found = bucket.find(key)
        same = found is not None and bucket.read(key, 0, len(body)) == body
    finally:
        removed = bucket.delete(key)
    if not same or found is None:
        yield failed("permissions", "what was written did not come back", "see what stands between us and the bucket")
        return
    yield ok("permissions", "an object was written, read and removed" if removed else "an object was written and read")
    unsure_s = (after - before) / 2 + _WHOLE_SECONDS_S
    yield remote.clock(found.modified - (before + after) / 2, unsure_s)


def _address(bucket: Bucket) -> str | None:
    return urlsplit(bucket.endpoint).hostname if bucket.endpoint else None


def _advice(setting: str) -> str:
    return (
        f"see to {setting}, AWS_ENDPOINT_URL, AWS_REGION and the credentials, and allow "
        "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload, "
        "s3:ListBucketMultipartUploads"
    )
