"""The figures of real runs on the sandbox web: the page against the record, one process and several (MET)."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.waiting import eventually

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.telemetry.metrics import METRICS
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
SOME = 16


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def read(address: str | None) -> dict[str, list[tuple[dict[str, str], float]]]:
    assert address is not None
    with urllib.request.urlopen(address, timeout=20) as answer:
        return samples(answer.read().decode())


def total(page: dict[str, list[tuple[dict[str, str], float]]], name: str, **labels: str) -> float:
    wanted = labels.items()
    return sum(value for has, value in page.get(name, ()) if wanted <= has.items())


def record(root: Path, sql: str) -> Any:
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db:
        return db.execute(sql).fetchone()[0]


def assert_page_is_the_record(page: dict[str, list[tuple[dict[str, str], float]]], root: Path) -> None:
    """Every figure that the record knows as well is the same there."""
    for name, sql in {
        "contentdownload_attempts_total": "SELECT COUNT(*) FROM http_events",
        "contentdownload_retries_total": "SELECT COUNT(*) FROM http_events WHERE status = 'retry'",
        "contentdownload_bytes_total": "SELECT SUM(bytes_written) FROM http_events WHERE verb = 'STREAM'",
        "content_http_requests_total": "SELECT COUNT(*) FROM http_events WHERE NOT from_cache AND status IN "
        "('http-get', 'http-head', 'robots-fetch', 'retry')",
        "contentdownload_rate_sleep_ms_count": "SELECT COUNT(*) FROM rate_events WHERE delay_ms > 0",
        "contentdownload_rate_sleep_ms_sum": "SELECT COALESCE(SUM(delay_ms), 0) FROM rate_events",
        "content_breaker_open_total": "SELECT COUNT(*) FROM breaker_transitions WHERE new_state = 'open'",
        "contentdownload_ttfp_ms_sum": "SELECT SUM(ttfp_ms) FROM manifests WHERE status = 'ok'",
    }.items():
        assert total(page, name) == record(root, sql), name
    obtained = record(root, "SELECT COUNT(*) FROM manifests WHERE status = 'ok'")
    assert total(page, "contentdownload_outcomes_total", outcome="success") == obtained


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_one_page_shows_the_whole_run_and_agrees_with_its_record(processes, sandbox, make_config, tmp_path):
    """MET-01..MET-17, MET-28: with its faults, in one process and in two."""
    sandbox.reset()
    cfg = make_config(
        sandbox, tmp_path, orchestrator={"processes": processes, "lookahead": 8}, telemetry={"metrics_port": 0}
    )
    with DownloadRun(cfg) as run:
        run.enqueue(coerce_works(sandbox.identifiers(SOME)))
        run.start()
        waiting = read(run.metrics_address)
        run.wait()
        drained = read(run.metrics_address)
        run.stop()
        page, figures = read(run.metrics_address), run.figures()
    depth = total(waiting, "contentdownload_queue_depth")
    assert depth == total(waiting, "content_queue_depth") == total(waiting, "job_queue_depth")
    assert depth + total(waiting, "contentdownload_jobs_inflight") <= SOME
    assert total(drained, "contentdownload_queue_depth") == 0
    assert total(drained, "contentdownload_queue_jobs") == SOME
    assert total(drained, "contentdownload_processes") == processes
    assert_page_is_the_record(page, tmp_path)
    ended = total(page, "contentdownload_jobs_completed_total") + total(page, "contentdownload_jobs_failed_total")
    assert ended == SOME == total(page, "job_latency_seconds_count")
    assert total(page, "content_yield_ratio") == pytest.approx(figures.yield_ratio)
    assert (
        total(page, "contentdownload_queue_wait_ms_count") == total(page, "contentdownload_jobs_leased_total") >= SOME
    )
    assert {name.removesuffix("_bucket") for name in page} >= {
        metric.name for metric in METRICS if metric.kind == "counter" and not metric.labels
    }


@pytest.mark.slow
def test_a_second_pass_shows_what_the_cache_spared(calm_sandbox, make_config, tmp_path):
    """MET-15."""
    shared = {"storage": {"root_dir": str(tmp_path)}, "hishel": {"base_path": str(tmp_path / "cache")}}
    for name in ("first", "second"):
        cfg = make_config(calm_sandbox, tmp_path / name, telemetry={"metrics_port": 0}, **shared)
        with DownloadRun(cfg) as run:
            run.process_artifacts(calm_sandbox.identifiers(6, mix=False))
            page, figures = read(run.metrics_address), run.figures()
    ratio = total(page, "content_cache_hit_ratio")
    assert 0 < ratio <= 1
    assert ratio == pytest.approx(figures.cache_hit_ratio, abs=1e-6)
    assert total(page, "content_http_requests_total") < total(page, "contentdownload_http_latency_ms_count")


STARVING = 10


@pytest.mark.slow
def test_workers_that_starve_for_a_host_s_tokens_wait_and_nothing_fails(calm_sandbox, make_config, tmp_path):
    """FAIL-03: one host that grants five requests a second, and eight workers who want more."""
    copies = [copy["url"] for work in calm_sandbox.truth()["works"] for copy in work["copies"] if copy["good"]]
    host = "research.ostmark.example"
    urls = [url for url in copies if f"//{host}/" in url][:STARVING]
    assert len(urls) == STARVING
    limits = {"rate_factor": 1, "hosts": {host: {"max_concurrent": 8, "rates": {"*": ["5/second"]}}}}
    cfg = make_config(calm_sandbox, tmp_path, limits=limits, telemetry={"metrics_port": 0})
    began = time.monotonic()
    with DownloadRun(cfg) as run:
        result = run.process_artifacts(urls)
        page = read(run.metrics_address)
    assert (result.successful, result.failed) == (STARVING, 0)
    assert time.monotonic() - began >= (STARVING - 5) / 5
    # All but those that find the host's tokens at their coming have waited, and waiting costs nobody a try.
    assert total(page, "contentdownload_rate_sleep_ms_count") >= STARVING - 5
    assert total(page, "contentdownload_rate_sleep_ms_sum") >= 1000
    assert total(page, "contentdownload_jobs_leased_total") == STARVING
    assert total(page, "contentdownload_retries_total") == total(page, "contentdownload_jobs_failed_total") == 0


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_figures_that_only_grow(calm_sandbox, make_config, tmp_path):
    cfg = make_config(
        calm_sandbox, tmp_path, orchestrator={"processes": 2, "lookahead": 4}, telemetry={"metrics_port": 0}
    )
    with DownloadRun(cfg) as run:
        run.enqueue(coerce_works(calm_sandbox.identifiers(40)))
        run.start()
        seen = 0.0
        eventually(lambda: total(read(run.metrics_address), "contentdownload_jobs_completed_total") >= 2)
        os.kill(run.processes[0], signal.SIGKILL)
        waiter = threading.Thread(target=run.wait)
        waiter.start()
        while waiter.is_alive():
            now = total(read(run.metrics_address), "contentdownload_jobs_completed_total")
            assert now >= seen
            seen = now
            waiter.join(0.05)
        run.stop()
        page = read(run.metrics_address)
    assert 20 <= total(page, "contentdownload_jobs_completed_total") <= 40


@pytest.mark.slow
def test_the_command_names_the_port_it_took_and_the_file_stays(content, config_file, calm_sandbox, tmp_path):
    done = content(
        *("pull", *calm_sandbox.identifiers(2, mix=False), "--out", "corpus", "-c", str(config_file(calm_sandbox))),
        *("--metrics-port", "0", "--metrics-file", "figures/run.prom"),
        *("--log-file", "run.log", "--log-level", "info", "--quiet"),
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Figures of this run: http://127\.0\.0\.1:\d+/metrics$", done.stderr, re.MULTILINE)
    page = samples((tmp_path / "figures" / "run.prom").read_text())
    assert total(page, "contentdownload_jobs_completed_total") == 2
    assert total(page, "contentdownload_queue_jobs", state="done") == 2
    assert '"event":"worker_shutdown"' in (tmp_path / "run.log").read_text()
    # They were for this once: going on with the run opens no page.
    again = content("resume", "--run", "corpus", "--quiet")
    assert again.returncode == 0, again.stderr
    assert "Figures" not in again.stderr


@pytest.mark.slow
def test_queue_run_serves_its_page_until_it_is_stopped(clean_environment, config_file, calm_sandbox, warm, tmp_path):
    settings = config_file(calm_sandbox)
    command = [
        *warm.words("contentdownload"),
        "queue",
        "run",
        "-c",
        str(settings),
        "--metrics-port",
        "0",
        "--log-level",
        "info",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean_environment, cwd=tmp_path)
    try:
        assert process.stderr is not None
        found = None
        while found is None:
            row = process.stderr.readline()
            assert row, "it ended"
            found = re.search(r"Figures of this run: (\S+)", row)
        page = read(found[1])
        assert total(page, "contentdownload_processes") == 1
        assert "contentdownload_queue_depth" in page
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert '"event":"worker_shutdown"' in rest


def test_a_port_that_is_taken_stops_the_run_before_it_begins(make_config, calm_sandbox, tmp_path):
    cfg = make_config(calm_sandbox, tmp_path / "one", telemetry={"metrics_port": 0})
    with DownloadRun(cfg) as run:
        assert run.metrics_address is not None
        port = int(run.metrics_address.split(":")[2].split("/")[0])
        taken = make_config(calm_sandbox, tmp_path / "two", telemetry={"metrics_port": port})
        with pytest.raises(ConfigError, match=f"port {port} cannot be opened"), DownloadRun(taken):
            pass


def test_a_run_that_nobody_watches_calls_nothing_that_watches(calm_sandbox: SandboxServer, make_config, tmp_path):
    """Off costs nothing: not one call into the rooms that count, trace or log, in any thread."""
    rooms = ("tally", "job_metrics", "traces", "logs", "job_log", "exposition", "waits")
    files = tuple(f"telemetry/{room}.py" for room in rooms)
    called: set[str] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(files):
            called.add(f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
            result = run.process_artifacts(calm_sandbox.identifiers(3, mix=False))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert result.successful == 3
    assert called <= {"logs.py:open_log"}
