"""fatcat: archived copies of a paper, with the hashes of the files.

One look-up by the strongest identifier known. Copies in archives come first and carry the hash, because an archive
serves the very bytes that were hashed; a live address may have been stamped or replaced since, so its bytes are
proved like any other's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskOnce, ResolverSettings, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import digest_of, size_of
from DocsToKG.ContentDownload.resolvers.ids.identifier import (
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
    normalize_url,
)
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://api.fatcat.wiki/v0"
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


class FatcatResolver(AskOnce[str]):
    name = "fatcat"
    service = "fatcat"
    check = "check resolvers.fatcat.base_url"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _named(self, work: WorkArtifact) -> str | None:
        return _question(work)

    def _address(self, named: str) -> str:
        return f"{self._base}/release/lookup?{named}&expand=files&hide=abstracts,refs"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        if record.get("success") is False:
            return ResolverResult(notes=("malformed_answer",))
        said = normalize_doi(text_of(object_of(record, "ext_ids"), "doi") or "")
        if work.doi is not None and said not in (None, work.doi):
            return ResolverResult(notes=(f"wrong-article: the answer is about {said}",))
        plans = unique_plans(self._plans(record))
        return ResolverResult(plans=plans, notes=() if plans else ("no_oa_pdf",), work=_learned(work, record))

    def _plans(self, release: Mapping[str, Any]) -> Iterator[DownloadPlan]:
        files = [file for file in objects_of(release, "files") if text_of(file, "mimetype") in _PDF_OR_UNSAID]
        for rels in (_ARCHIVES, _LIVE):
            for file in files[:_MOST_FILES]:
                for rel, address in _addresses(file, rels):
                    yield self._plan(release, file, rel, address)

    def _plan(self, release: Mapping[str, Any], file: Mapping[str, Any], rel: str, address: str) -> DownloadPlan:
        return DownloadPlan(
            url=address,
            resolver_name=self.name,
            version=_VERSIONS.get(text_of(release, "release_stage") or ""),
            license=text_of(release, "license_slug"),
            host_type="publisher" if rel == "publisher" else "repository",
            evidence=rel,
            checksum=_digest(file) if rel in _ARCHIVES else None,
            size_bytes=size_of(file, "size"),
        )


def _question(work: WorkArtifact) -> str | None:
    if work.doi is not None:
        return f"doi={quote(work.doi, safe='/')}"
    if work.pmcid is not None:
        return f"pmcid={quote(work.pmcid, safe='')}"
    if work.pmid is not None:
        return f"pmid={quote(work.pmid, safe='')}"
    # Preprints are catalogued by version, and which versions there are is not known.
    version = work.metadata.get("arxiv_version")
    given = normalize_arxiv(f"{work.arxiv_id}{version}") if work.arxiv_id and version else None
    return f"arxiv={quote(given, safe='/')}" if given is not None else None


def _addresses(file: Mapping[str, Any], rels: tuple[str, ...]) -> list[tuple[str, str]]:
    """At most two addresses of each kind, in the order of `rels`; a file may have been captured dozens of times."""
    found: list[tuple[str, str]] = []
    urls = objects_of(file, "urls")
    for rel in rels:
        links = (text_of(url, "url") for url in urls if text_of(url, "rel") == rel)
        usable = (_usable(link, rel) for link in links if link is not None)
        found += [(rel, address) for address in usable if address is not None][:_MOST_OF_A_KIND]
    return found


def _usable(link: str, rel: str) -> str | None:
    if rel != "webarchive":
        return file_address(link)
    capture = _CAPTURE.fullmatch(link)
    # With `id_` the archive serves the bytes as stored, without it a page around them.
    return normalize_url(f"https://web.archive.org/web/{capture['when']}id_/{capture['url']}") if capture else None


def _digest(file: Mapping[str, Any]) -> str | None:
    found = (digest_of(algorithm, file.get(algorithm)) for algorithm in ("sha256", "md5", "sha1"))
    return next((digest for digest in found if digest is not None), None)


def _learned(work: WorkArtifact, release: Mapping[str, Any]) -> WorkArtifact:
    ids = object_of(release, "ext_ids")
    arxiv_id = normalize_arxiv(text_of(ids, "arxiv") or "")
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(release.get("title")),
        publication_year=year_of(release.get("release_year")) or year_of(release.get("release_date")),
        doi=work.doi or normalize_doi(text_of(ids, "doi") or ""),
        arxiv_id=arxiv_base(arxiv_id) if arxiv_id is not None else None,
        pmcid=normalize_pmcid(text_of(ids, "pmcid") or ""),
        pmid=normalize_pmid(text_of(ids, "pmid") or ""),
        license=text_of(release, "license_slug"),
        is_retracted=True if text_of(release, "withdrawn_status") in _WITHDRAWN else None,
    )
