"""Snapshots of earlier searches, so that a retry repeats only what may end differently.

Keeps a bounded number of works for a bounded time, in this process. The search state decides what is settled. A work
that is not in the cache is searched from the start. Used on one event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.core.clock import Clock
from DocsToKG.core.values import lean_dataclass

_IDS = ("doi", "arxiv_id", "pmcid", "pmid", "openalex_id")


@lean_dataclass(frozen=True, slots=True)
class Failure:
    """A candidate or a source that failed, and why."""

    url: str
    source: str
    reason: str
    http_status: int | None = None
    evidence: str | None = None
    detail: str | None = None
    is_guess: bool = False
    transient: bool = False  # it may work later
    is_copy: bool = True  # False: the source itself failed
    quarantine: Mapping[str, Any] | None = None  # the file that waits there, and what is known of it


@lean_dataclass(frozen=True, slots=True)
class SourceAnswer:
    """The final answer of a source: the copies it named, its note, or its failure."""

    plans: tuple[DownloadPlan, ...] = ()
    note: str | None = None
    failure: Failure | None = None


@lean_dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """What a search leaves for the next search of the same work."""

    work: WorkArtifact  # as it was learnt
    known: frozenset[str]  # the identifiers and addresses that the sources could be asked about
    answers: Mapping[str, SourceAnswer]  # by source
    rejected: tuple[Failure, ...]  # the copies that are no good
    keys: frozenset[str]  # of those copies
    failed: Mapping[str, bool]  # their addresses that archives may know, and whether they were guessed
    refused: tuple[str, ...]  # their addresses that the owners refused


def known_of(work: WorkArtifact) -> frozenset[str]:
    """The identifiers and addresses by which sources can find a work."""
    ids = {f"{name}:{getattr(work, name)}" for name in _IDS if getattr(work, name) is not None}
    return frozenset(ids.union(work.landing_urls, work.pdf_urls))


class ResumeCache:
    """The snapshots of at most `most` works, each for `keep_s` seconds."""

    def __init__(self, clock: Clock, *, most: int = 10_000, keep_s: float = 6 * 3600.0) -> None:
        self._clock = clock
        self._most = most
        self._keep_s = keep_s
        self._snapshots: OrderedDict[str, tuple[float, SearchSnapshot]] = OrderedDict()

    def get(self, work_id: str) -> SearchSnapshot | None:
        at, snapshot = self._snapshots.get(work_id, (0.0, None))
        return snapshot if self._clock.monotonic() - at <= self._keep_s else None

    def put(self, work_id: str, snapshot: SearchSnapshot) -> None:
        self._snapshots[work_id] = self._clock.monotonic(), snapshot
        self._snapshots.move_to_end(work_id)
        while len(self._snapshots) > self._most:
            self._snapshots.popitem(last=False)

    def forget(self, work_id: str) -> None:
        self._snapshots.pop(work_id, None)
