"""DOAJ: articles of open journals, by DOI. Gives landing pages that are free to read, and the journal's licence.

A link is a plan only when it looks like a file: `content_type` says `pdf` of pages, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskByDoi, ResolverSettings, encode_segment, unique_plans
from DocsToKG.ContentDownload.resolvers.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_doi
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.index_links import Link, LinkKind, classify_link, pages_of
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://doaj.org/api/v4"
_PLAIN_DOI = re.compile(r"[\w./-]+")


class DoajResolver(AskByDoi):
    name = "doaj"
    service = "DOAJ"
    check = "check resolvers.doaj.base_url, which must end in /api/v4"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _address(self, named: str) -> str:
        # Brackets and colons are syntax of the query, unless they stand in a phrase.
        phrase = named if _PLAIN_DOI.fullmatch(named) else '"' + named.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{self._base}/search/articles/{encode_segment(f'doi:{phrase}')}?page=1&pageSize=5"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        articles = [object_of(each, "bibjson") for each in objects_of(record, "results", at_most=5)]
        ours = [each for each in articles if _doi(each) == work.doi]
        if not ours:
            return ResolverResult(notes=("wrong-article: no record has this DOI" if articles else "not_in_index",))
        links = [link for link in map(classify_link, _fulltexts(ours[0])) if link is not None]
        licence = _licence(ours[0])
        plans = unique_plans(self._plan(link, licence) for link in links if link.kind is LinkKind.FILE)
        notes = () if plans else ("no_oa_pdf",)
        return ResolverResult(plans=plans, notes=notes, work=_learned(work, ours[0], links, licence))

    def _plan(self, link: Link, licence: str | None) -> DownloadPlan:
        return DownloadPlan(
            url=link.address,
            resolver_name=self.name,
            version="publishedVersion",
            license=licence,
            host_type="publisher",
            evidence="fulltext",
        )


def _doi(article: Mapping[str, Any]) -> str | None:
    for entry in objects_of(article, "identifier"):
        if (text_of(entry, "type") or "").lower() == "doi":
            return normalize_doi(text_of(entry, "id") or "")
    return None


def _fulltexts(article: Mapping[str, Any]) -> list[str]:
    links = objects_of(article, "link", at_most=10)
    return [url for link in links if text_of(link, "type") == "fulltext" and (url := text_of(link, "url")) is not None]


def _licence(article: Mapping[str, Any]) -> str | None:
    """The journal's: `CC BY`. Most of its articles carry it, and DOAJ knows no licence of a single one."""
    for entry in objects_of(object_of(article, "journal"), "license"):
        if (found := text_of(entry, "type") or text_of(entry, "title")) is not None:
            return found
    return None


def _learned(work: WorkArtifact, article: Mapping[str, Any], links: list[Link], licence: str | None) -> WorkArtifact:
    arxiv_id, pmcid = copies_named_by(_fulltexts(article))
    pages = pages_of(links, own_doi=work.doi)
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(article.get("title")),
        publication_year=year_of(article.get("year")),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=pages,
        license=licence,
        oa_status="gold",  # every journal of the directory is open as a whole
        metadata=copies_metadata(
            "doaj", ((page, CopyFacts("publishedVersion", licence, "publisher")) for page in pages)
        ),
    )
