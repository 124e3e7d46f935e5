"""Attempts and the other small events, as rows of the database and lines of `attempts.csv`.

Knows the twelve columns of `attempts.csv`, which are a contract; the table `http_events` has more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, SourceAttempt
from DocsToKG.ContentDownload.catalog import counts
from DocsToKG.ContentDownload.telemetry.text import (
    are_plain,
    are_storable_ints,
    csv_line,
    csv_lines,
    storable,
    storable_int,
    storable_url,
)
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

_NUMBERS = ("http_status", "elapsed_ms", "bytes_written", "content_length_hdr")

# A retry stands for an exchange that failed; a cache hit follows an `http-get` that sent nothing.
SENT = frozenset(map(str, counts.SENT))
# What a line adds to the number of requests sent, by its status.
_REQUESTS = {**dict.fromkeys(SENT, 1), str(AttemptStatus.CACHE_HIT): -1}
_STATUS, _HTTP_STATUS = COLUMNS.index("status"), COLUMNS.index("http_status")
_TYPE_CAP = 200
Texts = tuple[str | None, ...]
Numbers = tuple[int | None, ...]


def requests_in(rows: Sequence[Sequence[Any]]) -> int:
    """How many requests these rows tell of."""
    return sum([_REQUESTS.get(row[_STATUS], 0) for row in rows])


def refusals_in(rows: Sequence[Sequence[Any]]) -> int:
    """How many answers 429 these rows tell of."""
    return sum([row[_HTTP_STATUS] == 429 and row[_STATUS] in SENT for row in rows])


def attempt_row(attempt: Attempt, run_id: str) -> tuple[Any, ...]:
    """Values in the order of `COLUMNS`."""
    url, reason, role = attempt.url, attempt.reason and str(attempt.reason), attempt.role and str(attempt.role)
    host = attempt.host or _host_of(url)
    texts: Texts = (attempt.resolver, attempt.content_type, reason, attempt.work_id, host, role)
    if not are_plain(texts):
        texts = tuple(map(storable, texts))
    resolver, content_type, reason, work_id, host, role = texts
    numbers: Numbers = (attempt.http_status, attempt.elapsed_ms, attempt.bytes_written, attempt.content_length_hdr)
    if not are_storable_ints(numbers):
        numbers = tuple(map(storable_int, numbers))
    http_status, elapsed_ms, bytes_written, content_length = numbers
    return (
        utc_iso(attempt.ts),
        run_id,
        resolver,
        storable_url(url),
        str(attempt.verb),
        str(attempt.status),
        http_status,
        content_type and content_type[:_TYPE_CAP],
        elapsed_ms,
        bytes_written,
        content_length,
        reason,
        work_id,
        host,
        role,
        int(attempt.from_cache),
        int(attempt.revalidated),
        None if attempt.retry_after_s is None else float(attempt.retry_after_s),
    )


def row_of_line(line: Mapping[str, str]) -> tuple[Any, ...] | None:
    """The row that a line of `attempts.csv` was made of, as far as the line tells; None when it is no such line."""
    if not all(line.get(name) for name in ("ts", "url", "verb", "status")):
        return None
    known: dict[str, Any] = {name: storable(line.get(name)) for name in CSV_COLUMNS}
    known.update({name: storable_int(int(line[name])) if line.get(name, "").isdecimal() else None for name in _NUMBERS})
    known |= {"host": _host_of(line["url"]), "from_cache": int(line["status"] == AttemptStatus.CACHE_HIT)}
    known["revalidated"] = int(line["status"] == AttemptStatus.HTTP_304)
    return tuple(known.get(name) for name in COLUMNS)


def source_row(tried: SourceAttempt, run_id: str) -> tuple[Any, ...]:
    """Values in the order of `SOURCE_COLUMNS`."""
    reason = None if tried.reason is None else str(tried.reason)
    texts: Texts = (tried.work_id, tried.tier, tried.source, reason, tried.host, tried.stage)
    if not are_plain(texts):
        texts = tuple(map(storable, texts))
    work_id, tier, source, reason, host, stage = texts
    outcome, http_status, elapsed_ms = str(tried.outcome), storable_int(tried.http_status), tried.elapsed_ms
    return (utc_iso(tried.ts), run_id, work_id, tier, source, outcome, reason, host, http_status, elapsed_ms, stage)


def attempts_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    return csv_lines([values[:_CSV_WIDTH] for values in rows])


def _host_of(url: str) -> str | None:
    try:
        return host_key(url)
    except BadUrl:
        return None
