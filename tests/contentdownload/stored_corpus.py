"""A small corpus with a real store and a real record, made without a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.storage.files import LocalFiles
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.storage.paths import human_path
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock


@dataclass(frozen=True, slots=True)
class Corpus:
    root: Path
    digests: dict[str, str]
    paths: dict[str, str]

    @property
    def database(self) -> Path:
        return self.root / "manifest.sqlite"

    @property
    def files(self) -> LocalFiles:
        return LocalFiles(self.root)

    def catalog(self) -> Catalog:
        return Catalog(self.database)

    def object_of(self, doc_id: str) -> Path:
        digest = self.digests[doc_id]
        return self.root / "cas" / "sha256" / digest[:2] / digest[2:]

    def name_of(self, doc_id: str) -> Path:
        return self.root / self.paths[doc_id]

    def damage(self, doc_id: str) -> None:
        place = self.object_of(doc_id)
        place.chmod(0o644)
        place.write_bytes(b"%PDF-1.4 something else")


def make_corpus(root: Path, bodies: dict[str, bytes], *, run_id: str = "r1", **facts: Any) -> Corpus:
    """Works with these bodies, stored and on record. `facts` are fields of every line."""
    store = LocalStore(root, min_free_bytes=0, fsync=False)
    store.prepare()
    digests, paths = {}, {}
    with RunTelemetry(root, run_id=run_id, config_hash="c0ffee", clock=ManualClock()) as record:
        for number, (doc_id, body) in enumerate(bodies.items()):
            year = 2015 + number
            with store.temp() as temp:
                temp.write(body)
                stored = store.store(
                    temp, human=human_path(WorkArtifact(doc_id, title=f"Paper {number}", publication_year=year))
                )
            digests[doc_id], paths[doc_id] = stored.sha256, store.relative(stored.path)
            told = {
                "title": f"Paper {number}",
                "year": year,
                "license": "CC-BY-4.0",
                "license_raw": "cc-by",
                "resolver": "unpaywall",
                "tier": "direct_oa",
                "version": "publishedVersion",
                "mime": "application/pdf",
                "url": f"https://host{number}.example.org/{number}.pdf",
                "canonical_url": f"https://host{number}.example.org/{number}.pdf",
                **facts,
            }
            record.finish(
                ManifestRecord(
                    doc_id=doc_id,
                    outcome="success",
                    reason="ok",
                    sha256=stored.sha256,
                    size_bytes=len(body),
                    path=paths[doc_id],
                    dedupe="duplicate" if stored.duplicate else "new",
                    **told,
                )
            )
    return Corpus(root, digests, paths)
