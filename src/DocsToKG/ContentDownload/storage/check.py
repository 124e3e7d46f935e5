"""Checks of a bucket and of a folder: reached, a file written, read and removed, room for bytes and for files.

An object of a check lies below the configured prefix in a folder of its own, away from everything that is counted as
a file. Its date tells the service's clock.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.errors import ConfigError, StorageError
from DocsToKG.ContentDownload.storage.bucket import Bucket, BucketAway
from DocsToKG.core.checks import Finding, clock, encryption, failed, missing_extra, ok, warning

_ANSWER_S = 5.0
_RETRY_S = 2.0
_WHOLE_SECONDS_S = 1.0  # a service tells no finer time
_FEW_FILES = 10_000
_PROBE = b"docstokg doctor"


def check_bucket(name: str, prefix: str, setting: str) -> Iterator[Finding]:
    """The bucket that `setting` names, below `prefix`."""
    try:
        import obstore  # noqa: F401
    except ImportError:
        yield missing_extra("s3")
        return
    step = "reachable"
    try:
        bucket = Bucket(name, prefix=prefix, timeout_s=_ANSWER_S, retry_s=_RETRY_S)
        bucket.check()
        where = _address(bucket)
        yield ok("reachable", f"{bucket.url} at {where or 'Amazon S3'}")
        step = "permissions"
        encrypted = not bucket.endpoint.startswith("http://")
        yield encryption(where, encrypted, "use https:// in AWS_ENDPOINT_URL")
        yield from _try(bucket)
    except (ConfigError, StorageError, BucketAway, FileNotFoundError) as error:
        yield failed(step, str(error) or "not found", _advice(setting))


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
    yield clock(found.modified - (before + after) / 2, unsure_s)


def _address(bucket: Bucket) -> str | None:
    return urlsplit(bucket.endpoint).hostname if bucket.endpoint else None


def _advice(setting: str) -> str:
    return (
        f"see to {setting}, AWS_ENDPOINT_URL, AWS_REGION and the credentials, and allow "
        "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload, "
        "s3:ListBucketMultipartUploads"
    )


def check_folder(path: Path, need_bytes: int = 0, want_bytes: int = 0) -> Iterator[Finding]:
    """A folder that we write to. `need_bytes` must be free for a run to start; less than `want_bytes` is a warning."""
    # Of a folder that we may not look into, the nearest one that we see.
    place = next((one for one in (path, *path.absolute().parents) if os.path.exists(one)), Path("/"))
    yield _writable(path, place)
    try:
        disk = os.statvfs(place)
    except OSError as error:
        yield failed("space", f"{place}: {error.strerror}", "see to the disk")
        return
    yield _space(need_bytes, want_bytes, disk.f_bavail * disk.f_frsize)
    yield _inodes(disk.f_favail, disk.f_files)


def _writable(path: Path, place: Path) -> Finding:
    if not place.is_dir():
        return failed("folder", f"{place} is a file", "name a folder, or move the file away")
    if place != path:
        if os.access(place, os.W_OK | os.X_OK):
            return ok("folder", f"{path} is made when it is needed")
        return failed("folder", f"{path} cannot be made in {place}", f"make it, and let uid {os.getuid()} write")
    probe = place / f".docstokg-doctor-{secrets.token_hex(8)}"
    try:
        _write_and_read(probe)
    except OSError as error:
        return failed("folder", f"{place}: {error.strerror}", f"let uid {os.getuid()} write there")
    return ok("folder", f"{place}: a file was written, read and removed")


def _space(need: int, want: int, free: int) -> Finding:
    if free < need:
        advice = f"make room: a run does not start below {_size(need)} (storage.min_free_bytes)"
        return failed("space", f"{_size(free)} free", advice)
    if free < want:
        advice = "make room, or lower storage.staging_bytes"
        return warning("space", f"{_size(free)} free, and {_size(want)} may be on the way", advice)
    return ok("space", f"{_size(free)} free")


def _write_and_read(probe: Path) -> None:
    file = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, _PROBE)
        os.fsync(file)
        if os.pread(file, 100, 0) != _PROBE:
            raise OSError(5, "what was written did not come back")
    finally:
        os.close(file)
        os.unlink(probe)


def _inodes(free: int, all_files: int) -> Finding:
    if all_files == 0:
        return ok("inodes", "not counted by this kind of disk")
    if free >= _FEW_FILES:
        return ok("inodes", f"{free} free")
    return warning("inodes", f"{free} free", "remove small files, or use a disk with more inodes")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
