"""The queue commands (TEST-04): the queue face alone, but for one queue that is drained for real."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import signal
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli import launch
from DocsToKG.ContentDownload.cli.app import queue_app
from DocsToKG.ContentDownload.cli.launch import stop_signals
from DocsToKG.ContentDownload.cli.queue import run as queue_run
from DocsToKG.ContentDownload.config import load_config
from DocsToKG.ContentDownload.inputs import queue_lines
from DocsToKG.ContentDownload.inputs.queue_lines import read_lines
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.runner import DownloadRun, run_queue
from DocsToKG.core.clock import ManualClock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "q.sqlite"


@pytest.fixture
def run(tmp_path, path, monkeypatch):
    """A queue command with a config file that names the queue."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    config = tmp_path / "cd.yaml"
    config.write_text(f"queue:\n  path: {path}\norchestrator:\n  max_job_attempts: 2\n")

    def invoke(*words: str, stdin: str | None = None, code: int = 0):
        result = CliRunner().invoke(queue_app, [*words, "-c", str(config)], input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def works(tmp_path):
    file = tmp_path / "works.jsonl"
    lines = [{"doi": "10.1371/journal.pone.0000001"}, {"arxiv_id": "2101.00001"}, {"artifact_id": "local:1", "n": 1}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def counts(run):
    return json.loads(run("stats", "--json").stdout)


def test_enqueue_from_a_file_shows_in_the_stats(run, works):
    """CLI-15, CLI-18."""
    assert "3 new, 0 already present" in run("enqueue", "-i", str(works)).stdout
    assert counts(run)["queued"] == 3
    assert "queued" in run("stats").stdout


def test_import_says_what_is_new_and_what_was_there(run, works):
    """CLI-16."""
    run("enqueue", "doi:10.1371/JOURNAL.pone.0000001")
    assert json.loads(run("import", str(works), "--json").stdout) == {"new": 2, "present": 1, "invalid": 0}


def test_enqueue_reads_standard_input(run):
    """CLI-15."""
    run("enqueue", "-i", "-", stdin='{"doi": "10.1371/journal.pone.1"}\n\n"arXiv:2101.00001"\n')
    assert counts(run)["queued"] == 2


def test_one_work_may_be_given_with_a_body(run, path):
    """CLI-15."""
    run("enqueue", "https://doi.org/10.1371/journal.pone.1", '{"title": "A paper"}')
    with WorkQueue(path) as queue:
        [job] = queue.ledger.list_jobs()
    assert job.artifact_id == "doi:10.1371/journal.pone.1"
    assert json.loads(job.artifact_json) == {
        "doi": "10.1371/journal.pone.1",
        "title": "A paper",
        "work_id": "doi:10.1371/journal.pone.1",
    }
    assert job.max_attempts == 2


@pytest.mark.parametrize("words", [(), ("doi:10.1/x", "-i", "x"), ("doi:10.1371/x", "[1]"), ("doi:10.1371/x", "{")])
def test_a_wrong_call_is_refused(words, run):
    run("enqueue", *words, code=2)


def test_bad_lines_are_named_and_the_good_ones_are_queued(run, tmp_path):
    file = tmp_path / "mixed.jsonl"
    file.write_text('{"doi": "10.1371/journal.pone.1"}\nnot json\n{"title": "no id"}\n[]\n{"artifact_id": "plain"}\n')
    result = run("import", str(file), code=2)
    assert [line.split(":")[0] for line in result.stderr.splitlines()[:4]] == ["line 2", "line 3", "line 4", "line 5"]
    assert "4 lines were not usable" in result.stderr
    assert counts(run)["queued"] == 1


def test_a_missing_file_is_an_error_not_a_traceback(run, tmp_path):
    result = run("import", str(tmp_path / "none.jsonl"), code=2)
    assert "none.jsonl" in result.stderr
    assert "Traceback" not in result.output


def leave_failed(path, reason="timeout"):
    with WorkQueue(path) as queue:
        [job] = queue.lease("w", 1, 60)
        queue.ack(job["id"], "error", reason)


@pytest.mark.parametrize("verb", ["retry-failed", "retry"])
def test_failed_jobs_are_queued_again(verb, run, path):
    """CLI-19."""
    run("enqueue", "local:1")
    leave_failed(path)
    assert json.loads(run(verb, "--json").stdout) == {"retried": 1}
    assert counts(run)["queued"] == 1


def test_pause_holds_back_leasing_until_resume(run, path):
    """CLI-20."""
    run("enqueue", "local:1")
    run("pause", "--reason", "disk")
    assert counts(run)["paused"] is True
    assert "paused" in run("stats").stderr
    with WorkQueue(path) as queue:
        assert queue.lease("w", 1, 60) == []
        run("resume")
        assert len(queue.lease("w", 1, 60)) == 1


def test_list_and_show_tell_about_jobs(run, path):
    run("enqueue", "local:1")
    run("enqueue", "local:2")
    leave_failed(path, "bad \x1b[31mred")
    [line] = run("list", "--state", "error", "--json").stdout.splitlines()
    assert json.loads(line)["artifact_id"] == "local:1"
    shown = run("list").stdout
    assert "local:2" in shown
    assert "\x1b" not in shown
    job = json.loads(run("show", "1", "--json").stdout)
    assert [row["event"] for row in job["history"]] == ["enqueued", "leased", "finished"]
    assert "finished" in run("show", "1").stdout
    run("show", "99", code=1)
    run("list", "--state", "nonsense", code=2)


def test_cancel_needs_a_reason(run):
    run("enqueue", "local:1")
    run("cancel", "1", code=2)
    assert json.loads(run("cancel", "1", "--reason", "withdrawn", "--json").stdout) == {
        "canceled": 1,
        "over_already": 0,
    }
    assert "0 jobs are canceled, 1 over already" in run("cancel", "1", "--reason", "again").stdout
    assert counts(run)["canceled"] == 1


def test_equal_works_in_different_spellings_are_one(run):
    """QUE-22."""
    for name in ("10.1371/journal.pone.1", "doi:10.1371/JOURNAL.PONE.1", "https://doi.org/10.1371/journal.pone.1"):
        run("enqueue", "-i", "-", stdin=json.dumps({"doi": name}) + "\n")
    assert counts(run)["total"] == 1


def test_a_line_is_bounded(monkeypatch):
    monkeypatch.setattr(queue_lines, "MAX_LINE_BYTES", 100)
    stream = io.BytesIO(b'"' + b"x" * 1000 + b'"\n"arXiv:2101.00001"\n' + b"[" * 90 + b"\n")
    lines = list(read_lines(stream))
    assert [(line.number, line.artifact_id) for line in lines] == [(1, ""), (2, "arxiv:2101.00001"), (3, "")]
    assert "longer than" in (lines[0].problem or "")


def test_a_line_may_hold_the_artifact_apart_from_its_name():
    [line] = read_lines(io.BytesIO(b'{"artifact_id": "local:1", "artifact": {"n": 1}, "resolver_hint": "doi"}'))
    assert (line.artifact_id, line.artifact, line.resolver_hint) == ("local:1", {"n": 1, "work_id": "local:1"}, "doi")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("title", 5, "a text"),
        ("publication_year", "2020", "a whole number"),
        ("landing_urls", 5, "a list of texts"),
        ("pdf_urls", [5], "a list of texts"),
        ("metadata", "text", "an object"),
    ],
)
@pytest.mark.parametrize("name", ["local:1", "10.1371/journal.pone.1", None])
def test_what_could_not_be_read_back_later_is_refused_now(name, key, value, words):
    line = {"artifact_id": name, key: value} if name else {"doi": "10.1371/journal.pone.1", key: value}
    [read] = read_lines(io.BytesIO(json.dumps(line).encode()))
    assert read.artifact is None
    assert words in (read.problem or "")
    good = {**line, key: None}
    [read] = read_lines(io.BytesIO(json.dumps(good).encode()))
    assert read.problem is None


def test_a_body_given_by_hand_is_checked_too(run):
    assert "title must be a text" in run("enqueue", "local:1", '{"title": 5}', code=2).stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", ["content", "contentdownload", "cli_v2"])
def test_a_queue_is_filled_and_drained_for_real(program, content, config_file, calm_sandbox, tmp_path):
    """TEST-04, TEST-13, CLI-17: real works, a real run, the stored files of it."""
    works = [work for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"]][:3]
    settings = str(config_file(calm_sandbox))

    def queue(*words, stdin=None):
        done = content("queue", *words, "-c", settings, program=program, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done

    queue("enqueue", "-i", "-", stdin="".join(json.dumps({"doi": work["doi"]}) + "\n" for work in works))
    before = json.loads(queue("stats", "--json").stdout)
    assert (before["queued"], before["done"]) == (3, 0)
    queue("run", "--drain")
    after = json.loads(queue("stats", "--json").stdout)
    assert (after["queued"], after["leased"], after["done"]) == (0, 0, 3)
    stored = {hashlib.sha256(file.read_bytes()).hexdigest() for file in (tmp_path / "data" / "docs").glob("PDF/*")}
    assert len(stored) == 3
    assert all(stored & set(work["sha256"]) for work in works)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "drains"), [(("run",), False), (("run", "--drain"), True), (("drain",), True)])
def test_run_hands_the_queue_to_the_runner_and_leaves_its_exit_code(words, drains, run, path, monkeypatch):
    """CLI-17: the runner is a stand-in here; jobs that a pause holds back are named at the end."""
    asked = []
    runner = types.ModuleType("runner")
    runner.run_queue = lambda cfg, *, drain, on_start, config_file: asked.append((cfg.queue.path, drain)) or 3
    monkeypatch.setitem(sys.modules, "DocsToKG.ContentDownload.runner", runner)
    run("enqueue", "local:1")
    run("pause")
    result = run(*words, code=3)
    assert asked == [(str(path), drains)]
    assert "1 jobs wait because the queue is paused" in result.stderr


def test_signals_that_come_together_are_one_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout` tells the program and its group; who asks once more means it."""
    left: list[int] = []
    clock = ManualClock()
    monkeypatch.setattr(queue_run.os, "_exit", left.append)
    monkeypatch.setattr(launch, "time", clock)
    with stop_signals(queue_run.leave_if_asked_again):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert left == []
        clock.advance(1.0)
        with pytest.raises(KeyboardInterrupt):  # where the program would be gone
            signal.raise_signal(signal.SIGINT)
        assert left == [130]


def test_a_signal_that_is_ignored_from_the_start_stays_so() -> None:
    """What a script puts into its background is not for Ctrl+C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_signals(lambda number: None):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.timeout(60)
def test_a_wish_to_stop_that_python_lost_is_heard_by_whoever_waits(tmp_path: Path) -> None:
    """A KeyboardInterrupt that comes up within a `__del__` is printed and gone; the run must not go on for ever."""

    places = {
        "telemetry": {"manifest_path": str(tmp_path / "manifest.jsonl")},
        "storage": {"root_dir": str(tmp_path)},
        "queue": {"path": str(tmp_path / "q.sqlite")},
        "limits": {"shared": False},
        "hishel": {"enabled": False},
    }
    cfg = load_config(None, places, environ={}, user_file=tmp_path / "none")

    def stop(run: DownloadRun) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # lost
            signal.raise_signal(signal.SIGINT)

    with stop_signals(lambda times: None):
        assert run_queue(cfg, drain=False, on_start=stop) == 0
