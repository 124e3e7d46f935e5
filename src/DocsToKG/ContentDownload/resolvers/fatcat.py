"""fatcat: archived copies of a paper, with the hashes of the files.

One look-up by the strongest identifier known. Copies in archives come first and carry the hash, because an archive
serves the very bytes that were hashed; the file at a live address may have been stamped or replaced since.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    MALFORMED,
    JsonSource,
    only_note,
    result_of,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_arxiv, normalize_url
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.record import Record

_CAPTURE = re.compile(r"https?://web\.archive\.org/web/(?P<when>\d{4,14})(?:[a-z]{2}_)?/(?P<url>\S+)", re.IGNORECASE)
_ARCHIVES = ("webarchive", "archive")
_LIVE = ("repository", "publisher", "web", "aggregator")
_MOST_FILES = 4
_PDF_OR_UNSAID = (None, "application/pdf")
_MOST_OF_A_KIND = 2
_VERSIONS = {
    "published": "publishedVersion",
    "updated": "publishedVersion",
    "accepted": "acceptedVersion",
    "submitted": "submittedVersion",
    "draft": "submittedVersion",
}
_WITHDRAWN = frozenset({"retracted", "withdrawn"})


class FatcatResolver(JsonSource[str]):
    name = "fatcat"
    service = "fatcat"
    base_url = "https://api.fatcat.wiki/v0"

    def queries(self, work: WorkArtifact) -> Sequence[str]:
        # Preprints are catalogued by version, and which versions there are is not known.
        version = work.metadata.get("arxiv_version")
        arxiv_id = normalize_arxiv(f"{work.arxiv_id}{version}") if work.arxiv_id and version else None
        names = {"doi": work.doi, "pmcid": work.pmcid, "pmid": work.pmid, "arxiv": arxiv_id}
        return [f"{name}={quote(value, safe='/')}" for name, value in names.items() if value is not None]

    def address(self, query: str) -> str:
        return f"{self.base}/release/lookup?{query}&expand=files&hide=abstracts,refs"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        if record.get("success") is False:
            return only_note(MALFORMED)
        said = record.object("ext_ids").doi("doi")
        if work.doi is not None and said not in (None, work.doi):
            return only_note(wrong_article(said))
        return result_of(unique_plans(self._plans(record)), _learned(work, record))

    def _plans(self, release: Record) -> Iterator[DownloadPlan]:
        files = [file for file in release.objects("files") if file.text("mimetype") in _PDF_OR_UNSAID]
        for rels in (_ARCHIVES, _LIVE):
            for file in files[:_MOST_FILES]:
                for rel, address in _addresses(file, rels):
                    yield DownloadPlan(
                        address,
                        self.name,
                        version=_VERSIONS.get(release.text("release_stage") or ""),
                        license=release.text("license_slug"),
                        host_type="publisher" if rel == "publisher" else "repository",
                        evidence=rel,
                        checksum=_digest(file) if rel in _ARCHIVES else None,
                        size_bytes=file.size("size"),
                    )


def _addresses(file: Record, rels: tuple[str, ...]) -> list[tuple[str, str]]:
    """At most two addresses of each kind, in the order of `rels`; a file may have been captured dozens of times."""
    found: list[tuple[str, str]] = []
    urls = file.objects("urls")
    for rel in rels:
        links = (url.text("url") for url in urls if url.text("rel") == rel)
        usable = (_usable(link, rel) for link in links if link is not None)
        found += [(rel, address) for address in usable if address is not None][:_MOST_OF_A_KIND]
    return found


def _usable(link: str, rel: str) -> str | None:
    if rel != "webarchive":
        return file_address(link)
    capture = _CAPTURE.fullmatch(link)
    # With `id_` the archive serves the bytes as stored, without it a page around them.
    return normalize_url(f"https://web.archive.org/web/{capture['when']}id_/{capture['url']}") if capture else None


def _digest(file: Record) -> str | None:
    found = (file.digest(algorithm, algorithm) for algorithm in ("sha256", "md5", "sha1"))
    return next((digest for digest in found if digest is not None), None)


def _learned(work: WorkArtifact, release: Record) -> WorkArtifact:
    ids = release.object("ext_ids")
    return WorkArtifact(
        work_id=work.work_id,
        title=release.title("title"),
        publication_year=release.year("release_year", "release_date"),
        doi=work.doi or ids.doi("doi"),
        arxiv_id=ids.arxiv_id("arxiv"),
        pmcid=ids.pmcid("pmcid"),
        pmid=ids.pmid("pmid"),
        license=release.text("license_slug"),
        is_retracted=True if release.text("withdrawn_status") in _WITHDRAWN else None,
    )
