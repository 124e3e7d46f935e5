from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import LedgerDamaged, LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, link_hash
from DocsToKG.Orchestrator.ledger.drivers.sqlite import schema, type_indexes
from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import network_disk
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


def things(connection):
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    return [(*row[:3], " ".join((row[3] or "").split())) for row in rows]


def test_the_migrations_end_at_the_schema(tmp_path):
    with (
        closing(sqlite3.connect(":memory:")) as by_schema,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as by_steps,
    ):
        by_schema.executescript((files("DocsToKG.Orchestrator.ledger") / "sql" / "sqlite" / "schema.sql").read_text())
        by_schema.executescript(sql_files.with_control(sql_files.INCLUDE, ""))
        schema.migrate(by_steps, tmp_path)
        assert things(by_schema) == things(by_steps)
        assert by_steps.execute("PRAGMA user_version").fetchone() == (len(schema.migrations()),)


def test_migrations_are_numbered_without_gaps():
    names = sorted(
        entry.name for entry in (files("DocsToKG.Orchestrator.ledger") / "sql" / "sqlite" / "migrations").iterdir()
    )
    assert [name[:4] for name in names] == [f"{n:04}" for n in range(1, len(names) + 1)]


def first_ledger(path):
    """A file of schema 1 with jobs in several states and their history, written by hand as that version did."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        for statement in schema.statements(schema.migrations()[0]):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        head = NO_HASH
        for n, state in enumerate(["queued", "in_progress", "done", "queued"], start=1):
            leased = ("w", "lease_1", 1_000) if state == "in_progress" else (None, None, None)
            connection.execute(
                "INSERT INTO jobs (artifact_id, artifact_json, payload_digest, state, due, fence, worker_id, lease_id,"
                " lease_until, host_key, next_eligible_at, created_at, updated_at)"
                " VALUES (?, '{}', 'x', ?, 1, 1, ?, ?, ?, ?, 0, 0, 0)",
                (f"a:{n}", state, *leased, "one.example" if n == 4 else None),
            )
            entry = ("default", 0, n, n, 5, "enqueued", None, state, 0, 0, "producer", None, None, None)
            digest = link_hash(entry, head)
            marks = ", ".join("?" * 16)
            connection.execute(f"INSERT INTO job_history VALUES (NULL, {marks})", (*entry, head, digest))
            head = digest
            connection.execute(
                "INSERT OR IGNORE INTO job_counts VALUES ('default', 'content.download', ?, 0)", (state,)
            )
            connection.execute("UPDATE job_counts SET n = n + 1 WHERE state = ?", (state,))
        connection.execute("INSERT INTO history_heads VALUES ('default', 0, 4, ?)", (head,))


def test_a_ledger_of_the_first_schema_goes_on_where_it_was(path, clock):
    first_ledger(path)
    with SqliteLedger(path, clock=clock) as ledger:
        assert ledger.read(lambda tx: tx.execute("PRAGMA user_version")) == [(len(schema.migrations()),)]
        assert ledger.verify_history()
        assert [row.to_state for row in ledger.history(3)] == ["done"]
        stats = ledger.stats()
        assert (stats["queued"], stats["in_progress"], stats["done"], stats["total"]) == (2, 1, 1, 4)
        [late] = ledger.enqueue_many([NewJob("a:5", {}, depends_on=["a:1", "a:3"])])
        assert (late.job_id, late.state) == (5, JobState.PENDING)
        jobs = ledger.lease("w", 10, 60)
        assert sorted(job.job_id for job in jobs) == [1, 2, 4]
        for job in jobs:
            ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
        assert ledger.job(5).state == "queued"
        assert ledger.verify_history()
        assert ledger.read(lambda tx: tx.execute("PRAGMA integrity_check")) == [("ok",)]
        assert ledger.read(lambda tx: tx.execute("PRAGMA foreign_key_check")) == []


def test_a_first_ledger_opened_by_many_at_once_is_brought_up_to_date_once(path):
    first_ledger(path)
    with ThreadPoolExecutor(6) as pool:
        ledgers = list(pool.map(lambda _: SqliteLedger(path), range(6)))
    assert [ledger.stats()["total"] for ledger in ledgers] == [4] * 6
    for ledger in ledgers:
        ledger.close()


def test_folders_and_file_are_made_with_wal_and_foreign_keys(ledger, path, sql):
    """QUE-03."""
    assert path.is_file()
    assert sql("PRAGMA journal_mode") == [("wal",)]
    assert ledger.read(lambda tx: tx.execute("PRAGMA foreign_keys")) == [(1,)]


def test_without_wal_the_file_has_a_plain_journal(path):
    with SqliteLedger(path, wal=False) as ledger:
        assert ledger.read(lambda tx: tx.execute("PRAGMA journal_mode")) == [("delete",)]
        ledger.pause()
        assert ledger.is_paused()


def test_looking_leaves_the_journal_mode_as_it_is(path):
    SqliteLedger(path, wal=False).close()
    with SqliteLedger(path, wal=None) as ledger:
        assert ledger.read(lambda tx: tx.execute("PRAGMA journal_mode")) == [("delete",)]


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
    assert not [
        row for row in sql("SELECT sql FROM sqlite_master WHERE type = 'index'") if "updated_at" in (row[0] or "")
    ]
    for condition, index in {
        "tenant = 'a' AND job_type = 'b' AND artifact_id = 'c' AND replay_of IS NULL": "jobs_by_artifact",
        "state = 'done'": "jobs_by_state",
    }.items():
        [plan] = sql(f"EXPLAIN QUERY PLAN SELECT artifact_json FROM jobs WHERE {condition}")
        assert f"USING INDEX {index}" in plan[3]


def test_every_named_query_is_one_valid_statement(ledger):
    with closing(sqlite3.connect(ledger.path)) as connection:
        for statement in type_indexes.TYPE_INDEXES:
            connection.execute(statement)
        for name, statement in schema.queries().items():
            # Those with a number stand for one value each, wherever they are named.
            marks = len(re.findall(r"\?(?!\d)", statement)) + len(set(re.findall(r"\?\d", statement)))
            names = dict.fromkeys(re.findall(r":(\w+)", statement))
            connection.execute(f"EXPLAIN {statement.replace('{wanted}', 'true')}", [None] * marks if marks else names)
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


def test_attempts_that_were_deaths_are_given_back_to_jobs_that_are_not_over(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for script in schema.migrations()[:6]:
            for statement in schema.statements(script):
                connection.execute(statement)
        connection.execute("PRAGMA user_version = 6")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        for n, state in enumerate(["queued", "in_progress", "error"]):
            connection.execute(
                "INSERT INTO jobs (artifact_id, artifact_json, payload_digest, state, attempts, crashes, max_attempts,"
                " next_eligible_at, created_at, updated_at) VALUES (?, '{}', 'x', ?, 3, 2, 3, 0, 0, 0)",
                (f"a:{n}", state),
            )
    with SqliteLedger(path) as ledger:
        assert [(job.attempts, job.crashes) for job in ledger.list_jobs()] == [(1, 0), (1, 0), (3, 2)]
