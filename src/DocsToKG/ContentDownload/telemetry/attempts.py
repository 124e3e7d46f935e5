"""Attempts and the other small events, as rows of the database and lines of the attempts files.

Knows the twelve columns of `attempts.csv`, which are a contract; `attempts.jsonl` carries every column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, SourceAttempt
from DocsToKG.ContentDownload.telemetry.text import csv_line, csv_lines, storable, storable_int, storable_url
from DocsToKG.core.clock import utc_iso
from DocsToKG.core.urls import BadUrl, host_key

CSV_COLUMNS = (
    "ts",
    "run_id",
    "resolver",
    "url",
    "verb",
    "status",
    "http_status",
    "content_type",
    "elapsed_ms",
    "bytes_written",
    "content_length_hdr",
    "reason",
)
COLUMNS = (*CSV_COLUMNS, "work_id", "host", "role", "from_cache", "revalidated", "retry_after_s")
SOURCE_COLUMNS = (
    "ts",
    "run_id",
    "work_id",
    "tier",
    "source",
    "outcome",
    "reason",
    "host",
    "http_status",
    "elapsed_ms",
    "stage",
)
RATE_COLUMNS = ("ts", "run_id", "key", "why", "delay_ms", "work_id", "resolver", "role")
BREAKER_COLUMNS = ("ts", "run_id", "key", "old_state", "new_state", "reason", "reset_timeout_s")

CSV_HEADER = csv_line(CSV_COLUMNS)
_CSV_WIDTH = len(CSV_COLUMNS)
SELECT_ATTEMPTS = f"SELECT id, {', '.join(COLUMNS)} FROM http_events WHERE id > ? ORDER BY id"

_READ_BACK: dict[str, Callable[[Any], Any]] = {
    "url": storable_url,
    **dict.fromkeys(("http_status", "elapsed_ms", "bytes_written", "content_length_hdr"), storable_int),
    **dict.fromkeys(("from_cache", "revalidated"), lambda value: int(bool(value))),
    "retry_after_s": lambda value: None if value is None else float(value),
}

# A retry stands for an exchange that failed; a cache hit follows an `http-get` that sent nothing.
_SENT = frozenset(
    {AttemptStatus.HTTP_HEAD, AttemptStatus.HTTP_GET, AttemptStatus.ROBOTS_FETCH, AttemptStatus.RETRY},
)


def requests_of(attempt: Attempt) -> int:
    """What this line adds to the number of requests sent."""
    return int(attempt.status in _SENT) - int(attempt.status == AttemptStatus.CACHE_HIT)


def is_429(attempt: Attempt) -> bool:
    return attempt.http_status == 429 and attempt.status in _SENT


def attempt_row(attempt: Attempt, run_id: str) -> tuple[Any, ...]:
    """Values in the order of `COLUMNS`."""
    return (
        utc_iso(attempt.ts),
        run_id,
        storable(attempt.resolver),
        storable_url(attempt.url),
        str(attempt.verb),
        str(attempt.status),
        storable_int(attempt.http_status),
        storable(attempt.content_type, 200),
        storable_int(attempt.elapsed_ms),
        storable_int(attempt.bytes_written),
        storable_int(attempt.content_length_hdr),
        storable(attempt.reason),
        storable(attempt.work_id),
        storable(attempt.host or _host_of(attempt.url)),
        storable(attempt.role),
        int(attempt.from_cache),
        int(attempt.revalidated),
        None if attempt.retry_after_s is None else float(attempt.retry_after_s),
    )


def row_of_line(line: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The row that a line of `attempts.jsonl` was made of; None when it is no such line."""
    if not all(isinstance(line.get(name), str) for name in ("ts", "url", "verb", "status")):
        return None
    try:
        return tuple(_READ_BACK.get(name, storable)(line.get(name)) for name in COLUMNS)
    except (TypeError, ValueError):
        return None


def source_row(tried: SourceAttempt, run_id: str) -> tuple[Any, ...]:
    """Values in the order of `SOURCE_COLUMNS`."""
    return (
        utc_iso(tried.ts),
        run_id,
        storable(tried.work_id),
        storable(tried.tier),
        storable(tried.source),
        str(tried.outcome),
        storable(tried.reason),
        storable(tried.host),
        storable_int(tried.http_status),
        storable_int(tried.elapsed_ms),
        storable(tried.stage),
    )


def attempts_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    return csv_lines([values[:_CSV_WIDTH] for values in rows])


def attempts_json(rows: Iterable[Sequence[Any]]) -> bytes:
    return b"".join(map(_attempt_json, rows))


def _attempt_json(values: Sequence[Any]) -> bytes:
    line = dict(zip(COLUMNS, values, strict=True))
    line["from_cache"], line["revalidated"] = bool(line["from_cache"]), bool(line["revalidated"])
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _host_of(url: str) -> str | None:
    try:
        return host_key(url)
    except BadUrl:
        return None
