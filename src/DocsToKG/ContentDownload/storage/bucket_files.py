"""Stored files in a bucket: open, exists, size, list, delete.

Promises: trouble is a `StorageError` that names no secret; objects younger than `settled_s` are neither listed nor
removed, since another machine may be about to write them into its record.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from DocsToKG.ContentDownload.errors import StorageError
from DocsToKG.ContentDownload.storage.bucket import Bucket, BucketAway, BucketObject
from DocsToKG.ContentDownload.storage.files import StoredFile


class BucketFiles:
    """The files of one bucket, below its prefix."""

    def __init__(self, bucket: Bucket, *, settled_s: float = 0.0, now: Callable[[], float] = time.time) -> None:
        self.bucket = bucket
        self._settled_s = settled_s
        self._now = now

    def open(self, key: str) -> BinaryIO | None:
        with self._trouble(key):
            return self.bucket.open(_checked(key))

    def exists(self, key: str) -> bool:
        return self.size(key) is not None

    def size(self, key: str) -> int | None:
        with self._trouble(key):
            found = self.bucket.find(_checked(key))
        return None if found is None else found.size

    def list(self, prefix: str) -> Iterator[StoredFile]:
        with self._trouble(prefix):
            for found in self.bucket.list(_checked(prefix)):
                if self._is_settled(found):
                    yield StoredFile(found.key, found.size)

    def delete(self, key: str) -> bool:
        with self._trouble(key):
            if self._settled_s:
                # Since it was listed, another machine may have stored the same bytes.
                found = self.bucket.find(_checked(key))
                if found is None or not self._is_settled(found):
                    return False
            return self.bucket.delete(_checked(key))

    def _is_settled(self, found: BucketObject) -> bool:
        return not self._settled_s or found.modified <= self._now() - self._settled_s

    @contextlib.contextmanager
    def _trouble(self, key: str) -> Iterator[None]:
        try:
            yield
        except BucketAway as error:
            raise StorageError(str(error)) from None
        except FileNotFoundError:
            raise StorageError(f"{self.bucket.url}/{key}: the bucket is gone") from None


def _checked(key: str) -> str:
    if any(part in ("", ".", "..") or "\0" in part for part in key.split("/")):
        raise StorageError(f"{key[:200]!r} is not the name of a stored file")
    return key
