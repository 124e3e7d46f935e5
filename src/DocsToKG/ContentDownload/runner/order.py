"""What a process is told when it joins a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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


def private_limits(cfg: ContentDownloadConfig, state: Path) -> ContentDownloadConfig:
    """Limits that are not shared with the machine are still shared by the processes of one run."""
    return cfg if cfg.orchestrator.processes == 1 else shared_limits(cfg, state)


def shared_limits(cfg: ContentDownloadConfig, state: Path) -> ContentDownloadConfig:
    """Limits for more than one process, in the run's own folder where they are not the machine's."""
    if cfg.limits.shared:
        return cfg
    limits = cfg.limits.model_copy(update={"shared": True, "store_path": str(state / "limits.sqlite")})
    return cfg.model_copy(update={"limits": limits})
