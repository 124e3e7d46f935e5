"""The Wayback Machine: stored responses of addresses at which a paper is no longer available.

Queries the capture index for at most three addresses, and proposes the raw replay of captures that may be PDFs. The
index's digest is that of the stored payload, which may be compressed, so it is no checksum. The index allows few
queries a minute: pages are looked up only where no address of a file is known. It answers with rows in JSON, the
first of which names the columns. Addresses that their owner refuses, by robots.txt or for legal reasons, are
not looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import orjson

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers.base import MALFORMED, NOT_IN_INDEX, ResolverSettings, only_note, unique_plans
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_url
from DocsToKG.ContentDownload.resolvers.links.copy_facts import facts_at, is_refused, with_facts
from DocsToKG.ContentDownload.resolvers.record import MAX_ANSWER_BYTES
from DocsToKG.core.urls import mask_url

DEFAULT_BASE_URL = "https://web.archive.org"
_MOST_QUERIES = 3
_CAPTURES_EACH = 2
_NEWEST = 20
# Archives and services that do not vanish, or whose answers nobody archives under the address we know.
_LIVING = (
    "archive.org",
    "doi.org",
    "arxiv.org",
    "europepmc.org",
    "ebi.ac.uk",
    "ncbi.nlm.nih.gov",
    "pmc-oa-opendata.s3.amazonaws.com",
    "openalex.org",
    "api.core.ac.uk",
)
_FIELDS = ("timestamp", "original", "mimetype", "statuscode", "digest")
_MOST_ROWS = 1000
_MOMENT = re.compile(r"(?:19|20)\d{12}", re.ASCII)
_PDF_TYPES = frozenset({"application/pdf", "application/x-pdf"})
# Servers that send a file "for download", and crawlers that could not tell.
_ANY_TYPES = frozenset(
    {
        "application/octet-stream",
        "binary/octet-stream",
        "application/download",
        "application/x-download",
        "application/force-download",
        "application/save",
        "unk",
        "",
    }
)


class WaybackResolver:
    name = "wayback"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _addresses(work) else "no_known_address"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if (why_not := self.applies_to(work)) is not None:
            return only_note(why_not)
        plans: list[DownloadPlan] = []
        notes: list[str] = []
        for url in _addresses(work)[:_MOST_QUERIES]:
            try:
                page = await client.fetch(self._question(url), Role.METADATA, call)
                captures, note = _read(page)
            except (CandidateRejected, TransientFailure):
                if not plans:
                    raise
                break
            best = best_captures(captures, url, at_most=_CAPTURES_EACH)
            plans += [with_facts(self._plan(capture), facts_at(work, url)) for capture in best]
            notes.append(note or "no_capture")
        return ResolverResult(plans=unique_plans(plans), notes=() if plans else tuple(dict.fromkeys(notes)))

    def _question(self, url: str) -> str:
        """The newest captures that were served in full and are no pages; the rest is decided here."""
        filters = ["statuscode:200", "!mimetype:warc/revisit", "!mimetype:text/html"]
        wanted = {"url": url, "output": "json", "filter": filters, "limit": f"-{_NEWEST}"}
        return f"{self._base}/cdx/search/cdx?{urlencode(wanted, doseq=True)}"

    def _plan(self, capture: Capture) -> DownloadPlan:
        # Raw (`id_`): otherwise a PDF comes in a frame. A fragment would be cut off on the way.
        original = quote(capture.original, safe="/:?&=%;,+@!$'()*~[]")
        return DownloadPlan(f"{self._base}/web/{capture.timestamp}id_/{original}", self.name, evidence="wayback")


class Capture(NamedTuple):
    """One stored answer."""

    timestamp: str
    original: str
    mimetype: str
    statuscode: str
    digest: str

    @property
    def may_be_pdf(self) -> bool:
        return self.statuscode == "200" and (self.is_pdf or self.mimetype in _ANY_TYPES)

    @property
    def is_pdf(self) -> bool:
        return self.mimetype in _PDF_TYPES


def captures_in(body: bytes) -> list[Capture] | None:
    """The captures an answer names; None when it is no answer of the index. An empty one names none."""
    if not body.strip():
        return []
    try:
        rows = orjson.loads(body) if len(body) <= MAX_ANSWER_BYTES else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(rows, list):
        return None
    if not rows:
        return []
    header = rows[0] if isinstance(rows[0], list) else []
    if not all(name in header for name in _FIELDS):
        return None
    places = [header.index(name) for name in _FIELDS]
    return list(_captures(rows[1:_MOST_ROWS], places))


def best_captures(captures: Iterable[Capture], url: str, *, at_most: int) -> list[Capture]:
    """Those that may be the file, each content once: of the very address first, then by type, then the newest."""
    wanted = _bare(url)
    found = sorted((capture for capture in captures if capture.may_be_pdf), key=lambda c: c.timestamp, reverse=True)
    found.sort(key=lambda capture: (_bare(capture.original) != wanted, not capture.is_pdf))
    by_content: dict[str, Capture] = {}
    for capture in found:
        by_content.setdefault(capture.digest or capture.timestamp, capture)
    return list(by_content.values())[:at_most]


def _captures(rows: list[object], places: list[int]) -> Iterator[Capture]:
    for row in rows:
        if not isinstance(row, list) or len(row) <= max(places):
            continue
        values = [row[place] for place in places]
        if not all(isinstance(value, str) for value in values):
            continue
        timestamp, original, mimetype, status, digest = values
        if _MOMENT.fullmatch(timestamp) and original.isprintable() and normalize_url(original) is not None:
            kind = mimetype.partition(";")[0].strip().lower()
            yield Capture(timestamp, original, kind, status, digest[:64])


def _bare(url: str) -> str:
    """The address without its scheme: the index keeps both spellings under one entry."""
    return (normalize_url(url) or url).partition("://")[2]


def _read(page: Page) -> tuple[list[Capture], str | None]:
    """The captures named, and why there are none."""
    if page.status == 403:
        is_excluded = b"AdministrativeAccessControl" in page.body[:4096] or b"Blocked Site" in page.body[:4096]
        return [], "blocked_site" if is_excluded else "refused: the Wayback Machine answered 403; ask again later"
    if page.status != 200:
        return [], NOT_IN_INDEX if page.status == 404 else f"http-status: {page.status}"
    captures = captures_in(page.body)
    return captures or [], MALFORMED if captures is None else None


def _addresses(work: WorkArtifact) -> list[str]:
    """What to ask about, each once: http and https, with and without `www.`, are one entry of the index."""
    files = _distinct(work.pdf_urls)
    found = list((files or _distinct(work.landing_urls)).values())
    return [address for address in found if not is_refused(work, address)]


def _distinct(urls: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for url in _askable(urls):
        found.setdefault(url.partition("://")[2].removeprefix("www."), url)
    return found


def _askable(urls: tuple[str, ...]) -> Iterator[str]:
    for url in urls:
        address = normalize_url(url)
        # An address with a key or a signature in it is between us and its host.
        if address is not None and mask_url(address) == address and not _is_living(address):
            yield address


def _is_living(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return any(host == name or host.endswith("." + name) for name in _LIVING)
