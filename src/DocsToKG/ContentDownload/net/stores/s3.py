"""Cache entries as objects of an S3 bucket, shared by every machine that names it.

`entries/<2>/<key>/<id>.json` holds the headers and is written after `<id>.body`, so nobody sees half an entry. Knows
obstore and its errors. Endpoint, region and credentials come from the usual AWS_* variables, never from our files.
"""

from __future__ import annotations

import contextlib
import io
import os
import uuid
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, BinaryIO

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.pending import PendingBody
from DocsToKG.ContentDownload.net.stores.base import Entry, StoreFailed
from DocsToKG.core.urls import mask_url

try:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store
except ImportError:
    raise ConfigError(
        "hishel.backend: 's3' needs a package that is not installed; get it with: pip install 'docstokg[s3]'"
    ) from None

_LARGEST_BODY = 16 * 1024 * 1024
_LARGEST_HEAD = 512 * 1024
# A body is in place just before its head; a young orphan may be about to get it.
_ORPHAN_S = 3600.0


class S3Backend:
    """The entries below `prefix` in `bucket`."""

    shared = slow = True
    rest_s = 5.0

    def __init__(self, bucket: str, *, prefix: str) -> None:
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        try:
            self._store: Any = S3Store(
                bucket,
                prefix=prefix.strip("/") or None,
                client_options={
                    "timeout": "15s",
                    "connect_timeout": "3s",
                    "allow_http": endpoint.startswith("http://"),
                },
                retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=10)},
            )
            # An empty listing is an answer too; only a bucket that is there and ours gives one.
            next(iter(obstore.list(self._store, chunk_size=1)), None)
        except (BaseError, OSError, ValueError) as error:
            raise ConfigError(
                f"hishel.s3_bucket: {bucket!r} cannot be used at {_address(endpoint)} ({_kind(error)}); see to "
                "AWS_ENDPOINT_URL, AWS_REGION and the credentials, or set hishel.backend to 'file'"
            ) from None

    def new_body(self) -> PendingBody | None:
        return PendingBody.spooled(largest=_LARGEST_BODY)

    def heads(self, key: str) -> list[tuple[str, bytes]]:
        found = []
        for path in sorted(self._paths(_folder(key))):
            if path.endswith(".json") and (head := self._read(path, _LARGEST_HEAD)) is not None:
                found.append((_id(path), head))
        return found

    def body(self, key: str, entry_id: str) -> BinaryIO | None:
        content = self._read(_body(key, entry_id), _LARGEST_BODY)
        return None if content is None else io.BytesIO(content)

    def put(self, entry: Entry, body: PendingBody | None, *, replaced: Iterable[str]) -> None:
        with _failing():
            if body is not None:
                obstore.put(self._store, _body(entry.key, entry.id), body.content(), use_multipart=False)
            obstore.put(self._store, _head(entry.key, entry.id), entry.head, use_multipart=False)
        self.delete(entry.key, replaced)

    def rewrite(self, entry: Entry) -> None:
        with _failing(), contextlib.suppress(FileNotFoundError):
            obstore.head(self._store, _head(entry.key, entry.id))
            obstore.put(self._store, _head(entry.key, entry.id), entry.head, use_multipart=False)

    def delete(self, key: str, entry_ids: Iterable[str]) -> None:
        for entry_id in entry_ids:
            self._delete([_head(key, entry_id), _body(key, entry_id)])

    def flush(self) -> None:
        """Nothing waits here."""

    def sweep(self, shard: int, *, now: float, ttl_s: float) -> None:
        """By the age of the objects, since reading every head would cost a request each."""
        with _failing():
            times = {
                str(meta["path"]): meta["last_modified"].timestamp()
                for batch in obstore.list(self._store, prefix=f"entries/{shard:02x}")
                for meta in batch
            }
        heads = {path for path in times if path.endswith(".json")}
        old = [path for path, time in times.items() if time <= now - ttl_s]
        orphans = [
            path
            for path, time in times.items()
            if path.removesuffix(".body") + ".json" not in heads and path not in heads and time <= now - _ORPHAN_S
        ]
        self._delete(list(dict.fromkeys([*old, *orphans])))

    def walk(self) -> Iterator[bytes]:
        for path in self._paths("entries"):
            if path.endswith(".json") and (head := self._read(path, _LARGEST_HEAD)) is not None:
                yield head

    def clear(self) -> int:
        paths = list(self._paths("entries"))
        self._delete(paths)
        return sum(path.endswith(".json") for path in paths)

    def close(self) -> None:
        """Nothing is held open."""

    def _paths(self, folder: str) -> Iterator[str]:
        with _failing():
            for batch in obstore.list(self._store, prefix=folder, chunk_size=1000):
                yield from (str(meta["path"]) for meta in batch)

    def _read(self, path: str, largest: int) -> bytes | None:
        with _failing():
            try:
                answer = obstore.get(self._store, path)
            except FileNotFoundError:
                return None
            if answer.meta["size"] > largest:
                return None
            return bytes(answer.bytes())

    def _delete(self, paths: list[str]) -> None:
        with _failing(), contextlib.suppress(FileNotFoundError):
            if paths:
                obstore.delete(self._store, paths)


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        # The text of these errors holds addresses and signatures.
        raise StoreFailed(_kind(error)) from None


def _kind(error: BaseException) -> str:
    return "not found" if isinstance(error, FileNotFoundError) else type(error).__name__


def _address(endpoint: str) -> str:
    return mask_url(endpoint) if endpoint else "Amazon S3"


def _folder(key: str) -> str:
    return f"entries/{key[:2]}/{key}"


def _head(key: str, entry_id: str) -> str:
    return f"{_folder(key)}/{entry_id}.json"


def _body(key: str, entry_id: str) -> str:
    return f"{_folder(key)}/{entry_id}.body"


def _id(path: str) -> str:
    try:
        return uuid.UUID(path.rpartition("/")[2].removesuffix(".json")).hex
    except ValueError:
        return uuid.UUID(int=0).hex
