"""A run in figures, and whether it kept its service levels.

Knows the tables of the record and how each figure is counted. Reads only.
Promises: a work counts once, as obtained when any of its lines says so; every gate is one-sided, better than
its target passes, and with nothing to judge it passes.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from DocsToKG.ContentDownload.catalog.sources import (
    SourceFigures,
    count_files,
    failing_sources,
    skipped_sources,
    source_figures,
)

# One line per work decides: its latest success, else its latest line.
FATES = """
SELECT m.* FROM manifests m JOIN (
  SELECT COALESCE(MAX(CASE WHEN status = 'ok' THEN id END), MAX(id)) AS fate
    FROM manifests WHERE :run_id IS NULL OR run_id = :run_id GROUP BY doc_id) ON m.id = fate
"""
# Skips of these reasons mean that the file was there already; every other skip is a work not obtained.
HELD_REASONS = ("already-present", "not-modified")

_EXCHANGES = """
SELECT host,
       SUM(status IN ('http-head', 'http-get', 'robots-fetch', 'retry')) - SUM(status = 'cache-hit') AS requests,
       SUM(COALESCE(http_status, 0) = 429 AND status IN ('http-head', 'http-get', 'robots-fetch', 'retry')) AS http_429,
       SUM(status IN ('cache-hit', 'http-304')) AS cache_hits,
       SUM(status = 'http-get') AS answers,
       SUM(COALESCE(bytes_written, 0)) AS bytes
  FROM http_events WHERE :run_id IS NULL OR run_id = :run_id GROUP BY host
"""
_TIMES = """
SELECT started_at, finished_at,
       (SELECT created_at FROM manifests m WHERE m.run_id = s.run_id ORDER BY id DESC LIMIT 1), catalog_write_p95_ms
  FROM run_summary s WHERE :run_id IS NULL OR run_id = :run_id ORDER BY started_at
"""
_CORRUPT = "SELECT COUNT(*) FROM downloads WHERE corrupt AND (:run_id IS NULL OR run_id = :run_id)"
_FATE_COLUMNS = (
    "status, reason, COALESCE(cause, reason), size_bytes, ttfp_ms, waited_ms, dedupe, is_guess, "
    "resolver, tier, COALESCE(license, license_raw), year, evidence"
)
_KINDS = ("resolver", "tier", "license", "year", "evidence")


@dataclass(slots=True)
class Figures:
    """What a run, or a whole record, comes to. Ratios are None when there is nothing to divide by."""

    run_id: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    duration_s: float | None = None
    attempted: int = 0
    obtained: int = 0
    skipped: int = 0  # already present
    failed: int = 0
    skipped_robots: int = 0  # attempted, and forbidden by robots.txt
    left_out: int = 0  # by the user's own filters: neither attempted nor failed
    yield_ratio: float | None = None
    bytes: int = 0
    ttfp_p50_s: float | None = None
    ttfp_p95_s: float | None = None
    waited_p95_s: float | None = None
    rate_delay_p95_ms: int | None = None
    requests: int = 0
    http_429: int = 0
    ratio_429: float | None = None
    cache_hit_ratio: float | None = None
    breaker_opens: int = 0
    dedupe_saved_bytes: int = 0
    corruption: int = 0
    catalog_write_p95_ms: float | None = None
    failed_by_reason: dict[str, int] = field(default_factory=dict)
    failed_by_cause: dict[str, int] = field(default_factory=dict)  # what stood in the way, where that is known
    by_resolver: dict[str, int] = field(default_factory=dict)
    by_tier: dict[str, int] = field(default_factory=dict)
    by_license: dict[str, int] = field(default_factory=dict)
    by_year: dict[str, int] = field(default_factory=dict)
    by_evidence: dict[str, int] = field(default_factory=dict)
    guessed: int = 0  # obtained from an address that a rule built and no source named
    delivered: list[dict[str, Any]] = field(default_factory=list)  # files by source, tier and evidence
    sources: dict[str, SourceFigures] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)  # sources in trouble, with what to look at
    skipped_sources: dict[str, str] = field(default_factory=dict)  # never asked, for lack of a key or an address
    by_host: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Gate:
    """One service level: `value` against `target`, `ok` when kept or when there is nothing to judge."""

    name: str
    value: float | None
    target: str
    ok: bool


def figures(db: sqlite3.Connection, run_id: str | None = None) -> Figures:
    """The figures of one run, or of everything in the record when `run_id` is None."""
    result = Figures(run_id=run_id)
    _count_sources(db, result, _count_works(db, result))
    _count_exchanges(db, result)
    _count_waits(db, result)
    _measure_time(db, result)
    return result


def gates(result: Figures) -> list[Gate]:
    """The service levels every run is held to."""
    return [
        _at_least("yield", result.yield_ratio, 0.85),
        _at_most("ttfp_p50_s", result.ttfp_p50_s, 3.0),
        _at_most("ttfp_p95_s", result.ttfp_p95_s, 10.0),
        _below("ratio_429", result.ratio_429, 0.01),
        _at_most("corruption", result.corruption, 0),
    ]


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of values in rising order."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _count_works(db: sqlite3.Connection, result: Figures) -> Counter[tuple[str, str, str, bool]]:
    """Fill in what became of the works; returns the files by source, tier, evidence and whether they were guessed."""
    reasons: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    groups: dict[str, Counter[str]] = {name: Counter() for name in _KINDS}
    delivered: Counter[tuple[str, str, str, bool]] = Counter()
    ttfp: list[float] = []
    waited: list[float] = []
    rows = _rows(db, f"SELECT {_FATE_COLUMNS} FROM ({FATES})", result.run_id)
    for status, reason, cause, size_bytes, ttfp_ms, waited_ms, dedupe, is_guess, *kinds in rows:
        if status == "ok":
            result.obtained += 1
            result.bytes += size_bytes or 0
            result.dedupe_saved_bytes += (size_bytes or 0) if dedupe in ("duplicate", "adopted") else 0
            result.guessed += bool(is_guess)
            ttfp += [ttfp_ms / 1000] if ttfp_ms is not None else []
            waited += [waited_ms / 1000] if waited_ms is not None else []
            words = [_word(value) for value in kinds]
            for counter, word in zip(groups.values(), words, strict=True):
                counter[word] += 1
            delivered[words[0], words[1], words[-1], bool(is_guess)] += 1
        elif status == "skipped" and reason in HELD_REASONS:
            result.skipped += 1
        elif status == "skipped" and reason == "filtered":
            result.left_out += 1
        elif status == "skipped" and reason == "robots":
            result.skipped_robots += 1
        else:
            result.failed += 1
            reasons[_word(reason)] += 1
            causes[_word(cause)] += 1
    result.attempted = result.obtained + result.failed + result.skipped_robots
    result.yield_ratio = _ratio(result.obtained, result.attempted)
    result.failed_by_reason = dict(reasons.most_common())
    result.failed_by_cause = dict(causes.most_common())
    for name, counter in groups.items():
        setattr(result, f"by_{name}", dict(counter.most_common()))
    result.by_year = dict(sorted(result.by_year.items()))
    ttfp.sort()
    result.ttfp_p50_s, result.ttfp_p95_s = percentile(ttfp, 0.5), percentile(ttfp, 0.95)
    result.waited_p95_s = percentile(sorted(waited), 0.95)
    result.corruption = _one(db, _CORRUPT, result.run_id)
    return delivered


def _count_sources(db: sqlite3.Connection, result: Figures, delivered: Counter[tuple[str, str, str, bool]]) -> None:
    found = source_figures(db, result.run_id)
    count_files(found, delivered)
    result.sources = dict(sorted(found.items(), key=lambda item: (-item[1].files, -item[1].asked, item[0])))
    result.failing, result.skipped_sources = failing_sources(found), skipped_sources(found)
    names = ("source", "tier", "evidence", "is_guess")
    result.delivered = [
        {**dict(zip(names, kind, strict=True)), "files": count, "share": _ratio(count, result.obtained)}
        for kind, count in delivered.most_common()
    ]


def _count_exchanges(db: sqlite3.Connection, result: Figures) -> None:
    cache_hits = answers = 0
    for host, requests, http_429, hits, gets, size in _rows(db, _EXCHANGES, result.run_id):
        result.requests += requests
        result.http_429 += http_429
        cache_hits, answers = cache_hits + hits, answers + gets
        result.by_host[_word(host)] = {"requests": requests, "http_429": http_429, "bytes": size}
    result.by_host = dict(sorted(result.by_host.items(), key=lambda item: -item[1]["requests"]))
    result.ratio_429 = _ratio(result.http_429, result.requests)
    result.cache_hit_ratio = _ratio(cache_hits, answers)


def _count_waits(db: sqlite3.Connection, result: Figures) -> None:
    scope = "(:run_id IS NULL OR run_id = :run_id)"
    delays = [row[0] for row in _rows(db, f"SELECT delay_ms FROM rate_events WHERE {scope} ORDER BY 1", result.run_id)]
    delay = percentile(delays, 0.95)
    result.rate_delay_p95_ms = None if delay is None else int(delay)
    # A failure that opened the breakers of a host and of its source is two lines of the record and one opening here.
    alone = "COALESCE(reason, '') NOT LIKE '%; together with %'"
    opened = f"SELECT COUNT(*) FROM breaker_transitions WHERE new_state = 'open' AND {alone} AND {scope}"
    result.breaker_opens = _one(db, opened, result.run_id)


def _measure_time(db: sqlite3.Connection, result: Figures) -> None:
    """The time the runs took, pauses between them left out; a run that was cut off ends with its last line."""
    seconds = 0.0
    for started_at, finished_at, last_line_at, write_ms in _rows(db, _TIMES, result.run_id):
        result.started_at = result.started_at or started_at
        result.finished_at, result.catalog_write_p95_ms = finished_at, write_ms
        seconds += _seconds_between(started_at, finished_at or last_line_at or started_at)
    result.duration_s = round(seconds, 3) if result.started_at else None


def _at_least(name: str, value: float | None, target: float) -> Gate:
    return Gate(name, value, f">= {target:g}", value is None or value >= target)


def _at_most(name: str, value: float | None, target: float) -> Gate:
    return Gate(name, value, f"<= {target:g}", value is None or value <= target)


def _below(name: str, value: float | None, target: float) -> Gate:
    return Gate(name, value, f"< {target:g}", value is None or value < target)


def _rows(db: sqlite3.Connection, sql: str, run_id: str | None) -> sqlite3.Cursor:
    return db.execute(sql, {"run_id": run_id})


def _one(db: sqlite3.Connection, sql: str, run_id: str | None) -> int:
    return int(_rows(db, sql, run_id).fetchone()[0])


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole > 0 else None


def _word(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _seconds_between(start: str, end: str) -> float:
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 3)
