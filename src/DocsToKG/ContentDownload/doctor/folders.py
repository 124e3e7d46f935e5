"""A folder that we write to: there or to be made, writable, with room for bytes and for files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from DocsToKG.ContentDownload.doctor.base import Finding, failed, ok, warning

_FEW_FILES = 10_000
_PROBE = b"docstokg doctor"


@dataclass(slots=True)
class FolderCheck:
    """`need_bytes` must be free for a run to start; less than `want_bytes` is told."""

    name: str
    path: Path
    need_bytes: int = 0
    want_bytes: int = 0
    needed: bool = True

    def look(self) -> Iterator[Finding]:
        # Of a folder that we may not look into, the nearest one that we see.
        place = next((one for one in (self.path, *self.path.absolute().parents) if os.path.exists(one)), Path("/"))
        yield self._writable(place)
        try:
            disk = os.statvfs(place)
        except OSError as error:
            yield failed("space", f"{place}: {error.strerror}", "see to the disk")
            return
        yield self._space(disk.f_bavail * disk.f_frsize)
        yield _files(disk.f_favail, disk.f_files)

    def _writable(self, place: Path) -> Finding:
        if not place.is_dir():
            return failed("folder", f"{place} is a file", "name a folder, or move the file away")
        if place != self.path:
            if os.access(place, os.W_OK | os.X_OK):
                return ok("folder", f"{self.path} is made when it is needed")
            return failed(
                "folder", f"{self.path} cannot be made in {place}", f"make it, and let uid {os.getuid()} write"
            )
        probe = place / f".docstokg-doctor-{secrets.token_hex(8)}"
        try:
            _write_and_read(probe)
        except OSError as error:
            return failed("folder", f"{place}: {error.strerror}", f"let uid {os.getuid()} write there")
        return ok("folder", f"{place}: a file was written, read and removed")

    def _space(self, free: int) -> Finding:
        if free < self.need_bytes:
            advice = f"make room: a run does not start below {_size(self.need_bytes)} (storage.min_free_bytes)"
            return failed("space", f"{_size(free)} free", advice)
        if free < self.want_bytes:
            advice = "make room, or lower storage.staging_bytes"
            return warning("space", f"{_size(free)} free, and {_size(self.want_bytes)} may be on the way", advice)
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


def _files(free: int, all_files: int) -> Finding:
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
