"""figshare: the files of an article, with their sizes and checksums.

Asked when a DOI of figshare's or a page of figshare or of one of its portals names an article; a version in that name
is asked for as such. Collections hold no files of their own and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskOnce, ResolverSettings, embargo_note, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import (
    about_another,
    digest_of,
    named_page,
    number_of,
    size_of,
)
from DocsToKG.ContentDownload.resolvers.file_choice import DepositedFile, other_files, papers_among
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://api.figshare.com/v2"
FILES_URL = "https://ndownloader.figshare.com/files"
# Portals have prefixes of their own (10.17608/k6.auckland.7824884.v1); their articles are known by the page.
_DOI = re.compile(r"10\.6084/m9\.figshare\.(?P<id>\d{1,12})(?:\.v(?P<version>\d{1,4}))?")
_PAGE = re.compile(
    r"(?:[\w-]+\.)*figshare\.com/(?:articles|ndownloader/articles)/(?:[^/]+/){0,3}?(?P<id>\d{1,12})"
    r"(?:/(?:versions/)?(?P<version>\d{1,4}))?(?:/.*)?"
)
_NOT_TEXTS = frozenset(
    {"dataset", "figure", "media", "fileset", "software", "code", "model", "workflow", "physical object", "metadata"}
)
_VERSIONS = {"preprint": "submittedVersion"}


class FigshareResolver(AskOnce[re.Match[str]]):
    name = "figshare"
    service = "figshare"
    check = "check resolvers.figshare.api_key: the article may be private, or the token is wrong"
    nothing_to_ask = "not_mine"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _named(self, work: WorkArtifact) -> re.Match[str] | None:
        return _DOI.fullmatch(work.doi or "") or named_page(work, _PAGE)

    def _address(self, named: re.Match[str]) -> str:
        article = named["id"] if named["version"] is None else f"{named['id']}/versions/{named['version']}"
        return f"{self._base}/articles/{article}"

    def _read(self, work: WorkArtifact, named: re.Match[str], record: Mapping[str, Any]) -> ResolverResult:
        if (another := _another(work, named, record)) is not None:
            return ResolverResult(notes=(another,))
        learned = _learned(work, record)
        if record.get("is_embargoed") is True and not record.get("files"):
            return ResolverResult(notes=(embargo_note(text_of(record, "embargo_date")),), work=learned)
        if record.get("is_confidential") is True and not record.get("files"):
            return ResolverResult(notes=("no_open_copy: the article is confidential",), work=learned)
        files = list(_files(record))
        papers = papers_among(files, title=learned.title or work.title, is_text=_kind(record) not in _NOT_TEXTS)
        plans, others = self._plans(record, papers), other_files(papers, files, self.name)
        return ResolverResult(plans, () if plans else ("no_oa_pdf",), learned, others)

    def _plans(self, record: Mapping[str, Any], files: Iterable[DepositedFile]) -> tuple[DownloadPlan, ...]:
        return unique_plans(
            DownloadPlan(
                url=file.url,
                resolver_name=self.name,
                version=_VERSIONS.get(_kind(record)),
                license=_license(record),
                host_type="repository",
                evidence="record_file",
                checksum=file.checksum,
                size_bytes=file.size_bytes,
                page_doi=normalize_doi(text_of(record, "doi") or ""),
            )
            for file in files
        )


def _kind(record: Mapping[str, Any]) -> str:
    return (text_of(record, "defined_type_name") or "").lower()


def _another(work: WorkArtifact, named: re.Match[str], record: Mapping[str, Any]) -> str | None:
    said, doi = number_of(record, "id"), text_of(record, "doi")
    if said not in (None, named["id"]):
        return f"wrong-article: the answer is about article {said}"
    version = number_of(record, "version")
    if named["version"] is not None and version not in (None, named["version"]):
        return f"wrong-article: the answer is about version {version}"
    # A portal's article bears the portal's DOI; its number is then what was asked for.
    if said is not None and named.re is _DOI:
        return None
    # `resource_doi` names the published paper, but supplements carry it too, so that it proves nothing.
    return about_another(work, dois=[doi], title=title_of(record.get("title")), own=("10.6084/", "10.25384/"))


def _files(record: Mapping[str, Any]) -> Iterator[DepositedFile]:
    for file in objects_of(record, "files"):
        name, number = text_of(file, "name"), number_of(file, "id")
        # A file that is only a link lies elsewhere, and its digest is of nothing.
        if name is None or file.get("is_link_only") is True:
            continue
        link = text_of(file, "download_url") or (f"{FILES_URL}/{number}" if number is not None else "")
        if (address := normalize_url(link)) is not None:
            digest = digest_of("md5", file.get("computed_md5")) or digest_of("md5", file.get("supplied_md5"))
            yield DepositedFile(name, address, size_of(file, "size"), digest, text_of(file, "mimetype"))


def _license(record: Mapping[str, Any]) -> str | None:
    license_ = object_of(record, "license")
    return text_of(license_, "url") or text_of(license_, "name")


def _learned(work: WorkArtifact, record: Mapping[str, Any]) -> WorkArtifact:
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(record.get("title")),
        publication_year=year_of(record.get("published_date")),
        doi=work.doi or normalize_doi(text_of(record, "doi") or ""),
        license=_license(record),
    )
