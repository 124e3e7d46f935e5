"""What a Crossref record says beside its links: licences, dates, retractions and preprints.

Pure. A licence is in force from its `start`, which already contains `delay-in-days`: the days from publication to
`start`. Licences for text mining (`tdm`) and for sharing (`stm-asf`) say nothing about reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from DocsToKG.ContentDownload.resolvers.ids.normal_forms import arxiv_base, arxiv_of_doi, normalize_arxiv, normalize_doi
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, text_of, year_of

_READING = frozenset({"vor", "am", "unspecified"})
_PII = re.compile(r"S\d{7}[\dX]\d{7}[\dX]", re.IGNORECASE)
_PII_IN_LINK = re.compile(r"/(?:PII:|pii/)(?P<pii>S\d{7}[\dX]\d{7}[\dX])(?:[?/]|$)", re.IGNORECASE)
_RETRACTIONS = frozenset({"retraction", "withdrawal", "removal"})
_OPEN = ("creativecommons.org/licenses/", "creativecommons.org/publicdomain/")


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence that holds today, and the version of the paper it is for."""

    url: str
    version: str

    @property
    def is_open(self) -> bool:
        return any(part in self.url.lower() for part in _OPEN)


def licences_in_force(message: Mapping[str, Any], today: date) -> list[Licence]:
    """Those whose start has come; one without a readable start is taken at its word."""
    found = []
    for entry in objects_of(message, "license"):
        url = text_of(entry, "URL")
        version = text_of(entry, "content-version") or "unspecified"
        start = _day(object_of(entry, "start"))
        if url is not None and version in _READING and (start is None or start <= today):
            found.append(Licence(url, version))
    return found


def opens_on(message: Mapping[str, Any], today: date) -> date | None:
    """The first day to come from which an open licence holds."""
    days = [
        start
        for entry in objects_of(message, "license")
        if (start := _day(object_of(entry, "start"))) is not None
        and start > today
        and Licence(text_of(entry, "URL") or "", text_of(entry, "content-version") or "unspecified").is_open
    ]
    return min(days, default=None)


def licence_for(version: str, licences: list[Licence]) -> str | None:
    """The licence of that version, an open one before the publisher's own terms."""
    fitting = [
        licence for licence in licences if "unspecified" in (version, licence.version) or licence.version == version
    ]
    best = sorted(fitting, key=lambda licence: not licence.is_open)
    return best[0].url if best else None


def is_retracted(message: Mapping[str, Any]) -> bool | None:
    """True when a notice says so; None otherwise, because not every notice is registered.

    `update-to` stands in the notice and names the paper it is about; only some publishers retract in place, so that
    a record updates itself.
    """
    own = normalize_doi(text_of(message, "DOI") or "")
    notices = objects_of(message, "updated-by")
    notices += [each for each in objects_of(message, "update-to") if normalize_doi(text_of(each, "DOI") or "") == own]
    kinds = {(text_of(notice, "type") or "").lower() for notice in notices}
    return True if kinds & _RETRACTIONS else None


def preprints(message: Mapping[str, Any]) -> tuple[str | None, dict[str, str]]:
    """The arXiv id of its preprint, and the DOIs of its other forms: `preprint_doi`, `published_doi`."""
    arxiv_id: str | None = None
    dois: dict[str, str] = {}
    relation = object_of(message, "relation")
    for entry in objects_of(relation, "has-preprint"):
        named = text_of(entry, "id") or ""
        doi = normalize_doi(named)
        arxiv_id = arxiv_id or normalize_arxiv(named) or (arxiv_of_doi(doi) if doi is not None else None)
        if doi is not None and arxiv_of_doi(doi) is None:
            dois.setdefault("preprint_doi", doi)
    for entry in objects_of(relation, "is-preprint-of"):
        if (doi := normalize_doi(text_of(entry, "id") or "")) is not None:
            dois.setdefault("published_doi", doi)
    return arxiv_base(arxiv_id) if arxiv_id is not None else None, dois


def pii_of(message: Mapping[str, Any]) -> str | None:
    """Elsevier's own number of a paper: registered beside the DOI, and part of the links to its services."""
    listed = message.get("alternative-id")
    named = [text for text in listed[:20] if isinstance(text, str)] if isinstance(listed, list) else []
    links = [text_of(link, "URL") or "" for link in objects_of(message, "link", at_most=20)]
    links.append(text_of(object_of(object_of(message, "resource"), "primary"), "URL") or "")
    for text in named:
        if (pii := _PII.fullmatch(text.strip())) is not None:
            return pii[0].upper()
    for text in links:
        if (linked := _PII_IN_LINK.search(text)) is not None:
            return linked["pii"].upper()
    return None


def doi_of_pii(pii: str) -> str:
    """The form in which old DOIs of Elsevier carry the number: `S002192581743626X` is `s0021-9258(17)43626-x`."""
    return f"10.1016/{pii[:5]}-{pii[5:9]}({pii[9:11]}){pii[11:16]}-{pii[16]}".lower()


def year_issued(message: Mapping[str, Any]) -> int | None:
    for name in ("issued", "published", "posted", "created"):
        numbers = _numbers(object_of(message, name))
        if numbers and (year := year_of(numbers[0])) is not None:
            return year
    return None


def _day(moment: Mapping[str, Any]) -> date | None:
    """The first day that fits `date-parts`, whose month and day may be missing."""
    year, month, day = (*_numbers(moment), 1, 1, 1)[:3]
    try:
        return date(year, month, day) if _numbers(moment) else None
    except (ValueError, OverflowError):
        return None


def _numbers(moment: Mapping[str, Any]) -> list[int]:
    parts = moment.get("date-parts")
    first = parts[0] if isinstance(parts, list) and parts else None
    if not isinstance(first, list):
        return []
    return [part for part in first[:3] if isinstance(part, int) and not isinstance(part, bool)]
