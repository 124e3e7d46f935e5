"""What was said about a work's copies, by their addresses: which version, which licence, whose host, and who refused.

An index names a page and says `acceptedVersion` of it; the file is found on that page by another source, and archived
by a third. They look here, so that a file keeps what was said of the copy it is. Kept in the work's metadata, one
entry per source. Promises: no exception whatever the metadata hold; what is said of one copy never passes to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.core.urls import BadUrl, has_secret, index_url
from DocsToKG.core.values import lean_dataclass

_SAID = "copies:"
_REFUSED = "refused:"
_MOST = 50
_ILLEGAL = 451
_NAMES = ("version", "license", "host_type")

INDEX = "index"  # the source, its tier, and where the work keeps what it says
ARCHIVES = "index_archives"  # the tier of those who keep what others have lost
CLOSED = "closed"  # as access: a source that would know of an open copy names none


@lean_dataclass(frozen=True, slots=True)
class CopyFacts:
    """What a source says of one copy; None: nothing."""

    version: str | None = None
    license: str | None = None
    host_type: str | None = None

    @classmethod
    def of(cls, record: Record) -> CopyFacts:
        """From a record that names these fields as we do."""
        return cls(record.text("version"), record.text("license"), record.text("host_type"))

    def plan(self, url: str, source: str, evidence: str, **more: Any) -> DownloadPlan:
        """A plan for this copy at `url`."""
        facts = {name: getattr(self, name) for name in _NAMES}
        return DownloadPlan(url, source, evidence=evidence, **facts, **more)


_NOTHING = CopyFacts()


def copies_metadata(source: str, copies: Iterable[tuple[str | None, CopyFacts]]) -> dict[str, Any]:
    """The metadata by which the other sources learn what `source` says; the first word about an address holds."""
    by_address: dict[str, dict[str, str]] = {}
    for address, facts in copies:
        if address is None or facts == _NOTHING or len(by_address) >= _MOST:
            continue
        if (key := _key(address)) is not None:
            by_address.setdefault(key, {name: text for name in _NAMES if (text := getattr(facts, name)) is not None})
    return {f"{_SAID}{source}": by_address} if by_address else {}


def plans_metadata(source: str, plans: Iterable[DownloadPlan]) -> dict[str, Any]:
    """The same for the files a source proposes: an archive may have them when their host has not."""
    return copies_metadata(
        source, ((plan.url, CopyFacts(plan.version, plan.license, plan.host_type)) for plan in plans)
    )


def facts_at(work: WorkArtifact, *addresses: str) -> CopyFacts:
    """What was said of the copy at the first of `addresses` that anybody spoke of."""
    entries = list(_entries(work, _SAID)) if work.metadata else []
    for key in filter(None, map(_key, addresses if entries else ())):
        for by_address in entries:
            said = by_address.get(key)
            if isinstance(said, Mapping):
                texts = {name: text for name in _NAMES if isinstance(text := said.get(name), str)}
                return CopyFacts(**texts)
    return _NOTHING


def with_facts(plan: DownloadPlan, facts: CopyFacts) -> DownloadPlan:
    """The plan with its gaps filled by what is known of its copy."""
    if facts is _NOTHING or facts == _NOTHING:
        return plan
    return replace(
        plan,
        version=plan.version or facts.version,
        license=plan.license or facts.license,
        host_type=facts.host_type or plan.host_type,
    )


def is_refusal(reason: str | None, http_status: int | None) -> bool:
    """Did the owner refuse, by robots.txt or for legal reasons? Then an archive is no way around."""
    return reason == Reason.ROBOTS or http_status == _ILLEGAL


def refusals_metadata(source: str, addresses: Iterable[str]) -> dict[str, Any]:
    """The metadata that keep archives from being asked for these addresses."""
    by_address = {key: True for address in addresses if (key := _key(address)) is not None}
    return {f"{_REFUSED}{source}": by_address} if by_address else {}


def is_refused(work: WorkArtifact, address: str) -> bool:
    key = _key(address)
    return key is not None and any(key in by_address for by_address in _entries(work, _REFUSED))


def _entries(work: WorkArtifact, prefix: str) -> Iterable[Mapping[str, Any]]:
    for name, by_address in work.metadata.items():
        if isinstance(name, str) and name.startswith(prefix) and isinstance(by_address, Mapping):
            yield by_address


def _key(address: str) -> str | None:
    """One for all spellings of an address: http is asked as https, and a DOI has several resolvers and no case.

    None for what is no address, and for one with a key in it: that is between us and its host.
    """
    if has_secret(address):
        return None
    try:
        place = index_url(address).partition("://")[2]
    except BadUrl:
        return None
    host = place.partition("/")[0].partition(":")[0]
    if host == "doi.org" or host.endswith(".doi.org"):
        return normalize_doi(address) or place
    return place


def said_by_index(work: WorkArtifact) -> Mapping[str, Any]:
    """What an index says of the work; empty where none was asked, or it does not know the work."""
    said = work.metadata.get(INDEX)
    return said if isinstance(said, Mapping) else {}


def knows_copies(work: WorkArtifact) -> bool:
    return bool(said_by_index(work).get("copies"))


def is_over(tier: str, work: WorkArtifact) -> bool:
    """Is there nobody left to ask? A work that the index calls closed is over with it; one that it calls open, after
    the archives: other services name the same places as the sources that the index was made from."""
    said = said_by_index(work)
    return bool(said) and tier == (INDEX if said.get("access") == CLOSED else ARCHIVES)
