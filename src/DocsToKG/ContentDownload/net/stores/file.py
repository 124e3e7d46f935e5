"""Cache entries as ordinary files: `<id>.json` with the headers and `<id>.body`; those without a body share one file.

Knows the folder layout. A body is in place before its head, and both are moved there whole; what a crash leaves
between the two is swept with the expired entries, and pending bodies of dead processes at the next start.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from DocsToKG.ContentDownload.net.pending import PendingBody, PendingFolder
from DocsToKG.ContentDownload.net.stores.base import SHARDS, Entry
from DocsToKG.ContentDownload.net.stores.grouped import GroupedHeads

_LARGEST_HEAD = 512 * 1024
# A body is in place just before its head; a young orphan may be about to get it.
_ORPHAN_S = 60.0


class FileBackend:
    """The entries below `base_path`."""

    shared = slow = False
    rest_s = 0.0

    def __init__(self, base_path: Path) -> None:
        self._entries = base_path / "entries"
        self._entries.mkdir(parents=True, exist_ok=True)
        self._root = str(self._entries)
        self._pending = PendingFolder(base_path / "pending")
        self._bodiless = GroupedHeads(base_path / "heads.sqlite")

    def new_body(self) -> PendingBody | None:
        return self._pending.new_body()

    def heads(self, key: str) -> list[tuple[str, bytes]]:
        bodiless, folder = self._bodiless.heads(key), f"{self._root}/{key[:2]}/{key[2:]}"
        if not os.access(folder, os.F_OK):  # most keys have none, and an error costs more than an answer
            return bodiless
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return bodiless
        found = ((name, _read(f"{folder}/{name}")) for name in names if name.endswith(".json"))
        return [(_id(name), head) for name, head in found if head is not None] + bodiless

    def body(self, key: str, entry_id: str) -> BinaryIO | None:
        try:
            return self._body_path(key, entry_id).open("rb")
        except FileNotFoundError:
            return None

    def put(self, entry: Entry, body: PendingBody | None, *, replaced: Iterable[str]) -> None:
        replaced = tuple(replaced)
        if body is None:
            self._bodiless.put(entry, replaced=replaced)
            if replaced:
                self._unlink(entry.key, replaced)
            return
        self._folder(entry.key).mkdir(parents=True, exist_ok=True)
        body.move_to(self._body_path(entry.key, entry.id))
        self._write(entry)
        self.delete(entry.key, replaced)

    def rewrite(self, entry: Entry) -> None:
        if not self._bodiless.rewrite(entry) and self._head_path(entry.key, entry.id).exists():
            self._write(entry)

    def flush(self) -> None:
        self._bodiless.write()

    def delete(self, key: str, entry_ids: Iterable[str]) -> None:
        entry_ids = tuple(entry_ids)
        self._bodiless.delete(key, entry_ids)
        self._unlink(key, entry_ids)

    def _unlink(self, key: str, entry_ids: Iterable[str]) -> None:
        for entry_id in entry_ids:
            for path in (self._head_path(key, entry_id), self._body_path(key, entry_id)):
                path.unlink(missing_ok=True)

    def sweep(self, shard: int, *, now: float, ttl_s: float) -> None:
        self._bodiless.sweep(shard, now=now, ttl_s=ttl_s)
        for folder in _folders(self._entries / f"{shard:02x}"):
            alive = {
                name.partition(".")[0] for name in _names(folder, ".json") if _is_alive(folder / name, now - ttl_s)
            }
            for name in _names(folder, ""):
                if name.partition(".")[0] not in alive and _age(folder / name, now) > _ORPHAN_S:
                    (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()

    def walk(self) -> Iterator[bytes]:
        for folder in self._all_folders():
            for name in _names(folder, ".json"):
                if (head := _read(folder / name)) is not None:
                    yield head
        yield from self._bodiless.walk()

    def clear(self) -> int:
        count = self._bodiless.clear()
        for folder in self._all_folders():
            names = _names(folder, "")
            count += sum(name.endswith(".json") for name in names)
            # Heads go first, so that nobody finds one whose body is gone.
            for name in sorted(names, key=lambda name: not name.endswith(".json")):
                (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()
        return count

    def close(self) -> None:
        self._pending.close()
        self._bodiless.close()

    def _all_folders(self) -> Iterator[Path]:
        for shard in range(SHARDS):
            yield from _folders(self._entries / f"{shard:02x}")

    def _write(self, entry: Entry) -> None:
        draft = self._pending.new_path()
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.write(file, entry.head)
        finally:
            os.close(file)
        os.replace(draft, self._head_path(entry.key, entry.id))

    def _folder(self, key: str) -> Path:
        return self._entries / key[:2] / key[2:]

    def _head_path(self, key: str, entry_id: str) -> Path:
        return self._folder(key) / f"{entry_id}.json"

    def _body_path(self, key: str, entry_id: str) -> Path:
        return self._folder(key) / f"{entry_id}.body"


def _read(path: Path | str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST_HEAD)
    except FileNotFoundError:
        return None


def _is_alive(path: Path, since: float) -> bool:
    try:
        return bool(json.loads(_read(path) or b"{}")["stored_at"] > since)
    except (ValueError, TypeError, KeyError):
        return False


def _id(name: str) -> str:
    try:
        return uuid.UUID(name.partition(".")[0]).hex
    except ValueError:
        return uuid.UUID(int=0).hex


def _names(folder: Path | str, suffix: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(suffix))
    except OSError:
        return []


def _folders(parent: Path) -> list[Path]:
    return [path for name in _names(parent, "") if (path := parent / name).is_dir()]


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except OSError:
        return 0.0
