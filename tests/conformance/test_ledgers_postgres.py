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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from tests.conformance.postgres_server import PostgresServer, running_postgres
from typer.testing import CliRunner

from DocsToKG.ContentDownload.config.models import QueueConfig
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.errors import LeaseLost, LedgerBusy, LedgerTooNew, LedgerUnusable
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob, Release
from DocsToKG.Orchestrator.ledger.opening import open_ledger
from DocsToKG.Orchestrator.ledger.postgres import schema, upkeep
from DocsToKG.Orchestrator.ledger.postgres.database import Database, queries
from DocsToKG.Orchestrator.ledger.postgres.ledger import PostgresLedger
from DocsToKG.Orchestrator.ledger.postgres.ledger_time import DatabaseTime
from DocsToKG.Orchestrator.signal.pg_notify import PgNotifySignal

pytestmark = pytest.mark.slow


@pytest.fixture
def name(postgres_url: str) -> Iterator[str]:
    made = f"s_{uuid4().hex[:20]}"
    yield made
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {made} CASCADE")


@pytest.fixture
def open_one(postgres_url: str, name: str) -> Iterator[Callable[..., PostgresLedger]]:
    with contextlib.ExitStack() as stack:
        yield lambda **words: stack.enter_context(PostgresLedger(postgres_url, schema_name=name, **words))


@pytest.fixture
def ledger(open_one: Callable[..., PostgresLedger]) -> PostgresLedger:
    return open_one(poll_s=0.05)


@pytest.fixture
def sql(postgres_url: str, name: str) -> Callable[..., list[Any]]:
    def run(statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {name}")
            cursor = connection.execute(statement, values or None)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description is not None else []

    return run


def end(job: Any, state: JobState = JobState.DONE) -> Finish:
    return Finish(job.job_id, job.fence, job.lease_id, state)


def cut_all(sql: Callable[..., list[Any]]) -> None:
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'docstokg%'")


# many processes

START = """
import os, sys, time
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob, Progress
from DocsToKG.Orchestrator.ledger.postgres.ledger import PostgresLedger
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
    from DocsToKG.ContentDownload.cli.queue import queue_app

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


def test_nothing_that_the_next_transaction_needs_is_kept_in_a_session(ledger):
    """A pooler in transaction mode may hand the next transaction to another connection."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(20)])
    for _ in range(8):
        [job] = ledger.lease("w", 1, 60)
        ledger.finish(end(job))
    asked: list[Any] = []

    def look(tx: Any) -> None:
        connection = tx._connection
        asked.extend(connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchall())

    ledger._writer.call(look)
    assert asked == [(0,)]
    for setting, value in (("enable_seqscan", "on"), ("lock_timeout", "0"), ("plan_cache_mode", "auto")):
        assert ledger._writer._transactor.connection.execute(f"SHOW {setting}").fetchone() == (value,)


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


def test_counts_are_folded_and_stay_right(ledger, sql):
    for n in range(5):
        ledger.enqueue_many([NewJob(f"a:{n}", {})])
    assert ledger.stats()["queued"] == 5
    ledger._writer._kept_up_at = -1e9
    ledger.pause()
    ledger.close()
    assert sql("SELECT count(*) FROM count_changes") == [(0,)]
    assert sql("SELECT state, n FROM job_counts") == [("queued", 5)]


def test_history_lies_in_months_and_old_months_go_as_a_whole(ledger, postgres_url, name, sql):
    """LEDG-03: a chain goes on from where its removed part ended; rows alone cannot be removed."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(3)])
    database = Database(postgres_url, schema=name, patience_s=5)
    now_ms = int(time.time() * 1000)
    with database.connect() as connection:
        months = upkeep.months(connection, database)
        assert len(months) == 2
        [(month,)] = sql("SELECT DISTINCT tableoid::regclass::text FROM job_history")
        assert month.split(".")[-1] == months[0][0]
        for refused in (f"DELETE FROM {month}", f"TRUNCATE {month}", "TRUNCATE job_history"):
            with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
                sql(refused)
        later = ledger._time._mark_ms + 40 * 24 * 3600 * 1000
        upkeep.make_months(connection, database, later)
        assert upkeep.remove_months(connection, database, now_ms - 1, now_ms) == 0
        assert upkeep.remove_months(connection, database, months[0][1], now_ms) == 1
    assert sql("SELECT count(*) FROM job_history") == [(0,)]
    assert ledger.verify_history()
    ledger._time._mark_ms = later
    [job] = ledger.lease("w", 1, 60)
    ledger.finish(end(job))
    assert ledger.verify_history()
    assert sql("SELECT min(link) FROM job_history") == [(4,)]
    assert datetime.fromtimestamp(ledger.job(job.job_id).updated_at, UTC) > datetime.now(UTC)


def test_months_past_the_retention_are_removed_while_work_goes_on(postgres_url, name, sql):
    """LEDG-03: by the ledger itself, and what is left is still proved from where the removed part ended."""
    clock = ManualClock(datetime(2025, 1, 20, tzinfo=UTC).timestamp())
    words = {"schema_name": name, "clock": clock, "database_time": False}
    with PostgresLedger(postgres_url, **words, retain_history_days=30) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(4)])
        for days in (20, 25, 30):  # the 9th of February, the 6th of March, the 5th of April
            clock.advance(days * 24 * 3600)
            ledger._writer._kept_up_at = -1e9
            [job] = ledger.lease("w", 1, 60)
            ledger.finish(end(job))
            assert ledger.verify_history()
        ledger._writer._kept_up_at = -1e9
        ledger.heartbeat("w", 60)
        kept = {month for (month,) in sql("SELECT DISTINCT tableoid::regclass::text FROM job_history")}
        assert {month[-7:] for month in kept} == {"2025_03", "2025_04"}
        assert sql("SELECT count(*) FROM history_anchors") == [(2,)]
        assert ledger.verify_history()
    with PostgresLedger(postgres_url, **words) as ledger:
        assert ledger.verify_history()
        sql("DROP TRIGGER job_history_keeps_rows ON job_history")
        sql("UPDATE job_history SET actor = 'another' WHERE seq = (SELECT min(seq) FROM job_history)")
        assert not ledger.verify_history()


def test_the_retention_of_history_is_a_setting(tmp_path, postgres_url, name):
    with pytest.raises(ValueError, match="history_retention_days goes with backend postgres"):
        QueueConfig(history_retention_days=30)
    days = QueueConfig(backend="postgres", history_retention_days=30).history_retention_days
    with open_ledger(tmp_path / "q", url=postgres_url, schema_name=name, retain_history_days=days) as ledger:
        assert isinstance(ledger, PostgresLedger)
        assert ledger._writer._retain_days == 30


def test_writers_beside_each_other_have_chains_of_their_own(open_one, sql):
    """LEDG-05: parallel writers do not queue on one chain."""
    first, second = open_one(), open_one()
    first.enqueue_many([NewJob("a:1", {})])
    inside, go_on = threading.Event(), threading.Event()

    def slow(tx: Any) -> None:
        tx.note("default", event="slow", actor="test")
        inside.set()
        assert go_on.wait(10)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first._writer.call, slow)
        assert inside.wait(10)
        second.enqueue_many([NewJob("a:2", {})])
        go_on.set()
        waiting.result(timeout=10)
    assert [shard for (shard,) in sql("SELECT shard FROM history_heads ORDER BY shard")] == [0, 1]
    assert first.verify_history()


# wake-ups


def woken(ledger: PostgresLedger, deed: Callable[[], object], within_s: float = 5) -> bool:
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(ledger.wait_for_work(20)))
    waiter.start()
    time.sleep(0.1)
    started = time.monotonic()
    deed()
    waiter.join(timeout=30)
    return answers == [True] and time.monotonic() - started < within_s


@pytest.fixture
def channel() -> str:
    return f"c_{uuid4().hex[:12]}"


def listening(signal_: PgNotifySignal) -> None:
    signal_.mark()
    deadline = time.monotonic() + 20
    while not signal_.is_listening and time.monotonic() < deadline:
        time.sleep(0.01)
    assert signal_.is_listening


def test_an_enqueue_elsewhere_wakes_a_waiting_worker(open_one, postgres_url, channel):
    heard, said = PgNotifySignal(postgres_url, channel=channel), PgNotifySignal(postgres_url, channel=channel)
    here, there = open_one(signal=heard, poll_s=60), open_one(signal=said, poll_s=60)
    listening(heard)
    assert woken(here, lambda: there.enqueue_many([NewJob("a:1", {})]))


def test_a_listener_that_was_cut_off_comes_back_and_misses_nothing(open_one, postgres_url, channel, sql):
    signal_ = PgNotifySignal(postgres_url, channel=channel)
    here, there = open_one(signal=signal_, poll_s=60), open_one(poll_s=60)
    listening(signal_)

    def deed() -> None:
        sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'docstokg-listen'")
        there.enqueue_many([NewJob("a:1", {})])  # this one says nothing on the channel

    assert woken(here, deed, within_s=15)
    assert signal_.outages >= 1
    listening(signal_)


def test_a_listener_that_the_server_forgot_is_found_out(postgres_url, channel):
    signal_ = PgNotifySignal(postgres_url, channel=channel, check_s=0.3)
    try:
        listening(signal_)
        mark = signal_.mark()
        signal_._channel = "another"  # as if LISTEN had never reached the server
        assert signal_.wait(10, since=mark)
        assert signal_.outages >= 1
    finally:
        signal_.close()


def test_without_any_signal_the_ledger_is_asked_now_and_then(open_one):
    here, there = open_one(poll_s=0.3), open_one()
    assert woken(here, lambda: there.enqueue_many([NewJob("a:1", {})]))


def test_many_notices_of_one_lane_are_few_on_the_wire(postgres_url, channel):
    signal_ = PgNotifySignal(postgres_url, channel=channel)
    try:
        listening(signal_)
        for _ in range(500):
            signal_.notify("content.download")
        deadline = time.monotonic() + 10
        while signal_.heard < 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert 1 <= signal_.sent < 50
    finally:
        signal_.close()


def test_a_signal_whose_server_is_away_raises_nothing():
    signal_ = PgNotifySignal("postgresql://me@127.0.0.1:1/x")
    mark = signal_.mark()
    signal_.notify("lane")
    assert signal_.wait(0, since=mark)
    assert not signal_.wait(0.05)
    signal_.close()


# cost


def buffers(
    sql: Callable[..., list[Any]],
    limit: int,
    after: tuple[int, int] = (-(2**31), 0),
    *,
    job_type: str = "NULL",
    swept: int = 2**60,
) -> int:
    """Pages that a lease of so many jobs touches, with all that is written along. The lease itself is taken back."""
    words = (
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM work_v2('9s', 0, 0, NULL, NULL, ARRAY['w'],"
        f" ARRAY[{limit}], ARRAY['t'], 1000, false, {job_type}, {swept}, {after[0]}, {after[1]}, '', false)"
    )
    top = sql(f"BEGIN; {words}")[0][0][0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


def test_a_lease_costs_the_same_beside_many_finished_jobs_and_a_held_snapshot(ledger, postgres_url, name, sql):
    """Counted in pages, which hardly depend on the machine: flat from ten thousand finished jobs to a hundred thousand,
    and within 3x of the start while a long reader keeps the database from removing what leases leave behind."""

    def fill(prefix: str, state: str, count: int) -> None:
        sql(
            "INSERT INTO jobs (artifact_id, artifact_json, payload_digest, state, due, next_eligible_at, created_at,"
            f" updated_at) SELECT '{prefix}' || n, '{{}}', '', '{state}', true, 0, 0, 0"
            f" FROM generate_series(1, {count}) AS n"
        )
        sql("VACUUM ANALYZE jobs")

    fill("w", "queued", 3000)
    alone = cost(sql, 50)
    fill("d", "done", 10_000)
    few = cost(sql, 50)
    fill("e", "done", 90_000)
    assert cost(sql, 50) <= few * 1.2
    assert few <= alone * 1.5
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute(f"SELECT count(*) FROM {name}.jobs")
        for _ in range(40):
            jobs = ledger.lease("w", 50, 600)
            # Before the ends: one that has to be written twice forgets the place.
            begin = ledger._writer._turns._places[None].begin
            ledger.submit_finishes([end(job) for job in jobs]).result(timeout=30)
        assert begin[1] > 0
        assert cost(sql, 50, begin) <= alone * 3
        assert cost(sql, 50) > cost(sql, 50, begin), "without the place, the entries left behind are read again"


def test_known_jobs_are_looked_up_one_by_one_in_a_table_that_nobody_has_analysed(ledger, name, sql):
    """As a join, each new job would be compared with every old one, until the database has counted them."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(300)])
    words = queries(Database("postgresql://nobody@127.0.0.1/x", schema=name, patience_s=1))["known_artifacts"]
    wanted = json.dumps([{"t": "default", "k": "content.download", "a": f"b:{n}"} for n in range(300)])
    switches = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
    asked = words.replace("%(wanted)s", f"'{wanted}'")
    plan = sql(f"{switches}; EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {asked}")[0][0][0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 300 * 4


def cost(sql: Callable[..., list[Any]], limit: int, after: tuple[int, int] = (-(2**31), 0)) -> int:
    return min(buffers(sql, limit, after) for _ in range(3))


@pytest.mark.parametrize("host", ["NULL", "'b'"])
def test_many_jobs_of_another_type_in_front_cost_a_lease_nothing(ledger, sql, host):
    """Counted in pages: as good as none more with a hundred thousand in front, whether all that is asked for is found
    or not, with a sweep and without."""

    def fill(job_type: str, priority: int, count: int) -> None:
        sql(
            "INSERT INTO jobs (artifact_id, artifact_json, payload_digest, state, due, next_eligible_at, created_at,"
            f" updated_at, job_type, priority, host_key) SELECT '{job_type}' || n, '{{}}', '', 'queued', true, 0, 0, 0,"
            f" '{job_type}', {priority}, {host} FROM generate_series(1, {count}) AS n"
        )
        sql("VACUUM ANALYZE jobs")

    def pages() -> list[int]:
        return [
            min(buffers(sql, limit, job_type="'content.download'", swept=swept) for _ in range(3))
            for limit in (20, 100)  # of fifty
            for swept in (2**60, 0)
        ]

    fill("content.download", 0, 50)
    alone = pages()
    fill("pack-run", 5, 100_000)
    beside = pages()
    assert all(much <= 1.5 * few + 100 for few, much in zip(alone, beside, strict=True)), (alone, beside)


def test_a_lost_lease_among_many_orders_spoils_none(ledger):
    """The same job twice in one call keeps its order; a stranger's order is refused in its place."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(2)])
    first, second = ledger.lease("w", 2, 60)
    stale = Finish(second.job_id, second.fence + 1, second.lease_id, JobState.DONE)
    answers = ledger.submit_finishes([end(first), stale, end(first), end(second, JobState.SKIPPED)]).result(timeout=10)
    assert answers[0] == "applied"
    assert isinstance(answers[1], LeaseLost)
    assert answers[2:] == ["already", "applied"]


def test_the_floor_of_the_measurement_writes_the_rows_of_the_ledger(postgres_url):
    """Else it would be no floor."""
    from bench.ledger import FLOOR, LEDGER
    from bench.postgres import Bench

    written = []
    for side in (LEDGER, FLOOR):
        bench = Bench(postgres_url, jobs=5, batch=5)
        bench.enqueue(side)
        bench.work_off(side)
        jobs = "artifact_id, artifact_json, payload_digest, state, due, attempts, fence, outcome, result_json"
        history = "link, job_id, event, from_state, to_state, fence, attempts, reason, length(hash)"
        counts = "SELECT * FROM {0}.job_counts UNION ALL SELECT tenant, job_type, state, n FROM {0}.count_changes"
        written.append(
            (
                bench.sql(f"SELECT {jobs} FROM {bench.schema}.jobs ORDER BY id"),
                bench.sql(f"SELECT {history} FROM {bench.schema}.job_history ORDER BY seq"),
                bench.sql(f"SELECT tenant, shard, link FROM {bench.schema}.history_heads"),
                bench.sql(
                    f"SELECT state, sum(n) FROM ({counts.format(bench.schema)}) AS c GROUP BY state ORDER BY state"
                ),
            )
        )
        bench.drop()
    assert len(written[0][1]) == 15
    assert written[0] == written[1]
