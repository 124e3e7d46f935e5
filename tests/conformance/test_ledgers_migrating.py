"""A ledger's schema is changed while workers of the version before go on, and programs of other versions come along."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.conformance.postgres_ledgers import given_name, given_sql  # noqa: F401
from tests.waiting import eventually

from DocsToKG.Orchestrator.errors import LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.drivers.postgres import schema
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.slow

SCRIPTS = schema.migrations()
ADD_COLUMN = "-- oldest program: 1\nALTER TABLE orchestrator.jobs ADD COLUMN note text;"
ADD_INDEX = (
    "-- oldest program: 1\n-- apart\nCREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_noted"
    " ON orchestrator.jobs (note) WHERE note IS NOT NULL;"
)
# What a program of the first version was: it knows one migration, and none of the functions of the second.
OLD_WORKER = """
import sys, threading
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish
from DocsToKG.Orchestrator.ledger.drivers.postgres import schema, work
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
url, name, worker = sys.argv[1:]
first = schema.migrations()[:1]
schema.migrations = lambda: first
work.as_work = lambda batch: None
stop = threading.Event()
with PostgresLedger(url, schema_name=name) as ledger:
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    while not stop.is_set():
        for job in ledger.lease(worker, 2, 60):
            assert ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"
        stop.wait(0.02)
"""


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this process a program that knows these migrations."""
    return lambda *scripts: monkeypatch.setattr(schema, "migrations", lambda: list(scripts))


@contextlib.contextmanager
def old_workers(url: str, name: str, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    words = [sys.executable, "-c", OLD_WORKER, url, name]
    processes = [
        subprocess.Popen([*words, f"old{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield processes
        for process in processes:
            process.communicate("stop\n", timeout=60)
            assert process.returncode == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def test_workers_of_the_first_version_go_on_while_two_migrate_and_a_lock_is_in_the_way(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    """New functions, a column, an index beside the work: nobody waits for long, nothing is lost or done twice."""
    knowing(SCRIPTS[0])
    with PostgresLedger(postgres_url, schema_name=name) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(8000)])
    assert sql("SELECT max(version) FROM schema_version") == [(1,)]

    def done() -> int:
        return int(sql("SELECT count(*) FROM jobs WHERE state = 'done'")[0][0])

    waits = f"SELECT 1 FROM pg_locks WHERE relation = '{name}.jobs'::regclass AND NOT granted"
    with old_workers(postgres_url, name, 2), ThreadPoolExecutor(2) as pool:
        eventually(lambda: done() >= 10)
        knowing(*SCRIPTS, ADD_COLUMN, ADD_INDEX)
        with psycopg.connect(postgres_url) as reader:  # a long report, as somebody runs it on a Monday
            reader.execute(f"SELECT count(*) FROM {name}.jobs")
            opened = [pool.submit(PostgresLedger, postgres_url, schema_name=name, patience_s=90) for _ in range(2)]
            eventually(lambda: bool(sql(waits)))
            eventually(lambda: not sql(waits))  # it gave way
            before = done()
            eventually(lambda: done() >= before + 20)
            assert not any(future.done() for future in opened)
        ledgers = [future.result(timeout=90) for future in opened]
        assert sql("SELECT version FROM schema_version ORDER BY 1") == [(n + 1,) for n in range(len(SCRIPTS) + 2)]
        assert sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_noted'::regclass") == [(True,)]
        after = done()
        eventually(lambda: done() >= after + 20)  # the old ones are not through with it
        for job in ledgers[0].lease("new", 50, 60):
            assert ledgers[1].finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"
    assert ledgers[0].verify_history()
    ends = "SELECT count(*), count(DISTINCT job_id) FROM job_history WHERE event = 'finished'"
    assert sql(ends) == [(done(), done())]
    for ledger in ledgers:
        ledger.close()


def test_an_index_that_was_left_half_made_is_made_anew(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    """The migrator was killed, or the index could not be made: what it left behind is not taken for one."""
    knowing(*SCRIPTS, ADD_COLUMN)
    with PostgresLedger(postgres_url, schema_name=name) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(2)])
    sql("UPDATE jobs SET note = 'same'")
    with contextlib.suppress(psycopg.errors.UniqueViolation):
        sql("CREATE UNIQUE INDEX CONCURRENTLY jobs_noted ON jobs (note)")
    assert sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_noted'::regclass") == [(False,)]
    knowing(*SCRIPTS, ADD_COLUMN, ADD_INDEX)
    PostgresLedger(postgres_url, schema_name=name).close()
    assert sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_noted'::regclass") == [(True,)]


def test_an_older_program_runs_on_a_newer_schema_that_says_so(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    knowing(*SCRIPTS, f"-- oldest program: {len(SCRIPTS)}\nALTER TABLE orchestrator.jobs ADD COLUMN note text;")
    PostgresLedger(postgres_url, schema_name=name).close()
    knowing(*SCRIPTS)
    with PostgresLedger(postgres_url, schema_name=name) as ledger:
        ledger.enqueue_many([NewJob("a:1", {})])
        [job] = ledger.lease("w", 1, 60)
        assert ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"
        assert ledger.verify_history()
    assert sql("SELECT max(version) FROM schema_version") == [(len(SCRIPTS) + 1,)]


def test_an_older_program_is_refused_by_a_newer_schema_with_the_way_out(
    postgres_url: str, name: str, knowing: Callable[..., None]
) -> None:
    """Without a word in the script, only programs that know it may use the schema."""
    knowing(*SCRIPTS, "ALTER TABLE orchestrator.jobs ADD COLUMN note text;")
    PostgresLedger(postgres_url, schema_name=name).close()
    knowing(*SCRIPTS)
    new, old = len(SCRIPTS) + 1, len(SCRIPTS)
    with pytest.raises(LedgerTooNew, match=f"schema {new}, which needs .* schema {new}; this one knows {old}: install"):
        PostgresLedger(postgres_url, schema_name=name)


def test_a_newer_program_without_the_right_to_migrate_says_who_must(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    knowing(SCRIPTS[0])
    PostgresLedger(postgres_url, schema_name=name).close()
    knowing(*SCRIPTS)
    role = f"r_{uuid4().hex[:12]}"
    sql(f"CREATE ROLE {role} LOGIN")
    try:
        sql(f"GRANT USAGE ON SCHEMA {name} TO {role}")
        sql(f"GRANT ALL ON ALL TABLES IN SCHEMA {name} TO {role}")
        with pytest.raises(LedgerUnusable, match=rf"has schema 1, this program needs {len(SCRIPTS)}.*as the owner"):
            PostgresLedger(postgres_url.replace("//postgres@", f"//{role}@"), schema_name=name, patience_s=2)
        assert sql("SELECT version FROM schema_version") == [(1,)]
    finally:
        sql(f"DROP OWNED BY {role}")
        sql(f"DROP ROLE {role}")


def test_a_step_that_breaks_leaves_the_schema_as_it_was(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    knowing(*SCRIPTS)
    PostgresLedger(postgres_url, schema_name=name).close()
    knowing(*SCRIPTS, "CREATE TABLE orchestrator.half (x integer); ALTER TABLE orchestrator.nowhere ADD x integer;")
    with pytest.raises(LedgerUnusable):
        PostgresLedger(postgres_url, schema_name=name, patience_s=2)
    assert sql(f"SELECT to_regclass('{name}.half')") == [(None,)]
    knowing(*SCRIPTS)
    PostgresLedger(postgres_url, schema_name=name).close()


def test_an_index_on_the_history_is_built_beside_those_who_write_it(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    """Step 5: while one writer of the history is not through, its index waits and all the others go on."""
    knowing(*SCRIPTS[:4])
    with PostgresLedger(postgres_url, schema_name=name) as old, ThreadPoolExecutor(1) as pool:
        old.enqueue_many([NewJob(f"a:{n}", {}) for n in range(50)])
        parts = sql("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'job_history'::regclass")
        knowing(*SCRIPTS[:5])
        building = (
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            f" AND query LIKE 'CREATE INDEX CONCURRENTLY%{name}.job_history%'"
        )
        with psycopg.connect(postgres_url) as writer:
            writer.execute(f"LOCK TABLE {name}.job_history_rest IN ROW EXCLUSIVE MODE")
            opened = pool.submit(PostgresLedger, postgres_url, schema_name=name, patience_s=90)
            eventually(lambda: bool(sql(building)))
            for number in range(20):
                old.enqueue_many([NewJob(f"b:{number}", {})])
            assert sql(building)
            assert not opened.done()
        opened.result(timeout=90).close()
        old.enqueue_many([NewJob("c:1", {})])
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'job_history_decisions'::regclass"
        assert sql(valid) == [(True,)]
        attached = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'job_history_decisions'::regclass"
        assert sql(attached)[0][0] == len(parts) > 1
        assert old.verify_history()


def test_an_index_on_the_history_that_was_left_half_made_is_completed(
    postgres_url: str, name: str, sql: Callable[..., list[Any]], knowing: Callable[..., None]
) -> None:
    knowing(*SCRIPTS[:4])
    PostgresLedger(postgres_url, schema_name=name).close()
    where = "(tenant, at, seq) WHERE event = 'canceled' OR (to_state IS NULL AND event <> 'renewed')"
    sql(f"CREATE INDEX job_history_decisions ON ONLY job_history {where}")
    sql(f"CREATE INDEX job_history_rest_decisions ON job_history_rest {where}")
    knowing(*SCRIPTS)
    PostgresLedger(postgres_url, schema_name=name).close()
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'job_history_decisions'::regclass"
    assert sql(valid) == [(True,)]
