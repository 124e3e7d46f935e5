"""Cache entries as ordinary files: a small JSON file with the headers, and a body file or a CAS digest.

Knows the folder layout and when an entry may be seen. Does not know freshness or HTTP rules.
Promises: nothing is visible before it is published whole; a damaged entry is a miss; the disk failing
never fails a download.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, TypeAlias

from DocsToKG.ContentDownload.net.pending import PendingBody, PendingFolder
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import mask_text

log = logging.getLogger(__name__)

HeaderLists: TypeAlias = dict[str, list[str]]

_BLOCK = 256 * 1024
_LARGEST_META = 256 * 1024
_MOST_VARIANTS = 4
# Answers may set cookies and carry session data; they are passed on but never written down.
_NEVER_WRITTEN = frozenset({"set-cookie", "set-cookie2", "www-authenticate", "authentication-info"})
# What freshness, validation and the proof of a file rest on; these are no addresses.
_ALWAYS_WRITTEN = frozenset({"etag", "last-modified", "date", "expires", "cache-control", "vary", "content-type"})


class EntryDamaged(OSError):
    """The stored body is not what was stored. The entry is gone now; asking again is a miss."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One stored answer without its body. `varying` holds digests of the request headers its Vary names."""

    url: str
    method: str
    varying: HeaderLists
    status: int
    headers: HeaderLists
    stored_at: float = 0.0
    sha256: str = ""
    size: int | None = None
    in_cas: bool = False
    id: uuid.UUID = field(default_factory=uuid.uuid4)

    def to_json(self) -> bytes:
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "id"}
        fields["headers"] = {name: values for name, values in self.headers.items() if _may_be_written(name, values)}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, raw: bytes, entry_id: uuid.UUID) -> StoredAnswer:
        answer = cls(**json.loads(raw), id=entry_id)
        whole = isinstance(answer.stored_at, float) and isinstance(answer.url, str) and isinstance(answer.status, int)
        if not (whole and isinstance(answer.headers, dict) and isinstance(answer.varying, dict)):
            raise ValueError("not a cache entry")
        return answer


class EntryFolder:
    """The entries below `base_path`; safe for many threads and processes."""

    def __init__(
        self,
        base_path: Path,
        *,
        ttl_s: float,
        check_ttl_every_s: float,
        open_cas: Callable[[str], BinaryIO | None],
        clock: Clock,
    ) -> None:
        self._entries = base_path / "entries"
        self._ttl_s = ttl_s
        self._open_cas = open_cas
        self._clock = clock
        # One of the 256 shards is looked at each time, so that a full round takes `check_ttl_every_s`.
        self._shard_every_s = check_ttl_every_s / 256
        self._next_check = clock.monotonic() + self._shard_every_s
        self._next_shard = 0
        self._lock = threading.Lock()
        self._entries.mkdir(parents=True, exist_ok=True)
        self._pending = PendingFolder(base_path / "pending")

    def find(self, key: str) -> Iterator[StoredAnswer]:
        """The visible, unexpired entries under `key`."""
        folder = self._folder(key)
        for name in _names(folder, ".json"):
            answer = self._read(folder / name)
            if answer is not None and self._clock.now() < answer.stored_at + self._ttl_s:
                yield answer

    def open_body(self, key: str, answer: StoredAnswer) -> BinaryIO | None:
        """The body, positioned at its start; None (and the entry removed) when it is gone or has another size."""
        opened = self._open_cas(answer.sha256) if answer.in_cas else _open(self._body_path(key, answer.id))
        if opened is not None and answer.size not in (None, _size(opened)):
            opened.close()
            opened = None
        if opened is None:
            self.remove(key, answer.id)
        return opened

    def read_body(self, key: str, answer: StoredAnswer, opened: BinaryIO) -> Iterator[bytes]:
        """The body in blocks; raises `EntryDamaged` at the end when it is not the one that was stored."""
        digest = hashlib.sha256()
        while block := opened.read(_BLOCK):
            digest.update(block)
            yield block
        if digest.hexdigest() != answer.sha256:
            self.remove(key, answer.id)
            raise EntryDamaged("a cached body is damaged")

    def new_body(self) -> PendingBody | None:
        """A place for a body whose entry is not visible yet; None when the disk does not take it."""
        return self._pending.new_body()

    def publish(self, key: str, answer: StoredAnswer, body: PendingBody | None) -> None:
        """Make an entry visible, instead of those it replaces."""
        answer = replace(answer, stored_at=self._clock.now())
        try:
            folder = self._folder(key)
            folder.mkdir(parents=True, exist_ok=True)
            replaced = self._replaced_by(answer, key)
            if body is not None:
                os.replace(body.path, self._body_path(key, answer.id))
            self._write(folder / f"{answer.id.hex}.json", answer)
            for old in replaced:
                self.remove(key, old)
            self._check_a_shard()
        except OSError:
            log.warning("a cache entry could not be written; going on without", exc_info=True)

    def refresh(self, key: str, entry_id: uuid.UUID, headers: HeaderLists) -> None:
        """The origin said the entry is still good, under these headers."""
        path = self._folder(key) / f"{entry_id.hex}.json"
        answer = self._read(path)
        if answer is not None:
            with contextlib.suppress(OSError):
                self._write(path, replace(answer, headers=headers))

    def remove(self, key: str, entry_id: uuid.UUID) -> None:
        folder = self._folder(key)
        for path in (folder / f"{entry_id.hex}.json", folder / f"{entry_id.hex}.body"):
            with contextlib.suppress(OSError):
                path.unlink()

    def close(self) -> None:
        self._pending.close()

    def _replaced_by(self, answer: StoredAnswer, key: str) -> list[uuid.UUID]:
        known = sorted(self.find(key), key=lambda other: other.stored_at, reverse=True)
        same = [old.id for old in known if (old.method, old.varying) == (answer.method, answer.varying)]
        return same + [old.id for old in known if old.id not in same][_MOST_VARIANTS - 1 :]

    def _read(self, path: Path) -> StoredAnswer | None:
        try:
            with path.open("rb") as file:
                return StoredAnswer.from_json(file.read(_LARGEST_META), uuid.UUID(path.stem))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError):
            log.warning("a cache entry cannot be read and counts as a miss: %s", path.name)
            return None

    def _write(self, path: Path, answer: StoredAnswer) -> None:
        raw = answer.to_json()
        if len(raw) > _LARGEST_META:
            raise OSError("the headers are too large to store")
        draft = self._pending.new_path()
        draft.write_bytes(raw)
        os.replace(draft, path)

    def _check_a_shard(self) -> None:
        with self._lock:
            now = self._clock.monotonic()
            if now < self._next_check:
                return
            self._next_check = now + self._shard_every_s
            shard, self._next_shard = self._next_shard, (self._next_shard + 1) % 256
        for folder in _folders(self._entries / f"{shard:02x}"):
            self._drop_expired(folder)

    def _drop_expired(self, folder: Path) -> None:
        key = folder.parent.name + folder.name
        alive = {answer.id.hex for answer in self.find(key)}
        for name in _names(folder, ""):
            # A body is in place just before its headers; a young orphan may be about to get them.
            if name.partition(".")[0] not in alive and _age(folder / name, self._clock.now()) > 60:
                with contextlib.suppress(OSError):
                    (folder / name).unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()

    def _folder(self, key: str) -> Path:
        return self._entries / key[:2] / key[2:]

    def _body_path(self, key: str, entry_id: uuid.UUID) -> Path:
        return self._folder(key) / f"{entry_id.hex}.body"


def _may_be_written(name: str, values: list[str]) -> bool:
    """Whether no secret is in a header. Servers echo the URL they were asked for, key and all, in many of them."""
    if name in _ALWAYS_WRITTEN:
        return True
    return name not in _NEVER_WRITTEN and all(mask_text(value) == value for value in values)


def _names(folder: Path, suffix: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(suffix))
    except OSError:
        return []


def _folders(parent: Path) -> list[Path]:
    return [path for name in _names(parent, "") if (path := parent / name).is_dir()]


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except OSError:
        return None


def _size(opened: BinaryIO) -> int | None:
    try:
        return os.fstat(opened.fileno()).st_size
    except (OSError, AttributeError, ValueError):
        return None


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except OSError:
        return 0.0
