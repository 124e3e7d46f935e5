"""A record with one line or attempt in it, and a look at what it wrote."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    Verb,
)
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

SHA = "ab" * 32
TS = 1_750_000_000.0


def record_in(root: Path, **options: Any) -> RunTelemetry:
    known = {"run_id": "01JRUN", "config_hash": "sha256:c0", "clock": ManualClock(TS), "worker_id": "w1"}
    return RunTelemetry(root, **{**known, **options})


def obtained(doc_id: str = "doi:10.1/a", **fields: Any) -> ManifestRecord:
    return ManifestRecord(**{"doc_id": doc_id, "outcome": "success", "sha256": SHA, "path": "PDF/a.pdf", **fields})


def fetched(**fields: Any) -> Attempt:
    known = {"ts": TS, "resolver": "unpaywall", "url": "https://a.org/x.pdf", "verb": Verb.GET}
    return Attempt(**{**known, "status": AttemptStatus.HTTP_GET, **fields})


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows_of(root: Path, sql: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(root / "manifest.sqlite")
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()
