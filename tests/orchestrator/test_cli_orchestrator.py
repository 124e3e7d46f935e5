from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from DocsToKG.Orchestrator.cli import app
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


@pytest.fixture
def run(ledger, path):
    def invoke(*words: str):
        return CliRunner().invoke(app, [*words, "--ledger", str(path)])

    return invoke


def test_status_counts_jobs_for_people_and_programs(run, enqueue):
    enqueue(2)
    assert "queued       2" in run("status").stdout
    counts = json.loads(run("status", "--json").stdout)
    assert (counts["queued"], counts["leased"], counts["paused"]) == (2, 0, False)


def test_jobs_are_listed_by_state(run, ledger, enqueue):
    enqueue(2)
    [job] = ledger.lease("w", 1, 60)
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "bad \x1b[31mred"))
    [line] = run("jobs", "list", "--state", "error", "--json").stdout.splitlines()
    assert json.loads(line)["job_id"] == job.job_id
    shown = run("jobs", "list").stdout
    assert len(shown.splitlines()) == 2
    assert "\x1b" not in shown


def test_a_wrong_state_is_refused_with_the_right_ones(run):
    result = run("jobs", "list", "--state", "leased")
    assert (result.exit_code, "in_progress" in result.stderr) == (2, True)


def test_a_job_and_its_history_are_shown(run, lease_one):
    job = lease_one()
    assert json.loads(run("jobs", "show", str(job.job_id), "--json").stdout)["lease_id"] == job.lease_id
    assert "artifact_id" in run("jobs", "show", str(job.job_id)).stdout
    assert [json.loads(line)["event"] for line in run("history", str(job.job_id), "--json").stdout.splitlines()] == [
        "enqueued",
        "leased",
    ]
    assert "leased" in run("history", str(job.job_id)).stdout


def test_an_unknown_job_is_an_error(run):
    for words in (("jobs", "show", "7"), ("history", "7")):
        result = run(*words)
        assert (result.exit_code, "no job 7" in result.stderr) == (1, True)


def test_looking_makes_no_ledger(tmp_path):
    result = CliRunner().invoke(app, ["status", "--ledger", str(tmp_path / "none.sqlite")])
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "no ledger" in result.stderr


def test_help_starts_without_the_ledger():
    """Heavy imports wait until a command runs."""
    script = (
        "import sys; import DocsToKG.Orchestrator.cli; "
        "print(sorted(m for m in sys.modules if 'sqlite' in m or m.startswith('DocsToKG.Orchestrator.ledger')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_the_version_is_told_as_by_the_other_programs():
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout.startswith("DocsToKG Orchestrator ")) == (0, True)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to become another user")
def test_a_ledger_that_cannot_be_written_is_looked_into():
    """Root may write anywhere, so this one becomes nobody."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c"]
    paths = f"import sys; sys.path[:0] = {sys.path!r}\n"

    def as_nobody(*words: str, code: str = "from DocsToKG.Orchestrator.main import main; main()"):
        command = [*nobody, paths + code, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")

    if as_nobody(code="from DocsToKG.Orchestrator.ledger.schema import migrations; migrations()").returncode:
        pytest.skip("another user cannot read this program")
    with tempfile.TemporaryDirectory() as folder:  # one that other users may enter
        path = Path(folder) / "ledger.sqlite"
        with SqliteLedger(path) as ledger:
            ledger.enqueue_many([NewJob("doi:10.1/a", {}), NewJob("doi:10.1/b", {})])
            Path(folder).chmod(0o755)
            during = as_nobody("status", "--json", "--ledger", str(path))
            assert '"queued": 2' in during.stdout, during.stderr
        asked = (["status", "--json"], ["jobs", "list"], ["history", "1"])
        for words, part in zip(asked, ('"queued": 2', "doi:10.1/b", "enqueued"), strict=True):
            done = as_nobody(*words, "--ledger", str(path))
            assert (done.returncode, part in done.stdout) == (0, True), done.stderr
        assert [file.name for file in Path(folder).iterdir()] == ["ledger.sqlite"]
