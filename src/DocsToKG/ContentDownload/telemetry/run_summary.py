"""The beginning and the end of a run in the database: its row, its figures, and `summary.json`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.paths import SUMMARY
from DocsToKG.ContentDownload.catalog.slo import Gate, gates
from DocsToKG.ContentDownload.catalog.summary import Figures, figures, percentile
from DocsToKG.ContentDownload.telemetry.schema import SCHEMA_VERSION, transaction
from DocsToKG.ContentDownload.telemetry.snapshots import write_json

_START = """
INSERT INTO run_summary (run_id, started_at, config_hash) VALUES (?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET finished_at = NULL, config_hash = excluded.config_hash
"""
_FINISH = """
UPDATE run_summary
   SET finished_at = :finished_at, artifacts_total = :attempted, artifacts_success = :obtained,
       artifacts_skipped = :skipped, artifacts_failed = :failed, yield_pct = :yield_ratio * 100, bytes = :bytes,
       requests = :requests, http_429_ratio = :ratio_429, cache_hit_pct = :cache_hit_ratio * 100,
       ttfp_p50_ms = CAST(ROUND(:ttfp_p50_s * 1000) AS INTEGER),
       ttfp_p95_ms = CAST(ROUND(:ttfp_p95_s * 1000) AS INTEGER),
       rate_delay_p95_ms = :rate_delay_p95_ms, breaker_open_events = :breaker_opens,
       dedupe_saved_mb = :dedupe_saved_bytes / 1e6, corruption_count = :corruption
 WHERE run_id = :run_id
"""
_SUMMARY = """
INSERT INTO summaries (run_id, created_at, payload) VALUES (?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET created_at = excluded.created_at, payload = excluded.payload
"""
Judge = Callable[[Figures], list[Gate]]


def begin_run(db: sqlite3.Connection, *, run_id: str, started_at: str, config_hash: str) -> None:
    db.execute(_START, (run_id, started_at, config_hash))


def finish_run(
    db: sqlite3.Connection,
    root: Path,
    *,
    run_id: str,
    finished_at: str,
    config_hash: str,
    commit_ms: Iterable[float],
    notes: Sequence[str] = (),
    judge: Judge = gates,
) -> None:
    """Close the run's books; `judge` says which service levels it kept.

    A later call for the same run replaces what an earlier one wrote.
    """
    with transaction(db):
        times = "UPDATE run_summary SET finished_at = ?, catalog_write_p95_ms = ? WHERE run_id = ?"
        db.execute(times, (finished_at, percentile(sorted(commit_ms), 0.95), run_id))
        result = figures(db, run_id)
        payload = summary_payload(result, config_hash, judge(result)) | {"notes": list(notes)}
        db.execute(_FINISH, _parameters(result))
        db.execute(_SUMMARY, (run_id, finished_at, orjson.dumps(payload).decode()))
    write_json(payload, root / SUMMARY)


def summary_payload(result: Figures, config_hash: str, judged: Iterable[Gate]) -> dict[str, Any]:
    """What `summary.json` holds."""
    return {
        "schema_version": SCHEMA_VERSION,
        "config_hash": config_hash,
        **result.to_dict(),
        "gates": [gate.to_dict() for gate in judged],
    }


def _parameters(result: Figures) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if not isinstance(value, dict)}
