"""The figures of a run in memory and as Prometheus reads them: names, bounds, merging, page and file (MET)."""

from __future__ import annotations

import http.client
import os
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.examples import examples
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, Reason, Verb
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.exposition import keep_file, registry_of, serve, text_of, write_file
from DocsToKG.ContentDownload.telemetry.job_metrics import JobMetrics
from DocsToKG.ContentDownload.telemetry.metrics import METRICS, Gauges, QueueView
from DocsToKG.ContentDownload.telemetry.tally import OTHER, LabelBounds, Tally
from DocsToKG.core.clock import ManualClock

# The names, kinds and labels that were promised, in the order of the documents that did.
PROMISED = {
    "contentdownload_attempts_total": ("counter", "resolver status reason verb"),
    "contentdownload_http_latency_ms": ("histogram", "resolver verb"),
    "contentdownload_retries_total": ("counter", "resolver reason"),
    "contentdownload_bytes_total": ("counter", "resolver"),
    "contentdownload_outcomes_total": ("counter", "resolver outcome reason"),
    "contentdownload_queue_depth": ("gauge", ""),
    "contentdownload_jobs_completed_total": ("counter", ""),
    "contentdownload_jobs_failed_total": ("counter", ""),
    "contentdownload_jobs_inflight": ("gauge", ""),
    "contentdownload_rate_sleep_ms": ("histogram", ""),
    "content_http_requests_total": ("counter", "host status resolver"),
    "content_http_latency_ms": ("histogram", "host resolver"),
    "content_yield_ratio": ("gauge", "tier"),
    "content_breaker_open_total": ("counter", "host"),
    "content_cache_hit_ratio": ("gauge", ""),
    "content_queue_depth": ("gauge", ""),
    "content_workers_active": ("gauge", ""),
    "job_queue_depth": ("gauge", "jobType tenant"),
    "job_latency_seconds": ("histogram", ""),
    "job_failures_total": ("counter", ""),
    "job_retry_total": ("counter", ""),
    "lease_extensions_total": ("counter", ""),
    "pack_run_logs_stream_lag_seconds": ("gauge", ""),
    "pack_run_heartbeats_total": ("counter", ""),
    "pack_run_artifacts_total": ("counter", ""),
}


def line(**fields: Any) -> Attempt:
    about = {"resolver": "arxiv", "url": "https://arxiv.org/x", "verb": Verb.GET, "host": "arxiv.org", **fields}
    return Attempt(ts=0.0, status=about.pop("status", AttemptStatus.HTTP_GET), **about)


def shown(tally: Tally) -> dict[str, dict[tuple[str, ...], float]]:
    """Every sample as Prometheus reads it."""
    samples: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text_of(registry_of(tally)).decode()):
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.values()))] = sample.value
    return samples


@pytest.fixture
def tally() -> Tally:
    return Tally()


def test_all_three_families_are_there_with_exactly_their_names_kinds_and_labels():
    """MET-01..MET-25, MET-27."""
    ours = {metric.name: (metric.kind, " ".join(metric.labels)) for metric in METRICS}
    assert {name: ours.get(name) for name in PROMISED} == PROMISED


def test_the_page_names_every_metric_as_it_stands_and_nothing_else(tally):
    page = text_of(registry_of(tally)).decode()
    typed = dict(row.removeprefix("# TYPE ").split() for row in page.splitlines() if row.startswith("# TYPE "))
    assert typed == {metric.name: metric.kind for metric in METRICS}
    assert "_created" not in page


def counted(tally):
    return JobMetrics(tally, Gauges(tally), ManualClock())


def test_one_exchange_feeds_every_name_that_is_about_it(tally):
    """MET-28."""
    sink = counted(tally)
    sink.attempt(line(http_status=200, elapsed_ms=120))
    sink.attempt(line(status=AttemptStatus.HTTP_200, verb=Verb.STREAM, http_status=200, bytes_written=5000))
    sink.attempt(line(status=AttemptStatus.RETRY, http_status=429, elapsed_ms=7, reason=Reason.RETRY_AFTER))
    samples = shown(tally)
    assert samples["contentdownload_attempts_total"] == {
        ("GET", "arxiv", "http-get", "none"): 1,
        ("STREAM", "arxiv", "http-200", "none"): 1,
        ("GET", "arxiv", "retry", "retry-after"): 1,
    }
    assert samples["contentdownload_http_latency_ms_count"] == {("GET", "arxiv"): 2}
    assert samples["content_http_latency_ms_sum"] == {("arxiv", "arxiv.org"): 127}
    assert samples["content_http_requests_total"] == {
        ("200", "arxiv", "arxiv.org"): 1,
        ("429", "arxiv", "arxiv.org"): 1,
    }
    assert samples["contentdownload_retries_total"] == {("arxiv", "retry-after"): 1}
    assert samples["contentdownload_bytes_total"] == {("arxiv",): 5000}


def test_what_the_cache_answered_is_no_request(tally):
    sink = counted(tally)
    for _ in range(3):
        sink.attempt(line(http_status=200, elapsed_ms=1, from_cache=True))
        sink.attempt(line(status=AttemptStatus.CACHE_HIT, http_status=200, from_cache=True))
    sink.attempt(line(http_status=304, elapsed_ms=9))
    sink.attempt(line(status=AttemptStatus.HTTP_304, http_status=304, from_cache=True, revalidated=True))
    samples = shown(tally)
    assert samples["content_http_requests_total"] == {("304", "arxiv", "arxiv.org"): 1}
    assert samples["content_http_latency_ms_count"] == {("arxiv", "arxiv.org"): 1}
    assert samples["content_cache_hit_ratio"] == {(): 1.0}


def test_the_yield_by_tier_adds_up_to_the_yield(tally):
    """Works that were there already, or that a filter refused, were not attempted."""
    for tier in ("direct_oa", "direct_oa", "archive"):
        counted(tally).count_outcome(DownloadOutcome(True, "success", "x", "ok", {"tier": tier, "ttfp_ms": 900}))
    counted(tally).count_outcome(
        DownloadOutcome(False, "error", reason="all_tiers_exhausted", meta={"tier": "archive"})
    )
    counted(tally).count_outcome(DownloadOutcome(False, "skip", reason="robots"))
    counted(tally).count_outcome(DownloadOutcome(False, "skip", reason="already-present"))
    counted(tally).count_outcome(DownloadOutcome(False, "skip", reason="filtered"))
    samples = shown(tally)
    assert samples["content_yield_ratio"] == {("direct_oa",): 2 / 5, ("archive",): 1 / 5}
    assert samples["contentdownload_ttfp_ms_count"] == {(): 3}
    assert sum(samples["contentdownload_outcomes_total"].values()) == 7


def test_buckets_hold_what_is_at_most_their_bound(tally):
    for value in (0, 250, 250.1, 3_000, 1e9):
        tally.record(metrics.TTFP, value)
    buckets = {le: n for (le,), n in shown(tally)["contentdownload_ttfp_ms_bucket"].items()}
    assert (buckets["250"], buckets["500"], buckets["3000"], buckets["120000"], buckets["+Inf"]) == (2, 3, 4, 4, 5)


def test_hosts_beyond_the_bound_are_counted_as_other_and_that_is_said():
    """MET-26."""
    tally = Tally(most_hosts=3)
    for number in range(10):
        tally.add(metrics.BREAKER_OPEN, host=f"host-{number}.example")
        tally.add(metrics.BREAKER_OPEN, host=f"host-{number}.example")
    samples = shown(tally)
    assert len(samples["content_breaker_open_total"]) == 4
    assert samples["content_breaker_open_total"][OTHER,] == 14
    assert samples["contentdownload_labels_folded_total"] == {("host",): 14}


@pytest.mark.slow
@examples(50)
@given(st.lists(st.text(max_size=200), max_size=300))
def test_whatever_comes_from_outside_the_page_stays_small_and_readable(hosts):
    """MET-26: quotes, newlines, surrogates and any number of names."""
    bounds = LabelBounds(most_hosts=20)
    values = {bounds.value("host", host) for host in hosts}
    assert len(values) <= 21
    assert all(1 <= len(value) <= 80 for value in values)
    tally = Tally(most_hosts=20)
    for host in hosts:
        tally.add(metrics.BREAKER_OPEN, host=host)
    assert sum(shown(tally).get("content_breaker_open_total", {}).values()) == len(hosts)


def test_series_of_one_metric_are_bounded_even_where_each_label_is(tally):
    for one in range(60):
        for two in range(60):
            tally.add(metrics.OUTCOMES, resolver=f"r{one}", outcome=f"o{two}", reason="x")
    series = tally.counters(metrics.OUTCOMES)
    assert len(series) <= 2_001
    assert sum(series.values()) == 3_600


def test_figures_of_other_processes_are_added_up():
    """What is taken is taken once; what is merged cannot be told from what was counted here."""
    whole, parts = Tally(), [Tally(), Tally()]
    for number, part in enumerate(parts):
        part.add(metrics.JOBS_COMPLETED, 5)
        part.add(metrics.BYTES, 100 + number, resolver="arxiv")
        part.record(metrics.TTFP, 700)
        whole.merge(part.take())
        assert part.take() == {}
    parts[0].record(metrics.TTFP, 9_000)
    whole.merge(parts[0].take())
    samples = shown(whole)
    assert samples["contentdownload_jobs_completed_total"] == {(): 10}
    assert samples["contentdownload_bytes_total"] == {("arxiv",): 201}
    assert samples["contentdownload_ttfp_ms_sum"] == {(): 10_400}
    assert samples["contentdownload_ttfp_ms_count"] == {(): 3}


def test_counting_from_many_threads_loses_nothing(tally):
    def count() -> None:
        for number in range(2_000):
            tally.add(metrics.BYTES, 1, resolver=f"r{number % 5}")
            tally.record(metrics.DISPATCH_MS, number)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.total(metrics.BYTES) == 8_000
    assert sum(tally.histograms(metrics.DISPATCH_MS)[()][:-1]) == 8_000


def test_a_gauge_that_nobody_can_read_is_absent_and_the_page_is_whole(tally):
    def broken() -> Any:
        raise OSError("the ledger is away")

    Gauges(tally).show(QueueView("x", broken, lambda: None, lambda: 1, lambda: 2))
    samples = shown(tally)
    assert "contentdownload_queue_depth" not in samples
    assert samples["content_workers_active"] == {(): 2}


# the page


def ask(address: str, path: str = "/metrics", **headers: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def test_the_page_is_on_loopback_and_reads_the_figures_of_the_moment(tally):
    with serve(registry_of(tally), 0) as address:
        assert urlsplit(address).hostname == "127.0.0.1"
        tally.add(metrics.JOBS_COMPLETED, 3)
        status, kind, body = ask(address)
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
        assert b"\ncontentdownload_jobs_completed_total 3.0\n" in body
        tally.add(metrics.JOBS_COMPLETED)
        assert b"\ncontentdownload_jobs_completed_total 4.0\n" in ask(address)[2]
        assert ask(address, "/elsewhere")[0] == 404
        modern = ask(address, Accept="application/openmetrics-text; version=1.0.0")
        assert modern[1].startswith("application/openmetrics-text")
        assert b"\ncontentdownload_jobs_completed_total 4.0\n" in modern[2]
    with pytest.raises(ConnectionRefusedError):
        ask(address)


@pytest.mark.slow
def test_who_says_nothing_keeps_nobody_waiting(tally):
    with serve(registry_of(tally), 0) as address:
        silent = [socket.create_connection(("127.0.0.1", urlsplit(address).port or 0)) for _ in range(20)]
        assert ask(address)[0] == 200
        silent[0].sendall(b"GET /metrics HTTP/1.1\r\n")
        silent[1].sendall(b"\x00\xff" * 50 + b"\r\n\r\n")
        assert ask(address)[0] == 200
        for connection in silent:
            connection.close()


def test_a_port_that_is_taken_is_said_with_the_way_out(tally):
    with serve(registry_of(tally), 0) as address:
        taken = urlsplit(address).port or 0
        with pytest.raises(ConfigError, match=rf"telemetry.metrics_port: port {taken} .* or 0"), serve(None, taken):
            pass


# the file


@pytest.mark.slow
def test_the_file_is_replaced_as_a_whole_and_readable_for_everybody(tally, tmp_path):
    path, seen, over = tmp_path / "run.prom", Counter[bool](), threading.Event()
    write_file(path, b"x" * 100_000 + b"\n")

    def read() -> None:
        while not over.is_set():
            text = path.read_bytes()
            seen[len(set(text)) == 2 and len(text) == 100_001] += 1

    reader = threading.Thread(target=read)
    reader.start()
    for letter in b"abcdefghijklmnopqrstuvwxyz" * 4:
        write_file(path, bytes([letter]) * 100_000 + b"\n")
    over.set()
    reader.join()
    assert seen[False] == 0 < seen[True]
    assert os.stat(path).st_mode & 0o777 == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.prom"]


def test_the_file_follows_the_figures_and_outlives_the_run(tally, tmp_path):
    path = tmp_path / "deep" / "run.prom"
    with keep_file(registry_of(tally), path, every_s=0.02) as write:
        assert "contentdownload_jobs_completed_total 0.0" in path.read_text()
        tally.add(metrics.JOBS_COMPLETED, 7)
        eventually(lambda: "contentdownload_jobs_completed_total 7.0" in path.read_text())
        tally.add(metrics.JOBS_COMPLETED)
        write()
    assert "contentdownload_jobs_completed_total 8.0" in path.read_text()


def test_a_file_that_cannot_be_written_is_said_at_the_start(tally, tmp_path):
    (tmp_path / "taken").write_text("")
    path: Path = tmp_path / "taken" / "run.prom"
    with pytest.raises(ConfigError, match=r"telemetry.metrics_file: .*run\.prom cannot be written"):
        keep_file(registry_of(tally), path, every_s=1).__enter__()
