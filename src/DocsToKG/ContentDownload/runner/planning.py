"""Look up the candidates of many works at once, for a plan that downloads nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.fallback.search_state import SearchState
    from DocsToKG.ContentDownload.inputs import InputLine
    from DocsToKG.ContentDownload.pipeline import ResolverPipeline

    Candidates = tuple[list[tuple[str, DownloadPlan]], SearchState]

_AT_ONCE = 8


def joined_with_index(cfg: ContentDownloadConfig, lines: Iterable[InputLine]) -> Iterable[InputLine]:
    """The lines, joined with the index where one is configured."""
    if cfg.index.path is None:
        return lines
    from DocsToKG.ContentDownload.index.engine import Limits
    from DocsToKG.ContentDownload.index.joining import joined

    return joined(lines, Path(cfg.index.path).expanduser(), limits=Limits(cfg.index.memory_bytes))


def with_planning_cache(cfg: ContentDownloadConfig) -> ContentDownloadConfig:
    """A plan has no folder of a run, so its cache is among the user's other caches, where that can be written."""
    if cfg.hishel.base_path != type(cfg.hishel)().base_path:
        return cfg
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docstokg" / "plan"
    changed: dict[str, object] = {"base_path": str(root / "http"), "sqlite_path": str(root / "http.sqlite")}
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK):
            raise PermissionError(root)
    except OSError:  # a home that cannot be written, as in many containers
        changed = {"enabled": False}
    return cfg.model_copy(update={"hishel": cfg.hishel.model_copy(update=changed)})


def looked_up(pipeline: ResolverPipeline, works: Iterable[WorkArtifact]) -> Iterator[tuple[WorkArtifact, Candidates]]:
    """The candidates of the works, in their order; several works are looked up at the same time."""
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="plan")
    asked: deque[tuple[WorkArtifact, Future[Candidates]]] = deque()
    try:
        for work in works:
            asked.append((work, pool.submit(pipeline.candidates, work)))
            if len(asked) >= _AT_ONCE:
                first, found = asked.popleft()
                yield first, found.result()
        while asked:
            first, found = asked.popleft()
            yield first, found.result()
    finally:
        # Look-ups that still run must end before the network is closed.
        pipeline.close()
        pool.shutdown(wait=True, cancel_futures=True)
