from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import LedgerDamaged, LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.ledger import schema
from DocsToKG.Orchestrator.ledger.disk import network_disk
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


def things(connection):
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    return [(*row[:3], " ".join((row[3] or "").split())) for row in rows]


def test_the_migrations_end_at_the_schema(tmp_path):
    with (
        closing(sqlite3.connect(":memory:")) as by_schema,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as by_steps,
    ):
        by_schema.executescript((files(schema.__package__) / "sql" / "schema.sql").read_text())
        schema.migrate(by_steps, tmp_path)
        assert things(by_schema) == things(by_steps)
        assert by_steps.execute("PRAGMA user_version").fetchone() == (len(schema.migrations()),)


def test_migrations_are_numbered_without_gaps():
    names = sorted(entry.name for entry in (files(schema.__package__) / "sql" / "migrations").iterdir())
    assert [name[:4] for name in names] == [f"{n:04}" for n in range(1, len(names) + 1)]


def test_folders_and_file_are_made_with_wal_and_foreign_keys(ledger, path, sql):
    """QUE-03."""
    assert path.is_file()
    assert sql("PRAGMA journal_mode") == [("wal",)]
    assert ledger._reader.fetch("PRAGMA foreign_keys") == [(1,)]


def test_without_wal_the_file_has_a_plain_journal(path):
    with SqliteLedger(path, wal=False) as ledger:
        assert ledger._reader.fetch("PRAGMA journal_mode") == [("delete",)]
        ledger.pause()
        assert ledger.is_paused()


def test_looking_leaves_the_journal_mode_as_it_is(path):
    SqliteLedger(path, wal=False).close()
    with SqliteLedger(path, wal=None) as ledger:
        assert ledger._reader.fetch("PRAGMA journal_mode") == [("delete",)]


def test_a_newer_ledger_is_left_alone(ledger, path, sql):
    ledger.close()
    sql("PRAGMA user_version = 99")
    with pytest.raises(LedgerTooNew, match="99"):
        SqliteLedger(path)
    assert sql("PRAGMA user_version") == [(99,)]


def test_another_programs_database_is_left_alone(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE jobs (id INTEGER)")
    with pytest.raises(LedgerDamaged, match="not a ledger"):
        SqliteLedger(path)


def test_a_file_that_is_no_database_is_named(path):
    path.parent.mkdir()
    path.write_bytes(b"hello, I am not a database at all" * 100)
    with pytest.raises(LedgerDamaged, match=path.name):
        SqliteLedger(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnusable, match="folder"):
        SqliteLedger(tmp_path / "file" / "ledger.sqlite")


def test_an_old_sqlite_is_refused(path, monkeypatch):
    monkeypatch.setattr(schema.sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(LedgerUnusable, match=r"3\.35"):
        SqliteLedger(path)


def test_the_view_has_exactly_the_promised_columns(ledger, clock, lease_one, sql, path):
    """QUE-01, QUE-19."""
    job = lease_one(ttl_s=60)
    with closing(sqlite3.connect(path)) as connection:
        cursor = connection.execute("SELECT * FROM jobs_v1")
        row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
    assert row == {
        "id": job.job_id,
        "artifact_id": job.artifact_id,
        "artifact_json": job.artifact_json,
        "state": "in_progress",
        "attempts": 0,
        "last_error": None,
        "resolver_hint": None,
        "created_at": utc_iso(clock.now()),
        "updated_at": utc_iso(clock.now()),
        "lease_expires_at": utc_iso(clock.now() + 60),
        "worker_id": "first",
    }
    assert list(row)[:2] == ["id", "artifact_id"]
    assert list(row)[-2:] == ["lease_expires_at", "worker_id"]


def test_look_ups_and_leasing_use_their_indexes_and_none_has_updated_at(ledger, sql):
    """QUE-02."""
    assert not [row for row in sql("SELECT sql FROM sqlite_master WHERE type = 'index'") if "updated_at" in row[0]]
    for condition, index in {
        "tenant = 'a' AND job_type = 'b' AND artifact_id = 'c' AND replay_of IS NULL": "jobs_by_artifact",
        "state = 'done'": "jobs_by_state",
        "state = 'in_progress' AND worker_id = 'w'": "jobs_by_worker",
    }.items():
        [plan] = sql(f"EXPLAIN QUERY PLAN SELECT artifact_json FROM jobs WHERE {condition}")
        assert f"USING INDEX {index}" in plan[3]


def test_every_named_query_is_one_valid_statement(ledger):
    with closing(sqlite3.connect(ledger.path)) as connection:
        for name, statement in schema.queries().items():
            marks = statement.count("?")
            names = dict.fromkeys(re.findall(r":(\w+)", statement))
            connection.execute(f"EXPLAIN {statement}", [None] * marks if marks else names)
            assert sqlite3.complete_statement(statement + ";"), name


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("/dev/sda / ext4 rw 0 0\nhost:/x /data nfs4 rw 0 0\n", "nfs4"),
        ("host:/x / nfs rw 0 0\n/dev/sda /data ext4 rw 0 0\n", None),
        ("/dev/sda / ext4 rw 0 0\nme@h:/ /data/my\\040disk fuse.sshfs rw 0 0\n", "fuse.sshfs"),
        ("garbage\n\n/dev/sda / ext4\n", None),
    ],
)
def test_a_network_disk_is_recognised_by_its_mount(mounts, kind, tmp_path):
    table = tmp_path / "mounts"
    table.write_text(mounts)
    assert network_disk(Path("/data/my disk/ledger.sqlite"), mounts=table) == kind


def test_wal_on_a_network_disk_is_refused(path, monkeypatch):
    monkeypatch.setattr(schema, "network_disk", lambda path: "nfs4")
    with pytest.raises(LedgerUnusable, match="nfs4"):
        SqliteLedger(path)
    SqliteLedger(path, wal=False).close()
