"""What a lease costs on PostgreSQL does not grow with what is finished, known or of another type."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from tests.conformance.postgres_ledgers import cut_all, end, given_ledger, given_name, given_open_one, given_sql  # noqa: F401

from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database, queries
from DocsToKG.Orchestrator.ledger.drivers.postgres.leasing import HostChooser
from DocsToKG.Orchestrator.ledger.leasing import LeaseRequest

pytestmark = pytest.mark.slow


def buffers(
    sql: Callable[..., list[Any]],
    limit: int,
    after: tuple[int, int] = (-(2**31), 0),
    *,
    job_type: str = "NULL",
    swept: int = 2**60,
) -> int:
    """Pages that a lease of so many jobs touches, with all that is written along. The lease itself is taken back.

    A connection's first lease reads the catalog of the database too, more or less of it by what others do just then, so
    the second is counted.
    """
    lease = (
        "SELECT * FROM work_v4('9s', 0, 0, NULL, NULL, ARRAY['w'],"
        f" ARRAY[{limit}], ARRAY['t'], 1000, false, {job_type}, {swept}, {after[0]}, {after[1]}, '', false, NULL, NULL)"
    )
    top = sql(f"BEGIN; {lease}; ROLLBACK; BEGIN; EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {lease}")[0][0][0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


def test_a_lease_costs_the_same_beside_many_finished_jobs_and_a_held_snapshot(ledger, postgres_url, name, sql):
    """Counted in pages, which hardly depend on the machine: flat from ten thousand finished jobs to a hundred thousand,
    and within 3x of the start while a long reader keeps the database from removing what leases leave behind: from the
    place on that the ledger keeps, which is that of the last job it leased."""

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
            ledger.submit_finishes([end(job) for job in jobs]).result(timeout=30)
        begin = max((-job.priority, job.job_id) for job in jobs)
        assert cost(sql, 50, begin) <= alone * 3
        assert cost(sql, 50) > cost(sql, 50, begin), "without the place, the entries left behind are read again"


def test_a_process_asks_from_the_place_of_the_last_job_it_leased_until_it_is_told_otherwise():
    """By what the database is asked: whether the place is known after a lease, and when it is forgotten."""
    turns, request, first = HostChooser(), LeaseRequest("w", 2, 1000, None, False), (-(2**31), 0)

    def place(now_ms: int, request: LeaseRequest = request) -> tuple[int, int]:
        asked = turns.asking([request], now_ms)
        return asked["after_rank"], asked["after_id"]

    def leased(job_id: int, priority: int = 0, host: str | None = None) -> tuple[Any, ...]:
        row: list[Any] = [None] * 24
        row[0], row[4], row[11], row[12] = "leased", job_id, host, priority
        return tuple(row)

    assert place(5000) == first
    turns.given([request], [leased(7, 3), leased(4, 1)], [], None)
    assert place(5100) == (-1, 4)
    assert place(5100, replace(request, job_type="another")) == first
    assert place(5100, replace(request, tenants=frozenset({"a"}))) == first, "others' jobs may come before these"
    turns.given([request], [leased(9, 1), leased(12, 0, "h.example")], [], None)
    assert place(5200) == (-1, 4), "jobs of hosts are not leased by age"
    assert place(6000) == first, "another process may have made a job due before the place"
    turns.given([request], [leased(20)], [], None)
    assert place(6100) == (0, 20)
    turns.forget()
    assert place(6200) == first
    turns.given([request], [leased(21)], [], None)
    turns.reset()
    assert place(6300) == first


def test_known_jobs_are_looked_up_one_by_one_in_a_table_that_nobody_has_analysed(ledger, name, sql):
    """As a join, each new job would be compared with every old one, until the database has counted them."""
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(300)])
    words = queries(Database("postgresql://nobody@127.0.0.1/x", schema=name, patience_s=1))["known_artifacts"]
    artifacts = json.dumps([f"b:{n}" for n in range(300)])
    switches = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
    given = {"artifacts": artifacts, "tenant": "default", "job_type": "content.download"}
    asked = words % {value: f"'{text}'" for value, text in given.items()}
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
            min(buffers(sql, limit, job_type="'content.download'", swept=swept) for _ in range(12))
            for limit in (20, 100)  # of fifty
            for swept in (2**60, 0)
        ]

    sql("ALTER TABLE jobs SET (autovacuum_enabled = false)")  # its visits make plans anew, whose making is counted too
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
    answers = ledger.submit_finishes([end(first), stale, end(first), end(second, JobState.SKIPPED)]).result(timeout=60)
    assert answers[0] == "applied"
    assert isinstance(answers[1], LeaseLost)
    assert answers[2:] == ["already", "applied"]


def test_the_floor_of_the_measurement_writes_the_rows_of_the_ledger(postgres_url):
    """Else it would be no floor."""
    from bench.postgres import Bench
    from bench.sides import FLOOR, LEDGER

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
