"""A machine's own record on its way to the shared one: late, repeated, out of order, with the server away. CAT-23."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests import needs
from tests.conformance.postgres_server import NoPostgres, PostgresServer
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Verb, WorkArtifact
from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.catalog.shared import schema
from DocsToKG.ContentDownload.catalog.shared.catalog import SharedCatalog
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync
from DocsToKG.ContentDownload.maintenance.takedowns import Takedown, Takedowns, undone
from DocsToKG.ContentDownload.maintenance.tombstones import add_line, tombstone
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

pytestmark = pytest.mark.slow  # a server is started; part of `make test`

A, B = "aa" * 32, "bb" * 32


@pytest.fixture
def shared(postgres_url: str) -> Iterator[SharedRecord]:
    with contextlib.closing(_at(postgres_url)) as shared:
        yield shared
        _ask(shared, "DROP SCHEMA {s} CASCADE")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test's own, that it may stop."""
    try:
        own = PostgresServer()
    except NoPostgres as error:
        needs.lacks(str(error))
    try:
        yield own
    finally:
        own.close()


def _at(url: str, patience_s: float = 60.0) -> SharedRecord:
    return SharedRecord(url, schema=f"t_{uuid4().hex[:16]}", patience_s=patience_s)


def record_in(folder: Path, shared: SharedRecord, *, at: float = 1_800_000_000.0, **more: Any) -> RunTelemetry:
    return RunTelemetry(
        folder,
        run_id=f"r-{folder.name}",
        config_hash="c",
        clock=ManualClock(at),
        shared=shared,
        node=folder.name,
        **more,
    )


def obtained(doc_id: str, sha256: str = A, **more: Any) -> ManifestRecord:
    return ManifestRecord(doc_id=doc_id, outcome="success", sha256=sha256, path=f"PDF/{sha256[:4]}-{doc_id}", **more)


def _ask(shared: SharedRecord, sql: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(shared.connected()) as connection:
        cursor = connection.execute(sql.replace("{s}", shared.schema))
        return cursor.fetchall() if cursor.description is not None else []


def _lines(shared: SharedRecord) -> list[tuple[Any, ...]]:
    return _ask(shared, "SELECT doc_id, lease_id, status FROM {s}.manifests ORDER BY doc_id, lease_id")


def _journal(folder: Path) -> list[str]:
    return (folder / "manifest.jsonl").read_text().splitlines()


def test_whoever_waits_is_told_when_the_server_has_it(shared: SharedRecord, tmp_path: Path) -> None:
    seen: list[int] = []

    def told() -> None:
        seen.append(len(_ask(shared, "SELECT 1 FROM {s}.downloads WHERE doc_id = 'doi:a'")))

    with record_in(tmp_path, shared) as record:
        record.finish(obtained("doi:a", lease_id="l1"), then=told)
        record.flush()
    assert seen == [1]


def test_what_was_written_while_the_server_was_away_arrives(server: PostgresServer, tmp_path: Path) -> None:
    told: list[str] = []
    with contextlib.closing(_at(server.url)) as shared:
        with record_in(tmp_path, shared) as record:
            record.finish(obtained("doi:before", lease_id="l0"), then=lambda: told.append("before"))
            record.flush()
            server.stop()
            for number in range(50):
                name = f"doi:{number:02}"
                record.attempt(Attempt(1.0, "core", "https://a.org", Verb.GET, AttemptStatus.HTTP_GET, work_id=name))
                record.finish(obtained(name, lease_id=f"l-{number}"), then=lambda name=name: told.append(name))
            eventually(lambda: len(_journal(tmp_path)) == 51)  # nobody is stopped from writing here
            assert told == ["before"]
            server.start()
            record.flush()
            assert sorted(told[1:]) == [f"doi:{number:02}" for number in range(50)]
        assert len(_lines(shared)) == 51
        assert _ask(shared, "SELECT count(*) FROM {s}.http_events") == [(50,)]


@pytest.mark.slow
def test_a_server_that_is_killed_again_and_again_loses_and_doubles_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    told: list[int] = []
    with contextlib.closing(_at(server.url, patience_s=120)) as shared:
        with record_in(tmp_path, shared, batch_window_s=0.0) as record:
            for number in range(600):
                record.finish(obtained(f"doi:{number}", lease_id=f"l-{number}"), then=lambda n=number: told.append(n))
                if number in (100, 250, 400):  # what was just handed over is on its way
                    server.stop(kill=True)
                if number in (150, 251, 500):
                    server.start()
            record.flush()
        assert sorted(told) == list(range(600))
        assert _ask(shared, "SELECT count(*), count(DISTINCT doc_id) FROM {s}.manifests") == [(600, 600)]
        assert _ask(shared, "SELECT count(*) FROM {s}.downloads") == [(600,)]
        assert _ask(shared, "SELECT manifests FROM {s}.journals") == [(600,)]


def test_when_the_patience_is_over_everybody_hears_it_and_the_next_start_goes_on(
    server: PostgresServer, tmp_path: Path
) -> None:
    told: list[str] = []
    heard: list[Exception] = []
    url = server.url.replace("postgres@", "postgres:planted-password@")
    with contextlib.closing(_at(url, patience_s=0.3)) as shared:
        record = record_in(tmp_path, shared)
        record.open()
        record.on_failure(heard.append)
        server.stop()
        record.finish(obtained("doi:a", lease_id="l1"), then=lambda: told.append("a"))
        with pytest.raises(RecordError, match="does not answer") as failed:
            record.flush()
        with pytest.raises(RecordError):
            record.close()
        assert "planted-password" not in f"{failed.value} {heard}"
        assert len(heard) == 1
        assert told == []
        server.start()
        patient = SharedRecord(url, schema=shared.schema, patience_s=60)
        with contextlib.closing(patient), record_in(tmp_path, patient):
            assert _lines(patient) == [("doi:a", "l1", "ok")]


def test_a_database_that_was_lost_is_filled_from_the_journals(shared: SharedRecord, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with record_in(tmp_path / name, shared) as record:
            record.attempt(Attempt(1.0, "core", "https://a.org", Verb.GET, AttemptStatus.HTTP_GET, work_id="doi:x"))
            record.finish(obtained(f"doi:{name}", lease_id=f"l-{name}"))
            record.finish(ManifestRecord(doc_id="doi:none", outcome="error", reason="timeout"))
    tables = ("manifests", "downloads", "http_events", "run_summary", "summaries")
    before = {table: _ask(shared, f"SELECT count(*) FROM {{s}}.{table}") for table in tables}
    _ask(shared, "DROP SCHEMA {s} CASCADE")
    for name in ("two", "one"):
        with record_in(tmp_path / name, shared):
            pass
    assert {table: _ask(shared, f"SELECT count(*) FROM {{s}}.{table}") for table in tables} == before
    assert before["manifests"] == [(4,)]


def test_a_journal_that_lost_its_database_sends_nothing_twice(shared: SharedRecord, tmp_path: Path) -> None:
    """The new database is filled from manifest.jsonl, and has another name."""
    with record_in(tmp_path, shared) as record:
        record.finish(obtained("doi:a", lease_id="l1"))
        record.finish(ManifestRecord(doc_id="doi:b", outcome="error", reason="timeout"))
    for path in tmp_path.glob("manifest.sqlite*"):
        path.unlink()
    with record_in(tmp_path, shared) as record:
        assert record.restored == 2
        record.finish(obtained("doi:c", B, lease_id="l3"))
    assert [line[0] for line in _lines(shared)] == ["doi:a", "doi:b", "doi:c"]
    assert len(_ask(shared, "SELECT 1 FROM {s}.journals")) == 2


def test_a_folder_that_was_copied_is_another_journal(shared: SharedRecord, tmp_path: Path) -> None:
    with record_in(tmp_path / "one", shared) as record:
        record.finish(obtained("doi:a", lease_id="l1"))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    with record_in(tmp_path / "one", shared) as record:
        record.finish(obtained("doi:b", B, lease_id="l2"))
    with record_in(tmp_path / "copy", shared) as record:
        record.finish(obtained("doi:c", B, lease_id="l3"))
    with record_in(tmp_path / "copy", shared):
        pass
    assert [line[0] for line in _lines(shared)] == ["doi:a", "doi:b", "doi:c"]


@pytest.mark.parametrize("lines", [1, 2])
def test_a_copy_that_runs_beside_its_original_is_told_of_no_line_that_was_not_sent(
    shared: SharedRecord, tmp_path: Path, lines: int
) -> None:
    """Machines that were made from one image, and start at the same moment."""
    told: list[str] = []
    with record_in(tmp_path / "one", shared) as record:
        record.finish(obtained("doi:a", lease_id="l1"))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    with contextlib.suppress(RecordError), record_in(tmp_path / "copy", shared) as copy:
        with record_in(tmp_path / "one", shared) as record:
            for number in range(lines):
                record.finish(obtained(f"doi:b{number}", B, lease_id=f"l-b{number}"))
        copy.finish(obtained("doi:c", B, lease_id="l3"), then=lambda: told.append("doi:c"))
        with pytest.raises(RecordError, match="start again"):
            copy.flush()
    assert told == []
    with record_in(tmp_path / "copy", shared):
        pass
    assert {line[0] for line in _lines(shared)} == {"doi:a", "doi:c", *(f"doi:b{number}" for number in range(lines))}


def test_a_file_that_is_older_than_its_takedown_does_not_come_back(shared: SharedRecord, tmp_path: Path) -> None:
    """One node was away while another took the work down; the server then loses everything and hears them in the other
    order."""
    with record_in(tmp_path / "away", shared) as record:
        record.finish(obtained("doi:a", lease_id="l1"))
    _ask(shared, "DROP SCHEMA {s} CASCADE")
    with record_in(tmp_path / "here", shared, at=1_800_000_100.0):
        pass
    line = tombstone("doi:a", run_id="r-t", cause="taken-down", explanation="Gone.", sha256=A, lease_id="taken-down-1")
    database = tmp_path / "here" / "manifest.sqlite"
    add_line(tmp_path / "here", line, database=database, sinks=("sqlite",), clock=ManualClock(1_800_000_200.0))
    with record_in(tmp_path / "here", shared, at=1_800_000_300.0):
        pass
    with record_in(tmp_path / "away", shared), SharedCatalog(shared, owns=False) as catalog:
        assert catalog.find_download("doi:a") is None
        assert catalog.stats("state")[0]["state"] == "taken-down"
        assert catalog.query("SELECT status FROM catalog_entries").rows == [("skipped",)]


def test_a_work_that_stands_on_the_list_gets_no_file_whatever_the_clocks_say(
    shared: SharedRecord, tmp_path: Path
) -> None:
    listed = TakedownSync(shared, clock=ManualClock())
    entry = {"doc_id": "doi:a", "taken_at": "2026-01-01T00:00:00.000Z", "undone_at": None}
    listed.put(entry)
    with record_in(tmp_path, shared) as record, SharedCatalog(shared, owns=False) as catalog:
        record.finish(obtained("doi:a", lease_id="l1"))
        record.flush()
        assert catalog.find_download("doi:a") is None
        listed.put({**entry, "undone_at": "2026-01-02T00:00:00.000Z"})
        assert [one["undone_at"] for one in listed.changed()] == ["2026-01-02T00:00:00.000Z"]
        record.finish(obtained("doi:a", lease_id="l2"))
        record.flush()
        assert catalog.find_download("doi:a") is not None


def test_a_list_of_takedowns_that_was_lost_is_filled_by_its_machines(shared: SharedRecord, tmp_path: Path) -> None:
    entry = Takedown("doi:a", ("doi:a",), "asked", "2026-01-01T00:00:00.000Z", sha256=(A,))
    one = Takedowns.read(tmp_path / "one", share=TakedownSync(shared, clock=ManualClock()))
    one.put(entry)
    _ask(shared, "DROP SCHEMA {s} CASCADE")
    for name in ("one", "two"):
        known = Takedowns.read(tmp_path / name, share=TakedownSync(shared, clock=ManualClock()))
        known.learn()
        assert known.refuses(WorkArtifact("doi:a")) is not None
    # It is to be carried out there as well; and what one undoes, the others give back.
    assert [one.pending for one in known.entries] == [True]
    known.put(undone(entry, "2026-01-02T00:00:00.000Z"))
    again = Takedowns.read(tmp_path / "one", share=TakedownSync(shared, clock=ManualClock()))
    assert again.refuses(WorkArtifact("doi:a")) is None


def test_an_older_file_of_a_work_stands_behind_a_newer_one(shared: SharedRecord, tmp_path: Path) -> None:
    with record_in(tmp_path / "new", shared, at=1_800_000_100.0) as record:
        record.finish(obtained("doi:a", B, lease_id="l2"))
    with record_in(tmp_path / "old", shared) as record, SharedCatalog(shared, owns=False) as catalog:
        record.finish(obtained("doi:a", A, lease_id="l1"))
        record.flush()
        found = catalog.find_download("doi:a")
        assert found is not None
        assert found.sha256 == B
        assert [held.sha256 for held in catalog.downloads_of("doi:a")] == [B, A]


def test_many_that_start_at_once_make_one_schema(shared: SharedRecord) -> None:
    versions: list[int] = []
    starters = [threading.Thread(target=lambda: versions.append(schema.prepare(shared))) for _ in range(6)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join(60)
    assert versions == [len(schema.migrations())] * 6


def test_a_migration_runs_while_an_older_program_writes(
    shared: SharedRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = schema.migrations()
    over = threading.Event()
    with record_in(tmp_path, shared) as record:

        def write() -> None:
            number = 0
            while not over.is_set() or number < 20:
                record.finish(obtained(f"doi:{number}", lease_id=f"l-{number}"))
                record.flush()
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        more = "ALTER TABLE record.manifests ADD COLUMN note text;\nCREATE INDEX noted ON record.manifests (note);"
        monkeypatch.setattr(schema, "migrations", lambda: [*known, more])
        assert schema.prepare(shared) == len(known) + 1
        over.set()
        writer.join(60)
        record.flush()
    monkeypatch.setattr(schema, "migrations", lambda: known)
    # The older program goes on with a schema that says it may, also after a start.
    with record_in(tmp_path, shared), SharedCatalog(shared, owns=False) as catalog:
        assert catalog.stats()[0]["obtained"] == len(_journal(tmp_path)) >= 20


def test_a_schema_that_needs_a_newer_program_is_left_alone(shared: SharedRecord, tmp_path: Path) -> None:
    schema.prepare(shared)
    _ask(shared, "INSERT INTO {s}.schema_version VALUES (99, 98)")
    with pytest.raises(RecordError, match="needs a program that knows 98"):
        record_in(tmp_path, shared).open()
    with SharedCatalog(shared, owns=False) as catalog, pytest.raises(RecordError, match="version 99"):
        catalog.stats()
    assert _lines(shared) == []


def test_other_peoples_tables_are_no_record(shared: SharedRecord) -> None:
    _ask(shared, "CREATE SCHEMA {s}; CREATE TABLE {s}.manifests (id int)")
    with pytest.raises(RecordError, match="no record"):
        schema.prepare(shared)


def test_a_record_that_was_never_made_says_so(shared: SharedRecord) -> None:
    _ask(shared, "CREATE SCHEMA {s}")
    with SharedCatalog(shared, owns=False) as catalog, pytest.raises(RecordError, match="there is no record"):
        catalog.find_download("doi:a")


def test_the_address_is_never_told(tmp_path: Path) -> None:
    away = SharedRecord("postgresql://me:planted-password@127.0.0.1:1/none", patience_s=0.1)
    with contextlib.closing(away), pytest.raises(RecordError) as failed:
        record_in(tmp_path, away).open()
    assert "planted-password" not in str(failed.value)
    with pytest.raises(RecordError) as odd:
        SharedRecord("postgresql://me:planted-password@[::1")
    assert "planted-password" not in str(odd.value)


def test_a_large_answer_is_not_held_in_memory(shared: SharedRecord, tmp_path: Path) -> None:
    """The server is asked for a thousand rows at a time."""
    with record_in(tmp_path, shared) as record:
        for number in range(2_500):
            record.finish(obtained(f"doi:{number}", lease_id=f"l-{number}"))
    with SharedCatalog(shared, owns=False) as catalog:
        rows = catalog.files()
        next(rows)
        open_cursors = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'FETCH%' AND state LIKE 'idle in%'"
        assert _ask(shared, open_cursors)[0][0] >= 1
        assert sum(1 for _ in rows) == 2_499


def test_several_corpora_live_on_one_server(postgres_url: str, tmp_path: Path) -> None:
    corpora = [_at(postgres_url) for _ in range(2)]
    for number, corpus in enumerate(corpora):
        with record_in(tmp_path / str(number), corpus) as record:
            record.finish(obtained(f"doi:{number}", lease_id="l1"))
    for number, corpus in enumerate(corpora):
        with SharedCatalog(corpus) as catalog:
            assert [work["doc_id"] for work in catalog.each(Selection())] == [f"doi:{number}"]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {corpus.schema} CASCADE")
