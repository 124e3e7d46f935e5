"""One source by itself: on answers given by hand, and as the only one of a run on a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.contentdownload.scripted import answer, resolve

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import DownloadOutcome, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.profile import SandboxServer

__all__ = ["alone", "answer", "ask"]


def ask(
    name: str, work: WorkArtifact, *answers: Page | Exception, settings: ResolverSettings | None = None
) -> tuple[ResolverResult, list[str]]:
    """What the source makes of the answers, and what it asked for to get them."""
    built = registry.build([name], settings={name: settings or ResolverSettings()})[name]
    return resolve(built, work, *answers)


def alone(
    name: str,
    server: SandboxServer,
    root: Path,
    works: list[str] | list[WorkArtifact],
    make_config: Callable[..., ContentDownloadConfig],
) -> dict[str, DownloadOutcome]:
    """How each work ends when nobody else is asked."""
    outcomes: dict[str, DownloadOutcome] = {}
    tiers = [{"name": "only", "parallel": 1, "sources": [name]}]
    config = make_config(server, root, tiers=tiers, resolvers={"identify": []})
    with DownloadRun(config, on_outcome=outcomes.__setitem__) as run:
        run.process_artifacts(works)
    return outcomes
