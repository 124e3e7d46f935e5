"""figshare: the files of an article, with their sizes and checksums.

Asked when a DOI of figshare's or a page of figshare or of one of its portals names an article; a version in that name
is asked for as such. Collections hold no files of their own and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import JsonSource, embargo_note, only_note, result_of, wrong_article
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_url
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, file_plans, named_page
from DocsToKG.ContentDownload.resolvers.repositories.file_choice import DepositedFile, other_files, papers_among

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


class FigshareResolver(JsonSource[re.Match[str]]):
    name = "figshare"
    service = "figshare"
    base_url = "https://api.figshare.com/v2"
    check = "check resolvers.figshare.api_key: the article may be private, or the token is wrong"
    nothing_to_ask = "not_mine"

    def queries(self, work: WorkArtifact) -> Sequence[re.Match[str]]:
        named = _DOI.fullmatch(work.doi or "") or named_page(work, _PAGE)
        return [named] if named is not None else []

    def address(self, query: re.Match[str]) -> str:
        version = f"/versions/{query['version']}" if query["version"] is not None else ""
        return f"{self.base}/articles/{query['id']}{version}"

    def read(self, work: WorkArtifact, query: re.Match[str], record: Record) -> ResolverResult:
        if (another := _another(work, query, record)) is not None:
            return only_note(another)
        learned = _learned(work, record)
        if record.is_true("is_embargoed") and not record.get("files"):
            return only_note(embargo_note(record.text("embargo_date")), learned)
        if record.is_true("is_confidential") and not record.get("files"):
            return only_note("no_open_copy: the article is confidential", learned)
        files, kind = list(_files(record)), record.lower("defined_type_name")
        papers = papers_among(files, title=learned.title or work.title, is_text=kind not in _NOT_TEXTS)
        plans = file_plans(
            papers,
            self.name,
            "record_file",
            version=_VERSIONS.get(kind),
            license=learned.license,
            page_doi=record.doi("doi"),
        )
        return result_of(plans, learned, supplements=other_files(papers, files, self.name))


def _another(work: WorkArtifact, named: re.Match[str], record: Record) -> str | None:
    said, version = record.number("id"), record.number("version")
    if said not in (None, named["id"]):
        return wrong_article(f"article {said}")
    if named["version"] is not None and version not in (None, named["version"]):
        return wrong_article(f"version {version}")
    # A portal's article bears the portal's DOI; its number is then what was asked for.
    if said is not None and named.re is _DOI:
        return None
    # `resource_doi` names the published paper, but supplements carry it too, so that it proves nothing.
    return about_another(work, dois=[record.text("doi")], title=record.title("title"), own=("10.6084/", "10.25384/"))


def _files(record: Record) -> Iterator[DepositedFile]:
    for file in record.objects("files"):
        name, number = file.text("name"), file.number("id")
        # A file that is only a link lies elsewhere, and its digest is of nothing.
        if name is None or file.is_true("is_link_only"):
            continue
        link = file.text("download_url") or (f"{FILES_URL}/{number}" if number is not None else "")
        if (address := normalize_url(link)) is not None:
            digest = file.digest("md5", "computed_md5", "supplied_md5")
            yield DepositedFile(name, address, file.size("size"), digest, file.text("mimetype"))


def _learned(work: WorkArtifact, record: Record) -> WorkArtifact:
    return WorkArtifact(
        work_id=work.work_id,
        title=record.title("title"),
        publication_year=record.year("published_date"),
        doi=work.doi or record.doi("doi"),
        license=record.object("license").text("url", "name"),
    )
