"""Questions to a record: read only, bounded, also while a run is writing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import needs

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Reason, SourceAttempt, SourceOutcome, Verb
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

A, B = "aa" * 32, "bb" * 32


def obtained(doc_id: str, sha256: str = A, **fields: Any) -> ManifestRecord:
    return ManifestRecord(
        **{"doc_id": doc_id, "outcome": "success", "sha256": sha256, "path": f"{doc_id}.pdf", **fields}
    )


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RunTelemetry]:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.source_attempt(SourceAttempt(1.0, "doi:a", "direct_oa", "unpaywall", SourceOutcome.SUCCESS))
        record.attempt(Attempt(1.0, "unpaywall", "https://a.org", Verb.GET, AttemptStatus.HTTP_GET, work_id="doi:a"))
        record.finish(ManifestRecord(doc_id="doi:a", outcome="error", reason="timeout", tier="direct_oa"))
        record.finish(
            obtained("doi:a", size_bytes=10, tier="direct_oa", resolver="unpaywall", license="cc-by", year=2020)
        )
        record.finish(obtained("doi:b", B, size_bytes=5, tier="archive", resolver="wayback", year=2021))
        record.finish(obtained("doi:c", A, size_bytes=10, tier="direct_oa", dedupe="duplicate"))
        record.finish(ManifestRecord(doc_id="doi:d", outcome="error", reason="robots"))
        record.finish(ManifestRecord(doc_id="doi:e", outcome="skip", reason="already-present"))
        record.finish(ManifestRecord(doc_id="doi:f", outcome="skip"))
        record.flush()
        yield record


@pytest.fixture
def catalog(record: RunTelemetry) -> Iterator[Catalog]:
    with Catalog(record.root / "manifest.sqlite") as catalog:
        yield catalog


def test_stats_count_each_work_once(catalog: Catalog) -> None:
    counts = {
        "works": 6,
        "obtained": 3,
        "present": 1,
        "left_out": 0,
        "taken_down": 0,
        "skipped_robots": 0,
        "failed": 2,
        "bytes": 25,
    }
    assert catalog.stats() == [{"scope": "all", **counts}]


def test_stats_can_be_grouped(catalog: Catalog) -> None:
    """CLI-11."""
    tiers = {row["tier"]: (row["works"], row["obtained"], row["bytes"]) for row in catalog.stats("tier")}
    assert tiers == {"direct_oa": (2, 2, 20), "archive": (1, 1, 5), "unknown": (3, 0, 0)}
    assert {row["reason"]: row["works"] for row in catalog.stats("reason")} == {
        "unknown": 4,
        "robots": 1,
        "already-present": 1,
    }
    assert [row["year"] for row in catalog.stats("year")] == ["unknown", "2020", "2021"]
    for group in ("resolver", "license"):
        assert sum(row["works"] for row in catalog.stats(group)) == 6
    with pytest.raises(ValueError, match="use one of tier"):
        catalog.stats("tier; DROP TABLE manifests")


def test_a_work_is_shown_with_all_that_happened(catalog: Catalog) -> None:
    shown = catalog.show("doi:a")
    assert shown is not None
    assert [line["status"] for line in shown.lines] == ["error", "ok"]
    assert [source["source"] for source in shown.sources] == ["unpaywall"]
    assert [attempt["status"] for attempt in shown.attempts] == ["http-get"]
    assert [download["sha256"] for download in shown.downloads] == [A]
    assert catalog.show("doi:nobody") is None


def test_a_file_is_shown_by_the_first_digits_of_its_digest(catalog: Catalog) -> None:
    shown = catalog.show("AAAAAA")
    assert shown is not None
    assert {line["doc_id"] for line in shown.lines} == {"doi:a", "doi:c"}
    assert catalog.show("aaaaa") is None
    assert catalog.show("ffffff") is None


def test_a_finished_file_is_found_for_adoption(catalog: Catalog, record: RunTelemetry) -> None:
    found = catalog.find_download("doi:a")
    assert found is not None
    assert (found.sha256, found.path, found.size_bytes, found.license) == (A, "doi:a.pdf", 10, "cc-by")
    assert catalog.find_download("doi:d") is None
    record.finish(obtained("doi:a", B, path="newer.pdf"))
    record.flush()
    newer = catalog.find_download("doi:a")
    assert newer is not None
    assert newer.path == "newer.pdf"


def test_a_corrupt_file_is_not_offered_until_it_is_obtained_again(catalog: Catalog, record: RunTelemetry) -> None:
    record.verified(B, intact=False)
    record.flush()
    assert catalog.find_download("doi:b") is None
    assert catalog.figures().corruption == 1
    record.finish(obtained("doi:b", B))
    record.flush()
    assert catalog.find_download("doi:b") is not None
    assert catalog.figures().corruption == 0


def test_a_fault_of_the_program_is_no_end_of_a_work(catalog: Catalog, record: RunTelemetry) -> None:
    for doc_id, reason in (("doi:fault", Reason.WORKER_EXCEPTION), ("doi:miss", Reason.ALL_TIERS_EXHAUSTED)):
        record.finish(ManifestRecord(doc_id=doc_id, outcome="error", reason=reason))
    record.flush()
    assert [end["doc_id"] for end in catalog.ends_without_file(["doi:fault", "doi:miss", "doi:a"])] == ["doi:miss"]


def test_a_query_reads(catalog: Catalog) -> None:
    result = catalog.query("SELECT doc_id FROM catalog_entries WHERE status='ok' ORDER BY 1")
    assert (result.columns, result.rows, result.truncated) == (("doc_id",), [("doi:a",), ("doi:b",), ("doi:c",)], False)
    many = catalog.query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT x FROM n", max_rows=7)
    assert (len(many.rows), many.truncated) == (7, True)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM manifests",
        "INSERT INTO manifests (doc_id) VALUES ('x')",
        "UPDATE downloads SET corrupt = 1",
        "DROP TABLE manifests",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "ATTACH DATABASE '{root}/evil.db' AS evil",
        "VACUUM INTO '{root}/evil.db'",
        "PRAGMA user_version = 9",
        "PRAGMA writable_schema = 1",
        "BEGIN EXCLUSIVE",
        "SELECT load_extension('x')",
        "WITH x AS (SELECT 1) DELETE FROM manifests",
        "SELECT 1; DELETE FROM manifests",
        "REINDEX",
        "ANALYZE",
    ],
)
def test_a_query_that_would_do_more_than_read_is_refused(catalog: Catalog, tmp_path: Path, sql: str) -> None:
    before = catalog.query("SELECT COUNT(*) FROM manifests").rows
    with pytest.raises(RecordError):
        catalog.query(sql.format(root=tmp_path))
    assert catalog.query("SELECT COUNT(*) FROM manifests").rows == before
    assert not (tmp_path / "evil.db").exists()


def test_a_query_without_end_is_stopped(catalog: Catalog) -> None:
    begun = time.monotonic()
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT COUNT(*) FROM n"
    with pytest.raises(RecordError, match=r"longer than 0\.2 s"):
        catalog.query(endless, max_seconds=0.2)
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    "sql", ["SELECT zeroblob(2000000000)", "SELECT 1 FROM nowhere", "", "-- nothing", "nonsense", "SELECT '\0'"]
)
def test_a_bad_query_is_answered_with_a_reason(catalog: Catalog, sql: str) -> None:
    with pytest.raises(RecordError, match="question"):
        catalog.query(sql)


def test_threads_may_share_a_catalog(catalog: Catalog) -> None:
    found: list[bool] = []

    def ask() -> None:
        found.extend(catalog.find_download("doi:a") is not None for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 300


def test_a_record_that_is_refused_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only once the error, which holds on to it, is forgotten."""
    left: list[sqlite3.Connection] = []

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            left.remove(self)
            super().close()

    def connect(*where: Any, **how: Any) -> sqlite3.Connection:
        left.append(opened(*where, **how, factory=Watched))
        return left[-1]

    opened = sqlite3.connect
    (tmp_path / "x.sqlite").write_bytes(b"rubbish " * 200)
    opened(tmp_path / "new.sqlite").execute("PRAGMA user_version = 5").connection.close()
    monkeypatch.setattr(sqlite3, "connect", connect)
    for name in ("x.sqlite", "new.sqlite"):
        with Catalog(tmp_path / name) as catalog, pytest.raises(RecordError):
            catalog.stats()
        assert left == []


def test_a_missing_or_foreign_record_is_named(tmp_path: Path) -> None:
    with Catalog(tmp_path / "manifest.sqlite") as catalog, pytest.raises(RecordError, match="no record at"):
        catalog.stats()
    (tmp_path / "x.sqlite").write_bytes(b"rubbish " * 200)
    with Catalog(tmp_path / "x.sqlite") as catalog, pytest.raises(RecordError, match="is no database: move it away"):
        catalog.stats()
    (tmp_path / "manifest.sqlite").write_bytes(b"rubbish " * 200)
    (tmp_path / "last.csv").touch()
    with Catalog(tmp_path / "manifest.sqlite") as catalog, pytest.raises(RecordError, match="resume` keeps it aside"):
        catalog.stats()
    db = sqlite3.connect(tmp_path / "new.sqlite")
    db.execute("PRAGMA user_version = 5")
    db.close()
    with Catalog(tmp_path / "new.sqlite") as catalog, pytest.raises(RecordError, match="newer program"):
        catalog.stats()


def test_a_closed_record_on_a_disk_that_cannot_be_written_is_still_read(tmp_path: Path) -> None:
    root = tmp_path / "a folder with spaces, ünïcode & 100%?#"
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(obtained("doi:a"))
    root.chmod(0o555)
    try:
        with Catalog(root / "manifest.sqlite") as catalog:
            assert catalog.find_download("doi:a") is not None
    finally:
        root.chmod(0o755)


@pytest.mark.slow
def test_another_user_who_may_only_read_can_ask(tmp_path: Path) -> None:
    """Root may write anywhere, so the case above proves little for root."""
    root = tmp_path / "run"
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(obtained("doi:a"))
    code = (
        "from pathlib import Path\n"
        "from DocsToKG.ContentDownload.catalog.store import Catalog\n"
        f"with Catalog(Path({str(root / 'manifest.sqlite')!r})) as catalog:\n"
        "    print(catalog.find_download('doi:a') is not None)\n"
        "try:\n"
        f"    Path({str(root / 'new')!r}).touch()\n"
        "except PermissionError:\n"
        "    print('may only read')\n"
    )
    root.chmod(0o555)
    try:
        command = [*needs.user_who_may_only_read(), sys.executable, "-c", code]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    finally:
        root.chmod(0o755)
    assert ran.stdout.splitlines() == ["True", "may only read"], ran.stderr
