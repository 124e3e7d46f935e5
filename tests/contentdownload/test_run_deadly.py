"""A paper whose file kills the program that proves it: the others are obtained, and it is left out with its reason.

A parser written in C can take the whole process with it, within milliseconds of the first exchange (FAIL-05).
"""

from __future__ import annotations

import csv
import hashlib
import html
import json
import os
import re
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
FORMS = ("table", "md", "html", "json")
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
    """QUE-21: two deaths make a suspect, which is tried alone; two more put it aside, and the others are obtained."""
    deadly, *others = works(calm_sandbox, 6)
    pull = ["pull", deadly, *others, "--out", "papers", "-c", str(config_file(calm_sandbox))]
    codes = [program(*pull, deadly=deadly).returncode for _ in range(4)]
    assert codes == [-9, -9, 3, 3]
    check_put_aside(tmp_path / "papers", deadly, len(others))
    check_report(program, deadly, reasons(tmp_path / "papers")[deadly])
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
    check_put_aside(tmp_path / "papers", deadly, len(others))


def check_report(program: Program, deadly: str, reason: str) -> None:
    """`content report` names the work with the signal, the stage and the digest, in each of its forms."""
    said = reason.removeprefix("ended_worker: ").partition("; `content resume")[0]
    forms = {form: program("report", "--run", "papers", "--no-gates", "-f", form, deadly="nobody") for form in FORMS}
    assert [done.returncode for done in forms.values()] == [0] * len(FORMS)
    assert f"Put aside, as it ended its process: doi:{deadly}: {said}" in forms["table"].stdout
    assert f"- doi:{deadly}: {said}" in forms["md"].stdout
    assert html.escape(said) in forms["html"].stdout
    [ended] = json.loads(forms["json"].stdout)["ended_worker"]
    assert (ended["doc_id"], ended["explanation"]) == (f"doi:{deadly}", said)


def check_put_aside(folder: Path, deadly: str, others: int) -> None:
    """The one work is left out with the signal, the stage and the bytes, which are kept; all others are there."""
    missing = reasons(folder)
    assert list(missing) == [deadly]
    assert missing[deadly].startswith("ended_worker: it ended the process that worked on it alone, twice, by SIGKILL")
    stage, size, sha256 = re.search(r"at (\w+); the bytes at hand were (\d+), sha256 (\w+)", missing[deadly]).groups()
    assert stage == "verify"
    kept = (folder / "state" / "ended_worker" / sha256).read_bytes()
    assert (len(kept), hashlib.sha256(kept).hexdigest()) == (int(size), sha256)
    assert len(list((folder / "PDF").iterdir())) == others
    assert list((folder / ".tmp").iterdir()) == []
