"""The queue is how works are obtained; a single work may be obtained without it, and nothing else is different."""

from __future__ import annotations

import csv
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.bootstrap import build_pipeline_from_config, run_from_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.resolvers.unpaywall import UnpaywallResolver
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
ONE_BY_ONE = [{"name": "only", "parallel": 1, "sources": ["unpaywall", "landing"]}]


def some_works(server: SandboxServer, count: int) -> list[WorkArtifact]:
    """Some that Unpaywall knows and some that it does not."""
    truth = server.truth()["works"]
    known = [work["doi"] for work in truth if "unpaywall" in work["reachable_by"]][:count]
    others = [work["doi"] for work in truth if work["doi"] and work["doi"] not in known][: count // 2]
    return [found.work for found in coerce_works([*known, *others]) if found.work is not None]


@pytest.mark.slow
def test_works_go_through_the_ledger_unless_somebody_asks_for_less(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """ORC-01, TEST-13: with nothing configured, every work is a job that a worker leased and finished."""
    cfg = make_config(calm_sandbox, tmp_path, tiers=ONE_BY_ONE)
    works = some_works(calm_sandbox, 4)
    assert run_from_config(cfg, works).successful >= 4
    with WorkQueue(cfg.queue.path) as queue:
        jobs = queue.ledger.list_jobs()
        assert {job.artifact_id for job in jobs} == {work.work_id for work in works}
        for job in jobs:
            history = [(row.event, row.actor) for row in queue.ledger.history(job.job_id)]
            assert [event for event, _ in history][:2] == ["enqueued", "leased"]
            assert history[1][1].startswith("cdw-")
            assert history[-1][0] == "finished"


@pytest.mark.slow
def test_workers_ask_the_sources_and_nobody_does_before_them(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ORC-14: the dispatcher leases and asks nothing; a work that waits in the queue has met no source."""
    asked: Counter[str] = Counter()
    resolve = UnpaywallResolver.resolve

    def seen(self: Any, work: WorkArtifact, *words: Any) -> Any:
        asked[threading.current_thread().name] += 1
        return resolve(self, work, *words)

    monkeypatch.setattr(UnpaywallResolver, "resolve", seen)
    works = some_works(calm_sandbox, 6)
    with DownloadRun(make_config(calm_sandbox, tmp_path, tiers=ONE_BY_ONE)) as run:
        run.enqueue(coerce_works(works))
        assert asked.total() == 0
        run.start()
        run.wait(patience_s=20)
        run.stop()
    assert asked.total() >= len(works)
    assert set(asked) == {"content"}, "the loop that runs the jobs, not the thread that leases them"


def attempts(root: Path) -> Counter[tuple[str, ...]]:
    with open(root / "attempts.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    kept = ("resolver", "url", "verb", "status", "http_status", "reason")
    # Whose request for the rules of a host is the first, is chance.
    return Counter(tuple(line[name] for name in kept) for line in lines if not line["url"].endswith("/robots.txt"))


def what(outcome: DownloadOutcome) -> tuple[Any, ...]:
    named = ("sha256", "size_bytes", "resolver", "tier", "url", "cause", "cache_hit")
    return outcome.ok, outcome.classification, outcome.reason, *(outcome.meta.get(name) for name in named)


@pytest.mark.slow
def test_a_work_ends_the_same_way_alone_and_in_the_queue(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """ORC-15, TEST-13: outcome, proof, file, cache and the lines of the record, from `DownloadRun` and the pipeline."""
    works = some_works(calm_sandbox, 8)
    queued: dict[str, DownloadOutcome] = {}
    for root in (tmp_path / "queue", tmp_path / "alone"):
        root.mkdir()
    both = {"tiers": ONE_BY_ONE, "orchestrator": {"max_workers": 1, "max_job_attempts": 1}}
    with DownloadRun(make_config(calm_sandbox, tmp_path / "queue", **both), on_outcome=queued.__setitem__) as run:
        run.process_artifacts(works)
    pipeline = build_pipeline_from_config(make_config(calm_sandbox, tmp_path / "alone", **both))
    try:
        alone = {work.work_id: pipeline.process(work) for work in works}
    finally:
        pipeline.close()
    assert {name: what(outcome) for name, outcome in alone.items()} == {
        name: what(outcome) for name, outcome in queued.items()
    }
    assert sum(outcome.ok for outcome in alone.values()) >= 8
    assert attempts(tmp_path / "alone") == attempts(tmp_path / "queue")
    files = [sorted(path.name for path in (tmp_path / name).rglob("*.pdf")) for name in ("queue", "alone")]
    assert files[0] == files[1] != []
