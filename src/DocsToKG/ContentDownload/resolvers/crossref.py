"""Crossref: the links, licences and notices that a publisher registered for a DOI.

One look-up per work. A registered link does not mean open access; the licence in force does, and is put into the plan.
A licence is in force from its `start`, which already contains `delay-in-days`: the days from publication to `start`.
Licences for text mining (`tdm`) and for sharing (`stm-asf`) say nothing about reading. Without an open licence, links
of a work that is known to be closed are left out, as are links to services that require a member's key. Status 403
means that an operator has blocked us: no further query is sent in this run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import (
    MALFORMED,
    NO_PDF,
    DoiSource,
    ResolverSettings,
    embargo_note,
    encode_segment,
    in_order,
    only_note,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import arxiv_base, arxiv_of_doi
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address
from DocsToKG.ContentDownload.resolvers.links.classify import classify_link, pages_of, preprint_plan
from DocsToKG.ContentDownload.resolvers.record import Record, title_of, year_of
from DocsToKG.ContentDownload.resolvers.site_rules.load import shipped_rules
from DocsToKG.core.clock import SystemClock

# Publishers' services for text mining: without the key of a member they answer 401 or an abstract.
_MEMBERS_HOSTS = ("api.elsevier.com", "api.wiley.com")
_VERSIONS = {"vor": "publishedVersion", "am": "acceptedVersion"}
# What a link is taken for, the strongest first.
_EVIDENCE = ("link_pdf", "link_unspecified", "has-preprint", "alternative-id", "link_xml")
_FORMS = {"link_xml": "application/xml"}
_PII_PAGE = "https://www.sciencedirect.com/science/article/pii"
_PII = re.compile(r"S\d{7}[\dX]\d{7}[\dX]", re.IGNORECASE)
_PII_IN_LINK = re.compile(r"/(?:PII:|pii/)(?P<pii>S\d{7}[\dX]\d{7}[\dX])(?:[?/]|$)", re.IGNORECASE)
_READING = frozenset({"vor", "am", "unspecified"})
_RETRACTIONS = frozenset({"retraction", "withdrawal", "removal"})
_OPEN = ("creativecommons.org/licenses/", "creativecommons.org/publicdomain/")
_BLOCKED = 403
_MOST_PLANS = 8


def _today() -> date:
    return datetime.fromtimestamp(SystemClock().now(), UTC).date()


class CrossrefResolver(DoiSource):
    name = "crossref"
    service = "Crossref"
    base_url = "https://api.crossref.org"
    check = "it blocks who asks too much, and gets no more questions now; check resolvers.crossref.email, write to it"

    def __init__(self, *, settings: ResolverSettings, today: Callable[[], date] = _today) -> None:
        super().__init__(settings=settings)
        self._today = today
        self._is_blocked = False

    def missing(self) -> str | None:
        return "refused" if self._is_blocked else None

    def status_note(self, status: int) -> str:
        self._is_blocked = self._is_blocked or status == _BLOCKED
        return super().status_note(status)

    def address(self, query: str) -> str:
        # The address makes us guests of the polite pool.
        return f"{self.base}/works/{encode_segment(query)}{self.settings.contact()}"

    def read(self, work: WorkArtifact, query: str, record: Record) -> ResolverResult:
        message = record.object("message")
        said = message.doi("DOI")
        if said is None:
            return only_note(MALFORMED)
        if said != work.doi:
            return only_note(wrong_article(said))
        licences = licences_in_force(message, self._today())
        learned = _learned(work, message, licences)
        links = _links(message) if work.oa_status != "closed" or _is_open(licences) else []
        plans = self._plans(message, links, licences, learned)
        notes = tuple(_notes(message, plans, licences))
        if not plans and (opens := opens_on(message, self._today())) is not None:
            notes = (embargo_note(opens.isoformat()), *notes)
        return ResolverResult(plans=plans, notes=notes, work=learned)

    def _plans(
        self, message: Record, links: Sequence[Record], licences: list[Licence], learned: WorkArtifact
    ) -> tuple[DownloadPlan, ...]:
        found = [plan for plan in (self._plan(message, link, licences) for link in links) if plan is not None]
        if learned.arxiv_id is not None:
            found.append(preprint_plan(learned.arxiv_id, source=self.name, evidence="has-preprint"))
        if _is_open(licences):
            found.extend(self._at_its_society(message, licences))
        found = sorted(in_order(found), key=lambda plan: _EVIDENCE.index(plan.evidence or ""))
        return unique_plans(found)[:_MOST_PLANS]

    def _at_its_society(self, message: Record, licences: list[Licence]) -> Iterator[DownloadPlan]:
        """Newer Elsevier DOIs do not name the journal, the registered PII does; some journals have own hosts."""
        pii = pii_of(message)
        for _, address in shipped_rules().guesses(doi_of_pii(pii)) if pii is not None else ():
            yield DownloadPlan(
                address,
                self.name,
                license=licence_for("vor", licences),
                host_type="publisher",
                evidence="alternative-id",
                is_guess=True,
            )

    def _plan(self, message: Record, link: Record, licences: list[Licence]) -> DownloadPlan | None:
        url = link.text("URL") or ""
        evidence = _evidence(link, url)
        address = file_address(url) if evidence is not None and _members_host(url) is None else None
        if evidence is None or address is None:
            return None
        is_preprint = message.text("type") == "posted-content"
        kind = link.text("content-version") or "unspecified"
        return DownloadPlan(
            address,
            self.name,
            expected_mime=_FORMS.get(evidence, "application/pdf"),
            version="submittedVersion" if is_preprint else _VERSIONS.get(kind),
            license=licence_for(kind, licences),
            host_type="repository" if is_preprint else "publisher",
            evidence=evidence,
        )


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence that holds today, and the version of the paper it is for."""

    url: str
    version: str

    @property
    def is_open(self) -> bool:
        return any(part in self.url.lower() for part in _OPEN)


def licences_in_force(message: Record, today: date) -> list[Licence]:
    """Licences whose start has come, or whose start cannot be read."""
    return [
        licence
        for licence, start in _licences(message)
        if licence.url and licence.version in _READING and (start is None or start <= today)
    ]


def opens_on(message: Record, today: date) -> date | None:
    """The first day to come from which an open licence holds."""
    starts = (start for licence, start in _licences(message) if licence.is_open and start is not None)
    return min((start for start in starts if start > today), default=None)


def licence_for(version: str, licences: list[Licence]) -> str | None:
    """The licence of that version, an open one before the publisher's own terms."""
    fitting = [each for each in licences if "unspecified" in (version, each.version) or each.version == version]
    best = sorted(fitting, key=lambda licence: not licence.is_open)
    return best[0].url if best else None


def is_retracted(message: Record) -> bool | None:
    """True when a notice says so; None otherwise, because not every notice is registered.

    `update-to` stands in the notice and names the paper it is about; only some publishers retract in place, so that
    a record updates itself.
    """
    own = message.doi("DOI")
    in_place = [each for each in message.objects("update-to") if each.doi("DOI") == own]
    kinds = {notice.lower("type") for notice in (*message.objects("updated-by"), *in_place)}
    return True if kinds & _RETRACTIONS else None


def preprints(message: Record) -> tuple[str | None, dict[str, str]]:
    """The arXiv id of its preprint, and the DOIs of its other forms: `preprint_doi`, `published_doi`."""
    arxiv_id: str | None = None
    dois: dict[str, str] = {}
    relation = message.object("relation")
    for entry in relation.objects("has-preprint"):
        doi = entry.doi("id")
        named = arxiv_of_doi(doi) if doi is not None else None
        arxiv_id = arxiv_id or entry.arxiv_id("id") or (arxiv_base(named) if named is not None else None)
        if doi is not None and named is None:
            dois.setdefault("preprint_doi", doi)
    for entry in relation.objects("is-preprint-of"):
        if (doi := entry.doi("id")) is not None:
            dois.setdefault("published_doi", doi)
    return arxiv_id, dois


def pii_of(message: Record) -> str | None:
    """Elsevier's own number of a paper: registered beside the DOI, and part of the links to its services."""
    links = [*message.objects("link", at_most=20), message.object("resource", "primary")]
    named = [_PII.fullmatch(text) for text in message.texts("alternative-id")]
    linked = [_PII_IN_LINK.search(link.text("URL") or "") for link in links]
    for found in (*named, *linked):
        if found is not None:
            return (found[1] if found.re is _PII_IN_LINK else found[0]).upper()
    return None


def doi_of_pii(pii: str) -> str:
    """The form in which old DOIs of Elsevier carry the number: `S002192581743626X` is `s0021-9258(17)43626-x`."""
    return f"10.1016/{pii[:5]}-{pii[5:9]}({pii[9:11]}){pii[11:16]}-{pii[16]}".lower()


def year_issued(message: Record) -> int | None:
    for name in ("issued", "published", "posted", "created"):
        numbers = _numbers(message.object(name))
        if numbers and (year := year_of(numbers[0])) is not None:
            return year
    return None


def _licences(message: Record) -> Iterator[tuple[Licence, date | None]]:
    for entry in message.objects("license"):
        licence = Licence(entry.text("URL") or "", entry.text("content-version") or "unspecified")
        yield licence, _day(entry.object("start"))


def _is_open(licences: list[Licence]) -> bool:
    return any(licence.is_open for licence in licences)


def _day(moment: Record) -> date | None:
    """The first day that fits `date-parts`, whose month and day may be missing."""
    numbers = _numbers(moment)
    year, month, day = (*numbers, 1, 1, 1)[:3]
    try:
        return date(year, month, day) if numbers else None
    except (ValueError, OverflowError):
        return None


def _numbers(moment: Record) -> list[int]:
    parts = moment.get("date-parts")
    first = parts[0] if isinstance(parts, list) and parts else None
    if not isinstance(first, list):
        return []
    return [part for part in first[:3] if isinstance(part, int) and not isinstance(part, bool)]


def _links(message: Record) -> list[Record]:
    """Links for all programs before those for similarity checking."""
    return sorted(message.objects("link"), key=lambda link: link.text("intended-application") == "similarity-checking")


def _evidence(link: Record, url: str) -> str | None:
    match link.text("content-type"):
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


def _notes(message: Record, plans: tuple[DownloadPlan, ...], licences: list[Licence]) -> Iterator[str]:
    hosts = [host for link in _links(message) if (host := _members_host(link.text("URL") or "")) is not None]
    for host in dict.fromkeys(hosts):
        yield f"needs_member_key: {host} answers members of the publisher's text-mining service alone; left out"
    if not any(plan.expected_mime == "application/pdf" for plan in plans):
        yield NO_PDF
    if not _is_open(licences):
        yield "no_open_licence"


def _first_title(message: Record, name: str) -> str | None:
    values = message.get(name)
    return title_of(values[0]) if isinstance(values, list) and values else None


def _learned(work: WorkArtifact, message: Record, licences: list[Licence]) -> WorkArtifact:
    arxiv_id, metadata = preprints(message)
    pii = pii_of(message)
    named = message.object("resource", "primary").text("URL")
    primary = classify_link(named or (f"{_PII_PAGE}/{pii}" if pii is not None else None))
    pages = [classify_link(link.text("URL")) for link in _links(message) if link.text("content-type") == "text/html"]
    first_page, last_page = message.pages("page")
    return WorkArtifact(
        work_id=work.work_id,
        authors=message.authors("author"),
        first_page=first_page,
        last_page=last_page,
        journal=_first_title(message, "container-title"),
        title=_first_title(message, "title"),
        publication_year=year_issued(message),
        doi=work.doi,
        arxiv_id=arxiv_id,
        landing_urls=pages_of([primary, *pages], own_doi=work.doi),
        license=licence_for("vor", licences),
        is_retracted=is_retracted(message),
        metadata=metadata | ({"pii": pii} if pii is not None else {}),
    )
