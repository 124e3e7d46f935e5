"""What a process is told when it joins a run."""

from __future__ import annotations

from dataclasses import dataclass

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig


@dataclass(frozen=True, slots=True)
class Alone:
    """For a process that takes suspects only, one at a time: its worker id, and the open file by which it is known to
    live."""

    worker_id: str
    presence: int


@dataclass(frozen=True, slots=True)
class Order:
    """The run's settings and name, and the works that are fetched again although their file is known."""

    cfg: ContentDownloadConfig
    run_id: str
    refetch: frozenset[str]
    alone: Alone | None = None
