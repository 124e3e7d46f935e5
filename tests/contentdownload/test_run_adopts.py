"""A process that dies between storing files and recording them: the files are taken from there, not fetched again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contentdownload.conftest import Command

from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # starts processes

STORED = 4
# Outcomes are not written down, and with some of them the process dies.
DIES = f"""
import os, signal
from DocsToKG.ContentDownload.orchestrator.workers import Worker
from DocsToKG.ContentDownload.cli.main import content

ended = []

def record(worker, job, *told):
    ended.append(job)
    if len(ended) == {STORED}:
        os.kill(os.getpid(), signal.SIGKILL)

Worker._record = record
content()
"""


def test_what_was_stored_and_not_recorded_is_not_asked_for_again(
    content: Command,
    config_file: Callable[..., Path],
    calm_sandbox: SandboxServer,
    clean_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    """FAIL-01: the cache knows the file by its digest before the file has its name."""
    reachable = [work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"]]
    pull = ["pull", *reachable[: 2 * STORED], "--out", "papers", "-c", str(config_file(calm_sandbox))]
    command = [sys.executable, "-c", DIES, *pull]
    died = subprocess.run(command, env=clean_environment, cwd=tmp_path, capture_output=True, timeout=100)
    assert died.returncode == -9, died.stderr
    stored = {path.name: os.stat(path) for path in (tmp_path / "papers" / "PDF").iterdir()}
    assert len(stored) >= STORED
    assert content(*pull).returncode == 0
    lines = map(json.loads, (tmp_path / "papers" / "manifest.jsonl").read_text().splitlines())
    kept = {Path(line["path"]).name: line for line in lines}
    assert len(kept) == 2 * STORED
    assert {name: (kept[name]["cache_hit"], kept[name]["dedupe"]) for name in stored} == dict.fromkeys(
        stored, (True, "duplicate")
    )
    now = {name: os.stat(tmp_path / "papers" / "PDF" / name) for name in stored}
    assert [now[name].st_ino for name in stored] == [stored[name].st_ino for name in stored]
