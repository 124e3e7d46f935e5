"""A person has looked at an unproved file: it is the paper, or it is not.

Knows the order: what is accepted is stored before the record says so; what is rejected leaves the record before the
store. Every step may be repeated. Promises: rejected bytes are not taken for the same work again; bytes that also
stand for another work stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.licences import spdx
from DocsToKG.ContentDownload.api.types import OutcomeClass, Reason, WorkArtifact
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.unproved import FILE_REJECTED, KEPT, UnprovedFile
from DocsToKG.ContentDownload.errors import StorageError
from DocsToKG.ContentDownload.maintenance.results import update_file_result
from DocsToKG.ContentDownload.maintenance.tombstones import add_line, tombstone
from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.ContentDownload.storage.files import StoredFiles
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.storage.paths import human_path
from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.ContentDownload.validation.forms import FORMS, PDF
from DocsToKG.core.clock import Clock, utc_iso

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync

STAGE = "settle"
_BLOCK = 1 << 20


class FileReview:
    """Settles files of one folder. Nothing else may run in the folder meanwhile."""

    def __init__(
        self,
        root: Path,
        *,
        catalog: Catalog,
        database: Path,
        files: StoredFiles,
        store: LocalStore,
        sinks: Sequence[str],
        clock: Clock,
        run_id: str,
        share: TakedownSync | None = None,
    ) -> None:
        self._root = root
        self._catalog = catalog
        self._database = database
        self._files = files
        self._store = store
        self._sinks = sinks
        self._clock = clock
        self._run_id = run_id
        self._share = share

    def accept(self, file: UnprovedFile) -> str:
        """The file is the paper; returns its name below the root of the store."""
        path = file.path if file.state == KEPT else self._stored(file)
        others = [one.path for one in self._catalog.unproved() if one.doc_id == file.doc_id and one.state != KEPT]
        licence = file.license
        self._add(
            ManifestRecord(
                doc_id=file.doc_id,
                outcome=OutcomeClass.SUCCESS,
                reason=Reason.OK,
                run_id=self._run_id,
                stage=STAGE,
                url=file.url,
                canonical_url=file.canonical_url,
                http_status=file.http_status,
                mime=file.mime,
                size_bytes=file.size_bytes,
                sha256=file.sha256,
                path=path,
                resolver=file.source,
                title=file.title,
                year=file.year,
                license=spdx(licence) if licence else None,
                license_raw=licence,
                version=file.version,
                host_type=file.host_type,
                evidence=file.evidence,
                is_guess=file.is_guess,
                dedupe="adopted",
                lease_id=self._lease("accepted"),
                proof="accepted",
                damaged=bool(file.validation.get("damaged")),
                validation=file.validation,
            )
        )
        for other in others:
            self._store.release(other)
        update_file_result(self._root, file.doc_id, path=self._shown(path))
        return path

    def reject(self, file: UnprovedFile) -> None:
        """The file is not the paper: it goes, and is not taken for this work again."""
        why = f"A person has looked at the file with the digest {file.sha256[:16]} and rejected it."
        line = tombstone(
            file.doc_id,
            run_id=self._run_id,
            cause=FILE_REJECTED,
            explanation=why,
            sha256=file.sha256,
            lease_id=self._lease(FILE_REJECTED),
        )
        self._add(line)
        key = cas_key(file.sha256)
        if file.path != key:
            self._files.delete(file.path)
        if not self._is_anothers(file):
            self._files.delete(key)
        update_file_result(self._root, file.doc_id, path=None, reason=f"{FILE_REJECTED}: {why}")

    def _is_anothers(self, file: UnprovedFile) -> bool:
        """Another work has the same bytes."""
        holders = {held.doc_id for held in self._catalog.holders(file.sha256)}
        waiting = {held.doc_id for held in self._catalog.unproved() if held.sha256 == file.sha256}
        return not holders | waiting <= {file.doc_id}

    def _shown(self, path: str) -> str:
        """A file as the results name it: below the folder of the run where it lies there."""
        at, folder = self._store.at(path), self._root.absolute()
        return str(at.relative_to(folder) if at.is_relative_to(folder) else at)

    def _stored(self, file: UnprovedFile) -> str:
        """The bytes under the name of a paper."""
        found = self._files.open(file.path)
        if found is None:
            raise StorageError(f"{file.path} is gone; `content pull` of {file.doc_id} fetches it again")
        work = WorkArtifact(file.doc_id, title=file.title, publication_year=file.year)
        with found as source, self._store.temp() as temp:
            while block := source.read(_BLOCK):
                temp.write(block)
            if temp.sha256 != file.sha256:
                raise StorageError(f"{file.path} has changed since it was fetched; reject it, and fetch it again")
            stored = self._store.store(temp, human=human_path(work, kind=_form(file)))
        return self._store.relative(stored.place)

    def _add(self, line: ManifestRecord) -> None:
        add_line(self._root, line, database=self._database, sinks=self._sinks, clock=self._clock)
        if self._share is not None:
            self._share.send(self._database)

    def _lease(self, word: str) -> str:
        return f"{word}-{utc_iso(self._clock.now())}"


def _form(file: UnprovedFile) -> str:
    return next((form.name for form in FORMS.values() if form.mime == file.mime), PDF.name)
