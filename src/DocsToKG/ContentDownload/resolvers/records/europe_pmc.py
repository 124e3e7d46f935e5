"""A record of Europe PMC, read into values.

Pure. Knows its flags ("Y" and "N"), its sources (`PPR` is a preprint, `authMan` an author's manuscript) and its links,
of which only those marked as open (`OA`) or free (`F`) are of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.ids.identifier import (
    normalize_doi,
    normalize_pmcid,
    normalize_pmid,
    normalize_url,
)
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import is_pmc_page
from DocsToKG.ContentDownload.resolvers.records.fields import (
    authors_of,
    object_of,
    objects_of,
    pages_of_text,
    text_of,
    title_of,
    year_of,
)

_OPEN_CODES = frozenset({"OA", "F"})
_MANUSCRIPT_FLAGS = ("authMan", "epmcAuthMan", "nihAuthMan")
_FULL_TEXT_ID = re.compile(r"(?:PMC|PPR)[1-9][0-9]{0,11}")


@dataclass(frozen=True, slots=True)
class Link:
    """An open link, to Europe PMC itself or to another site."""

    url: str
    style: str
    is_at_home: bool


@dataclass(frozen=True, slots=True)
class EuropePmcRecord:
    doi: str | None
    pmcid: str | None
    pmid: str | None
    title: str | None
    year: int | None
    license: str | None
    is_open: bool
    is_preprint: bool
    is_manuscript: bool
    is_retracted: bool | None
    has_pdf: bool
    full_text_id: str | None
    links: tuple[Link, ...]
    authors: tuple[str, ...] = ()
    pages: tuple[str | None, str | None] = (None, None)
    journal: str | None = None
    has_supplements: bool = False

    @property
    def version(self) -> str:
        if self.is_preprint:
            return "submittedVersion"
        return "acceptedVersion" if self.is_manuscript else "publishedVersion"

    @property
    def pdf_links(self) -> list[Link]:
        return [link for link in self.links if link.style == "pdf"]

    @property
    def renders_pdf(self) -> bool:
        """Europe PMC has the PDF and shows it to everyone."""
        return any(link.is_at_home for link in self.pdf_links) or (self.has_pdf and self.is_open)

    def as_work(self, work_id: str) -> WorkArtifact:
        pages = (link.url for link in self.links if link.style == "html" and not link.is_at_home)
        return WorkArtifact(
            work_id=work_id,
            title=self.title,
            authors=self.authors,
            first_page=self.pages[0],
            last_page=self.pages[1],
            journal=self.journal,
            publication_year=self.year,
            doi=self.doi,
            pmcid=self.pmcid,
            pmid=self.pmid,
            license=self.license,
            is_retracted=self.is_retracted,
            landing_urls=tuple(dict.fromkeys(url for url in pages if not is_pmc_page(url))),
        )


def record_of(found: Mapping[str, Any]) -> EuropePmcRecord:
    pmcid = normalize_pmcid(text_of(found, "pmcid") or "")
    is_preprint = text_of(found, "source") == "PPR"
    return EuropePmcRecord(
        doi=normalize_doi(text_of(found, "doi") or ""),
        pmcid=pmcid,
        pmid=normalize_pmid(text_of(found, "pmid") or ""),
        title=title_of(found.get("title")),
        year=year_of(text_of(found, "pubYear")),
        license=text_of(found, "license"),
        is_open=_flag(found, "isOpenAccess"),
        is_preprint=is_preprint,
        is_manuscript=any(_flag(found, name) for name in _MANUSCRIPT_FLAGS),
        is_retracted=True if "retracted publication" in _kinds(found) else None,
        has_pdf=_flag(found, "hasPDF") and _flag(found, "inEPMC"),
        full_text_id=pmcid or _full_text_id(found),
        links=tuple(_links(found)),
        authors=authors_of(object_of(found, "authorList"), "author"),
        pages=pages_of_text(found.get("pageInfo")),
        journal=title_of(object_of(object_of(found, "journalInfo"), "journal").get("title")),
        has_supplements=_flag(found, "hasSuppl"),
    )


def _flag(found: Mapping[str, Any], name: str) -> bool:
    return text_of(found, name) == "Y"


def _kinds(found: Mapping[str, Any]) -> set[str]:
    kinds = object_of(found, "pubTypeList").get("pubType")
    return {kind.lower() for kind in kinds[:50] if isinstance(kind, str)} if isinstance(kinds, list) else set()


def _full_text_id(found: Mapping[str, Any]) -> str | None:
    ids = object_of(found, "fullTextIdList").get("fullTextId")
    named = [name for name in ids[:10] if isinstance(name, str)] if isinstance(ids, list) else []
    return next((name for name in named if _FULL_TEXT_ID.fullmatch(name)), None)


def _links(found: Mapping[str, Any]) -> Iterator[Link]:
    for link in objects_of(object_of(found, "fullTextUrlList"), "fullTextUrl", at_most=20):
        url = normalize_url(text_of(link, "url") or "")
        style = text_of(link, "documentStyle")
        if url is not None and style is not None and text_of(link, "availabilityCode") in _OPEN_CODES:
            yield Link(url, style.lower(), is_at_home=text_of(link, "site") == "Europe_PMC")
