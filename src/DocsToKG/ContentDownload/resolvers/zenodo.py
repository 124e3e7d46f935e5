"""Zenodo: the files of a record, with their sizes and checksums.

Asked when a DOI of Zenodo's or the page of a record names one. A DOI that stands for all versions leads to the newest.
Closed and embargoed records have no open copy; a token that may read them is the user's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.answers import object_of, objects_of, text_of, title_of, year_of
from DocsToKG.ContentDownload.resolvers.ask_once import AskOnce
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import (
    about_another,
    digest_of,
    named_page,
    number_of,
    size_of,
)
from DocsToKG.ContentDownload.resolvers.file_choice import DepositedFile, papers_among
from DocsToKG.ContentDownload.resolvers.id_forms import normalize_doi, normalize_url

DEFAULT_BASE_URL = "https://zenodo.org"
_DOI = re.compile(r"10\.5281/zenodo\.(?P<id>\d{1,12})")
_PAGE = re.compile(
    r"zenodo\.org/(?:(?:api/)?records?|deposit|doi/10\.5281|badge/doi/10\.5281)/(?:zenodo\.)?(?P<id>\d{1,12})(?:[/.].*)?"
)
_FILE = re.compile(r"zenodo\.org/(?:api/)?records?/(?P<id>\d{1,12})/files/(?P<name>[^/]+)(?:/content)?")
_TEXTS = frozenset({None, "publication", "poster", "presentation", "lesson", "other"})
_SAME_PAPER = frozenset({"isIdenticalTo", "isVersionOf", "isVariantFormOf", "isAlternateIdentifier"})
_VERSIONS = {"preprint": "submittedVersion", "workingpaper": "submittedVersion"}


class ZenodoResolver(AskOnce[str]):
    name = "zenodo"
    service = "Zenodo"
    check = "check resolvers.zenodo.api_key: the record may be restricted, or the token is wrong"
    nothing_to_ask = "not_mine"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _named(self, work: WorkArtifact) -> str | None:
        named = _DOI.fullmatch(work.doi or "") or named_page(work, _PAGE)
        return named["id"] if named is not None else None

    def _address(self, named: str) -> str:
        return f"{self._base}/api/records/{named}"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        if (another := _another(work, named, record)) is not None:
            return ResolverResult(notes=(another,))
        learned = _learned(work, record)
        access = text_of(object_of(record, "metadata"), "access_right")
        if access not in (None, "open"):
            return ResolverResult(notes=(f"no_open_copy: the record is {access[:40]}",), work=learned)
        plans = self._plans(work, named, record)
        return ResolverResult(plans=plans, notes=() if plans else ("no_oa_pdf",), work=learned)

    def _plans(self, work: WorkArtifact, record_id: str, record: Mapping[str, Any]) -> tuple[DownloadPlan, ...]:
        metadata = object_of(record, "metadata")
        kind = object_of(metadata, "resource_type")
        files = list(self._files(record_id, record))
        title = title_of(metadata.get("title")) or work.title
        papers = _asked_for(work, record_id, files) or papers_among(
            files, title=title, is_text=text_of(kind, "type") in _TEXTS
        )
        return unique_plans(
            DownloadPlan(
                url=file.url,
                resolver_name=self.name,
                version=_VERSIONS.get(text_of(kind, "subtype") or ""),
                license=_license(metadata),
                host_type="repository",
                evidence="record_file",
                checksum=file.checksum,
                size_bytes=file.size_bytes,
                page_doi=normalize_doi(text_of(record, "doi") or ""),
            )
            for file in papers
        )

    def _files(self, record_id: str, record: Mapping[str, Any]) -> Iterator[DepositedFile]:
        newest = number_of(record, "id") or record_id
        for file in objects_of(record, "files"):
            name = text_of(file, "key")
            if name is None:
                continue
            built = f"{self._base}/api/records/{newest}/files/{quote(name, safe='')}/content"
            address = normalize_url(text_of(object_of(file, "links"), "self") or built)
            if address is not None:
                yield DepositedFile(name, address, size_of(file, "size"), digest_of("md5", file.get("checksum")))


def _asked_for(work: WorkArtifact, record_id: str, files: list[DepositedFile]) -> tuple[DepositedFile, ...]:
    """The very file that a link of the work names: then there is nothing to choose."""
    named = named_page(work, _FILE)
    if named is None or named["id"] != record_id:
        return ()
    return tuple(file for file in files if file.name == named["name"])


def _another(work: WorkArtifact, record_id: str, record: Mapping[str, Any]) -> str | None:
    numbers = {number_of(record, "id"), number_of(record, "conceptrecid")} - {None}
    if numbers and record_id not in numbers:
        return f"wrong-article: the answer is about record {min(numbers, key=str)}"
    # A record may bear the publisher's DOI in place of Zenodo's; its number is then what was asked for.
    if numbers and _DOI.fullmatch(work.doi or ""):
        return None
    metadata = object_of(record, "metadata")
    dois = [text_of(record, "doi") or text_of(metadata, "doi"), text_of(record, "conceptdoi")]
    related = objects_of(metadata, "related_identifiers")
    dois += [text_of(item, "identifier") for item in related if text_of(item, "relation") in _SAME_PAPER]
    return about_another(work, dois=dois, title=title_of(metadata.get("title")), own=("10.5281/",))


def _license(metadata: Mapping[str, Any]) -> str | None:
    return text_of(object_of(metadata, "license"), "id") or text_of(metadata, "license")


def _learned(work: WorkArtifact, record: Mapping[str, Any]) -> WorkArtifact:
    metadata = object_of(record, "metadata")
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(metadata.get("title")) or title_of(record.get("title")),
        publication_year=year_of(metadata.get("publication_date")),
        doi=work.doi or normalize_doi(text_of(record, "doi") or ""),
        license=_license(metadata),
    )
