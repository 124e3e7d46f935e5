"""bioRxiv and medRxiv: the newest version of a preprint, or the one asked for, as PDF and as JATS XML.

Asked for the servers' own DOIs, which share a prefix with journals of Cold Spring Harbor, and for their pages. Which of
the two servers has a preprint is not in its DOI; the length of its number tells where to ask first. A version (`v2`)
is no part of the DOI, though their pages write it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, encode_segment, no_record_note, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import about_another, named_page, number_of
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import objects_of, read_object, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://api.biorxiv.org"
FILES = {"biorxiv": "https://www.biorxiv.org/content", "medrxiv": "https://www.medrxiv.org/content"}
_OWN = ("10.1101/", "10.64898/")
_NUMBER = r"\d{4}\.\d{2}\.\d{2}\.(?P<digits>\d{6,8})|\d{6}"
_DOI = re.compile(rf"(?P<doi>10\.(?:1101|64898)/(?:{_NUMBER}))(?:v(?P<version>\d{{1,3}}))?")
_PAGE = re.compile(
    rf"(?P<server>biorxiv|medrxiv)\.org/(?:content|cgi/content/[a-z]+)/(?:(?P<doi>10\.(?:1101|64898)/(?:{_NUMBER}))"
    r"|(?:(?:bio|med)rxiv/)?early/\d{4}/\d{2}/\d{2}/(?P<early>\d{4}\.\d{2}\.\d{2}\.\d{6,8}|\d{6}))(?:v\d{1,3})?(?:[./].*)?",
    re.IGNORECASE,
)


class BiorxivResolver:
    name = "biorxiv"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _preprint(work) is not None else "not_mine"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        named = _preprint(work)
        if named is None:
            return ResolverResult(notes=("not_mine",))
        doi, servers, version = named
        result = ResolverResult(notes=("not_in_index",))
        for server in servers:
            address = f"{self._base}/details/{server}/{encode_segment(doi)}/na/json"
            page = await client.fetch(address, Role.METADATA, call)
            result = self._read(replace(work, doi=work.doi and _without_version(work.doi)), doi, version, server, page)
            if result.notes != ("not_in_index",):
                break
        return result

    def _read(self, work: WorkArtifact, doi: str, version: str | None, server: str, page: Page) -> ResolverResult:
        if page.status != 200:
            return ResolverResult(notes=(no_record_note(page.status, "bioRxiv", "check resolvers.biorxiv.base_url"),))
        answer = read_object(page)
        if answer is None:
            return ResolverResult(notes=("malformed_answer",))
        posts = [post for post in objects_of(answer, "collection") if number_of(post, "version") is not None]
        if not posts:
            return ResolverResult(notes=("not_in_index",))
        if (another := _another(work, doi, posts)) is not None:
            return ResolverResult(notes=(another,))
        wanted = [post for post in posts if version is None or _number(post) == int(version)]
        if not wanted:
            return ResolverResult(notes=(f"no_open_copy: there is no version {version}",))
        post = max(wanted, key=_preference)
        return ResolverResult(plans=unique_plans(self._plans(doi, server, post)), work=_learned(work, doi, post, posts))

    def _plans(self, doi: str, server: str, post: Mapping[str, Any]) -> Iterator[DownloadPlan]:
        said = (text_of(post, "server") or "").lower()
        files = FILES.get(said) or FILES[server]
        yield self._plan(f"{files}/{encode_segment(doi)}v{_number(post)}.full.pdf", "version", doi, post)
        if (xml := normalize_url(text_of(post, "jatsxml") or "")) is not None:
            yield self._plan(xml, "jatsxml", doi, post, mime="application/xml")

    def _plan(
        self, url: str, evidence: str, doi: str, post: Mapping[str, Any], mime: str = "application/pdf"
    ) -> DownloadPlan:
        return DownloadPlan(
            url=url,
            resolver_name=self.name,
            expected_mime=mime,
            version="submittedVersion",
            license=text_of(post, "license"),
            host_type="repository",
            evidence=evidence,
            page_doi=doi,
        )


def _preprint(work: WorkArtifact) -> tuple[str, tuple[str, str], str | None] | None:
    """The DOI of the preprint, the servers in the order to ask them, and the version that was asked for."""
    own = _DOI.fullmatch(work.doi or "")
    page = named_page(work, _PAGE)
    if own is not None:
        server = page["server"].lower() if page is not None else _likely_server(own["digits"])
        return own["doi"], _both(server), own["version"]
    if page is None:
        return None
    doi = page["doi"].lower() if page["doi"] is not None else f"10.1101/{page['early']}"
    return doi, _both(page["server"].lower()), None


def _without_version(doi: str) -> str:
    own = _DOI.fullmatch(doi)
    return own["doi"] if own is not None else doi


def _likely_server(digits: str | None) -> str:
    """Numbers of medRxiv have eight digits, those of bioRxiv six."""
    return "medrxiv" if digits is not None and len(digits) == 8 else "biorxiv"


def _both(first: str) -> tuple[str, str]:
    return ("biorxiv", "medrxiv") if first == "biorxiv" else ("medrxiv", "biorxiv")


def _another(work: WorkArtifact, doi: str, posts: Sequence[Mapping[str, Any]]) -> str | None:
    said = normalize_doi(text_of(posts[0], "doi") or "")
    if said not in (None, doi):
        return f"wrong-article: the answer is about {said}"
    published = [text_of(post, "published") for post in posts]
    return about_another(work, dois=[doi, *published], title=title_of(posts[0].get("title")), own=_OWN)


def _number(post: Mapping[str, Any]) -> int:
    return int(number_of(post, "version") or 0)


def _is_withdrawn(post: Mapping[str, Any]) -> bool:
    return "withdraw" in (text_of(post, "type") or "").lower()


def _preference(post: Mapping[str, Any]) -> tuple[bool, int]:
    """The newest version that is not the notice of a withdrawal."""
    return not _is_withdrawn(post), _number(post)


def _learned(work: WorkArtifact, doi: str, post: Mapping[str, Any], posts: Sequence[Mapping[str, Any]]) -> WorkArtifact:
    withdrawn = _is_withdrawn(max(posts, key=_number))
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(post.get("title")),
        publication_year=year_of(text_of(post, "date")),
        doi=work.doi or doi,
        license=text_of(post, "license"),
        # A withdrawn preprint says nothing about the paper that was published under another DOI.
        is_retracted=True if withdrawn and work.doi in (None, doi) else None,
    )
