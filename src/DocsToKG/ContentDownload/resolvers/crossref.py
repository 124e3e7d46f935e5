"""Crossref: the links, licences and notices that a publisher registered for a DOI.

One look-up per work. A registered link is no statement of open access; the licence in force is, and goes with the plan.
Without an open one, links of a work that is known to be closed are left out, as are those to services that answer
members with a key alone. Who is refused with 403 has been blocked by hand: nothing more is asked in this run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    AskByDoi,
    ResolverSettings,
    embargo_note,
    encode_segment,
    in_order,
    other_paper,
    unique_plans,
)
from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_doi
from DocsToKG.ContentDownload.resolvers.index_links import classify_link, pages_of, preprint_plan
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.records.crossref import (
    Licence,
    doi_of_pii,
    is_retracted,
    licence_for,
    licences_in_force,
    opens_on,
    pii_of,
    preprints,
    year_issued,
)
from DocsToKG.ContentDownload.resolvers.records.fields import (
    authors_of,
    object_of,
    objects_of,
    pages_of_text,
    text_of,
    title_of,
)
from DocsToKG.ContentDownload.resolvers.site_rules.load import shipped_rules
from DocsToKG.core.clock import SystemClock

DEFAULT_BASE_URL = "https://api.crossref.org"
# Publishers' services for text mining: without the key of a member they answer 401 or an abstract.
_MEMBERS_HOSTS = ("api.elsevier.com", "api.wiley.com")
_VERSIONS = {"vor": "publishedVersion", "am": "acceptedVersion"}
# What a link is taken for, the strongest first.
_EVIDENCE = ("link_pdf", "link_unspecified", "has-preprint", "alternative-id", "link_xml")
_FORMS = {"link_xml": "application/xml"}
_PII_PAGE = "https://www.sciencedirect.com/science/article/pii"
_BLOCKED = 403
_MOST_PLANS = 8


def _today() -> date:
    return datetime.fromtimestamp(SystemClock().now(), UTC).date()


class CrossrefResolver(AskByDoi):
    name = "crossref"
    service = "Crossref"
    check = "it blocks who asks too much, and gets no more questions now; check resolvers.crossref.email, write to it"

    def __init__(self, *, settings: ResolverSettings, today: Callable[[], date] = _today) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._email = settings.email
        self._today = today
        self._is_blocked = False

    def applies_to(self, work: WorkArtifact) -> str | None:
        return super().applies_to(work) or ("refused" if self._is_blocked else None)

    def _why_nothing(self, status: int) -> str:
        self._is_blocked = self._is_blocked or status == _BLOCKED
        return super()._why_nothing(status)

    def _address(self, named: str) -> str:
        # The address makes us guests of the polite pool.
        contact = f"?mailto={quote(self._email, safe='@')}" if self._email else ""
        return f"{self._base}/works/{encode_segment(named)}{contact}"

    def _read(self, work: WorkArtifact, named: str, record: Mapping[str, Any]) -> ResolverResult:
        message = object_of(record, "message")
        said = normalize_doi(text_of(message, "DOI") or "")
        if said is None:
            return ResolverResult(notes=("malformed_answer",))
        if (note := other_paper(work, WorkArtifact(work.work_id, doi=said))) is not None:
            return ResolverResult(notes=(note,))
        licences = licences_in_force(message, self._today())
        learned = _learned(work, message, licences)
        links = _links(message) if _may_be_open(work, licences) else []
        plans = self._plans(message, links, licences, learned)
        notes = tuple(_notes(message, plans, licences))
        if not plans and (opens := opens_on(message, self._today())) is not None:
            notes = (embargo_note(opens.isoformat()), *notes)
        return ResolverResult(plans=plans, notes=notes, work=learned)

    def _plans(
        self,
        message: Mapping[str, Any],
        links: list[Mapping[str, Any]],
        licences: list[Licence],
        learned: WorkArtifact,
    ) -> tuple[DownloadPlan, ...]:
        found = [plan for plan in (self._plan(message, link, licences) for link in links) if plan is not None]
        if learned.arxiv_id is not None:
            found.append(preprint_plan(learned.arxiv_id, source=self.name, evidence="has-preprint"))
        if any(licence.is_open for licence in licences):
            found.extend(self._at_its_society(message, licences))
        found = sorted(in_order(found), key=lambda plan: _EVIDENCE.index(plan.evidence or ""))
        return unique_plans(found)[:_MOST_PLANS]

    def _at_its_society(self, message: Mapping[str, Any], licences: list[Licence]) -> Iterator[DownloadPlan]:
        """Newer DOIs of Elsevier's do not tell the journal; the registered number does, and some have own hosts."""
        pii = pii_of(message)
        for _, address in shipped_rules().guesses(doi_of_pii(pii)) if pii is not None else ():
            yield DownloadPlan(
                url=address,
                resolver_name=self.name,
                license=licence_for("vor", licences),
                host_type="publisher",
                evidence="alternative-id",
                is_guess=True,
            )

    def _plan(
        self, message: Mapping[str, Any], link: Mapping[str, Any], licences: list[Licence]
    ) -> DownloadPlan | None:
        url = text_of(link, "URL") or ""
        evidence = _evidence(link, url)
        address = file_address(url) if evidence is not None and _members_host(url) is None else None
        if evidence is None or address is None:
            return None
        is_preprint = text_of(message, "type") == "posted-content"
        kind = text_of(link, "content-version") or "unspecified"
        return DownloadPlan(
            url=address,
            resolver_name=self.name,
            expected_mime=_FORMS.get(evidence, "application/pdf"),
            version="submittedVersion" if is_preprint else _VERSIONS.get(kind),
            license=licence_for(kind, licences),
            host_type="repository" if is_preprint else "publisher",
            evidence=evidence,
        )


def _may_be_open(work: WorkArtifact, licences: list[Licence]) -> bool:
    """A closed work's links lead to files for subscribers, who may well be let in here."""
    return work.oa_status != "closed" or any(licence.is_open for licence in licences)


def _links(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Links meant for everybody's programs before those for one checking service."""
    links = objects_of(message, "link")
    return sorted(links, key=lambda link: text_of(link, "intended-application") == "similarity-checking")


def _evidence(link: Mapping[str, Any], url: str) -> str | None:
    match text_of(link, "content-type"):
        case "application/pdf":
            return "link_pdf"
        case "text/xml" | "application/xml":
            return "link_xml"
        case "unspecified" if "pdf" in _parts(url)[1]:
            return "link_unspecified"
    return None


def _members_host(url: str) -> str | None:
    host = _parts(url)[0]
    return host if host in _MEMBERS_HOSTS else None


def _parts(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url.lower())
        return parts.hostname or "", parts.path
    except ValueError:
        return "", ""


def _notes(message: Mapping[str, Any], plans: tuple[DownloadPlan, ...], licences: list[Licence]) -> Iterator[str]:
    hosts = [host for link in _links(message) if (host := _members_host(text_of(link, "URL") or "")) is not None]
    for host in dict.fromkeys(hosts):
        yield f"needs_member_key: {host} answers members of the publisher's text-mining service alone; left out"
    if not any(plan.expected_mime == "application/pdf" for plan in plans):
        yield "no_oa_pdf"
    if not any(licence.is_open for licence in licences):
        yield "no_open_licence"


def _learned(work: WorkArtifact, message: Mapping[str, Any], licences: list[Licence]) -> WorkArtifact:
    titles = message.get("title")
    arxiv_id, metadata = preprints(message)
    pii = pii_of(message)
    named = text_of(object_of(object_of(message, "resource"), "primary"), "URL")
    primary = classify_link(named or (f"{_PII_PAGE}/{pii}" if pii is not None else None))
    pages = [
        classify_link(text_of(link, "URL")) for link in _links(message) if text_of(link, "content-type") == "text/html"
    ]
    first_page, last_page = pages_of_text(message.get("page"))
    journals = message.get("container-title")
    return WorkArtifact(
        work_id=work.work_id,
        authors=authors_of(message, "author"),
        first_page=first_page,
        last_page=last_page,
        journal=title_of(journals[0]) if isinstance(journals, list) and journals else None,
        title=title_of(titles[0]) if isinstance(titles, list) and titles else None,
        publication_year=year_issued(message),
        doi=work.doi,
        arxiv_id=arxiv_id,
        landing_urls=pages_of([primary, *pages], own_doi=work.doi),
        license=licence_for("vor", licences),
        is_retracted=is_retracted(message),
        metadata=metadata | ({"pii": pii} if pii is not None else {}),
    )
