"""What governing costs, in counts: nothing where no rule was ever written, and no more for the jobs of others."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.traced import Traced

from DocsToKG.Orchestrator.control.maintenance import MaintenanceService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database, queries
from DocsToKG.Orchestrator.ledger.drivers.postgres.procedures import Call
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

CONTROL = ("tenants", "quotas", "quota_policies", "lanes", "throttles", "breakers", "incidents", "jobs_by_lane")


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    return Traced(monkeypatch)


def add(ledger: Any, count: int, tenant: str) -> None:
    ledger.enqueue_many([NewJob(f"{tenant}:{n}", {}, tenant=tenant, job_type="t") for n in range(count)])


def test_without_rules_a_lease_asks_as_much_as_ever(tmp_path: Path, traced: Traced) -> None:
    """The statements of a lease of one job and of its end, all told; none of them knows of rules."""
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        add(ledger, 3, "a")
        ledger.lease("w", 1, 60)
        traced.clear()
        [job] = ledger.lease("w", 1, 60)
        leased = list(traced.statements)
        traced.clear()
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, "done"))  # type: ignore[arg-type]
        ended = list(traced.statements)
    # BEGIN, what holds for all, leases that ran out, jobs whose time has come, hosts, the job, the grant and its
    # trigger, the chain's end, history, chain, two counts, time, COMMIT.
    assert len(leased) == 15
    assert len(ended) <= len(leased), ended
    assert not [each for each in leased + ended if any(word in each for word in CONTROL)]


def steps_of_a_lease(path: Path, traced: Traced, flood: int) -> int:
    with SqliteLedger(path) as ledger:
        MaintenanceService(ledger).start_governing()
        QuotaService(ledger).set("small1", "t", 50, 10_000, 1000, actor="ann")
        add(ledger, flood, "flood")
        for n in range(5):
            add(ledger, 40, f"small{n}")
        ledger.lease("w", 12, 600)
        traced.clear()
        assert len(ledger.lease("w", 12, 600)) == 12
        return traced.steps


def test_the_jobs_of_a_flood_are_stepped_over(tmp_path: Path, traced: Traced) -> None:
    """Twenty times as many jobs of one tenant, the same work for a lease, in steps of the database's machine."""
    few = steps_of_a_lease(tmp_path / "few.sqlite", traced, 300)
    many = steps_of_a_lease(tmp_path / "many.sqlite", traced, 6000)
    assert many <= few * 1.3 + 10


def test_the_lanes_of_a_governed_lease_are_found_by_index(tmp_path: Path, traced: Traced) -> None:
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        MaintenanceService(ledger).start_governing()
        add(ledger, 5, "a")
        add(ledger, 5, "b")
        traced.clear()
        assert len(ledger.lease("w", 4, 60)) == 4
        asked = [each for each in traced.statements if "jobs_by_lane" in each and each.startswith("SELECT")]
        running = [each for each in traced.statements if "GROUP BY tenant, job_type" in each]
    assert asked
    assert len(running) == 1
    with contextlib.closing(sqlite3.connect(tmp_path / "l.sqlite")) as connection:
        for statement in {*asked, *running}:
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
            assert "TEMP B-TREE" not in plan, (statement, plan)
            assert "jobs_by_lane" in plan or "jobs_running" in plan, (statement, plan)


@pytest.mark.slow
def test_without_rules_a_lease_is_one_call_on_a_server(
    postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = psycopg.Connection.execute

    def counted(self: Any, query: Any, *more: Any, **words: Any) -> Any:
        asked.append(str(query))
        return execute(self, query, *more, **words)

    def named(deed: str) -> Any:
        made = getattr(Call, deed)
        return lambda self, *more: (asked.append(deed), made(self, *more))[1]

    with PostgresLedger(postgres_url, schema_name=schema) as ledger:
        add(ledger, 3, "a")
        ledger.lease("w", 1, 60)
        monkeypatch.setattr(psycopg.Connection, "execute", counted)
        for deed in ("begin", "commit"):
            monkeypatch.setattr(Call, deed, named(deed))
        assert len(ledger.lease("w", 1, 60)) == 1
        monkeypatch.undo()
    assert asked[:2] == ["begin", "commit"]


def buffers(url: str, schema: str, statement: str, values: dict[str, Any]) -> int:
    """The pages that a statement touches, under the settings of the ledger's own transactions."""
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off")
        connection.execute("SET LOCAL enable_mergejoin = off; SET LOCAL jit = off")
        found = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values).fetchall()
        connection.rollback()
    plan = found[0][0][0]["Plan"]
    assert "Sort" not in str(plan)
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@pytest.mark.slow
def test_the_jobs_of_a_flood_are_stepped_over_on_a_server(postgres_url: str, schema: str) -> None:
    database = Database(postgres_url, schema=schema, patience_s=30)
    sql = queries(database)
    with PostgresLedger(postgres_url, schema_name=schema) as ledger:
        costs = []
        for flood in (300, 6000):
            ledger.enqueue_many([NewJob(f"f{flood}:{n}", {}, tenant="flood", job_type="t") for n in range(flood)])
            for n in range(5):
                add(ledger, 40, f"small{n}")
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(f"VACUUM ANALYZE {schema}.jobs")
            start = {"tenant": "", "job_type": "", "source": "", "most": 500}
            wanted = {"tenants": ["flood", "small1"], "job_types": ["t", "t"], "sources": ["", ""], "count": 5}
            lanes = buffers(postgres_url, schema, sql["due_lanes"], start)
            costs.append((lanes, buffers(postgres_url, schema, sql["lane_queues"], wanted)))
    (lanes_few, jobs_few), (lanes_many, jobs_many) = costs
    assert lanes_many <= lanes_few + 20
    assert jobs_many <= jobs_few + 20
