"""The ledger behind a pooler that hands out sessions by the transaction: a part of the suite, and wake-ups."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.conformance import test_ledgers as cases
from tests.conformance.postgres_ledgers import given_name  # noqa: F401
from tests.waiting import eventually

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
from DocsToKG.Orchestrator.ledger.opening import open_ledger
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Orchestrator.notifications.pg_notify import PgNotifySignal, is_pooled

pytestmark = pytest.mark.slow

path, ledger, enqueue, lease_one, sql, held, schemas = (
    cases.path, cases.ledger, cases.enqueue, cases.lease_one, cases.sql, cases.held, cases.schemas,
)  # fmt: skip
globals().update(
    {name: case for name, case in vars(cases).items() if name.startswith(("test_leasing_", "test_fence_"))}
)


@pytest.fixture(scope="module", autouse=True)
def server(postgres_url: str, pooled_url: str) -> Iterator[None]:
    cases.SCHEMAS.url, cases.SCHEMAS.server_url = pooled_url, postgres_url
    yield
    cases.SCHEMAS.drop()


def test_the_pooler_is_found_out_and_its_sessions_are_many(pooled_url: str, postgres_url: str) -> None:
    """Else the cases here would say nothing."""
    sessions = set()
    for url, pooled in ((pooled_url, True), (postgres_url, False)):
        connect = partial(psycopg.connect, url, autocommit=True, prepare_threshold=None)
        with connect() as connection, connect() as other:
            assert is_pooled(connection) is pooled
            if pooled:
                for _ in range(20):
                    with other.transaction():
                        other.execute("SELECT 1")
                        sessions |= set(connection.execute("SELECT pg_backend_pid()").fetchall())
    assert len(sessions) > 1
    for url, threshold in ((pooled_url, None), (postgres_url, 2)):
        with Database(url, schema="orchestrator", patience_s=5).connect(prepare=True) as connection:
            assert connection.prepare_threshold == threshold


def test_ledgers_behind_a_pooler_run_every_job_once(pooled_url: str, name: str) -> None:
    """Six ledgers make the schema at once and share four sessions, one job at a time and in batches."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(6) as pool:
        ledgers = list(pool.map(lambda _: PostgresLedger(pooled_url, schema_name=name), range(6)))
        for ledger in ledgers:
            stack.enter_context(ledger)
        ledgers[0].enqueue_many([NewJob(f"a:{n}", {}) for n in range(150)])

        def work(number: int) -> list[int]:
            done = []
            while jobs := ledgers[number].lease(f"w{number}", 1 + number % 2 * 4, 60):
                ends = [Finish(job.job_id, job.fence, job.lease_id, JobState.DONE) for job in jobs]
                assert set(ledgers[number].submit_finishes(ends).result(timeout=30)) == {"applied"}
                done += [job.job_id for job in jobs]
            return done

        done = [job_id for ids in pool.map(work, range(6)) for job_id in ids]
        assert sorted(done) == sorted(set(done))
        assert len(done) == 150
        assert (ledgers[0].stats()["done"], ledgers[0].verify_history()) == (150, True)


def test_without_the_servers_own_address_wake_ups_fall_back_to_asking_and_say_so(
    pooled_url: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "DocsToKG.Orchestrator.notifications"),
        open_ledger(tmp_path / "here", url=pooled_url, schema_name=name, poll_s=0.1) as here,
        PostgresLedger(pooled_url, schema_name=name) as there,
    ):
        signal = here.signal
        assert isinstance(signal, PgNotifySignal)
        signal.mark()
        eventually(lambda: signal.is_pooled)
        there.enqueue_many([NewJob("a:1", {})])
        assert here.wait_for_work(30)
        assert not signal.is_listening
        assert signal.troubles == 0
        assert "queue.listen_connection_string" in caplog.text


def test_with_the_servers_own_address_wake_ups_are_heard(
    pooled_url: str, postgres_url: str, name: str, tmp_path: Path
) -> None:
    words = {"url": pooled_url, "listen_url": postgres_url, "schema_name": name, "poll_s": 600.0}
    with open_ledger(tmp_path / "here", **words) as here, open_ledger(tmp_path / "there", **words) as there:
        signal = here.signal
        assert isinstance(signal, PgNotifySignal)
        signal.mark()
        eventually(lambda: signal.is_listening)
        there.enqueue_many([NewJob("a:1", {})])
        assert here.wait_for_work(60), "asking alone would take ten minutes"
