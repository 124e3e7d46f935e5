"""A ledger on PostgreSQL with a schema of its own, and a look beneath it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection, Database
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger


@pytest.fixture(name="name")
def given_name(schema: str) -> str:
    """By another word, since `schema` is a module where these are used."""
    return schema


@pytest.fixture(name="open_one")
def given_open_one(postgres_url: str, name: str) -> Iterator[Callable[..., PostgresLedger]]:
    with contextlib.ExitStack() as stack:
        yield lambda **words: stack.enter_context(PostgresLedger(postgres_url, schema_name=name, **words))


@pytest.fixture(name="writing")
def given_writing(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """The connections that ledgers opened from here on make for writing. Ask for it before the ledger."""
    made: list[Connection] = []
    connect = Database.connect

    def remembered(self: Database, *, prepare: bool = False) -> Connection:
        connection = connect(self, prepare=prepare)
        if prepare:
            made.append(connection)
        return connection

    monkeypatch.setattr(Database, "connect", remembered)
    return made


@pytest.fixture(name="ledger")
def given_ledger(open_one: Callable[..., PostgresLedger]) -> PostgresLedger:
    return open_one(poll_s=0.05)


@pytest.fixture(name="sql")
def given_sql(postgres_url: str, name: str) -> Callable[..., list[Any]]:
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
