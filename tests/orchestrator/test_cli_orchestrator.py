from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests import needs
from typer.testing import CliRunner

from DocsToKG.Orchestrator.cli.app import app
from DocsToKG.Orchestrator.jobs.states import JobState
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
        "import sys; import DocsToKG.Orchestrator.cli.app; "
        "print(sorted(m for m in sys.modules if 'sqlite' in m or m.startswith('DocsToKG.Orchestrator.ledger')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_the_version_is_told_as_by_the_other_programs():
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout.startswith("DocsToKG Orchestrator ")) == (0, True)


@pytest.mark.slow
def test_a_ledger_that_cannot_be_written_is_looked_into(tmp_path: Path):
    command = [*needs.user_who_may_only_read(), sys.executable, "-c"]
    code = "from DocsToKG.Orchestrator.main import main; main()"

    def ask(*words: str):
        return subprocess.run([*command, code, *words], capture_output=True, text=True, timeout=60, cwd="/")

    folder, path = tmp_path / "ledger", tmp_path / "ledger" / "ledger.sqlite"
    folder.mkdir()
    with SqliteLedger(path) as ledger:
        ledger.enqueue_many([NewJob("doi:10.1/a", {}), NewJob("doi:10.1/b", {})])
        with only_to_be_read(folder):
            assert subprocess.run([*command, f"open({str(folder / 'new')!r}, 'w')"], capture_output=True).returncode
            during = ask("status", "--json", "--ledger", str(path))
            assert '"queued": 2' in during.stdout, during.stderr
    with only_to_be_read(folder):
        asked = (["status", "--json"], ["jobs", "list"], ["history", "1"])
        for words, part in zip(asked, ('"queued": 2', "doi:10.1/b", "enqueued"), strict=True):
            done = ask(*words, "--ledger", str(path))
            assert (done.returncode, part in done.stdout) == (0, True), done.stderr
        assert [file.name for file in folder.iterdir()] == ["ledger.sqlite"]


@contextlib.contextmanager
def only_to_be_read(folder: Path):
    for file in [*folder.iterdir(), folder]:
        file.chmod(0o555 if file.is_dir() else 0o444)
    try:
        yield
    finally:
        for file in [folder, *folder.iterdir()]:
            file.chmod(0o755 if file.is_dir() else 0o644)
