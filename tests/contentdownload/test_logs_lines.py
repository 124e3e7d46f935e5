"""The log: its forms, its events, and what never gets into a line (LOG-01..LOG-07)."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, Reason, Verb
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.telemetry.events import JobEnd
from DocsToKG.ContentDownload.telemetry.job_log import EVENTS, JobLog
from DocsToKG.ContentDownload.telemetry.logs import LONGEST_LINE, LONGEST_VALUE, Log, clean, open_log
from DocsToKG.ContentDownload.telemetry.metrics import QueueView
from DocsToKG.ContentDownload.telemetry.observability import Exports, open_observability
from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.ledger.base import LeasedJob


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(stream: io.StringIO) -> JobLog:
    return JobLog(Log(stream, level="debug", bound={"run_id": "01RUN"}), worker_id="w1")


@pytest.fixture
def job(tmp_path: Path) -> LeasedJob:
    with WorkQueue(tmp_path / "q.sqlite") as queue:
        queue.bulk_import([("doi:10.1/x", {}, None)])
        return queue.ledger.lease("w1", 1, 600)[0]


def attempt(status: AttemptStatus, **fields: Any) -> Attempt:
    about = {"host": "arxiv.org", "work_id": "doi:10.1/x", "verb": Verb.GET, **fields}
    return Attempt(ts=0.0, resolver="arxiv", url="https://arxiv.org/x", status=status, **about)


# a line


def test_outside_a_terminal_every_line_is_one_json_object_with_the_ids(stream):
    """LOG-01."""
    log = Log(stream, level="info", bound={"run_id": "01RUN"})
    log.say("info", "worker_started", workerId="w1")
    log.say("info", "job_ended", job_id=7, status="done")
    first, second = lines(stream)
    assert first["event"] == "worker_started"
    assert (first["run_id"], first["job_id"], first["level"]) == ("01RUN", None, "info")
    assert (second["run_id"], second["job_id"], second["status"]) == ("01RUN", 7, "done")
    assert first["timestamp"].endswith("Z")


def test_on_a_terminal_it_is_for_people():
    boss, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream:
        log = Log(stream, level="info", bound={"run_id": "01RUN"})
        log.say("info", "job_ended", workerId="w1", leaseId="lease_1", job_id=7, status="done")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", os.read(boss, 10_000).decode())
    os.close(boss)
    assert re.fullmatch(r"\d\d:\d\d:\d\d \[info +\] job_ended +status=done job_id=7 run_id=01RUN\s*", shown)


def test_the_form_can_be_chosen(stream):
    Log(stream, level="info", form="human").say("info", "worker_idle")
    assert "worker_idle" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.slow
def test_what_is_below_the_level_is_not_written_and_structlog_not_loaded():
    code = (
        "import sys, io; from DocsToKG.ContentDownload.telemetry.logs import Log\n"
        "stream = io.StringIO(); log = Log(stream, level='warning'); log.say('info', 'x')\n"
        "assert not stream.getvalue()\n"
        "assert 'structlog' not in sys.modules; log.say('error', 'x'); assert 'structlog' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    "secret",
    [
        "https://user:hunter2@example.org/x.pdf",
        "https://api.example.org/v2?api_key=hunter2&q=1",
        "see https://s3.example.org/x?X-Amz-Signature=hunter2 for it",
        "https://example.org/x?token=hunter2#part",
        {"url": "https://example.org/x?access_token=hunter2"},
        ["https://example.org/x?sig=hunter2"],
    ],
)
@pytest.mark.parametrize("form", ["json", "human"])
def test_no_secret_gets_into_a_line(secret, form, stream):
    """LOG-07."""
    log = Log(stream, level="info", form=form)
    log.say("info", "backoff", reason=secret, nested={"deeper": [secret]})
    assert "hunter2" not in stream.getvalue()
    assert "example.org" in stream.getvalue()


@examples(50)
@given(st.text(max_size=3_000), st.text(max_size=100))
def test_whatever_is_said_a_line_is_one_line_of_bounded_length(text, name):
    stream = io.StringIO()
    Log(stream, level="info", form="json").say("info", "x", said=text, **{f"k{name}": [text] * 50, "a": {name: text}})
    [line] = stream.getvalue().splitlines()
    assert json.loads(line)["event"] == "x"
    assert len(line) <= 4 * LONGEST_LINE
    assert len(clean(text)) <= LONGEST_VALUE + 3


def test_nothing_that_acts_on_a_terminal_reaches_it(stream):
    Log(stream, level="info", form="human").say("info", "x", said="\x1b[2J\x07\r\n\u202eevil\u2028\x9b31m")
    [line] = stream.getvalue().split("\n")[:-1]
    assert not any(sign in line for sign in "\x1b\x07\r\u202e\u2028\x9b")
    assert "\\x1b[2J" in line


def test_too_many_fields_are_left_out_and_the_ids_stay(stream):
    log = Log(stream, level="info", bound={"run_id": "01RUN"})
    log.say("info", "x", job_id=9, **{f"field{n}": "y" * 400 for n in range(200)})
    [line] = lines(stream)
    assert (line["run_id"], line["job_id"], line["left_out"]) == ("01RUN", 9, True)
    assert len(stream.getvalue()) <= LONGEST_LINE


def test_a_stream_that_fails_stops_nobody():
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("no space left")

    Log(Full(), level="info").say("info", "x")


def test_lines_of_many_threads_do_not_mix(tmp_path):
    path = tmp_path / "logs" / "run.log"
    with open_log(level="info", form="json", path=path) as log:
        assert log is not None
        said = [
            threading.Thread(target=lambda n=n: [log.say("info", "x", n=n, text="z" * 300) for _ in range(50)])
            for n in range(4)
        ]
        for thread in said:
            thread.start()
        for thread in said:
            thread.join()
    written = [json.loads(line)["n"] for line in path.read_text().splitlines()]
    assert sorted(written) == sorted([0, 1, 2, 3] * 50)
    with open_log(level="info", form="json", path=path) as log:
        assert log is not None
        log.say("info", "again")
    assert len(path.read_text().splitlines()) == 201


def test_a_log_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"telemetry\.log_file"):
        open_log(level="info", form="auto", path=tmp_path).__enter__()


def test_off_is_no_log_at_all(tmp_path):
    exports = Exports(log_level="off", log_file=tmp_path / "x.log")
    with open_observability(exports, clock=SystemClock(), run_id="r", worker_id="w") as opened:
        assert opened.listeners == ()
    assert list(tmp_path.iterdir()) == []


# the events


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (attempt(AttemptStatus.RETRY, http_status=429, retry_after_s=3.0), "429"),
        (attempt(AttemptStatus.RETRY, http_status=503), "5xx"),
        (attempt(AttemptStatus.RETRY, reason=Reason.CONN_ERROR), "conn-error"),
        (attempt(AttemptStatus.ROBOTS_DISALLOWED, reason=Reason.ROBOTS), "robots-denied"),
        (attempt(AttemptStatus.HTTP_GET, http_status=429), "429"),
    ],
)
def test_a_backoff_names_its_reason(told, reason, log, stream, job):
    """LOG-02."""
    log.on_job_start(job)
    log.attempt(told)
    [said] = [line for line in lines(stream) if line["event"] == "backoff"]
    assert (said["reason"], said["host"], said["job_id"]) == (reason, "arxiv.org", job.job_id)


def test_a_wait_for_our_own_limits_is_a_backoff_too(log, stream, job):
    """LOG-02."""
    log.on_job_start(job)
    log.rate_wait("host:arxiv.org", 3_000, why="interval", work_id="doi:10.1/x")
    said = lines(stream)[-1]
    assert (said["event"], said["reason"], said["rule"], said["ms"]) == ("backoff", "rate-limit", "interval", 3_000)
    assert (said["job_id"], said["level"]) == (job.job_id, "info")


@pytest.mark.parametrize(
    ("told", "decision"),
    [
        (attempt(AttemptStatus.ROBOTS_FETCH, http_status=200), "fetched"),
        (attempt(AttemptStatus.ROBOTS_FETCH, http_status=503), "status-503"),
        (attempt(AttemptStatus.ROBOTS_FETCH, reason=Reason.TIMEOUT), "timeout"),
        (attempt(AttemptStatus.ROBOTS_FETCH, reason=Reason.CONN_ERROR), "unreachable"),
        (attempt(AttemptStatus.ROBOTS_DISALLOWED), "blocked"),
    ],
)
def test_robots_decisions_are_said(told, decision, log, stream):
    log.attempt(told)
    assert [line["decision"] for line in lines(stream) if line["event"] == "robots"] == [decision]


def test_tiers_show_how_the_search_went_on_and_ended(log, stream, job):
    """LOG-03."""
    log.on_job_start(job)
    log.on_stage(job, "resolve:direct_oa")
    log.on_stage(job, "resolve:archive")
    meta = {"fallback_chain": ["unpaywall", "wayback"], "cause": "no_open_copy"}
    log.on_job_end(
        job, JobEnd.ERROR, "all_tiers_exhausted: x", DownloadOutcome(False, "error", None, "all_tiers_exhausted", meta)
    )
    told = [(line["event"], line.get("tier") or line.get("chain")) for line in lines(stream)[1:-1]]
    assert told == [
        ("tier_started", "direct_oa"),
        ("tier_exhausted", "direct_oa"),
        ("tier_started", "archive"),
        ("tier_exhausted", "archive"),
        ("tiers_exhausted", ["unpaywall", "wayback"]),
    ]


def test_a_worker_says_that_it_started_is_idle_once_and_shut_down(log, stream, job):
    """LOG-04."""
    view = QueueView("l", dict, lambda: None, lambda: 0, lambda: 0)
    log.on_start(view)
    log.on_lease([job], 0.1)
    log.on_job_start(job)
    log.on_lease([], 0.1)  # nothing more to lease, and still at work
    log.on_job_end(job, JobEnd.DONE)
    for _ in range(5):
        log.on_lease([], 0.1)
    log.on_stop(view)
    events = [line["event"] for line in lines(stream)]
    assert events == ["worker_started", "job_started", "job_ended", "worker_idle", "worker_shutdown"]
    assert {line["workerId"] for line in lines(stream)} == {"w1"}


def test_a_line_about_a_job_carries_its_names(log, stream, job):
    """LOG-05."""
    log.on_job_start(job)
    log.on_job_end(job, JobEnd.DONE)
    for said, status in zip(lines(stream), ("in_progress", "done"), strict=True):
        assert (said["jobId"], said["jobType"], said["tenant"]) == (job.job_id, "content.download", "default")
        assert (said["workerId"], said["leaseId"], said["status"]) == ("w1", job.lease_id, status)
        assert (said["run_id"], said["job_id"]) == ("01RUN", job.job_id)


def test_what_operators_should_see_is_flagged(log, stream, job):
    """LOG-06."""
    log.breaker_transition("host:a.org", "closed", "open", reason="5 of 6 failed")
    log.breaker_transition("host:a.org", "open", "half_open")
    log.on_job_start(job)
    log.on_job_end(job, JobEnd.RETRIED, "worker_exception: KeyError")
    log.on_job_start(job)
    log.on_job_end(job, JobEnd.LOST, "lease lost")
    flagged = [(line["event"], line["level"]) for line in lines(stream) if line.get("incident")]
    assert flagged == [("breaker", "warning"), ("worker_exception", "error")]
    assert [line["level"] for line in lines(stream) if line["event"] == "lease_lost"] == ["warning"]


def test_every_event_is_in_the_reference():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` | {level} |" in page for name, (level, _) in EVENTS.items())
