"""The files of a run, byte for byte: users' scripts, dashboards and later versions of this program rest on them.

`golden/record` shows one paper in three runs: fetched, served from the cache, confirmed by its server; a second paper
that could not be had; and a third that is forbidden. To write the files anew after a change that is meant:
`python tests/contentdownload/test_record_golden.py`, and say in CHANGELOG.md what changed.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    Hop,
    Reason,
    Role,
    SourceAttempt,
    SourceOutcome,
    Verb,
)
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.telemetry import (
    CsvResumeLookup,
    JsonlResumeLookup,
    ManifestRecord,
    ResultRow,
    RunTelemetry,
    SqliteResumeLookup,
    write_results,
)
from DocsToKG.core.clock import ManualClock

GOLDEN = Path(__file__).parent / "golden" / "record"
TEXTS = ("manifest.jsonl", "attempts.csv", "last.csv", "index.json", "results.csv")
TABLES = ("manifests", "downloads", "http_events", "rate_events", "breaker_transitions", "fallback_attempts")
RUNS = ("01JRUN00000000000000000001", "01JRUN00000000000000000002", "01JRUN00000000000000000003")
URL = "https://cdn.publisher.org/article/abcd5678.pdf"
DOC, MISSED, FORBIDDEN = "doi:10.1234/abcd.5678", 'doi:10.1234/"quoted",commas', "arxiv:2401.00001"
PAPER = {
    "doc_id": DOC,
    "url": URL,
    "canonical_url": URL,
    "http_status": 200,
    "mime": "application/pdf",
    "sha256": "5e" * 32,
    "size_bytes": 1_245_721,
    "path": "PDF/abcd5678.pdf",
    "resolver": "unpaywall",
    "tier": "direct_oa",
    "fallback_chain": ("unpaywall",),
    "hops": (Hop(URL, 200),),
    "proof": "proved",
    "validation": {
        "form": "pdf",
        "pages": 11,
        "proof": "proved",
        "whole": "whole",
        "evidence": ["doi: own position", "title: equal, larger, page 1", "authors: 3 of 3"],
        "read": {"engine": "pdfium 7000", "pages": [1, 2, 11], "letters": 8112},
    },
    "doi": "10.1234/abcd.5678",
    "version_doi": "10.1234/abcd.5678",
    "supplements": (
        {
            "name": "data.csv",
            "url": "https://cdn.publisher.org/article/data.csv",
            "path": "SUPPLEMENTS/abcd5678/data.csv",
            "sha256": "7a" * 32,
            "size_bytes": 912,
            "mime": "text/csv",
            "source": "landing",
        },
        {
            "name": "movie.mp4",
            "url": "https://cdn.publisher.org/m.mp4?token=x",
            "source": "landing",
            "reason": "too-large",
        },
    ),
    "title": "Übergänge, “quoted” — and Ω",
    "year": 2024,
    "license": "CC-BY-4.0",
    "license_raw": "https://creativecommons.org/licenses/by/4.0/",
    "oa_status": "gold",
    "version": "publishedVersion",
    "host_type": "publisher",
    "evidence": "open (via page says license)",
}


def record_in(root: Path, run_id: str, clock: ManualClock) -> RunTelemetry:
    return RunTelemetry(root, run_id=run_id, config_hash="sha256:" + "c" * 64, clock=clock, worker_id="host:1:abc")


def attempt(clock: ManualClock, verb: Verb, status: AttemptStatus, **fields: Any) -> Attempt:
    about = {"content_type": "application/pdf", "work_id": DOC, "host": "cdn.publisher.org", "role": Role.ARTIFACT}
    return Attempt(clock.now(), "unpaywall", URL, verb, status, **{**about, **fields})


def first_run(root: Path, clock: ManualClock) -> None:
    with record_in(root, RUNS[0], clock) as record:
        record.rate_wait("host:cdn.publisher.org", 120, why="rate", work_id=DOC, resolver="unpaywall", role="artifact")
        record.attempt(attempt(clock, Verb.HEAD, AttemptStatus.HTTP_HEAD, http_status=200, elapsed_ms=92))
        record.attempt(attempt(clock, Verb.GET, AttemptStatus.HTTP_GET, http_status=200, elapsed_ms=145))
        size = {"bytes_written": 1_245_721, "content_length_hdr": 1_245_721}
        record.attempt(attempt(clock, Verb.STREAM, AttemptStatus.HTTP_200, http_status=200, **size))
        record.source_attempt(
            SourceAttempt(clock.now(), DOC, "direct_oa", "unpaywall", SourceOutcome.SUCCESS, host="cdn.publisher.org")
        )
        done = {"lease_id": "lease-1", "dedupe": "new", "duration_ms": 812, "ttfp_ms": 237, "waited_ms": 120}
        record.finish(ManifestRecord(outcome="success", reason="ok", **PAPER, **done))  # type: ignore[arg-type]
        record.flush()  # lines are stamped when they are written
        clock.advance(1.5)
        busy = {"work_id": MISSED, "content_type": None, "http_status": 503, "retry_after_s": 2.0}
        record.attempt(attempt(clock, Verb.GET, AttemptStatus.RETRY, reason=Reason.RETRY_AFTER, elapsed_ms=31, **busy))
        record.breaker_transition("host:cdn.publisher.org", "closed", "open", reason="failures", reset_timeout_s=30.0)
        record.finish(missed())
        forbidden = {"work_id": FORBIDDEN, "content_type": None, "reason": Reason.ROBOTS}
        record.attempt(attempt(clock, Verb.ROBOTS, AttemptStatus.ROBOTS_DISALLOWED, **forbidden))
        record.finish(ManifestRecord(doc_id=FORBIDDEN, outcome="skip", reason="robots", lease_id="lease-3"))


def missed() -> ManifestRecord:
    copy = {"url": f"{URL}?token=secret", "source": "unpaywall", "reason": "timeout", "http_status": 503}
    why = {"cause": "servers-away", "explanation": "The only copy's server was away; try again."}
    return ManifestRecord(
        doc_id=MISSED, outcome="error", reason="timeout", lease_id="lease-2", retry_after_s=2, candidates=(copy,), **why
    )


def later_runs(root: Path, clock: ManualClock) -> None:
    """The same paper asked for again: from the cache, then confirmed."""
    with record_in(root, RUNS[1], clock) as record:
        hit = {"http_status": 200, "from_cache": True}
        record.attempt(attempt(clock, Verb.GET, AttemptStatus.HTTP_GET, elapsed_ms=2, **hit))
        record.attempt(attempt(clock, Verb.GET, AttemptStatus.CACHE_HIT, reason=Reason.OK, **hit))
        done = {"lease_id": "lease-4", "dedupe": "duplicate", "cache_hit": True, "attempt": 2}
        record.finish(ManifestRecord(outcome="success", reason="ok", **PAPER, **done))  # type: ignore[arg-type]
    clock.advance(86_400)
    with record_in(root, RUNS[2], clock) as record:
        same = {"http_status": 304, "from_cache": True, "revalidated": True}
        record.attempt(attempt(clock, Verb.GET, AttemptStatus.HTTP_GET, elapsed_ms=40, **same))
        record.attempt(attempt(clock, Verb.GET, AttemptStatus.HTTP_304, reason=Reason.NOT_MODIFIED, **same))
        record.finish(ManifestRecord(doc_id=DOC, outcome="skip", reason="not-modified", lease_id="lease-5"))


def make(root: Path) -> None:
    clock = ManualClock(1_760_000_000.123)
    first_run(root, clock)
    clock.advance(3_600)
    later_runs(root, clock)
    rows = [
        ResultRow(
            1, "10.1234/ABCD.5678", DOC, "success", "PDF/abcd5678.pdf", None, "ids.txt", "damaged", "publishedVersion"
        ),
        ResultRow(2, "not a paper\n", None, "invalid", None, "names no paper", "ids.txt"),
        ResultRow(3, MISSED, MISSED, "error", None, "timeout: The only copy's server was away.", "ids.txt"),
    ]
    write_results(root / "results.csv", rows)


def dump(root: Path) -> str:
    """The rows of the database as text that makes them again."""
    db = sqlite3.connect(root / "manifest.sqlite")
    lines = []
    for table in (*TABLES, "projections"):
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        quoted = " || ', ' || ".join(f"quote({name})" for name in names)
        head = f"INSERT INTO {table} ({', '.join(names)}) VALUES"
        lines += [f"{head} ({values});" for (values,) in db.execute(f"SELECT {quoted} FROM {table} ORDER BY rowid")]
    db.close()
    return "\n".join(lines) + "\n"


def opened(root: Path, script: str) -> dict[str, list[tuple[Any, ...]]]:
    db = sqlite3.connect(root / "manifest.sqlite")
    db.executescript(script)
    rows = {name: db.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall() for name in TABLES}
    db.close()
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("golden")
    make(root)
    return root


@pytest.mark.parametrize("name", TEXTS)
def test_the_file_is_exactly_these_bytes(made: Path, name: str) -> None:
    """TEST-09, CAT-01, CAT-05, CAT-15, CAT-16, TEL-01."""
    assert (made / name).read_text() == (GOLDEN / name).read_text()


def test_the_database_has_exactly_these_rows(made: Path) -> None:
    """CAT-10, CAT-11."""
    assert dump(made) == (GOLDEN / "manifest.sql").read_text()


def test_the_summary_has_at_least_these_figures(made: Path) -> None:
    """CAT-16: more may be told; what is promised stays, with its name and its value."""
    told, promised = (json.loads((root / "summary.json").read_text()) for root in (made, GOLDEN))
    assert {name: told.get(name) for name in promised} == promised


def test_a_record_of_this_version_is_opened_unchanged(tmp_path: Path) -> None:
    """What stands in users' folders today: read by a later program without a repair, and gone on with."""
    with record_in(tmp_path, RUNS[0], ManualClock()):
        pass
    (tmp_path / "manifest.sqlite-wal").unlink(missing_ok=True)
    before = opened(tmp_path, "DELETE FROM projections; DELETE FROM run_summary; DELETE FROM summaries;")
    assert not any(before.values())
    rows = opened(tmp_path, (GOLDEN / "manifest.sql").read_text())
    for name in TEXTS:
        (tmp_path / name).write_bytes((GOLDEN / name).read_bytes())
    with record_in(tmp_path, "01JRUN00000000000000000004", ManualClock()) as record:
        assert (record.repairs, record.restored) == ((), 0)
    assert opened(tmp_path, "") == rows
    for name in TEXTS:
        assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        file = catalog.find_download(DOC)
        assert file is not None
        assert (file.sha256, file.path) == ("5e" * 32, "PDF/abcd5678.pdf")
    assert SqliteResumeLookup(tmp_path / "manifest.sqlite").completed_ids() == {DOC}


def test_the_text_files_alone_tell_what_is_finished() -> None:
    assert JsonlResumeLookup(GOLDEN / "manifest.jsonl").completed_ids() == {DOC}
    assert CsvResumeLookup(GOLDEN / "last.csv").completed_ids() == {DOC}


def test_the_tokens_show_what_the_cache_did() -> None:
    """TEST-09, TEL-06, TEST-14: a first fetch, a hit, a confirmation, as dashboards see them."""
    with (GOLDEN / "attempts.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["reason"] not in ("retry-after", "robots")]
    told = {run: [row["status"] for row in rows if row["run_id"] == run] for run in RUNS}
    assert list(told.values()) == [
        ["http-head", "http-get", "http-200"],
        ["http-get", "cache-hit"],
        ["http-get", "http-304"],
    ]


def test_no_secret_is_in_any_file(made: Path) -> None:
    for path in made.rglob("*"):
        if path.is_file():
            assert b"token=secret" not in path.read_bytes(), path.name


_PROMISED = ("run_id", "config_hash", "schema_version", "attempted", "obtained", "skipped", "failed")


def _write_golden() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(root)
        for name in TEXTS:
            (GOLDEN / name).write_bytes((root / name).read_bytes())
        (GOLDEN / "manifest.sql").write_text(dump(root))
        summary = json.loads((root / "summary.json").read_text())
        promised = {name: summary[name] for name in (*_PROMISED, "bytes", "requests")}
        (GOLDEN / "summary.json").write_text(json.dumps(promised, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(_write_golden())
