"""DOAJ: articles of open journals, by DOI. Gives landing pages that are free to read, and the journal's licence.

A link is a plan only when it looks like a file: `content_type` says `pdf` of pages, too.
"""

from __future__ import annotations

import re

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NOT_IN_INDEX,
    DoiSource,
    encode_segment,
    only_note,
    phrase,
    result_of,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.links.classify import LinkKind, classified, pages_of
from DocsToKG.ContentDownload.resolvers.links.copy_facts import CopyFacts, copies_metadata
from DocsToKG.ContentDownload.resolvers.record import Record

_PLAIN_DOI = re.compile(r"[\w./-]+")


class DoajResolver(DoiSource):
    name = "doaj"
    service = "DOAJ"
    base_url = "https://doaj.org/api/v4"
    check = "check resolvers.doaj.base_url, which must end in /api/v4"

    def address(self, query: str) -> str:
        # Brackets and colons are syntax of the query, unless they stand in a phrase.
        doi = query if _PLAIN_DOI.fullmatch(query) else phrase(query)
        return f"{self.base}/search/articles/{encode_segment(f'doi:{doi}')}?page=1&pageSize=5"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        articles = [each.object("bibjson") for each in record.objects("results", at_most=5)]
        article = next((each for each in articles if _doi(each) == work.doi), None)
        if article is None:
            return only_note("wrong-article: no record has this DOI" if articles else NOT_IN_INDEX)
        addresses = _full_texts(article)
        links, facts = classified(addresses), CopyFacts("publishedVersion", _licence(article), "publisher")
        plans = unique_plans(
            facts.plan(link.address, self.name, "fulltext") for link in links if link.kind is LinkKind.FILE
        )
        return result_of(plans, _learned(work, article, addresses, facts))


def _doi(article: Record) -> str | None:
    entries = (entry for entry in article.objects("identifier") if entry.lower("type") == "doi")
    return next((entry.doi("id") for entry in entries), None)


def _full_texts(article: Record) -> list[str]:
    links = article.objects("link", at_most=10)
    return [url for link in links if link.text("type") == "fulltext" and (url := link.text("url")) is not None]


def _licence(article: Record) -> str | None:
    """The journal's: `CC BY`. Most of its articles carry it, and DOAJ knows no licence of a single one."""
    named = (entry.text("type", "title") for entry in article.object("journal").objects("license"))
    return next(filter(None, named), None)


def _learned(work: WorkArtifact, article: Record, addresses: list[str], facts: CopyFacts) -> WorkArtifact:
    arxiv_id, pmcid = copies_named_by(addresses)
    pages = pages_of(classified(addresses), own_doi=work.doi)
    return WorkArtifact(
        work_id=work.work_id,
        title=article.title("title"),
        publication_year=article.year("year"),
        doi=work.doi,
        arxiv_id=arxiv_id,
        pmcid=pmcid,
        landing_urls=pages,
        license=facts.license,
        oa_status="gold",  # every journal of the directory is open as a whole
        metadata=copies_metadata("doaj", ((page, facts) for page in pages)),
    )
