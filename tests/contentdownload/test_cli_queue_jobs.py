"""Queue commands on single jobs: list with filters, show, why, retry, cancel; all on a real ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import queue_app
from DocsToKG.ContentDownload.cli.queue import cancel, jobs
from DocsToKG.ContentDownload.cli.queue.selection import since_time
from DocsToKG.ContentDownload.cli.tables import span_text
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.Orchestrator.control.workers.liveness import Presence
from DocsToKG.Orchestrator.ledger.base import NewJob, Progress

DOI = "doi:10.1371/journal.pone.0000001"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "q.sqlite"


@pytest.fixture
def config(tmp_path, path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "cd.yaml"
    file.write_text(f"queue:\n  path: {path}\n")
    return file


@pytest.fixture
def run(config):
    def invoke(*words: str, stdin: str | None = None, code: int = 0):
        result = CliRunner().invoke(queue_app, [*words, "-c", str(config)], input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        assert "Traceback" not in result.output
        return result

    return invoke


def fill(path, *names: str) -> None:
    with WorkQueue(path) as queue:
        queue.bulk_import((name, {"work_id": name}, None) for name in names)


def end_next(path, outcome: str = "error", reason: str | None = "timeout: the host did not answer") -> None:
    with WorkQueue(path) as queue:
        [job] = queue.lease("w", 1, 60)
        queue.ack(job["id"], outcome, reason)


def listed(result) -> list[int]:
    return [json.loads(line)["job_id"] for line in result.stdout.splitlines()]


# looking makes nothing


@pytest.mark.parametrize("words", [("stats",), ("list",), ("show", "1"), ("why", "1"), ("retry",)])
def test_looking_makes_no_queue_and_names_the_way_out(words, run, path):
    result = run(*words, code=1)
    assert f"there is no queue at {path}" in result.stderr
    assert "queue import FILE" in result.stderr
    assert not path.exists()


# names


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["1", DOI, "10.1371/JOURNAL.pone.0000001", "https://doi.org/10.1371/journal.pone.0000001"]
)
def test_a_job_is_named_by_number_or_by_its_work_in_any_spelling(name, run):
    run("enqueue", DOI)
    assert json.loads(run("show", name, "--json").stdout)["artifact_id"] == DOI


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("99", 1, "there is no job 99; `queue list` shows the numbers"),
        ("9" * 18, 1, "there is no job"),
        ("9" * 400, 2, "Error"),
        ("doi:10.1371/none", 1, "there is no job for doi:10.1371/none"),
        ("nothing at all", 2, "nothing at all"),
        ("bad\x1b[31m", 2, "bad"),
    ],
)
@pytest.mark.parametrize("verb", ["show", "retry"])
def test_what_cannot_be_found_is_named_with_the_way_out(verb, name, code, words, run, path):
    """CLI-24."""
    fill(path, "local:1")
    assert words in run(verb, name, code=code).stderr


# list


def test_pages_are_keyset_pages_without_gap_or_repeat(run, path):
    fill(path, *(f"local:{n}" for n in range(25)))
    first = run("list", "--limit", "10", "--json")
    assert listed(first) == list(range(1, 11))
    assert "--after 10 shows the next page" in first.stderr
    fill(path, "local:late")  # what is added meanwhile comes at the end
    assert listed(run("list", "--limit", "10", "--after", "10", "--json")) == list(range(11, 21))
    last = run("list", "--limit", "10", "--after", "20", "--json")
    assert listed(last) == list(range(21, 27))
    assert "--after" not in last.stderr


def test_filters_look_beyond_the_first_page_of_rows(run, path, monkeypatch):
    monkeypatch.setattr(jobs, "PAGE", 2)
    fill(path, *(f"local:{n}" for n in range(7)))
    with WorkQueue(path) as queue:
        for job in queue.lease("w", 7, 60):
            queue.ack(job["id"], "error", "robots: not allowed" if job["id"] in (2, 7) else "timeout: gone")
    assert listed(run("list", "--reason", "ROBOTS", "--json")) == [2, 7]
    assert listed(run("list", "--reason", "timeout", "--limit", "3", "--json")) == [1, 3, 4]


def test_the_host_filter_knows_where_a_job_waits_and_what_its_work_names(run, path):
    with WorkQueue(path) as queue:
        queue.enqueue("local:1", {"pdf_urls": ["https://Files.Example.org/a.pdf", 5, "no address"]})
        queue.enqueue("local:2", {"url": "http://other.example.org:8080/x"})
        queue.enqueue("local:3", {})
        jobs = queue.lease("w", 3, 60)
        queue.release(jobs[2]["id"], 60, host_key="files.example.org")
    assert listed(run("list", "--host", "FILES.example.org", "--json")) == [1, 3]
    assert listed(run("list", "--host", "http://other.example.org:8080/y", "--json")) == [2]
    assert "is no host" in run("list", "--host", "a b/c d", code=2).stderr


def test_since_shows_what_changed_lately(run, path):
    fill(path, "local:1")
    assert listed(run("list", "--since", "1h", "--json")) == [1]
    assert listed(run("list", "--since", "2999-01-01", "--json")) == []
    assert "write 30m" in run("list", "--since", "yesterday", code=2).stderr


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("90s", 910.0),
        ("1.5m", 910.0),
        ("1970-01-01T00:10", 600.0),
        ("1970-01-01T01:10+01:00", 600.0),
        ("1970-01-02", 86400.0),
    ],
)
def test_times_are_spans_or_iso_in_utc(words, seconds):
    assert since_time(words, 1000.0) == seconds


@pytest.mark.parametrize("words", ["", "1", "1w", "-1h", "9999-99-99", "1e9d", "1" * 500 + "d"])
def test_what_is_no_time_is_refused(words):
    with pytest.raises(typer.BadParameter):
        since_time(words, 1000.0)


def test_the_table_shows_age_and_reason(run, path):
    fill(path, "local:1")
    end_next(path)
    shown = run("list").stdout
    assert "timeout: the host did not answer" in shown
    assert " s ago" in shown


# show and why


def test_show_tells_the_story_in_order(run, path):
    fill(path, "local:1")
    with WorkQueue(path) as queue:
        [job] = queue.lease("w", 1, 60)
        queue.fail_and_retry(job["id"], 0, 3, "timeout: first")
    end_next(path, "done", None)
    fields, _, shown = run("show", "1").stdout.partition("History")
    assert "finished_at" in fields
    places = [shown.index(word) for word in ("enqueued", "timeout: first", "finished")]
    assert places == sorted(places)


def test_why_names_a_pause(run, path):
    fill(path, "local:1")
    run("pause")
    answer = json.loads(run("why", "local:1", "--json").stdout)
    assert (answer["job_id"], answer["reason"], answer["artifact_id"]) == (1, "paused", "local:1")
    assert answer["worker_id"] is None
    assert "paused" in run("why", "1").stdout


def test_why_names_the_host_a_job_was_given_back_for(run, path):
    fill(path, "local:1")
    with WorkQueue(path) as queue:
        [job] = queue.lease("w", 1, 60)
        queue.release(job["id"], 600, host_key="www.example.org", why="makes room: rate of www.example.org")
    answer = json.loads(run("why", "1", "--json").stdout)
    assert (answer["host"], answer["reason"]) == ("www.example.org", "delayed")
    shown = run("why", "1").stdout
    assert "waits for www.example.org until" in shown
    assert "makes room: rate of www.example.org" in shown


def test_why_tells_when_a_delayed_job_may_go_on(run, path):
    fill(path, "local:1")
    with WorkQueue(path) as queue:
        [job] = queue.lease("w", 1, 60)
        queue.fail_and_retry(job["id"], 600, 3, "timeout: busy")
    answer = json.loads(run("why", "1", "--json").stdout)
    assert answer["reason"] == "delayed"
    assert answer["at"] > 0
    shown = run("why", "1").stdout
    assert "in 9 min" in shown or "in 10 min" in shown
    assert "timeout: busy" in shown


def test_why_says_who_holds_a_job_where_and_until_when(run, path):
    fill(path, "local:1")
    with WorkQueue(path) as queue, Presence(path, "cdw-here"):
        [job] = queue.ledger.lease("cdw-here", 1, 600)
        answer = json.loads(run("why", "1", "--json").stdout)
        assert answer["reason"] == "leased"
        assert (answer["worker_id"], answer["process"], answer["stage"]) == ("cdw-here", os.getpid(), "scheduled")
        assert answer["begun"] is False
        assert answer["lease_until"] == pytest.approx(job.lease_until)
        shown = run("why", "1").stdout
    assert f"cdw-here, process {os.getpid()}" in shown
    assert "parked before its first request" in shown
    assert "in 10 min" in shown or "in 9 min" in shown


def test_a_running_job_shows_its_stage_and_the_host_it_waits_for(run, path):
    """QUE-15: also when an earlier try of it failed."""
    fill(path, "local:1")
    with WorkQueue(path) as queue:
        [first] = queue.lease("cdw-1", 1, 60)
        queue.fail_and_retry(first["id"], 0, 3, "timeout")
        [job] = queue.ledger.lease("cdw-2", 1, 600)
        names = (job.job_id, job.fence, job.lease_id)
        queue.ledger.progress(Progress(*names, "fetch", begun=False, host_key="pub.org"))
    assert " fetch" in run("list").stdout
    assert json.loads(run("show", "1", "--json").stdout)["stage"] == "fetch"
    why = run("why", "1").stdout
    assert "pub.org" in why
    assert "fetch (parked before its first request)" in why


@pytest.mark.parametrize("worker", ["gone", "../../etc/passwd", "x" * 200])
def test_a_holder_without_a_process_here_is_said_so(worker, run, path):
    fill(path, "local:1")
    with WorkQueue(path) as queue:
        queue.ledger.lease(worker[:100], 1, 600)
    answer = json.loads(run("why", "1", "--json").stdout)
    assert answer["process"] is None
    assert "not found here" in run("why", "1").stdout


# retry


def test_named_jobs_alone_are_queued_again(run, path):
    fill(path, DOI, "local:2", "local:3", "local:4")
    end_next(path)
    end_next(path)
    run("cancel", "3", "--reason", "not now")
    result = run("retry", DOI, "3", "4", "--json")
    assert json.loads(result.stdout) == {"retried": 2}
    assert "1 job is not failed or canceled" in result.stderr
    with WorkQueue(path) as queue:
        assert [queue.job(n).state for n in (1, 2, 3, 4)] == ["queued", "error", "queued", "queued"]


# cancel


def test_several_jobs_are_canceled_at_once_and_one_unknown_stops_it_all(run, path):
    fill(path, DOI, "local:2", "local:3")
    run("cancel", "1", "99", "--reason", "mistyped", code=1)
    with WorkQueue(path) as queue:
        assert queue.stats()["canceled"] == 0
    result = run("cancel", DOI, "1", "3", "--reason", "withdrawn", "--json")
    assert json.loads(result.stdout) == {"canceled": 2, "over_already": 0}
    assert "withdrawn" in run("show", "3").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--reason", "x"),
        ("1", "--state", "queued", "--reason", "x"),
        ("1", "--reason", "  "),
        ("--state", "done", "--reason", "x", "--yes"),
        ("--state", "nonsense", "--reason", "x", "--yes"),
        ("--state", "queued", "--reason", "x"),  # nobody can be asked
    ],
)
def test_a_cancel_that_is_not_clear_is_refused_and_changes_nothing(words, run, path):
    fill(path, "local:1")
    run("cancel", *words, code=2)
    with WorkQueue(path) as queue:
        assert queue.stats()["queued"] == 1


def test_all_jobs_of_a_state_are_canceled_in_pages(run, path, monkeypatch):
    monkeypatch.setattr(cancel, "PAGE", 7)
    fill(path, *(f"local:{n}" for n in range(50)))
    end_next(path, "done", None)
    result = run("cancel", "--state", "queued", "--reason", "enough", "--yes", "--json")
    assert json.loads(result.stdout) == {"canceled": 49, "over_already": 0}
    with WorkQueue(path) as queue:
        assert queue.stats()["done"] == 1
        assert queue.ledger.verify_history()


@pytest.mark.parametrize(("answer", "code", "canceled"), [("y\n", 0, 7), ("n\n", 1, 0)])
def test_a_person_is_shown_what_goes_and_asked(answer, code, canceled, run, path, monkeypatch):
    fill(path, *(f"local:{n}" for n in range(8)))
    end_next(path, "done", None)
    monkeypatch.setattr(cancel, "is_person", lambda: True)
    result = run("cancel", "--state", "queued", "--reason", "enough", stdin=answer, code=code)
    assert "This cancels 7 jobs:\n  2  queued  local:1\n" in result.stderr
    assert "  ... and 2 more\nContinue?" in result.stderr
    with WorkQueue(path) as queue:
        assert queue.stats()["canceled"] == canceled


def test_a_choice_goes_by_host_error_time_type_and_tenant(run, path):
    with WorkQueue(path) as queue:
        queue.enqueue("local:1", {"pdf_urls": ["https://files.example.org/a.pdf"]})
        queue.enqueue("local:2", {})
        queue.enqueue("local:3", {})
        queue.enqueue("local:4", {})
        queue.enqueue("local:5", {"url": "https://files.example.org/over.pdf"})
        queue.ledger.enqueue_many([NewJob("local:6", {}, tenant="t"), NewJob("local:7", {}, job_type="report")])
        jobs = {job["artifact_id"]: job for job in queue.lease("w", 5, 60)}
        queue.fail_and_retry(jobs["local:2"]["id"], 60, 3, "HTTP 503: busy")
        queue.release(jobs["local:3"]["id"], 60, host_key="files.example.org")
        queue.release(jobs["local:4"]["id"])
        queue.release(jobs["local:1"]["id"])
        queue.ack(jobs["local:5"]["id"], "done")
    for words, count in [
        (("--error", "http 503", "--since", "1h"), 1),
        (("--error", "http 503"), 0),
        (("--host", "files.example.org"), 2),  # not the one that is over
        (("--tenant", "t"), 1),
        (("--type", "report"), 1),
        (("--since", "2999-01-01"), 0),
    ]:
        result = run("cancel", *words, "--reason", "enough", "--yes", "--json")
        assert json.loads(result.stdout) == {"canceled": count, "over_already": 0}, words
    with WorkQueue(path) as queue:
        assert queue.job(4).state == "queued"
        assert queue.job(5).state == "done"


def test_a_choice_that_takes_nothing_asks_nothing(run, path):
    fill(path, "local:1")
    assert "0 jobs are canceled" in run("cancel", "--host", "none.example.org", "--reason", "x").stdout


def test_the_list_knows_types_and_tenants(run, path):
    with WorkQueue(path) as queue:
        queue.ledger.enqueue_many([NewJob("a", {}), NewJob("b", {}, tenant="t"), NewJob("c", {}, job_type="report")])
    assert listed(run("list", "--tenant", "t", "--json")) == [2]
    assert listed(run("list", "--type", "report", "--json")) == [3]


# words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (5e5, "5 d 18 h"),
    ],
)
def test_spans_are_short(seconds, text):
    assert span_text(seconds) == text


@pytest.mark.slow
def test_every_command_has_an_example_in_its_help():
    for name in ("enqueue", "import", "stats", "list", "show", "why", "retry", "cancel", "pause", "resume"):
        assert f"Example: contentdownload queue {name}" in CliRunner().invoke(queue_app, [name, "--help"]).stdout, name


def test_help_does_not_load_what_only_work_needs():
    """Start-up stays quick: no database, no telemetry library, no resolvers before a command runs."""
    code = (
        "import sys; from DocsToKG.ContentDownload.cli.app import app\n"
        "heavy = [m for m in sys.modules if m.startswith(('sqlite3', 'opentelemetry', 'rich.table', 'httpx2', 'lxml'))"
        " or 'Download.telemetry' in m or 'Download.resolvers' in m]\n"
        "print(heavy); sys.exit(bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
