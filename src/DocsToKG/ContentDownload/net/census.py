"""Counts what a cache holds, for people: how many entries, how many bytes, of which kind, from when to when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from DocsToKG.ContentDownload.net.entries import StoredAnswer


@dataclass(slots=True)
class Share:
    entries: int = 0
    body_bytes: int = 0


@dataclass(slots=True)
class CacheCensus:
    """`by_role`: files (kept in the CAS, so without bytes here), landing pages (HTML), and metadata (all else)."""

    entries: int = 0
    body_bytes: int = 0
    unreadable: int = 0
    oldest: float | None = None
    newest: float | None = None
    by_role: dict[str, Share] = field(
        default_factory=lambda: {role: Share() for role in ("artifact", "landing", "metadata")}
    )


def take_census(answers: Iterable[StoredAnswer | None]) -> CacheCensus:
    census = CacheCensus()
    for answer in answers:
        if answer is None:
            census.unreadable += 1
        else:
            _count(census, answer)
    return census


def _count(census: CacheCensus, answer: StoredAnswer) -> None:
    size = 0 if answer.in_cas else answer.size or 0
    share = census.by_role[_role(answer)]
    for counted in (census, share):
        counted.entries += 1
        counted.body_bytes += size
    census.oldest = min(answer.stored_at, census.oldest or answer.stored_at)
    census.newest = max(answer.stored_at, census.newest or answer.stored_at)


def _role(answer: StoredAnswer) -> str:
    if answer.in_cas:
        return "artifact"
    kind = " ".join(answer.headers.get("content-type", [])).lower()
    return "landing" if "html" in kind else "metadata"
