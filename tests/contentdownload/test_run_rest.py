"""A whole run over lines that break every large file off once: judged by what the server knows and has sent."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

WORKS, SIZE = 10, 6_000_000  # none is so small that its half is not worth the question


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["truncated_length", "stalled"])
def test_papers_whose_line_broke_are_had_in_one_try_and_sent_once(
    make_config: Callable[..., ContentDownloadConfig], tmp_path: Path, fault: str
) -> None:
    broken = Faults.none().with_settings([f"{fault}=1"])
    with SandboxServer(works=WORKS, seed=7, size_bytes=SIZE, faults=broken) as server:
        config = make_config(server, tmp_path, orchestrator={"max_job_attempts": 1}, http={"timeout_read_s": 1.0})
        with DownloadRun(config) as run:
            result = run.process_artifacts(server.identifiers(WORKS))
        counted, truth = server.counters(), server.truth()["works"]
        assert server.violations() == []
    with open(tmp_path / "results.csv", encoding="utf-8", newline="") as file:
        had = [row for row in csv.DictReader(file) if row["outcome"] == "success"]
    for row in had:
        assert (
            hashlib.sha256((tmp_path / row["path"]).read_bytes()).hexdigest() in truth[int(row["line"]) - 1]["sha256"]
        )
    assert len(had) == result.successful == WORKS
    assert counted["by_status"]["206"] >= result.successful
    files = [len((tmp_path / row["path"]).read_bytes()) for row in had]
    assert counted["bytes"] < 1.4 * sum(files), "each once, and what rivals had begun; anew it would be one and a half"
    assert list((tmp_path / ".tmp").iterdir()) == []
