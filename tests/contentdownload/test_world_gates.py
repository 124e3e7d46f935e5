"""The service levels on the sandbox's default world of 2,000 works, with every shipped source (SLO-01..05)."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.catalog.slo import Targets, gates
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.summary import Figures
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # minutes of real sockets, most of them our own waits

WORKS = 2000
# A source whose service is gone: the report has to name it.
DEAD = {"fatcat": {"base_url": "https://api.gone.example/v0"}}


@dataclass
class World:
    figures: Figures
    rows: list[dict[str, str]]
    truth: list[dict[str, Any]]
    violations: list[dict[str, Any]]
    root: Path


@pytest.fixture(scope="module")
def world(make_config: Callable[..., ContentDownloadConfig], tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("world")
    with SandboxServer(works=WORKS) as server:
        config = make_config(
            server,
            root,
            orchestrator={"max_workers": 32, "retry_backoff_seconds": 1},
            resolvers=DEAD,
            breakers={"max_open_seconds": 4},  # what the dead source costs is time, and not the subject here
        )
        with DownloadRun(config) as run:
            run.process_artifacts(server.identifiers(WORKS))
        with Catalog(root / "manifest.sqlite") as catalog:
            figures = catalog.figures()  # of the closed books: the time of a write is known then
        with open(root / "results.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return World(figures, rows, server.truth()["works"], server.violations(), root)


def _truth_of(world: World, row: dict[str, str]) -> dict[str, Any]:
    return world.truth[int(row["line"]) - 1]


def test_no_stored_file_is_another_paper(world: World) -> None:
    wrong = [
        row
        for row in world.rows
        if row["path"]
        and hashlib.sha256((world.root / row["path"]).read_bytes()).hexdigest() not in _truth_of(world, row)["sha256"]
    ]
    assert wrong == []


def test_nearly_every_reachable_paper_is_obtained(world: World) -> None:
    reachable = [row for row in world.rows if _truth_of(world, row)["reachable"]]
    missed = [
        (row["input"], row["reason"], _truth_of(world, row)["reachable_by"]) for row in reachable if not row["path"]
    ]
    assert len(missed) <= 0.005 * len(reachable), json.dumps(missed, indent=1)
    assert world.figures.yield_ratio is not None
    assert world.figures.yield_ratio >= 0.85


def test_the_first_paper_comes_soon(world: World) -> None:
    """Waits for our own limits do not count; the machine's speed does."""
    assert world.figures.ttfp_p50_s is not None
    assert world.figures.ttfp_p95_s is not None
    assert world.figures.ttfp_p50_s <= 3.0
    assert world.figures.ttfp_p95_s <= 10.0


def test_every_service_level_is_kept(world: World) -> None:
    """SLO-01 to SLO-04, SLO-07. The world answers every fiftieth file with 429 whatever we do: that share is its own
    doing, and a smaller world without that fault is held to the shipped level."""
    judged = {gate.name: gate for gate in gates(world.figures, Targets(ratio_429_below=0.02), workers=32)}
    assert [gate for gate in judged.values() if not gate.ok] == []
    kept = {name for name, gate in judged.items() if gate.verdict == "kept"}
    assert kept >= {"yield", "ttfp_p50_s", "ttfp_p95_s", "ratio_429", "corruption", "catalog_write_p95_ms"}
    assert world.figures.retry_after_broken == 0


def test_the_yield_in_reach_agrees_with_what_the_world_holds(world: World) -> None:
    reachable = sum(work["reachable"] for work in world.truth)
    assert abs(world.figures.reachable_works - reachable) <= 0.02 * WORKS


def test_no_host_was_asked_impolitely(world: World) -> None:
    assert world.violations == []


def test_the_report_says_who_delivered_and_who_fails(world: World) -> None:
    delivered = {each["source"] for each in world.figures.delivered}
    assert delivered >= {"unpaywall", "arxiv", "pmc", "doi_redirect", "landing", "europe_pmc", "wayback"}
    assert list(world.figures.failing) == ["fatcat"]
    assert world.figures.skipped_sources == {"core": "missing_key"}
