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
from tests.contentdownload.conftest import Command

from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # starts processes

Program = Callable[..., subprocess.CompletedProcess[str]]
ConfigFile = Callable[..., Path]
FORMS = ("table", "md", "html", "json")
CONTENT = "from DocsToKG.ContentDownload.cli.main import content; content()"
# Every process of the program, also one that another starts, dies when it proves this work's file.
DIES = """
import os, signal
from pathlib import Path
from DocsToKG.ContentDownload.validation import candidate

begin_pdf = candidate._begin_pdf

def deadly(plan, work, *rest):
    if work.work_id == os.environ["DEADLY"]:
        how, parent = os.environ["DEADLY_BY"], os.getppid()
        if how == "exit":
            os._exit(7)
        if how == "everything" and b"content()" in Path(f"/proc/{parent}/cmdline").read_bytes():
            os.kill(parent, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGSEGV if how == "segv" else signal.SIGKILL)
    return begin_pdf(plan, work, *rest)

candidate._begin_pdf = deadly
"""


@pytest.fixture
def program(clean_environment: dict[str, str], tmp_path: Path) -> Program:
    """`program(words..., deadly=doi, by="kill")`: `content` for which one work is deadly, alone or with all of it."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(textwrap.dedent(DIES))

    def run(*words: str, deadly: str, by: str = "kill") -> subprocess.CompletedProcess[str]:
        path = f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        env = {**clean_environment, "PYTHONPATH": path, "DEADLY": f"doi:{deadly}", "DEADLY_BY": by}
        command = [sys.executable, "-c", CONTENT, *words]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)

    return run


def works(server: SandboxServer, count: int) -> list[str]:
    return [work["doi"] for work in server.truth()["works"] if "unpaywall" in work["reachable_by"]][:count]


def reasons(folder: Path) -> dict[str, str]:
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        return {row["input"]: row["reason"] for row in csv.DictReader(file) if row["outcome"] != "success"}


def test_the_same_command_gets_past_a_file_that_kills_it(
    program: Program, content: Command, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """QUE-21: two deaths make a suspect, which is tried alone; two more put it aside, and the others are obtained."""
    deadly, *others = works(calm_sandbox, 6)
    pull = ["pull", deadly, *others, "--out", "papers", "-c", str(config_file(calm_sandbox))]
    codes = [program(*pull, deadly=deadly).returncode for _ in range(4)]
    assert codes == [-9, -9, 3, 3]
    check_put_aside(tmp_path / "papers", deadly, len(others))
    check_report(content, deadly, reasons(tmp_path / "papers")[deadly])
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


@pytest.mark.parametrize(("by", "said"), [("segv", "SIGSEGV"), ("exit", "exit code 7")])
def test_how_it_ended_its_process_is_told(
    program: Program, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path, by: str, said: str
) -> None:
    [deadly] = works(calm_sandbox, 1)
    pull = ["pull", deadly, "--out", "papers", "-c", str(config_file(calm_sandbox)), "--processes", "2"]
    assert program(*pull, deadly=deadly, by=by).returncode == 3
    assert f"twice, by {said} at verify" in reasons(tmp_path / "papers")[deadly]


def test_what_is_killed_along_with_everything_is_never_put_aside(
    program: Program, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """QUE-20: the machine goes, again and again, while the work is tried alone. That proves nothing."""
    work, *others = works(calm_sandbox, 3)
    pull = ["pull", work, *others, "--out", "papers", "-c", str(config_file(calm_sandbox))]
    codes = [program(*pull, deadly=work, by="everything").returncode for _ in range(4)]
    assert codes == [-9] * 4, "two make it a suspect; two more, if they counted, would put it aside"
    assert program(*pull, deadly="nobody").returncode == 0
    assert reasons(tmp_path / "papers") == {}
    assert not (tmp_path / "papers" / "state" / "ended_worker").exists()


def check_report(content: Command, deadly: str, reason: str) -> None:
    """`content report` names the work with the signal, the stage and the digest, in each of its forms."""
    said = reason.removeprefix("ended_worker: ").partition("; `content resume")[0]
    forms = {form: content("report", "--run", "papers", "--no-gates", "-f", form) for form in FORMS}
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
