"""What only a server can do to a ledger: lose connections, stop, be shared by processes, keep months of history."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from tests.conformance.postgres_ledgers import (  # noqa: F401 (fixtures)
    cut_all,
    end,
    given_ledger,
    given_name,
    given_open_one,
    given_sql,
    given_writing,
)
from tests.conformance.postgres_server import PostgresServer, running_postgres
from tests.waiting import eventually
from typer.testing import CliRunner

from DocsToKG.ContentDownload.config.models import QueueConfig
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import LedgerBusy, LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.ledger.base import NewJob, Release
from DocsToKG.Orchestrator.ledger.drivers.postgres import maintenance, schema
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
from DocsToKG.Orchestrator.ledger.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.ledger.opening import open_ledger
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.slow


# many processes

START = """
import os, sys, time
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob, Progress
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
url, schema, worker = sys.argv[1:]
"""


def start(script: str, url: str, name: str, worker: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", START + textwrap.dedent(script), url, name, worker]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_run_every_job_exactly_once(postgres_url, name, open_one):
    """QUE-08, EXT-01: four processes make the schema at once, two of them add the same jobs while all work."""
    script = """
    print("ready", flush=True); sys.stdin.readline()
    with PostgresLedger(url, schema_name=schema) as ledger:
        for start in range(0, 200, 20):
            if worker in "ab":
                ledger.enqueue_many([NewJob(f"a:{n}", {}, host_key=f"h{n % 3}" if n % 2 else None)
                                     for n in range(start, start + 20)])
            for job in ledger.lease(worker, 7, 60):
                print("ran", job.job_id)
                ledger.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    """
    processes = [start(script, postgres_url, name, worker) for worker in "abcd"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ran = Counter(line for process in processes for line in process.communicate(timeout=60)[0].splitlines())
    ledger = open_one()
    while jobs := ledger.lease("last", 50, 60):
        ran.update(f"ran {job.job_id}" for job in jobs)
        ledger.submit_finishes([end(job) for job in jobs]).result(timeout=30)
    assert (len(ran), set(ran.values())) == (200, {1})
    assert (ledger.stats()["total"], ledger.stats()["done"], ledger.verify_history()) == (200, 200, True)


def test_threads_share_transactions_and_run_every_job_once(ledger, sql):
    """Group commit: eight workers that take one job at a time do not pay a transaction each."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(160)])
    done: list[int] = []

    def work(worker: str) -> None:
        while jobs := ledger.lease(worker, 1, 60):
            done.append(jobs[0].job_id)
            ledger.finish(end(jobs[0]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [f"w{n}" for n in range(8)]))
    assert sorted(done) == sorted(set(done))
    assert len(done) == 160
    [(transactions,)] = sql("SELECT count(DISTINCT xmin::text) FROM job_history WHERE event <> 'enqueued'")
    assert transactions < 240
    assert ledger.verify_history()


def test_a_frozen_process_finds_its_lease_gone(postgres_url, name, ledger):
    """SIGSTOP past the lease, another worker takes over, SIGCONT: the late finish is refused."""
    ledger.enqueue_many([NewJob("a:1", {})])
    script = """
    ledger = PostgresLedger(url, schema_name=schema)
    [job] = ledger.lease(worker, 1, 0.2)
    print("ready", flush=True); sys.stdin.readline()
    try:
        print(ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR)))
    except Exception as error:
        print(type(error).__name__)
    """
    process = start(script, postgres_url, name, "frozen")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    taken: list[Any] = []
    while not taken:
        ledger.wait_for_work(5)
        taken += ledger.lease("owner", 1, 600)
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate(timeout=60)[0] == "LeaseLost\n"
    assert ledger.job(1).state == "in_progress"


def test_two_needs_that_end_at_the_same_moment_free_their_dependent(open_one):
    """Neither transaction sees the other's end; whoever follows after both sees both."""
    one, two = open_one(), open_one()
    for turn in range(10):
        names = [f"a:{turn}", f"b:{turn}"]
        one.enqueue_many([NewJob(name, {}) for name in names] + [NewJob(f"c:{turn}", {}, depends_on=names)])
        first, second = one.lease("w", 2, 60)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(one.finish, end(first))
            pool.submit(two.finish, end(second))
        [last] = one.lease("w", 5, 60)
        assert last.artifact_id == f"c:{turn}"
        one.finish(end(last))


def test_a_need_that_ends_while_its_dependent_is_added_is_not_missed(open_one):
    one, two = open_one(), open_one()
    for turn in range(10):
        one.enqueue_many([NewJob(f"a:{turn}", {})])
        [need] = one.lease("w", 1, 60)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(one.finish, end(need))
            pool.submit(two.enqueue_many, [NewJob(f"b:{turn}", {}, depends_on=[f"a:{turn}"])])
        [job] = one.lease("w", 5, 60)
        assert job.artifact_id == f"b:{turn}"
        one.finish(end(job))


def test_a_storm_of_equal_jobs_makes_each_once(open_one):
    ledgers = [open_one() for _ in range(4)]
    jobs = [NewJob(f"a:{n}", {}, idempotency_key=f"k{n}") for n in range(50)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda ledger: ledger.enqueue_many(jobs), ledgers))
    assert len({tuple(answer.job_id for answer in answer_list) for answer_list in answers}) == 1
    assert sum(answer.created for answer_list in answers for answer in answer_list) == 50
    assert ledgers[0].stats()["total"] == 50
    assert ledgers[0].verify_history()


# lost connections


def test_cut_connections_are_made_anew(ledger, sql):
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(30)])
    for _ in range(10):
        cut_all(sql)
        [job] = ledger.lease("w", 1, 60)
        cut_all(sql)
        assert ledger.finish(end(job)) == "applied"
        assert ledger.stats()["in_progress"] == 0
    assert ledger.verify_history()


class Proxy:
    """Between ledger and server: may swallow what the server answers to the next COMMIT, and then cut."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{self._door.getsockname()[1]}").geturl()
        self.eat_commit = threading.Event()
        self.eaten = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            cut = threading.Event()
            for source, target, eats in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, target, eats, cut), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, eats: bool, cut: threading.Event) -> None:
        with source, target, contextlib.suppress(OSError):
            while data := source.recv(65536):
                if eats and self.eat_commit.is_set() and b"COMMIT\0" in data:
                    self.eat_commit.clear()
                    self.eaten += 1
                    target.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


def test_an_answer_to_a_commit_that_got_lost_is_found_out(postgres_url, name):
    """The same lease is handed over, the end counts once, and no second job is taken."""
    proxy = Proxy(postgres_url)
    try:
        with PostgresLedger(proxy.url, schema_name=name) as ledger:
            ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(5)])
            proxy.eat_commit.set()
            [job] = ledger.lease("w", 1, 60)
            assert ledger.stats()["in_progress"] == 1
            proxy.eat_commit.set()
            assert ledger.finish(end(job)) == "applied"
            proxy.eat_commit.set()
            assert len(ledger.enqueue_many([NewJob("b:1", {})])) == 1
            [job] = ledger.lease("w", 1, 60)
            proxy.eat_commit.set()
            assert ledger.release(Release(job.job_id, job.fence, job.lease_id)) == "queued"
            assert proxy.eaten == 4
            assert (ledger.stats()["total"], ledger.stats()["done"], ledger.verify_history()) == (6, 1, True)
    finally:
        proxy.close()


@pytest.mark.parametrize("kill", [False, True])
def test_a_server_that_restarts_costs_time_and_nothing_else(kill):
    """FAIL: stopped, or gone without a checkpoint, in the middle of work; workers go on without a restart."""
    with running_postgres() as server, PostgresLedger(server.url, patience_s=60) as ledger:
        ids = {answer.job_id for answer in ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(400)])}
        accepted: list[int] = []

        def work(worker: str) -> None:
            while jobs := ledger.lease(worker, 5, 600):
                futures = [(job, ledger.submit_finish(end(job))) for job in jobs]
                accepted.extend(job.job_id for job, future in futures if future.result(timeout=60) == "applied")

        with ThreadPoolExecutor(3) as pool:
            workers = [pool.submit(work, f"w{n}") for n in range(3)]
            for _ in range(2):
                time.sleep(0.1)
                server.stop(kill=kill)
                server.start()
            for worker in workers:
                worker.result(timeout=100)
        assert (sorted(accepted), ledger.stats()["done"]) == (sorted(ids), 400)
        assert ledger.verify_history()


def test_a_server_that_stays_away_is_an_error_of_its_own():
    server = PostgresServer()
    try:
        with PostgresLedger(server.url, patience_s=0.5) as ledger:
            server.stop(kill=True)
            with pytest.raises(LedgerBusy, match="does not answer"):
                ledger.lease("w", 1, 60)
            with pytest.raises(LedgerBusy, match="does not answer"):
                ledger.stats()
            server.start()
            assert ledger.enqueue_many([NewJob("a:1", {})])[0].created
    finally:
        server.close()


# opening, and what is secret


def test_an_address_that_is_wrong_is_named_without_its_password(tmp_path):
    for url in ("postgresql://me:s3cret@127.0.0.1:1/x", "postgresql://me:s3cret@@[broken", "host=127.0.0.1 s3cret"):
        with pytest.raises((LedgerBusy, LedgerUnusable)) as told:
            open_ledger(tmp_path / "q", url=url, patience_s=0.1)
        assert "s3cret" not in str(told.value)
        assert "s3cret" not in repr(told.value.__cause__)


def test_who_is_refused_is_told_at_once_and_not_to_try_again(tmp_path, postgres_url):
    """A database or a user that is not there does not come by waiting."""
    parts = urlsplit(postgres_url)
    strangers = parts.netloc.rpartition("@")[2]
    for url in (parts._replace(path="/not_there"), parts._replace(netloc=f"nobody:s3cret@{strangers}")):
        began = time.monotonic()
        with pytest.raises(LedgerUnusable, match="refuses us") as told:
            open_ledger(tmp_path / "q", url=url.geturl(), patience_s=300)
        assert time.monotonic() - began < 60
        assert "try again" not in str(told.value)
        assert "s3cret" not in str(told.value)


def test_a_path_opens_a_file_and_a_url_a_server(tmp_path, postgres_url, name):
    with open_ledger(tmp_path / "q.sqlite") as embedded:
        assert type(embedded).__name__ == "SqliteLedger"
    with open_ledger(tmp_path / "q", url=postgres_url, schema_name=name) as shared:
        assert isinstance(shared, PostgresLedger)
        assert shared.path == tmp_path / "q"
        assert shared.enqueue_many([NewJob("a:1", {})])[0].created


def test_the_commands_of_the_queue_work_on_a_server(tmp_path, postgres_url):
    from DocsToKG.ContentDownload.cli.app import queue_app

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        base = f"d_{uuid4().hex[:16]}"
        connection.execute(f"CREATE DATABASE {base}")
    url = urlsplit(postgres_url)._replace(path=f"/{base}").geturl()
    config = tmp_path / "prod.json"
    config.write_text(json.dumps({"queue": {"backend": "postgres", "connection_string": url,
                                            "path": str(tmp_path / "q")}}))  # fmt: skip
    try:
        for words in (["enqueue", "local:1"], ["pause"], ["stats", "--json"], ["why", "1"], ["resume"]):
            done = CliRunner().invoke(queue_app, [*words, "-c", str(config)])
            assert done.exit_code == 0, (words, done.output, done.exception)
            if words[0] == "stats":
                assert json.loads(done.stdout)["queued"] == 1
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {base} WITH (FORCE)")


def test_many_that_open_at_once_make_one_schema(postgres_url, name, sql):
    with ThreadPoolExecutor(6) as pool:
        ledgers = list(pool.map(lambda _: PostgresLedger(postgres_url, schema_name=name), range(6)))
    assert sql("SELECT version FROM schema_version ORDER BY 1") == [(n + 1,) for n in range(len(schema.migrations()))]
    for ledger in ledgers:
        ledger.close()


def test_a_newer_schema_is_left_alone(ledger, postgres_url, name, sql):
    sql("INSERT INTO schema_version VALUES (99, 98)")
    with pytest.raises(LedgerTooNew, match="99"):
        PostgresLedger(postgres_url, schema_name=name)


def test_another_programs_tables_are_left_alone(postgres_url, name, sql):
    sql(f"CREATE SCHEMA {name}")
    sql("CREATE TABLE jobs (id integer)")
    with pytest.raises(LedgerUnusable, match="no ledger"):
        PostgresLedger(postgres_url, schema_name=name)


def test_nothing_that_the_next_transaction_needs_is_kept_in_a_session(writing, ledger):
    """A pooler in transaction mode may hand the next transaction to another connection."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(20)])
    for _ in range(8):
        [job] = ledger.lease("w", 1, 60)
        ledger.finish(end(job))
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    assert ledger.write(lambda tx: tx.execute(locks)) == [(0,)]
    [connection] = writing
    for setting, value in (("enable_seqscan", "on"), ("lock_timeout", "0"), ("plan_cache_mode", "auto")):
        assert connection.execute(f"SHOW {setting}").fetchone() == (value,)


def test_the_view_has_exactly_the_promised_columns(ledger, postgres_url, name):
    """QUE-01."""
    ledger.enqueue_many([NewJob("a:1", {"x": 1})])
    with psycopg.connect(postgres_url) as connection:
        cursor = connection.execute(f"SELECT * FROM {name}.jobs_v1")
        columns = [column.name for column in cursor.description or ()]
        row = cursor.fetchone()
    assert columns == [
        "id", "artifact_id", "artifact_json", "state", "attempts", "last_error", "resolver_hint", "created_at",
        "updated_at", "lease_expires_at", "worker_id",
    ]  # fmt: skip
    assert row is not None
    assert datetime.fromisoformat(row[7]).tzinfo is not None
    assert row[7].endswith("Z")


# time


def test_time_is_the_databases_and_goes_on_when_its_clock_steps_back():
    clock = ManualClock()
    time_ = DatabaseTime(clock)
    assert time_.now_ms(0, 5_000_000) == 5_000_000
    clock.advance(2)
    assert time_.now_ms(0, 4_000_000) == 5_002_000
    assert time_.now_ms(0, 5_002_500) == 5_002_500
    clock.advance(100)
    assert time_.now_ms(0, 5_002_600) == 5_002_600, "a fast clock of ours does not count"
    assert time_.now_ms(9_000_000, 5_002_700) == 9_000_000
    assert time_.local_s(9_001_000) == pytest.approx(clock.now() + 1)


def test_a_machine_whose_clock_is_wrong_leases_by_the_databases(open_one):
    wrong = open_one(clock=ManualClock(1_000_000.0))
    wrong.enqueue_many([NewJob("a:1", {}, delay_s=3600)])
    right = open_one()
    assert right.lease("w", 1, 60) == []
    assert wrong.next_eligible_at() == pytest.approx(1_000_000 + 3600, abs=5)


# counts and months


def test_counts_are_folded_and_stay_right(open_one, sql):
    ledger = open_one(maintenance_s=0.0)
    for n in range(5):
        ledger.enqueue_many([NewJob(f"a:{n}", {})])
    assert ledger.stats()["queued"] == 5
    ledger.pause()
    ledger.close()
    assert sql("SELECT count(*) FROM count_changes") == [(0,)]
    assert sql("SELECT state, n FROM job_counts") == [("queued", 5)]


def test_history_lies_in_months_and_old_months_go_as_a_whole(open_one, postgres_url, name, sql):
    """LEDG-03: a chain goes on from where its removed part ended; rows alone cannot be removed."""
    clock = ManualClock(time.time())
    ledger = open_one(clock=clock, database_time=False)
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(3)])
    database = Database(postgres_url, schema=name, patience_s=5)
    now_ms = int(clock.now() * 1000)
    with database.connect() as connection:
        months = maintenance.months(connection, database)
        assert len(months) == 2
        [(month,)] = sql("SELECT DISTINCT tableoid::regclass::text FROM job_history")
        assert month.split(".")[-1] == months[0][0]
        for refused in (f"DELETE FROM {month}", f"TRUNCATE {month}", "TRUNCATE job_history"):
            with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
                sql(refused)
        maintenance.make_months(connection, database, now_ms + 40 * 24 * 3600 * 1000)
        assert maintenance.remove_months(connection, database, now_ms - 1, now_ms) == 0
        assert maintenance.remove_months(connection, database, months[0][1], now_ms) == 1
    assert sql("SELECT count(*) FROM job_history") == [(0,)]
    assert ledger.verify_history()
    clock.advance(40 * 24 * 3600)
    [job] = ledger.lease("w", 1, 60)
    ledger.finish(end(job))
    assert ledger.verify_history()
    assert sql("SELECT min(link) FROM job_history") == [(4,)]
    assert datetime.fromtimestamp(ledger.job(job.job_id).updated_at, UTC) > datetime.now(UTC)


def test_months_past_the_retention_are_removed_while_work_goes_on(tmp_path, postgres_url, name, sql):
    """LEDG-03: by the ledger itself, as the setting says, and what is left is still proved from where the removed part
    ended."""
    clock = ManualClock(datetime(2025, 1, 20, tzinfo=UTC).timestamp())
    words = {"schema_name": name, "clock": clock, "database_time": False}
    days_kept = QueueConfig(backend="postgres", history_retention_days=30).history_retention_days
    with open_ledger(tmp_path / "q", url=postgres_url, **words, retain_history_days=days_kept) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(4)])
        for days in (20, 25, 30):  # the 9th of February, the 6th of March, the 5th of April
            clock.advance(days * 24 * 3600)
            [job] = ledger.lease("w", 1, 60)
            ledger.finish(end(job))
            assert ledger.verify_history()
        kept = "SELECT DISTINCT right(tableoid::regclass::text, 7) AS month FROM job_history ORDER BY month"
        deadline = time.monotonic() + 60
        while sql(kept) != [("2025_03",), ("2025_04",)]:  # a commit leaves it to the next one while counts are folded
            assert time.monotonic() < deadline, sql(kept)
            ledger.heartbeat("w", 60)
        assert sql("SELECT count(*) FROM history_anchors") == [(2,)]
        assert ledger.verify_history()
    with PostgresLedger(postgres_url, **words) as ledger:
        assert ledger.verify_history()
        sql("DROP TRIGGER job_history_keeps_rows ON job_history")
        sql("UPDATE job_history SET actor = 'another' WHERE seq = (SELECT min(seq) FROM job_history)")
        assert not ledger.verify_history()


def test_a_month_that_another_process_makes_meanwhile_refuses_nothing(postgres_url, name):
    """A row on its way into the rest finds that it belongs elsewhere by now: it is written again."""
    clock = ManualClock(datetime(2031, 5, 20, tzinfo=UTC).timestamp())
    with PostgresLedger(postgres_url, schema_name=name, clock=clock, database_time=False) as ledger:
        ledger.enqueue_many([NewJob("a:1", {})])
        clock.advance(90 * 24 * 3600)
        with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as pool:
            maintenance.make_months(other, Database(postgres_url, schema=name, patience_s=5), round(clock.now() * 1000))
            writing = pool.submit(ledger.enqueue_many, [NewJob("a:2", {})])
            waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = to_regclass(%s)"
            with psycopg.connect(postgres_url, autocommit=True) as watch:
                eventually(lambda: watch.execute(waiting, (f"{name}.job_history_rest",)).fetchall())
            other.commit()
            [added] = writing.result(30)
        assert added.created
        assert ledger.verify_history()


def test_a_retention_of_history_goes_with_a_server():
    with pytest.raises(ValueError, match="history_retention_days goes with backend postgres"):
        QueueConfig(history_retention_days=30)


def test_writers_beside_each_other_have_chains_of_their_own(open_one, sql):
    """LEDG-05: parallel writers do not queue on one chain."""
    first, second = open_one(), open_one()
    first.enqueue_many([NewJob("a:1", {})])
    inside, go_on = threading.Event(), threading.Event()

    def slow(tx: Any) -> None:
        tx.note("default", event="slow", actor="test")
        inside.set()
        assert go_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first.write, slow)
        assert inside.wait(60)
        second.enqueue_many([NewJob("a:2", {})])
        go_on.set()
        waiting.result(timeout=60)
    assert [shard for (shard,) in sql("SELECT shard FROM history_heads ORDER BY shard")] == [0, 1]
    assert first.verify_history()
