"""The shape of the record: database and upgrades, the published schema of a manifest line, results, spans."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload import telemetry
from DocsToKG.ContentDownload.api.types import DownloadOutcome, Hop, Role, WorkArtifact
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry import (
    CsvResumeLookup,
    JsonlResumeLookup,
    ManifestRecord,
    ManifestSchemaMigrator,
    ResultRow,
    ResumeController,
    RunTelemetry,
    SqliteResumeLookup,
    write_results,
)
from DocsToKG.ContentDownload.telemetry.manifest import COLUMNS
from DocsToKG.ContentDownload.telemetry.observability import events_of_process
from DocsToKG.ContentDownload.telemetry.otel import global_providers
from DocsToKG.ContentDownload.telemetry.schema import schema_sql
from DocsToKG.core.clock import ManualClock

SHIPPED = files("DocsToKG.ContentDownload.telemetry")


def record_in(root: Path) -> RunTelemetry:
    return RunTelemetry(root, run_id="01JRUN", config_hash="sha256:c", clock=ManualClock(), worker_id="w")


def shape(db: sqlite3.Connection) -> dict[str, Any]:
    """Tables with their columns, views and indexes, whatever order the columns came in."""
    found: dict[str, Any] = {}
    for kind, name, sql in db.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    ).fetchall():
        columns = {row[1:] for row in db.execute(f'PRAGMA table_info("{name}")')}
        found[f"{kind} {name}"] = columns if kind == "table" else re.sub(r"\s+", " ", sql)
    return found


@pytest.fixture
def wanted() -> dict[str, Any]:
    db = sqlite3.connect(":memory:")
    db.executescript(schema_sql())
    found = shape(db)
    db.close()
    return found


def test_the_shipped_schema_is_the_one_a_run_creates(tmp_path: Path, wanted: dict[str, Any]) -> None:
    """CAT-10, CAT-11, CAT-12, CAT-13."""
    with record_in(tmp_path):
        pass
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    assert shape(db) == wanted
    assert db.execute("PRAGMA user_version").fetchone() == (4,)
    db.close()
    tables = {name.split()[1] for name in wanted if name.startswith("table")}
    promised = {"manifests", "downloads", "summaries", "http_events", "rate_events", "breaker_transitions"}
    assert tables == promised | {"fallback_attempts", "run_summary", "projections", "journal", "folds"}


OLDER = """
CREATE TABLE manifests (id INTEGER PRIMARY KEY, run_id TEXT, doc_id TEXT, status TEXT, outcome TEXT, path TEXT);
CREATE TABLE downloads (doc_id TEXT NOT NULL, sha256 TEXT NOT NULL, path TEXT, PRIMARY KEY (doc_id, sha256));
CREATE INDEX manifests_by_doc ON manifests (doc_id);
CREATE VIEW catalog_entries AS SELECT doc_id FROM manifests;
INSERT INTO manifests (run_id, doc_id, status, outcome, path) VALUES ('old', 'doi:10.1/a', 'ok', 'success', 'a.pdf');
INSERT INTO downloads VALUES ('doi:10.1/a', 'ab', 'a.pdf');
PRAGMA user_version = 2;
"""
# The least that a record ever was: the works and how they ended, and no version.
OLDEST = (
    OLDER.partition("CREATE TABLE downloads")[0]
    + """
CREATE TABLE downloads (doc_id TEXT NOT NULL, sha256 TEXT NOT NULL, path TEXT, PRIMARY KEY (doc_id, sha256));
INSERT INTO manifests (run_id, doc_id, status, outcome, path) VALUES ('old', 'doi:10.1/a', 'ok', 'success', 'a.pdf');
INSERT INTO downloads VALUES ('doi:10.1/a', 'ab', 'a.pdf');
"""
)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("script", [OLDEST, OLDER])
def test_an_older_database_is_upgraded_and_keeps_its_rows(
    tmp_path: Path, wanted: dict[str, Any], script: str, version: int
) -> None:
    """CAT-13: from every version before this one, the oldest on."""
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    db.executescript(f"{script}; PRAGMA user_version = {version};")
    db.close()
    with record_in(tmp_path) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/b", outcome="error", reason="timeout"))
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    assert shape(db) == wanted
    assert db.execute("SELECT doc_id, status FROM catalog_entries ORDER BY 1").fetchall() == [
        ("doi:10.1/a", "ok"),
        ("doi:10.1/b", "error"),
    ]
    assert db.execute("SELECT sha256, corrupt FROM downloads").fetchall() == [("ab", 0)]
    db.close()
    assert len((tmp_path / "manifest.jsonl").read_text().splitlines()) == 2


def test_a_view_of_an_earlier_program_is_renewed_and_nothing_else(tmp_path: Path, wanted: dict[str, Any]) -> None:
    with record_in(tmp_path) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/a", outcome="error", reason="timeout"))
    before = (tmp_path / "manifest.jsonl").read_bytes()
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    db.executescript("DROP VIEW catalog_entries; CREATE VIEW catalog_entries AS SELECT doc_id FROM manifests")
    db.execute("DROP INDEX manifests_by_run")
    positions = db.execute("SELECT * FROM projections").fetchall()
    db.close()
    with record_in(tmp_path) as record:
        assert record.repairs == ()
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    assert shape(db) == wanted
    assert db.execute("SELECT * FROM projections").fetchall() == positions
    db.close()
    assert (tmp_path / "manifest.jsonl").read_bytes() == before


NEWEST = (
    *("license_raw", "doi_seen", "is_retracted", "is_guess", "cause", "explanation"),
    *("proof", "damaged", "validation", "doi", "version_doi", "supplements", "stage"),
)


def aged(root: Path) -> str:
    """Make the record of `root` one that an earlier program of this version wrote; returns its manifest."""
    manifest, path = root / "manifest.jsonl", root / "manifest.sqlite"
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    plain = [{key: value for key, value in line.items() if key not in NEWEST or key == "stage"} for line in lines]
    manifest.write_text("".join(json.dumps(line) + "\n" for line in plain))
    script = re.sub(rf"^  (?:{'|'.join(NEWEST[:-1])}) .*\n", "", schema_sql(), flags=re.MULTILINE)
    script = re.sub(r"^CREATE INDEX (?:downloads_unproved|manifests_quarantined) .*\n", "", script, flags=re.MULTILINE)
    script = re.sub(r"(?<=elapsed_ms  INTEGER),\n  stage .*", "", script)
    script = re.sub(r"(candidates +TEXT),.*", r"\1", script)
    rows = path.rename(root / "rows.sqlite")
    db = sqlite3.connect(path)
    db.executescript(script)
    db.execute("ATTACH ? AS rows", (str(rows),))
    for table in ("manifests", "projections"):
        names = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
        db.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM rows.{table}")
    db.execute("UPDATE projections SET end_bytes = ? WHERE name = ?", (manifest.stat().st_size, manifest.name))
    db.execute("PRAGMA user_version = 4")
    db.commit()
    db.close()
    rows.unlink()
    return manifest.read_text()


def test_a_record_of_this_version_without_the_newest_columns_gets_them_and_its_lines_stay(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    """CAT-04, CAT-13: additive changes need no new version, and nothing is written twice."""
    with record_in(tmp_path) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/a", outcome="error", reason="timeout"))
        record.finish(ManifestRecord(doc_id="doi:10.1/b", outcome="error", reason="timeout"))
    before = aged(tmp_path)
    with (
        Catalog(tmp_path / "manifest.sqlite") as catalog,
        pytest.raises(RecordError, match="earlier version: run once"),
    ):
        catalog.figures()
    with record_in(tmp_path) as record:
        assert record.repairs == ()
        record.finish(ManifestRecord(doc_id="doi:10.1/c", outcome="error", reason="timeout", explanation="Why."))
    lines = (tmp_path / "manifest.jsonl").read_text()
    assert lines.startswith(before)
    [added] = lines.removeprefix(before).splitlines()
    assert json.loads(added)["explanation"] == "Why."
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    assert shape(db) == wanted
    db.close()


def test_a_newer_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    db.executescript("CREATE TABLE future (x); PRAGMA user_version = 5;")
    db.close()
    before = (tmp_path / "manifest.sqlite").read_bytes()
    with pytest.raises(RecordError, match="schema version 5, this program knows up to 4"), record_in(tmp_path):
        pass
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    assert [row[0] for row in db.execute("SELECT name FROM sqlite_master")] == ["future"]
    db.close()
    assert len(before) == (tmp_path / "manifest.sqlite").stat().st_size


def test_an_upgrade_that_fails_changes_nothing() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    # A table stands where an index of the schema belongs, so the upgrade stops in the middle.
    db.executescript(OLDER + "CREATE TABLE manifests_by_run (x);")
    before = shape(db)
    with pytest.raises(sqlite3.OperationalError):
        ManifestSchemaMigrator(db).migrate()
    assert shape(db) == before
    assert ManifestSchemaMigrator(db).version() == 2
    db.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.sqlite").write_bytes(b"not a database, " * 100)
    with pytest.raises(RecordError, match="no database: move it away"), record_in(tmp_path):
        pass


def test_a_finished_work_stays_finished_in_the_catalog_view(tmp_path: Path) -> None:
    """CAT-14: the query the seeds promise."""
    success = {"outcome": "success", "sha256": "ab" * 32, "path": "a.pdf"}
    with record_in(tmp_path) as record:
        record.finish(ManifestRecord(doc_id="doi:a", **success))
        record.finish(ManifestRecord(doc_id="doi:b", outcome="error"))
        record.finish(ManifestRecord(doc_id="doi:a", outcome="skip", reason="already-present"))
        record.finish(ManifestRecord(doc_id="doi:c", outcome="error"))
        record.finish(ManifestRecord(doc_id="doi:c", outcome="skip", reason="robots"))
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    assert db.execute("SELECT doc_id FROM catalog_entries WHERE status='ok'").fetchall() == [("doi:a",)]
    assert dict(db.execute("SELECT doc_id, status FROM catalog_entries").fetchall())["doi:c"] == "skipped"
    db.close()


def test_what_was_taken_down_is_finished_no_more(tmp_path: Path) -> None:
    """No success before the line counts: not in the view, not in the files that show a state, not when resuming."""
    success = {"outcome": "success", "sha256": "ab" * 32, "path": "a.pdf", "canonical_url": "https://a.org/a"}
    with record_in(tmp_path) as record:
        record.finish(ManifestRecord(doc_id="doi:a", **success))
        record.finish(ManifestRecord(doc_id="doi:b", **{**success, "canonical_url": "https://a.org/b"}))
    stale = (tmp_path / "last.csv").read_bytes()
    with record_in(tmp_path) as record:
        for doc_id in ("doi:a", "doi:b"):
            record.finish(ManifestRecord(doc_id=doc_id, outcome="skip", stage=TAKEDOWN_STAGE, cause="taken-down"))
        record.finish(ManifestRecord(doc_id="doi:a", outcome="skip", reason="policy"))
        record.finish(ManifestRecord(doc_id="doi:b", **{**success, "canonical_url": "https://a.org/b"}))
    assert SqliteResumeLookup(tmp_path / "manifest.sqlite").completed_ids() == {"doi:b"}
    assert JsonlResumeLookup(tmp_path / "manifest.jsonl").completed_ids() == {"doi:b"}
    assert CsvResumeLookup(tmp_path / "last.csv").completed_ids() == {"doi:b"}
    assert list(json.loads((tmp_path / "index.json").read_text())) == ["https://a.org/b"]
    # Not even a list of the time before, and a lost database, bring it back.
    (tmp_path / "manifest.sqlite").unlink()
    (tmp_path / "last.csv").write_bytes(stale)
    assert ResumeController(tmp_path).completed_ids == {"doi:b"}
    with record_in(tmp_path):
        pass
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        assert [catalog.find_download(doc_id) is not None for doc_id in ("doi:a", "doi:b")] == [False, True]


TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def faults(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """The part of JSON Schema that manifest.schema.json uses."""
    known = {"type", "enum", "pattern", "required", "properties", "additionalProperties", "items", "minimum", "maximum"}
    assert set(schema) <= known | {"description", "title", "$schema", "minLength"}, at
    found: list[str] = []
    names = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if names and not any(_is(value, name) for name in names):
        return [f"{at}: {value!r} is not {names}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} not in {schema['enum']}")
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{at}: {value!r} does not match")
        if len(value) < schema.get("minLength", 0):
            found.append(f"{at}: too short")
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{at}: {value} out of range")
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += faults(item, schema["items"], f"{at}[{number}]")
    if isinstance(value, dict):
        properties = schema["properties"]
        found += [f"{at}.{name}: missing" for name in schema.get("required", []) if name not in value]
        found += [f"{at}.{name}: unknown" for name in value if name not in properties]
        for name in set(value) & set(properties):
            found += faults(value[name], properties[name], f"{at}.{name}")
    return found


def _is(value: Any, name: str) -> bool:
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def test_manifest_lines_validate_against_the_published_schema(tmp_path: Path) -> None:
    """TEST-10, CAT-07, CAT-08."""
    schema = json.loads(SHIPPED.joinpath("manifest.schema.json").read_text())
    full = ManifestRecord(
        doc_id="openalex:W12345",
        outcome="success",
        sha256="ab" * 32,
        path="artifacts/pdf/example.pdf",
        role=Role.ARTIFACT,
        url="https://a.org/x",
        http_status=200,
        size_bytes=3441123,
        retry_after_s=0,
        cache_hit=True,
        fallback_chain=("unpaywall_pdf",),
        hops=(Hop("https://a.org", 200),),
        year=2024,
        ttfp_ms=812,
        waited_ms=0,
        lease_id="lease_1",
        candidates=({"url": "https://b.org", "source": "arxiv", "reason": "challenge", "http_status": 403},),
    )
    with record_in(tmp_path) as record:
        record.finish(full)
        record.finish(ManifestRecord(doc_id="doi:10.1/b", outcome="error", reason="timeout"))
        record.finish(ManifestRecord(doc_id="arxiv:1", outcome="skip", reason="not-modified", candidates=[{}]))
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    assert [faults(line, schema) for line in lines] == [[], [], []]
    assert [line["status"] for line in lines] == ["ok", "error", "skipped"]
    assert list(lines[0]) == list(COLUMNS) == list(schema["properties"]) == schema["required"]
    for broken in (
        {"status": "done"},
        {"sha256": "xyz"},
        {"created_at": "2025-01-01"},
        {"doc_id": "plain"},
        {"extra": 1},
    ):
        assert faults({**lines[0], **broken}, schema), broken


def test_a_line_read_back_is_the_record_that_was_written(tmp_path: Path) -> None:
    written = ManifestRecord(doc_id="doi:a", outcome="error", reason="x", hops=(Hop("https://a.org", 200),), year=1999)
    with record_in(tmp_path) as record:
        record.finish(written)
    read = ManifestRecord.from_dict(json.loads((tmp_path / "manifest.jsonl").read_text()))
    assert (read.doc_id, read.outcome, read.hops, read.year) == ("doi:a", "error", [Hop("https://a.org", 200)], 1999)


def test_every_public_name_is_there() -> None:
    """BOOT-14."""
    assert {"RunTelemetry", "load_previous_manifest", "JsonlResumeLookup", "ManifestSchemaMigrator"} <= set(
        telemetry.__all__
    )
    assert all(hasattr(telemetry, name) for name in telemetry.__all__)
    assert SHIPPED.joinpath("telemetry_schema.sql").is_file()


def test_results_have_one_row_per_input_line_in_its_order(tmp_path: Path) -> None:
    rows = [
        ResultRow(1, "10.1/A", "doi:10.1/a", "success", "PDF/a.pdf"),
        ResultRow(2, 'rub,"bish"\n', None, "invalid", None, "not an identifier"),
    ]
    write_results(tmp_path / "results.csv", iter(rows))
    assert (tmp_path / "results.csv").read_bytes() == (
        b"line,input,id,outcome,path,reason,source,mark,version,version_doi\n"
        b"1,10.1/A,doi:10.1/a,success,PDF/a.pdf,,,,,\n"
        b'2,"rub,""bish"" ",,invalid,,not an identifier,,,,\n'
    )


def test_results_that_fail_half_way_leave_the_old_file(tmp_path: Path) -> None:
    write_results(tmp_path / "results.csv", [ResultRow(1, "a")])
    before = (tmp_path / "results.csv").read_bytes()

    def breaking() -> Any:
        yield ResultRow(1, "b")
        raise OSError("input went away")

    with pytest.raises(OSError, match="went away"):
        write_results(tmp_path / "results.csv", breaking())
    assert (tmp_path / "results.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


def test_without_opentelemetry_nobody_listens_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRC-09."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert not global_providers()
    assert not events_of_process(ManualClock()).hears("on_job_end")


def test_the_licence_of_a_file_is_its_own_or_none() -> None:
    """What the input says of the work may be true of another copy alone."""
    work = WorkArtifact("doi:10.1/x", license="cc-by")
    outcome = DownloadOutcome(
        True, "success", "a.pdf", "ok", {"license": None, "license_raw": None, "sha256": "ab" * 32}
    )
    told = ManifestRecord.of(work, outcome)
    assert (told.license, told.license_raw) == (None, None)
    missed = ManifestRecord.of(work, DownloadOutcome(False, "error", None, "timeout", {}))
    assert missed.license == "CC-BY-4.0"
