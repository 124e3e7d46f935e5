"""A paper whose file kills the program that proves it: the others are obtained, and it is left out with its reason.

A parser written in C can take the whole process with it, within milliseconds of the first exchange (FAIL-05).
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # starts processes

Program = Callable[..., subprocess.CompletedProcess[str]]
ConfigFile = Callable[..., Path]
CONTENT = "from DocsToKG.ContentDownload.cli.main import content; content()"
# Every process of the program, also one that another starts, dies when it proves this work's file.
DIES = """
import os, signal
from DocsToKG.ContentDownload.proof import candidate

prove_pdf = candidate._prove_pdf

def deadly(plan, work, came, min_bytes):
    if work.work_id == os.environ["DEADLY"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return prove_pdf(plan, work, came, min_bytes)

candidate._prove_pdf = deadly
"""


@pytest.fixture
def program(clean_environment: dict[str, str], tmp_path: Path) -> Program:
    """`program(words..., deadly=doi)`: `content` for which one work is deadly."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(textwrap.dedent(DIES))

    def run(*words: str, deadly: str) -> subprocess.CompletedProcess[str]:
        known = os.environ.get("PYTHONPATH", "")
        env = {**clean_environment, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{known}", "DEADLY": f"doi:{deadly}"}
        command = [sys.executable, "-c", CONTENT, *words]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)

    return run


def works(server: SandboxServer, count: int) -> list[str]:
    return [work["doi"] for work in server.truth()["works"] if "unpaywall" in work["reachable_by"]][:count]


def reasons(folder: Path) -> dict[str, str]:
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        return {row["input"]: row["reason"] for row in csv.DictReader(file) if row["outcome"] != "success"}


def test_the_same_command_gets_past_a_file_that_kills_it(
    program: Program, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    deadly, *others = works(calm_sandbox, 6)
    pull = ["pull", deadly, *others, "--out", "papers", "-c", str(config_file(calm_sandbox))]
    codes = [program(*pull, deadly=deadly).returncode for _ in range(5)]
    assert codes == [-9, -9, -9, 3, 3]
    assert list(reasons(tmp_path / "papers")) == [deadly]
    assert reasons(tmp_path / "papers")[deadly].startswith("ended_worker")
    assert len(list((tmp_path / "papers" / "PDF").iterdir())) == len(others)
    # Whoever names it dares it; with a program that survives it, it is obtained.
    again = ["resume", "--run", "papers", "--force", "--filter", "status=failed"]
    assert "content resume --force --filter status=failed" in reasons(tmp_path / "papers")[deadly]
    assert program(*again, deadly=deadly).returncode == -9
    assert program(*again, deadly="nobody").returncode == 0
    assert reasons(tmp_path / "papers") == {}


def test_several_processes_get_past_it_by_themselves(
    program: Program, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    deadly, *others = works(calm_sandbox, 6)
    pull = ["pull", deadly, *others, "--out", "papers", "-c", str(config_file(calm_sandbox))]
    done = program(*pull, "--processes", "2", deadly=deadly)
    assert done.returncode == 3, done.stderr
    assert list(reasons(tmp_path / "papers")) == [deadly]
    assert reasons(tmp_path / "papers")[deadly].startswith("ended_worker")
