"""The rules of a run for its searches: forms, filters and callbacks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from DocsToKG.ContentDownload.api.types import DownloadPlan, SourceAttempt, WorkArtifact


async def _nothing_to_prepare(sources: Sequence[str]) -> None:
    """For sources that are all loaded."""


@dataclass(frozen=True, slots=True)
class SearchRules:
    """The defaults filter nothing and report nothing."""

    identify: Sequence[str] = ()  # the sources that say which paper is meant
    formats: Sequence[str] = ("pdf",)  # the forms that are taken, best first
    source_s: Mapping[str, float] = field(default_factory=dict)  # how long a source may take to say where a paper is
    refuse: Callable[[WorkArtifact], str | None] = lambda work: None  # why a work is not wanted
    allow: Callable[[DownloadPlan, WorkArtifact], str | None] = lambda plan, work: None  # why a candidate is not
    lacks: Callable[[WorkArtifact], bool] = lambda work: False  # whether filters need to know more of a work
    knows_copies: Callable[[WorkArtifact], bool] = lambda work: False  # the first tier does: identify after it
    is_over: Callable[[str, WorkArtifact], bool] = lambda tier, work: False  # whether the search ends after a tier
    prepare: Callable[[Sequence[str]], Awaitable[None]] = _nothing_to_prepare  # before sources are asked
    release: Callable[[str], None] = lambda name: None  # remove a file from quarantine
    on_source: Callable[[SourceAttempt], None] = lambda attempt: None  # how a source ended
