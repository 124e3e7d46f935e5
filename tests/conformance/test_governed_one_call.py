"""Leases of a tenant on a server, where rules were written that limit nothing: one call, with the same answers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from tests.conformance.postgres_ledgers import given_writing  # noqa: F401

from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.maintenance import MaintenanceService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, LeasedJob, NewJob
from DocsToKG.Orchestrator.ledger.drivers.postgres import maintenance, work
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection
from DocsToKG.Orchestrator.ledger.drivers.postgres.procedures import Call
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(writing: list[Connection], postgres_url: str, schema: str) -> Iterator[PostgresLedger]:
    with PostgresLedger(postgres_url, schema_name=schema) as made:
        MaintenanceService(made).start_governing()
        yield made


def add(ledger: PostgresLedger, tenant: str, count: int, **more: Any) -> None:
    named = "-".join(map(str, more.values()))
    ledger.enqueue_many([NewJob(f"{tenant}:{named}:{n}", {}, tenant=tenant, **more) for n in range(count)])


@pytest.fixture
def calls_of(
    ledger: PostgresLedger, writing: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[str]]:
    """What a lease for a tenant asks the database, on the connection that writes."""
    return lambda tenant: _calls_of(ledger, writing, monkeypatch, tenant)


def _calls_of(
    ledger: PostgresLedger, writing: list[Connection], monkeypatch: pytest.MonkeyPatch, tenant: str
) -> list[str]:
    asked: list[str] = []
    execute = psycopg.Connection.execute

    def counted(self: Any, query: Any, *more: Any, **words: Any) -> Any:
        if any(self is each for each in writing):
            asked.append(str(query).strip())
        return execute(self, query, *more, **words)

    def named(deed: str) -> Any:
        made = getattr(Call, deed)
        return lambda self, *more: (asked.append(deed), made(self, *more))[1]

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "execute", counted)
        for deed in ("begin", "commit"):
            patched.setattr(Call, deed, named(deed))
        assert len(ledger.lease("w", 1, 60, begun=True, tenants=(tenant,))) == 1
    return asked


def test_beside_other_tenants_and_hosts_it_is_one_call(
    ledger: PostgresLedger, calls_of: Callable[[str], list[str]]
) -> None:
    add(ledger, "a", 4)
    add(ledger, "a", 4, host_key="h.example", source="arxiv")
    add(ledger, "b", 4)
    ledger.lease("w", 1, 60, tenants=("a",))  # reads the rules
    assert calls_of("a") == ["begin", "commit"]
    assert calls_of("b") == ["begin", "commit"]


def test_the_choice_is_that_of_the_rules(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Priority and age over job types, sources and hosts: what is leased by one call is what the long way would."""
    chance = random.Random(7)
    for n in range(60):
        add(
            ledger, chance.choice("ab"), 1, job_type=chance.choice(("t", "u")), priority=chance.randint(-1, 1),
            source=chance.choice((None, "arxiv", "pmc")), host_key=chance.choice((None, "h.example")),
            resolver_hint=str(n),
        )  # fmt: skip
    ledger.lease("w", 0, 60, tenants=("a",))
    for tenant, job_type, limit in (("a", None, 7), ("a", "t", 3), ("b", "u", 9), ("b", None, 40), ("a", "x", 5)):
        asked = {"job_type": job_type, "tenants": (tenant,)}
        short = ledger.lease("w", limit, 60, **asked)
        ledger.release_worker("w")
        with monkeypatch.context() as patched:
            patched.setattr(work, "as_work", lambda batch: None)
            long = ledger.lease("w", limit, 60, **asked)
            ledger.release_worker("w")
        assert [job.job_id for job in short] == [job.job_id for job in long]
        assert len(short) == len({job.job_id for job in short})


def test_a_rule_of_another_process_acts_on_the_next_lease(
    ledger: PostgresLedger, postgres_url: str, schema: str
) -> None:
    add(ledger, "a", 5)
    ledger.lease("w", 1, 60, tenants=("a",))
    assert ledger.lease("w", 1, 60, tenants=("a",))
    with PostgresLedger(postgres_url, schema_name=schema) as other:
        MaintenanceService(other).on(actor="ann", reason="a test")
        assert not ledger.lease("w", 1, 60, tenants=("a",))
        MaintenanceService(other).off(actor="ann", reason="a test")
        assert ledger.lease("w", 1, 60, tenants=("a",))
        QuotaService(other).set("a", "content.download", 4, 1000, 10, actor="ann")
        assert len(ledger.lease("w", 5, 60, tenants=("a",))) == 1
        other.pause(actor="ann")
        assert not ledger.lease("w", 5, 60, tenants=("a",))


def test_a_paused_queue_gives_nothing(ledger: PostgresLedger) -> None:
    add(ledger, "a", 5)
    assert ledger.lease("w", 1, 60, tenants=("a",))
    ledger.pause(actor="ann")
    assert not ledger.lease("w", 1, 60, tenants=("a",))
    ledger.resume(actor="ann")
    assert ledger.lease("w", 1, 60, tenants=("a",))


def test_ends_still_open_the_breaker_of_their_type(ledger: PostgresLedger) -> None:
    add(ledger, "a", 60, job_type="t")
    for _ in range(3):
        jobs = ledger.lease("w", 10, 60, begun=True, tenants=("a",))
        ledger.submit_finishes(
            [Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "broken") for job in jobs]
        ).result()
    assert BreakerService(ledger).get("a", "jobtype:t").state == "open"
    assert not ledger.lease("w", 10, 60, tenants=("a",))


def test_workers_that_ask_at_once_share_the_jobs(ledger: PostgresLedger) -> None:
    """Whether they are answered by one transaction or by many, each has its own jobs under its own name."""
    add(ledger, "a", 100)
    ledger.lease("w", 1, 60, tenants=("a",))
    ready = threading.Barrier(8)

    def take(worker: str) -> list[tuple[str, int]]:
        ready.wait(30)
        return [
            (worker, job.job_id) for _ in range(4) for job in ledger.lease(worker, 3, 60, begun=True, tenants=("a",))
        ]

    with ThreadPoolExecutor(8) as pool:
        found = [pair for pairs in pool.map(take, [f"w{n}" for n in range(8)]) for pair in pairs]
    assert len(found) == 96
    assert len({job_id for _, job_id in found}) == 96
    assert all(ledger.job(job_id).worker_id == worker for worker, job_id in found)
    assert ledger.verify_history()


def test_a_job_that_becomes_due_and_a_lease_that_ran_out_are_found(
    ledger: PostgresLedger, postgres_url: str, schema: str
) -> None:
    add(ledger, "a", 1)
    [job] = ledger.lease("w", 1, 60, begun=True, tenants=("a",))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.jobs SET lease_until = 1")
    deadline, found = time.monotonic() + 30, list[LeasedJob]()
    while not found:  # leases are looked through ten times a second
        assert time.monotonic() < deadline
        found = ledger.lease("v", 1, 60, begun=True, tenants=("a",))
    [again] = found
    assert (again.job_id, again.attempts, again.fence) == (job.job_id, 0, job.fence + 1)
    assert [row.event for row in ledger.history(job.job_id)] == ["enqueued", "leased", "lease_expired", "leased"]


def test_maintenance_holds_up_nobody(postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are folded beside the work: a lease does not wait for it, and the end of the ledger does."""
    leased, kept = threading.Event(), list[bool]()
    keep_up = maintenance.keep_up

    def slow(*given: Any) -> None:
        kept.append(leased.wait(60))
        keep_up(*given)

    monkeypatch.setattr(maintenance, "keep_up", slow)
    with PostgresLedger(postgres_url, schema_name=schema, maintenance_s=3600.0) as ledger:
        MaintenanceService(ledger).start_governing()
        add(ledger, "a", 2)
        assert ledger.lease("w", 1, 60, tenants=("a",))
        leased.set()
    assert kept == [True, True]  # beside the lease, and at the end
