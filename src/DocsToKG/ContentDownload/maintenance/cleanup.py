"""Which stored files may go? Objects that no record names, readable names that stand for their work no more, and what
is left in quarantine.

Knows the layout of the store and the records that name its files. Looks only; removing is the caller's. Promises: what
stands in any of the records it is given stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.unproved import QUARANTINED
from DocsToKG.ContentDownload.errors import FileUnreadable
from DocsToKG.ContentDownload.storage.files import CAS, READABLE, StoredFile, StoredFiles, digest_of
from DocsToKG.ContentDownload.storage.paths import QUARANTINE

_READABLE = tuple(f"{folder}/" for folder in READABLE)


def superseded_names(files: StoredFiles, records: Sequence[Catalog]) -> Iterator[StoredFile]:
    """Readable names that still hold a file that stands for its work no more, or not by that name. Names that stand in
    any of the records stay, and so do names that hold other bytes by now, or that cannot be read."""
    names = (name for record in records for name in record.earlier_names())
    earlier = {path: sha256 for sha256, path in names if path.startswith(_READABLE)}
    if not earlier:
        return
    standing = {file.path for record in records for file in record.files() if file.path in earlier}
    for path in sorted(earlier.keys() - standing):
        try:
            found = digest_of(files, path)
        except FileUnreadable:
            continue
        if found is not None and found[0] == earlier[path]:
            yield StoredFile(path, files.size(path) or 0)


def left_in_quarantine(files: StoredFiles, records: Sequence[Catalog]) -> Iterator[StoredFile]:
    """Files in quarantine that wait for nobody: their work has another file by now, or a run was cut off."""
    waiting = {file.path for record in records for file in record.unproved() if file.state == QUARANTINED}
    yield from (file for file in files.list(QUARANTINE) if file.key not in waiting)


def unnamed(files: StoredFiles, named: Callable[[str], bool]) -> Iterator[StoredFile]:
    """Objects of the store whose digest nobody names, and what is no object at all."""
    for file in files.list(CAS):
        parts = file.key.split("/")
        digest = "".join(parts[2:]) if len(parts) == 4 else ""
        if len(digest) != 64 or not named(digest):
            yield file
