"""What the figures of a report mean: three yields, works obtained again, hosts that said when to come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Role, Verb
from DocsToKG.ContentDownload.catalog.aggregates import WAITS
from DocsToKG.ContentDownload.catalog.counts import Distribution, Scope
from DocsToKG.ContentDownload.catalog.rollups import count_all
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.summary import Figures, figures
from DocsToKG.ContentDownload.report.sections import host_rows
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.core.clock import ManualClock

COPY = {"url": "https://a.org/x", "source": "landing", "reason": "x", "evidence": "link", "is_guess": False}
NO_COPY = {"url": "https://api.org/x", "source": "core", "reason": "timeout"}


def told(root: Path, **chosen: Any) -> Figures:
    with Catalog(root / "manifest.sqlite") as catalog:
        return catalog.figures(chosen.pop("run_id", None), **chosen)


def stored(doc_id: str, **fields: Any) -> ManifestRecord:
    return ManifestRecord(**{"doc_id": doc_id, "outcome": "success", "sha256": "ab" * 32, "path": "a.pdf", **fields})


def missed(doc_id: str, cause: str, **fields: Any) -> ManifestRecord:
    return ManifestRecord(doc_id=doc_id, outcome="error", reason="all_tiers_exhausted", cause=cause, **fields)


def got(moment: float, status: AttemptStatus, http_status: int = 200, **fields: Any) -> Attempt:
    host = fields.pop("host", "a.org")
    return Attempt(moment, "s", f"https://{host}/x", Verb.GET, status, http_status, host=host, **fields)


@pytest.mark.parametrize(
    ("line", "is_open", "in_reach"),
    [
        (missed("doi:1", "no_open_copy", oa_status="closed"), False, False),
        (missed("doi:1", "no_open_copy"), False, False),
        (missed("doi:1", "timeout", candidates=[NO_COPY]), False, False),
        (missed("doi:1", "paywall", oa_status="gold"), True, False),
        (missed("doi:1", "challenge", candidates=[COPY]), True, False),
        (missed("doi:1", "http-status", candidates=[COPY]), True, False),
        (missed("doi:1", "http-status", candidates=[COPY], explanation="Temporary: a.org answered 503"), True, True),
        (missed("doi:1", "timeout", candidates=[COPY]), True, True),
        (missed("doi:1", "corrupt-pdf", oa_status="green"), True, True),
        (ManifestRecord(doc_id="doi:1", outcome="skip", reason="robots"), True, False),
    ],
)
def test_a_yield_has_three_denominators(tmp_path: Path, line: ManifestRecord, is_open: bool, in_reach: bool) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(stored("doi:0", oa_status="closed"))  # whatever an index says: it was there to be had
        record.finish(line)
    result = told(tmp_path)
    assert (result.attempted, result.yield_ratio) == (2, 0.5)
    assert (result.open_works, result.reachable_works) == (1 + is_open, 1 + in_reach)
    assert result.yield_of_open == (0.5 if is_open else 1.0)
    assert result.yield_of_reachable == (0.5 if in_reach else 1.0)


def rerun(root: Path, statuses: list[tuple[Role, AttemptStatus]]) -> None:
    for run_id in ("r1", "r2"):
        with RunTelemetry(root, run_id=run_id, config_hash="c", clock=ManualClock()) as record:
            for number in range(12):
                record.finish(stored(f"doi:{number}", size_bytes=10, dedupe="new" if run_id == "r1" else "duplicate"))
            record.finish(
                stored("doi:other", size_bytes=10, dedupe="duplicate") if run_id == "r1" else stored("doi:new")
            )
            for role, status in statuses if run_id == "r2" else []:
                record.attempt(got(1.0, status, role=role))


def test_the_cache_is_judged_by_the_run_that_obtained_works_again(tmp_path: Path) -> None:
    """SLO-05."""
    files, pages = Role.ARTIFACT, Role.METADATA
    answers = [(files, AttemptStatus.HTTP_GET)] * 4 + [
        (files, AttemptStatus.CACHE_HIT),
        (files, AttemptStatus.HTTP_304),
    ]
    rerun(tmp_path, answers + [(pages, AttemptStatus.HTTP_GET)] * 6)
    result = told(tmp_path)
    assert (result.rerun_id, result.rerun_works) == ("r2", 12)
    assert (result.rerun_cache_hit_ratio_files, result.rerun_cache_hit_ratio) == (0.5, 0.2)
    assert told(tmp_path, run_id="r2").rerun_works == 12
    assert told(tmp_path, run_id="r1").rerun_id is None


def test_a_work_does_not_share_its_file_with_itself(tmp_path: Path) -> None:
    rerun(tmp_path, [])
    result = told(tmp_path)
    assert (result.obtained, result.duplicates, result.dedupe_saved_bytes) == (14, 1, 10)


@pytest.mark.parametrize(
    ("requests", "broken"),
    [
        ([got(15.1, AttemptStatus.HTTP_GET)], 0),  # after the pause
        ([got(12.0, AttemptStatus.HTTP_GET)], 1),  # in it
        ([got(12.0, AttemptStatus.HTTP_GET, elapsed_ms=2500)], 0),  # begun before the host spoke
        ([got(16.0, AttemptStatus.HTTP_GET, elapsed_ms=2500)], 1),  # begun in the pause, ended after it
        ([got(22.0, AttemptStatus.HTTP_GET, elapsed_ms=8000)], 1),  # the same, and it took long
        ([got(24.0, AttemptStatus.HTTP_GET, elapsed_ms=8000)], 0),  # begun after it
        ([got(12.0, AttemptStatus.HTTP_GET, host="b.org")], 0),  # somebody else
        ([got(12.0, AttemptStatus.CACHE_HIT)], 0),  # nothing went out
        ([got(12.0, AttemptStatus.RETRY, 503, retry_after_s=9.0), got(18.0, AttemptStatus.HTTP_HEAD)], 2),
    ],
)
def test_a_request_before_the_host_wants_it_is_counted(tmp_path: Path, requests: list[Attempt], broken: int) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.attempt(got(10.0, AttemptStatus.RETRY, 429, retry_after_s=5.0))
        for request in requests:
            record.attempt(request)
    result = told(tmp_path)
    assert result.retry_after == 1 + sum(request.retry_after_s is not None for request in requests)
    assert result.retry_after_broken == broken


def test_times_of_hosts_works_and_waits_are_told(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock(), worker_id="w1") as record:
        for number in range(1, 101):
            record.finish(stored(f"doi:{number}", ttfp_ms=number * 10, waited_ms=number, duration_ms=number * 20))
            record.attempt(got(1.0, AttemptStatus.HTTP_GET, elapsed_ms=number))
            record.rate_wait("host:a.org", 10, why="rate" if number % 4 else "hold")
    result = told(tmp_path)
    assert (result.waited_p50_s, result.work_p50_s, result.work_p95_s) == (0.05, 1.0, 1.9)
    assert (result.answer_p50_ms, result.answer_p95_ms) == (50, 95)
    assert result.waits_by_rule == {"rate": {"waits": 75, "seconds": 0.75}, "hold": {"waits": 25, "seconds": 0.25}}
    assert (result.waits, result.waits_s, result.by_host["a.org"]["waited_s"]) == (100, 1.0, 1.0)
    assert result.ttfp_steps[:5] == [9, 10, 30, 50, 1]
    assert (result.timed_files, result.processes) == (100, 1)


def test_files_are_counted_by_the_host_they_came_from(tmp_path: Path) -> None:
    """Where a link was redirected, the host that sent the bytes counts; a file without an address has no host."""
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(stored("doi:1", url="https://doi.org/10.1/a", canonical_url="https://files.b.org/a.pdf"))
        record.finish(stored("doi:2", url="http://A.org/x.pdf"))
        record.finish(stored("doi:3", url="https://a.org"))
        record.finish(stored("doi:4"))
        record.finish(missed("doi:5", "timeout", candidates=[COPY]))
        record.attempt(got(1.0, AttemptStatus.HTTP_GET))
    result = told(tmp_path)
    assert result.files_by_host == {"a.org": 2, "files.b.org": 1, "unknown": 1}
    [(host, files, requests, *_)] = host_rows(result)
    assert (host, files, requests) == ("a.org", "2", "1")


def test_the_way_of_a_run_is_told_in_moments(tmp_path: Path) -> None:
    clock = ManualClock()
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=clock) as record:
        for number in range(200):
            record.finish(stored(f"doi:{number}"))
            record.flush()
            clock.advance(1)
    progress = told(tmp_path).progress
    assert len(progress) == 61
    assert [count for _, count in progress] == sorted(count for _, count in progress)
    assert [moment for moment, _ in progress] == sorted(moment for moment, _ in progress)
    assert (progress[0][1], progress[-1][1]) == (1, 200)


def test_counting_side_by_side_gives_what_counting_alone_gives(tmp_path: Path) -> None:
    rerun(tmp_path, [(Role.ARTIFACT, AttemptStatus.HTTP_GET)])
    db = open_database(tmp_path / "manifest.sqlite")
    try:
        for run_id in (None, "r1", "r2"):
            assert figures(db, run_id).to_dict() == told(tmp_path, run_id=run_id).to_dict()
    finally:
        db.close()


def test_parts_cover_a_table_with_gaps_once() -> None:
    db = open_database(None)
    try:
        ids = [1, 19_999, 20_000, 20_001, 40_500, 9_000_000, 2**62]
        db.executemany("INSERT INTO rate_events (id, key) VALUES (?, 'k')", [(one,) for one in ids])
        assert count_all(db, WAITS, Scope())["waits"] == {("k", None): len(ids)}
    finally:
        db.close()


def test_a_spread_knows_its_percentiles_and_steps() -> None:
    spread = Distribution({10: 1, 20: 8, 900: 1})
    assert [spread.percentile(share) for share in (0.0, 0.1, 0.11, 0.9, 0.91, 1.0)] == [10, 10, 20, 20, 900, 900]
    assert spread.steps((15, 20, 100)) == [1, 0, 8, 1]
    assert Distribution().percentile(0.5) is None


def test_a_column_that_holds_nonsense_is_no_reason_to_fail(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(stored("doi:1", ttfp_ms=100))
    db = open_database(tmp_path / "manifest.sqlite")
    db.execute("UPDATE manifests SET ttfp_ms = 'soon', year = 'long ago', resolver = x'00'")
    db.close()
    result = told(tmp_path)
    assert (result.obtained, result.timed_files, result.by_year) == (1, 0, {"long ago": 1})


def test_a_work_that_was_taken_down_is_neither_obtained_nor_missed(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(stored("doi:1"))
        record.finish(stored("doi:2"))
        record.finish(ManifestRecord(doc_id="doi:1", outcome="skip", stage="takedown", cause="taken-down"))
    result = told(tmp_path)
    assert (result.attempted, result.obtained, result.taken_down) == (1, 1, 1)


def test_a_work_that_was_tried_again_ends_once_in_the_course(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        for number in range(5):
            record.finish(ManifestRecord(doc_id=f"doi:{number}", outcome="error", reason="x"))
        for number in range(3):
            record.finish(stored(f"doi:{number}"))
    assert told(tmp_path).progress[-1][1] == 5
