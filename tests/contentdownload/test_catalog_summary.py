"""The figures of a run and the service levels, counted from a record with known contents."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Reason, Verb
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.summary import Figures, figures, gates, percentile
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.core.clock import ManualClock


def obtained(doc_id: str, **fields: Any) -> ManifestRecord:
    return ManifestRecord(**{"doc_id": doc_id, "outcome": "success", "sha256": "ab" * 32, "path": "a.pdf", **fields})


def asked(host: str, status: AttemptStatus, http_status: int | None = 200, **fields: Any) -> Attempt:
    return Attempt(1.0, "arxiv", f"https://{host}/x", Verb.GET, status, http_status, **fields)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    clock = ManualClock()
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=clock) as record:
        for number in range(20):
            record.finish(
                obtained(
                    f"doi:{number}",
                    size_bytes=1_000,
                    ttfp_ms=(number + 1) * 100,
                    waited_ms=number,
                    resolver="arxiv" if number % 4 else "unpaywall",
                    tier="direct_oa",
                    license="cc-by" if number < 5 else None,
                    year=2000 + number // 10,
                    dedupe="duplicate" if number == 0 else "new",
                )
            )
        record.finish(ManifestRecord(doc_id="doi:late", outcome="error", reason="timeout"))
        record.finish(obtained("doi:late", size_bytes=1))
        record.finish(ManifestRecord(doc_id="doi:x", outcome="error", reason="challenge"))
        record.finish(ManifestRecord(doc_id="doi:y", outcome="skip", reason="robots"))
        record.finish(ManifestRecord(doc_id="doi:z", outcome="skip", reason="already-present"))
        for _ in range(6):
            record.attempt(asked("a.org", AttemptStatus.HTTP_GET))
        record.attempt(asked("a.org", AttemptStatus.HTTP_200, bytes_written=500))
        record.attempt(asked("a.org", AttemptStatus.CACHE_HIT, from_cache=True))
        record.attempt(asked("a.org", AttemptStatus.HTTP_304, 304, revalidated=True))
        record.attempt(asked("b.org", AttemptStatus.RETRY, 429, reason=Reason.RETRY_AFTER))
        record.attempt(asked("b.org", AttemptStatus.ROBOTS_FETCH, None))
        record.attempt(asked("b.org", AttemptStatus.ROBOTS_DISALLOWED, None))
        for delay_ms in range(1, 101):
            record.rate_wait("host:a.org", delay_ms, why="rate")
        record.breaker_transition("host:b.org", "closed", "open")
        # The same failure opened both, so it is one opening.
        record.breaker_transition("resolver:b", "closed", "open", reason="9 of 9 failed; together with host:b.org")
        record.breaker_transition("host:b.org", "open", "half-open")
        record.flush()
        clock.advance(42)
    return tmp_path


@pytest.fixture
def result(root: Path) -> Iterator[Figures]:
    with Catalog(root / "manifest.sqlite") as catalog:
        yield catalog.figures()


def test_works_are_counted_once_by_how_they_ended(result: Figures) -> None:
    """SLO-02: a late success is a success; only a file that was there already is left out of the yield."""
    assert (result.attempted, result.obtained, result.failed, result.skipped) == (23, 21, 1, 1)
    assert result.skipped_robots == 1
    assert result.yield_ratio == pytest.approx(21 / 23, abs=1e-6)
    assert result.failed_by_reason == {"challenge": 1}
    assert (result.bytes, result.dedupe_saved_bytes) == (20_001, 1_000)


def test_requests_are_those_that_went_out(result: Figures) -> None:
    """SLO-03: six GETs of which one was answered by the cache, one retry, one robots.txt."""
    assert (result.requests, result.http_429) == (7, 1)
    assert result.ratio_429 == pytest.approx(1 / 7, abs=1e-6)
    assert result.cache_hit_ratio == pytest.approx(2 / 6, abs=1e-6)
    assert (result.cache_hits, result.revalidated) == (2, 1), "what was confirmed came from the cache as well"
    assert result.by_host == {
        "a.org": {"requests": 5, "http_429": 0, "bytes": 500, "cache_hits": 2, "waited_s": 5.05},
        "b.org": {"requests": 2, "http_429": 1, "bytes": 0, "cache_hits": 0, "waited_s": 0.0},
    }


def test_times_are_percentiles(result: Figures) -> None:
    """SLO-01, SLO-09."""
    assert (result.ttfp_p50_s, result.ttfp_p95_s) == (1.0, 1.9)
    assert result.waited_p95_s == 0.018
    assert result.rate_delay_p95_ms == 95
    assert result.duration_s == 42
    assert result.breaker_opens == 1
    assert result.catalog_write_p95_ms is not None


def test_groups_count_what_was_obtained(result: Figures) -> None:
    assert result.by_resolver == {"arxiv": 15, "unpaywall": 5, "unknown": 1}
    assert result.by_license == {"unknown": 16, "cc-by": 5}
    assert result.by_year == {"2000": 10, "2001": 10, "unknown": 1}


def test_one_run_of_several_is_counted_alone(root: Path) -> None:
    clock = ManualClock(1_760_000_000.0)
    with RunTelemetry(root, run_id="r2", config_hash="c", clock=clock) as record:
        record.finish(obtained("doi:x", size_bytes=7))
        record.finish(ManifestRecord(doc_id="doi:0", outcome="skip", reason="already-present"))
        record.flush()
        clock.advance(8)
    with Catalog(root / "manifest.sqlite") as catalog:
        assert catalog.runs() == ["r1", "r2"]
        second, everything = catalog.figures("r2"), catalog.figures()
    assert (second.attempted, second.obtained, second.skipped, second.requests) == (1, 1, 1, 0)
    assert (second.duration_s, everything.duration_s) == (8, 50)
    assert (everything.obtained, everything.failed, everything.skipped_robots) == (22, 0, 1)


def test_a_run_that_was_cut_off_ends_with_its_last_line(tmp_path: Path) -> None:
    clock = ManualClock()
    record = RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=clock)
    record.open()
    clock.advance(30)
    record.finish(obtained("doi:a"))
    record.flush()
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        running = catalog.figures()
    record.close()
    assert (running.finished_at, running.duration_s) == (None, 30)


GOOD = Figures(
    attempted=1000,
    timed_files=850,
    requests=5000,
    yield_ratio=0.85,
    ttfp_p50_s=3.0,
    ttfp_p95_s=10.0,
    ratio_429=0.0099,
    corruption=0,
    rerun_id="r2",
    rerun_works=850,
    rerun_cache_hit_ratio=0.4,
    catalog_write_p95_ms=50.0,
    works_per_hour=4000.0,
    first_tier_share=0.95,
)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, []),
        ({"yield_ratio": 1.0, "ttfp_p50_s": 0.0, "ttfp_p95_s": 0.0, "ratio_429": 0.0}, []),
        ({"yield_ratio": 0.8499}, ["yield"]),
        ({"ttfp_p50_s": 3.01}, ["ttfp_p50_s"]),
        ({"ttfp_p95_s": 10.01}, ["ttfp_p95_s"]),
        ({"ratio_429": 0.01}, ["ratio_429"]),
        ({"corruption": 1}, ["corruption"]),
        ({"rerun_cache_hit_ratio": 0.39}, ["rerun_cache_hit"]),
        ({"catalog_write_p95_ms": 50.1}, ["catalog_write_p95_ms"]),
        ({"works_per_hour": 3999.0}, ["works_per_worker_hour"]),
        ({"yield_ratio": None, "ttfp_p50_s": None, "ttfp_p95_s": None, "ratio_429": None}, []),
    ],
)
def test_gates_are_one_sided(change: dict[str, Any], broken: list[str]) -> None:
    """SLO-01 to SLO-08."""
    judged = gates(replace(GOOD, **change), workers=8)
    assert [gate.name for gate in judged if not gate.ok] == broken
    assert [gate.name for gate in judged if gate.verdict == "missed"] == broken


def test_percentiles_take_the_nearest_rank() -> None:
    assert percentile([], 0.5) is None
    assert percentile([7], 0.95) == 7
    assert [percentile(list(range(1, 11)), share) for share in (0.0, 0.5, 0.51, 0.95, 1.0)] == [1, 5, 6, 10, 10]


@pytest.mark.slow
def test_a_record_of_a_hundred_thousand_works_is_summed_up_quickly(tmp_path: Path) -> None:
    db = open_database(tmp_path / "manifest.sqlite")
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000) "
    db.execute(
        numbers + "INSERT INTO manifests (run_id, doc_id, status, reason, size_bytes, ttfp_ms, resolver, year) "
        "SELECT 'r1', 'doi:' || x, IIF(x % 10, 'ok', 'error'), IIF(x % 10, NULL, 'timeout'), 5, x % 5000, 'arxiv', 2000"
        " FROM n"
    )
    db.execute(
        numbers + "INSERT INTO http_events (run_id, work_id, host, status, http_status) "
        "SELECT 'r1', 'doi:' || x, 'h' || (x % 300), 'http-get', 200 FROM n"
    )
    begun = time.thread_time()
    result = figures(db)
    assert time.thread_time() - begun < 5
    assert (result.obtained, result.failed, result.requests) == (90_000, 10_000, 100_000)
    db.close()


def test_nothing_at_all_is_no_breach() -> None:
    db = open_database(None)
    try:
        assert all(gate.ok for gate in gates(figures(db)))
    finally:
        db.close()
    assert sqlite3.sqlite_version_info >= (3, 35)


def test_what_the_users_filters_left_out_is_neither_tried_nor_failed(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(obtained("doi:1"))
        record.finish(ManifestRecord(doc_id="doi:2", outcome="skip", reason="filtered"))
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        told = catalog.figures()
    assert (told.attempted, told.obtained, told.failed, told.left_out) == (1, 1, 0, 1)
    assert told.yield_ratio == 1.0
