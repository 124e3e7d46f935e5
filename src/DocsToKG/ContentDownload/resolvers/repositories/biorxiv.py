"""bioRxiv and medRxiv: the newest version of a preprint, or the one asked for, as PDF and as JATS XML.

Queried for the servers' own DOIs, which share a prefix with journals of Cold Spring Harbor, and for their pages. A DOI
does not name its server; the length of its number tells which to query first. A version (`v2`) is not part of the DOI,
though pages write it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    NOT_IN_INDEX,
    JsonSource,
    encode_segment,
    only_note,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, named_page

FILES = {"biorxiv": "https://www.biorxiv.org/content", "medrxiv": "https://www.medrxiv.org/content"}
_OWN = ("10.1101/", "10.64898/")
_NUMBER = r"\d{4}\.\d{2}\.\d{2}\.(?P<digits>\d{6,8})|\d{6}"
_DOI = re.compile(rf"(?P<doi>10\.(?:1101|64898)/(?:{_NUMBER}))(?:v(?P<version>\d{{1,3}}))?")
_PAGE = re.compile(
    rf"(?P<server>biorxiv|medrxiv)\.org/(?:content|cgi/content/[a-z]+)/(?:(?P<doi>10\.(?:1101|64898)/(?:{_NUMBER}))"
    r"|(?:(?:bio|med)rxiv/)?early/\d{4}/\d{2}/\d{2}/(?P<early>\d{4}\.\d{2}\.\d{2}\.\d{6,8}|\d{6}))(?:v\d{1,3})?(?:[./].*)?",
    re.IGNORECASE,
)


class Preprint(NamedTuple):
    """A preprint at one of the servers, and the version that was asked for."""

    doi: str
    server: str
    version: str | None = None


class BiorxivResolver(JsonSource[Preprint]):
    name = "biorxiv"
    service = "bioRxiv"
    base_url = "https://api.biorxiv.org"
    nothing_to_ask = "not_mine"
    most_queries = 2

    def queries(self, work: WorkArtifact) -> Sequence[Preprint]:
        own = _DOI.fullmatch(work.doi or "")
        page = named_page(work, _PAGE)
        if own is not None:
            first = page["server"].lower() if page is not None else _likely_server(own["digits"])
            return [Preprint(own["doi"], server, own["version"]) for server in _both(first)]
        if page is None:
            return []
        doi = page["doi"].lower() if page["doi"] is not None else f"10.1101/{page['early']}"
        return [Preprint(doi, server) for server in _both(page["server"].lower())]

    def address(self, query: Preprint) -> str:
        return f"{self.base}/details/{query.server}/{encode_segment(query.doi)}/na/json"

    def read(self, work: WorkArtifact, query: Preprint, record: Record) -> ResolverResult:
        own = _DOI.fullmatch(work.doi or "")
        if own is not None:
            work = replace(work, doi=own["doi"])
        posts = [post for post in record.objects("collection") if post.number("version") is not None]
        if not posts:
            return only_note(NOT_IN_INDEX)
        if (another := _another(work, query.doi, posts)) is not None:
            return only_note(another)
        wanted = [post for post in posts if query.version is None or _number(post) == int(query.version)]
        if not wanted:
            return only_note(f"no_open_copy: there is no version {query.version}")
        # The newest version that is not the notice of a withdrawal.
        post = max(wanted, key=lambda post: (not _is_withdrawn(post), _number(post)))
        learned = _learned(work, query.doi, post, posts)
        return ResolverResult(plans=unique_plans(self._plans(query, post)), work=learned)

    def _plans(self, query: Preprint, post: Record) -> Iterator[DownloadPlan]:
        files = FILES.get(post.lower("server")) or FILES[query.server]
        pdf = f"{files}/{encode_segment(query.doi)}v{_number(post)}.full.pdf"
        links = [(pdf, "version", "application/pdf"), (post.url("jatsxml"), "jatsxml", "application/xml")]
        for url, evidence, mime in links:
            if url is not None:
                yield DownloadPlan(
                    url,
                    self.name,
                    expected_mime=mime,
                    version="submittedVersion",
                    license=post.text("license"),
                    host_type="repository",
                    evidence=evidence,
                    page_doi=query.doi,
                )


def _likely_server(digits: str | None) -> str:
    """Numbers of medRxiv have eight digits, those of bioRxiv six."""
    return "medrxiv" if digits is not None and len(digits) == 8 else "biorxiv"


def _both(first: str) -> tuple[str, str]:
    return ("biorxiv", "medrxiv") if first == "biorxiv" else ("medrxiv", "biorxiv")


def _another(work: WorkArtifact, doi: str, posts: Sequence[Record]) -> str | None:
    if (said := posts[0].doi("doi")) not in (None, doi):
        return wrong_article(said)
    published = [post.text("published") for post in posts]
    return about_another(work, dois=[doi, *published], title=posts[0].title("title"), own=_OWN)


def _number(post: Record) -> int:
    return int(post.number("version") or 0)


def _is_withdrawn(post: Record) -> bool:
    return "withdraw" in post.lower("type")


def _learned(work: WorkArtifact, doi: str, post: Record, posts: Sequence[Record]) -> WorkArtifact:
    withdrawn = _is_withdrawn(max(posts, key=_number))
    return WorkArtifact(
        work_id=work.work_id,
        title=post.title("title"),
        publication_year=post.year("date"),
        doi=work.doi or doi,
        license=post.text("license"),
        # A withdrawn preprint says nothing about the paper that was published under another DOI.
        is_retracted=True if withdrawn and work.doi in (None, doi) else None,
    )
