"""A record of any size, as a run would have left it, written by the database itself in seconds.

`write_big_record(folder, works=1_000_000)` makes `manifest.sqlite` with rows as wide as real ones: one line per work,
a second one for every tenth, one request and one source tried per work, two runs. Equal numbers give equal records.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.telemetry.rollup import Rollup
from DocsToKG.ContentDownload.telemetry.schema import open_database

# A command in a process of its own, which tells what it took.
_MEASURE = """
import contextlib, io, json, resource, sys, time
from DocsToKG.ContentDownload.cli.main import content
out = io.StringIO()
sys.argv = ["content", *sys.argv[1:]]
began = time.monotonic()
with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
    content()
wall_s, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss, which begins with the size of the process that started this one.
most = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
told = {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": wall_s, "mb": most / 1024}
print(json.dumps({**told, "out": out.getvalue()}))
"""


def measured(root: Path, *words: Any) -> dict[str, Any]:
    """`content` with these words, about the record in `root`: its output, its seconds and its megabytes."""
    command = [sys.executable, "-c", _MEASURE, *map(str, words), "--run", str(root)]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(root / "home")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, env=environment)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


RUNS = ("01HZZZZZZZZZZZZZZZZZZZZZZ1", "01HZZZZZZZZZZZZZZZZZZZZZZ2")
SOURCES = ("unpaywall", "arxiv", "europe_pmc", "openalex", "landing", "wayback", "core")
TIERS = ("direct_oa", "doi_follow", "landing_scrape", "europe_pmc_pmc", "archive")
LICENCES = ("CC-BY-4.0", "CC-BY-NC-4.0", "CC0-1.0", None, "CC-BY-NC-ND-4.0")
HOSTS = 500

_NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :works)"
# A multiplicative hash scatters what would otherwise be in order: ids of real works do not come sorted.
_MIXED = "((n * 2654435761) % 4294967296)"
_DOC = f"'doi:10.' || (1000 + {_MIXED} % 9000) || '/j.' || printf('%08x', {_MIXED}) || '.' || n"
_SHA = f"printf('%08x', {_MIXED}) || printf('%08x', n) || substr(printf('%064x', n), 17)"
_HOST = f"'host-' || ({_MIXED} % {HOSTS}) || '.example.org'"
_TITLE = "'On the observation of structure number ' || n || ' in large and otherwise ordinary collections of matter'"
_AT = "strftime('%Y-%m-%dT%H:%M:%S.000Z', 1767225600 + n / 20, 'unixepoch')"


def write_big_record(folder: Path, *, works: int = 1_000_000, with_events: bool = True) -> Path:
    """The path of the new `manifest.sqlite`. Seven of ten works are obtained, one was there, two failed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "manifest.sqlite"
    with contextlib.closing(open_database(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -65536")
        db.execute("BEGIN")
        _add_lines(db, works)
        if with_events:
            _add_events(db, works)
        _add_runs(db)
        db.execute("COMMIT")
        Rollup(db).catch_up(longest_s=600)  # as a run does while it writes
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def _pick(values: tuple[str | None, ...], shift: int) -> str:
    cases = " ".join(
        f"WHEN {place} THEN {'NULL' if value is None else repr(value)}" for place, value in enumerate(values)
    )
    return f"CASE ({_MIXED} >> {shift}) % {len(values)} {cases} END"


def _add_lines(db: sqlite3.Connection, works: int) -> None:
    ok = "(n % 10 < 7)"
    names = (
        "run_id, doc_id, stage, url, canonical_url, role, status, http_status, mime, size_bytes, sha256, path, "
        "attempt, duration_ms, cache_hit, resolver, tier, fallback_chain, created_at, config_hash, worker_id, outcome, "
        "reason, bytes, title, year, license, license_raw, oa_status, version, host_type, evidence, hops, dedupe, "
        "ttfp_ms, waited_ms, lease_id, candidates, is_guess, cause, explanation"
    )
    url = f"'https://' || {_HOST} || '/article/download/' || n || '/full.pdf'"
    db.execute(
        f"""{_NUMBERS} INSERT INTO manifests ({names})
        SELECT CASE WHEN n <= :works / 2 THEN '{RUNS[0]}' ELSE '{RUNS[1]}' END, {_DOC}, 'fetch',
               CASE WHEN {ok} THEN {url} END, CASE WHEN {ok} THEN {url} END, 'artifact',
               CASE WHEN {ok} THEN 'ok' WHEN n % 10 = 7 THEN 'skipped' ELSE 'error' END,
               CASE WHEN {ok} THEN 200 END, CASE WHEN {ok} THEN 'application/pdf' END,
               CASE WHEN n % 10 < 8 THEN 200000 + {_MIXED} % 3000000 END, CASE WHEN n % 10 < 8 THEN {_SHA} END,
               CASE WHEN {ok} THEN 'PDF/' || (1990 + n % 36) || '__on-the-observation-of-structure-number-' || n ||
                    '-in-large-and-otherwise-ordinary__doi-' || printf('%08x', {_MIXED}) || '.pdf' END,
               1, 400 + {_MIXED} % 9000, n % 50 = 0,
               CASE WHEN {ok} THEN {_pick(SOURCES, 4)} END, CASE WHEN {ok} THEN {_pick(TIERS, 8)} END,
               '["unpaywall","arxiv","europe_pmc","openalex"]', {_AT},
               '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 'w-' || (n % 4),
               CASE WHEN {ok} THEN 'success' WHEN n % 10 = 7 THEN 'skip' ELSE 'error' END,
               CASE WHEN {ok} THEN 'ok' WHEN n % 10 = 7 THEN 'already-present' ELSE 'all_tiers_exhausted' END,
               CASE WHEN {ok} THEN 200000 + {_MIXED} % 3000000 END, {_TITLE}, 1990 + n % 36,
               {_pick(LICENCES, 12)}, {_pick(LICENCES, 12)}, 'gold', 'publishedVersion', 'publisher', 'url_for_pdf',
               CASE WHEN {ok} THEN '[{{"url":' || '"' || {url} || '","status":200}}]' ELSE '[]' END,
               CASE WHEN {ok} THEN CASE WHEN n % 40 = 0 THEN 'duplicate' ELSE 'new' END END,
               CASE WHEN {ok} THEN 300 + {_MIXED} % 4000 END, {_MIXED} % 2000, printf('l-%08x', n),
               CASE WHEN n % 10 > 7 THEN '[{{"url":' || '"' || {url} || '","source":"landing","reason":"paywall",'
                    || '"http_status":403,"evidence":null,"is_guess":false}}]' ELSE '[]' END,
               0, CASE WHEN n % 10 > 7 THEN 'paywall' END, CASE WHEN n % 10 > 7 THEN 'A payment is asked for.' END
          FROM numbers""",
        {"works": works},
    )
    # Every tenth work failed before it went as it went.
    db.execute(
        f"""INSERT INTO manifests ({names}) SELECT {names.replace("lease_id", "'m-' || id")}
              FROM manifests WHERE id % 10 = 3 ORDER BY id"""
    )
    db.execute(
        "UPDATE manifests SET status = 'error', outcome = 'error', reason = 'timeout' WHERE id % 10 = 3 AND id <= ?",
        (works,),
    )
    db.execute(
        """INSERT INTO downloads (doc_id, sha256, size_bytes, path, mime, url, canonical_url, license, oa_status,
                                  version, dedupe, run_id, manifest_id, created_at)
           SELECT doc_id, sha256, size_bytes, path, mime, url, canonical_url, license, oa_status, version, dedupe,
                  run_id, id, created_at FROM manifests WHERE status = 'ok' ORDER BY doc_id, sha256"""
    )


def _add_events(db: sqlite3.Connection, works: int) -> None:
    db.execute(
        f"""{_NUMBERS} INSERT INTO http_events (ts, run_id, resolver, url, verb, status, http_status, content_type,
                        elapsed_ms, bytes_written, content_length_hdr, reason, work_id, host, role,
                        from_cache, revalidated, retry_after_s)
        SELECT {_AT}, CASE WHEN n <= :works / 2 THEN '{RUNS[0]}' ELSE '{RUNS[1]}' END, {_pick(SOURCES, 4)},
               'https://' || {_HOST} || '/article/download/' || n || '/full.pdf', 'GET',
               CASE WHEN n % 50 = 0 THEN 'cache-hit' ELSE 'http-get' END, CASE WHEN n % 400 = 1 THEN 429 ELSE 200 END,
               'application/pdf', 100 + {_MIXED} % 900, NULL, 200000, 'ok', {_DOC}, {_HOST}, 'artifact', n % 50 = 0, 0,
               CASE WHEN n % 400 = 1 THEN 5.0 END
          FROM numbers""",
        {"works": works},
    )
    db.execute(
        f"""{_NUMBERS} INSERT INTO fallback_attempts (ts, run_id, work_id, tier, source, outcome, reason, host,
                        http_status, elapsed_ms, stage)
        SELECT {_AT}, CASE WHEN n <= :works / 2 THEN '{RUNS[0]}' ELSE '{RUNS[1]}' END, {_DOC}, {_pick(TIERS, 8)},
               {_pick(SOURCES, 4)}, CASE WHEN n % 10 < 7 THEN 'success' ELSE 'no_pdf' END, NULL, {_HOST}, 200,
               100 + {_MIXED} % 900, 'resolve'
          FROM numbers""",
        {"works": works},
    )
    db.execute(
        f"""{_NUMBERS} INSERT INTO rate_events (ts, run_id, key, why, delay_ms, work_id, resolver, role)
        SELECT {_AT}, '{RUNS[0]}', 'host:' || {_HOST}, 'rate', {_MIXED} % 3000, NULL, 'landing', 'artifact'
          FROM numbers WHERE n % 5 = 0""",
        {"works": works},
    )


def _add_runs(db: sqlite3.Connection) -> None:
    for run_id in RUNS:
        db.execute(
            """INSERT INTO run_summary (run_id, started_at, finished_at, config_hash, catalog_write_p95_ms)
               SELECT ?, MIN(created_at), MAX(created_at), 'c', 4.5 FROM manifests WHERE run_id = ?""",
            (run_id, run_id),
        )
