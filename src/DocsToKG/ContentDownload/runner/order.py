"""What a process is told when it joins a run."""

from __future__ import annotations

from dataclasses import dataclass

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig


@dataclass(frozen=True, slots=True)
class Order:
    """The run's settings and name, and the works that are fetched again although their file is known."""

    cfg: ContentDownloadConfig
    run_id: str
    refetch: frozenset[str]
