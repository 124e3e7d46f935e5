"""The end of a run: its figures into the database and `summary.json`, and the files that show the latest state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from DocsToKG.ContentDownload.catalog.gates import Gate, gates
from DocsToKG.ContentDownload.catalog.places import LAST
from DocsToKG.ContentDownload.catalog.summary import Figures, figures, percentile
from DocsToKG.ContentDownload.telemetry.folder import INDEX, SUMMARY, is_json_object
from DocsToKG.ContentDownload.telemetry.projections import Repair
from DocsToKG.ContentDownload.telemetry.schema import SCHEMA_VERSION, newest_id, transaction
from DocsToKG.ContentDownload.telemetry.snapshots import write_index, write_json, write_last

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
_GONE, _CHANGED = "it was gone and is written anew", "it was cut short or changed and is written anew"
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


def refresh_snapshots(db: sqlite3.Connection, root: Path, *, last: bool) -> list[Repair]:
    """Write `index.json`, and `last.csv` when asked, unless they show the newest line already and are as long as they
    were made. Returns which of them had been lost or cut."""
    newest = newest_id(db, "manifests")
    repairs = []
    for path, write in ((root / INDEX, write_index), *([(root / LAST, write_last)] if last else [])):
        shown = db.execute("SELECT last_id, end_bytes FROM projections WHERE name = ?", (path.name,)).fetchone()
        size = path.stat().st_size if path.exists() else None
        if shown == (newest, size):
            continue
        write(db, path)
        made = path.stat().st_size
        if shown is not None:
            # Earlier programs did not note the size; where nothing has come since, it is that of the new file.
            left = shown[1] or (made if shown[0] == newest else size)
            # A run that was cut off leaves `last.csv` longer than it was when that run began.
            has_grown = path.name == LAST and shown[0] != newest and (size or 0) > (left or 0)
            if size is None or (size != left and not has_grown):
                repairs.append(Repair(path.name, note=_GONE if size is None else _CHANGED))
        row = (path.name, newest, made)
        db.execute("INSERT OR REPLACE INTO projections (name, last_id, end_bytes) VALUES (?, ?, ?)", row)
    return repairs


def mend_summary(db: sqlite3.Connection, root: Path) -> Repair | None:
    """Put the summary of the last run back where its file was lost or cut."""
    path = root / SUMMARY
    kept = db.execute("SELECT payload FROM summaries ORDER BY created_at DESC, rowid DESC LIMIT 1").fetchone()
    if kept is None or (path.exists() and (not path.is_file() or is_json_object(path.read_bytes()))):
        return None
    repair = Repair(path.name, note=_CHANGED if path.exists() else _GONE)
    write_json(orjson.loads(kept[0]), path)
    return repair


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
