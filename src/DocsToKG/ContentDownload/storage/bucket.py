"""One bucket of an S3 service: put, size, read, list, delete.

Knows obstore, its errors and the tags that services give to objects. Endpoint, region and credentials come from the
usual AWS_* variables or the machine's own role, never from our files. Promises: an object is visible whole or not at
all; no address with a signature and no key ever stands in an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, BinaryIO

from DocsToKG.ContentDownload.errors import ConfigError, StorageError
from DocsToKG.core.urls import mask_url

PART_BYTES = 8 << 20
# Objects that no record names are removed when they are this old; a younger one may be about to be recorded.
SETTLED_S = 3600.0

_PARTS_AT_ONCE = 4
_BLOCK = 1 << 20
_MD5_TAG = re.compile(r"[0-9a-f]{32}(-[0-9]+)?", re.ASCII)
# A refused listing has no class of its own in the library.
_REFUSED = re.compile(r"\b(401 Unauthorized|403 Forbidden|SignatureDoesNotMatch|InvalidAccessKeyId|AccessDenied)\b")
_TYPES = {".pdf": "application/pdf", ".html": "text/html", ".xml": "application/xml"}


class BucketAway(Exception):
    """The service does not answer, or says that something went wrong on its side: it may work later."""


@dataclass(frozen=True, slots=True)
class BucketObject:
    """What a service tells of an object; `modified` in seconds since 1970."""

    key: str
    size: int
    tag: str
    modified: float


class Bucket:
    """The objects below `prefix` in `name`. Opening it asks nothing of the service."""

    def __init__(self, name: str, *, prefix: str = "", timeout_s: float = 60.0, retry_s: float = 10.0) -> None:
        self.name = name
        self.prefix = prefix.strip("/")
        self.endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        self._library, self._errors = _library()
        options: dict[str, Any] = {"endpoint": self.endpoint} if self.endpoint else {}
        with self._failing():
            self._store: Any = self._library.store.S3Store(
                name,
                prefix=self.prefix or None,
                client_options={
                    "timeout": timedelta(seconds=timeout_s),
                    "connect_timeout": timedelta(seconds=3),
                    "allow_http": self.endpoint.startswith("http://"),
                },
                retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=retry_s)},
                **options,
            )

    @property
    def url(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def check(self) -> None:
        """Raise `ConfigError` unless the bucket is there and may be read."""
        try:
            with self._failing():
                # An empty listing is an answer too; only a bucket that is there and ours gives one.
                next(iter(self._library.list(self._store, chunk_size=1)), None)
        except (BucketAway, StorageError, FileNotFoundError) as error:
            why = "there is no such bucket" if isinstance(error, FileNotFoundError) else str(error)
            raise ConfigError(
                f"storage.s3_bucket: {self.name!r} cannot be used at {self._address()}: {why}; see to "
                "AWS_ENDPOINT_URL, AWS_REGION and the credentials "
                "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or the machine's role)"
            ) from None

    def put(self, key: str, source: bytes | BinaryIO, size: int, *, name: str) -> None:
        """Make the object appear whole. `name` is what those see who fetch it by other means."""
        attributes = {"Content-Disposition": f'inline; filename="{name}"'}
        content_type = _TYPES.get(os.path.splitext(name)[1])
        if content_type is not None:
            attributes["Content-Type"] = content_type
        with self._failing():
            self._library.put(
                self._store,
                key,
                source,
                attributes=attributes,
                use_multipart=size > PART_BYTES,
                chunk_size=PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def find(self, key: str) -> BucketObject | None:
        with self._failing():
            try:
                return _object(self._library.head(self._store, key))
            except FileNotFoundError:
                return None

    def open(self, key: str, *, broke_off: Callable[[str], Exception] = StorageError) -> io.BufferedReader | None:
        """The object for reading, block by block; None when it is not here. `broke_off` makes the error of a read that
        the service does not answer."""
        found = self.find(key)
        return None if found is None else io.BufferedReader(_Blocks(self, found, broke_off), _BLOCK)

    def read(self, key: str, start: int, length: int) -> bytes:
        with self._failing():
            return bytes(self._library.get_range(self._store, key, start=start, length=length))

    def list(self, prefix: str) -> Iterator[BucketObject]:
        """What lies below a folder, in the order of the keys."""
        with self._failing():
            for batch in self._library.list(self._store, prefix=prefix, chunk_size=1000):
                yield from map(_object, batch)

    def delete(self, key: str) -> bool:
        """Whether there was something to delete."""
        if self.find(key) is None:
            return False
        with self._failing(), contextlib.suppress(FileNotFoundError):
            self._library.delete(self._store, key)
        return True

    def digest(self, key: str) -> str | None:
        """The SHA-256 of what the service gives back."""
        opened = self.open(key)
        if opened is None:
            return None
        with opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    def _address(self) -> str:
        return mask_url(self.endpoint) if self.endpoint else "Amazon S3"

    def _is_refusal(self, error: Exception) -> bool:
        refusals = (self._errors.PermissionDeniedError, self._errors.UnauthenticatedError, PermissionError)
        return isinstance(error, refusals) or _REFUSED.search(str(error)) is not None

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """The text of the library's errors holds addresses and signatures: only their kind is told."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (self._errors.BaseError, OSError) as error:
            if self._is_refusal(error):
                raise StorageError(
                    f"{self.url} at {self._address()}: the credentials are refused or may not do this; see to "
                    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (or the machine's role) and the bucket's policy"
                ) from None
            raise BucketAway(f"{self.url} at {self._address()} does not answer ({type(error).__name__})") from None
        except ValueError as error:
            raise ConfigError(f"storage.s3_bucket: {self.name!r} cannot be used ({type(error).__name__})") from None


class _Blocks(io.RawIOBase):
    """An object read in ranges: no connection is held between two of them, and a slow reader costs the service none."""

    def __init__(self, bucket: Bucket, found: BucketObject, broke_off: Callable[[str], Exception]) -> None:
        self._bucket = bucket
        self._broke_off = broke_off
        self._object = found
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._object.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readall(self) -> bytes:
        """In blocks of their own: the usual way asks for a few thousand bytes at a time."""
        pieces = []
        block = bytearray(PART_BYTES)
        while count := self.readinto(block):
            pieces.append(bytes(block[:count]))
        return b"".join(pieces)

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._object.size - self._at)
        if length <= 0:
            return 0
        try:
            data = self._bucket.read(self._object.key, self._at, length)
        except (BucketAway, FileNotFoundError) as error:
            raise self._broke_off(f"{self._bucket.url}/{self._object.key}: reading broke off ({error})") from None
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class Tags:
    """What a service says of whole bytes: their MD5, or in parts the MD5 of the parts' MD5s and their number."""

    def __init__(self, source: bytes | BinaryIO, size: int) -> None:
        view = memoryview(source) if isinstance(source, bytes) else None
        whole = hashlib.md5(usedforsecurity=False)
        parts: list[bytes] = []
        for start in range(0, size, PART_BYTES):
            part = view[start : start + PART_BYTES] if view is not None else source.read(PART_BYTES)  # type: ignore[union-attr]
            whole.update(part)
            parts.append(hashlib.md5(part, usedforsecurity=False).digest())
        together = hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()
        self._known = {whole.hexdigest(), f"{together}-{len(parts)}"}

    def prove(self, tag: str) -> bool:
        """False proves nothing: encrypted objects and parts of other sizes have other tags."""
        return _MD5_TAG.fullmatch(tag) is not None and tag in self._known


def _object(meta: Any) -> BucketObject:
    tag = str(meta["e_tag"] or "").removeprefix("W/").strip('"')
    return BucketObject(str(meta["path"]), int(meta["size"]), tag, meta["last_modified"].timestamp())


def _library() -> tuple[Any, Any]:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise ConfigError(
            "storage.backend: 's3' needs a package that is not installed; get it with: pip install 'docstokg[s3]'"
        ) from None
    return obstore, obstore.exceptions
