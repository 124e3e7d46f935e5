"""The ledger on PostgreSQL: against raw SQL, one job at a time, by pages beside a held snapshot, and node by node.

The server is the one that --url or TEST_POSTGRES_URL names, else one that is started for the measurement (fsync off, so
the disk is out of the picture for every side). Ledger and floor take turns on one schema.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from bench.facts import aim, show, write
from bench.ledger import beside_ours, growth, told_by
from bench.postgres_floor import Floor
from bench.postgres_nodes import drain
from bench.programs import are_there, peers_option
from bench.sides import FLOOR, LEASE_S, LEDGER, Sides, ended, in_turns
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

PARTS = ("floor", "singly", "nodes", "pages", "peers")
_FILL = 100_000


class Bench(Sides):
    """One schema that is kept at a given size while both sides work on it."""

    def __init__(self, url: str, *, jobs: int, batch: int) -> None:
        super().__init__(jobs=jobs, batch=batch)
        self.url = url
        self.schema = f"bench_{uuid4().hex[:12]}"
        self.open().close()

    def open(self) -> PostgresLedger:
        return PostgresLedger(self.url, schema_name=self.schema)

    def floor(self) -> Floor:
        return Floor(self.url, self.schema)

    def drop(self) -> None:
        self.sql(f"DROP SCHEMA {self.schema} CASCADE")

    def sql(self, statement: str) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description is not None else []

    def fill(self, rows: int, *, finished: bool) -> None:
        with self.floor() as floor:
            for start in range(0, rows, _FILL):
                floor.enqueue(self.raw(min(_FILL, rows - start)))
            if finished:
                floor.end_all()
        self.sql(f"VACUUM ANALYZE {self.schema}.jobs")

    def fill_finished(self, rows: int) -> None:
        """Jobs that are over, as the table has them in the end: for counting pages their past does not matter."""
        for start in range(0, rows, _FILL):
            count = min(_FILL, rows - start)
            self.sql(
                f"INSERT INTO {self.schema}.jobs (artifact_id, artifact_json, payload_digest, state, outcome, due,"
                " fence, lease_id, result_json, next_eligible_at, created_at, updated_at, finished_at)"
                " SELECT 'over:' || n, '{}', md5(n::text), 'done', 'success', true,"
                " 1, 'lease_' || n, '{\"x\":1}', 0, 0, 0, 0"
                f" FROM generate_series({start + 1}, {start + count}) AS n"
            )


def against_floor(url: str, rows: int, *, finished: bool, jobs: int, batch: int, rounds: int) -> list[dict[str, Any]]:
    bench = Bench(url, jobs=jobs, batch=batch)
    bench.fill(rows, finished=finished)
    found = in_turns(bench, rows, finished=finished, rounds=rounds)
    bench.drop()
    return found


_ONE_BY_ONE = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from bench.sides import ended
from bench.postgres_floor import Floor
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
side, url, schema, slots, wait_s, node = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])
def work(name):
    done, jobs = 0, ledger.lease(name, 1, 600, job_type=DEFAULT_JOB_TYPE)
    while jobs:
        time.sleep(wait_s)
        _, jobs = ledger.finish_and_lease([ended(jobs[0])], name, 1, 600, job_type=DEFAULT_JOB_TYPE)
        done += 1
    return done
def begin():
    print("ready", flush=True)
    sys.stdin.readline()
if side == "floor":
    with Floor(url, schema, shard=node) as floor:
        begin()
        print(floor.work_off(10**9, batch=1))
else:
    with PostgresLedger(url, schema_name=schema) as ledger, ThreadPoolExecutor(slots) as pool:
        begin()
        print(sum(pool.map(work, [f"{schema}-{node}-{n}" for n in range(slots)])))
"""


def nodes(url: str, *, count: int, slots: int, wait_s: float, jobs: int, side: str = LEDGER) -> dict[str, Any]:
    """So many processes with so many slots each, that take one job at a time; jobs a second."""
    bench = Bench(url, jobs=jobs, batch=1)
    bench.enqueue(LEDGER)
    words = [sys.executable, "-c", _ONE_BY_ONE, side, url, bench.schema, str(slots), str(wait_s)]
    processes = [
        subprocess.Popen([*words, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(count)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    began = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = sum(int(process.communicate()[0]) for process in processes)
    took_s = time.perf_counter() - began
    bench.drop()
    return {
        "side": side, "nodes": count, "slots": slots, "wait_s": wait_s, "jobs": done, "jobs_per_s": round(done / took_s)
    }  # fmt: skip


def one_at_a_time(url: str, *, count: int, jobs: int, rounds: int) -> list[dict[str, Any]]:
    """So many connections, each with one job at a time: the best of some rounds, ledger and floor in turns."""
    best: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for side in (LEDGER, FLOOR) if turn % 2 else (FLOOR, LEDGER):
            row = nodes(url, count=count, slots=1, wait_s=0, jobs=jobs, side=side)
            best[side] = max(best.get(side, row), row, key=lambda row: row["jobs_per_s"])
    best[LEDGER]["ratio"] = round(best[LEDGER]["jobs_per_s"] / best[FLOOR]["jobs_per_s"], 3)
    return [best[LEDGER], best[FLOOR]]


def pages(url: str, *, rows: int, batch: int) -> list[dict[str, Any]]:
    """Pages that a lease touches: alone, beside finished rows, and after a held snapshot kept what leases leave."""
    bench = Bench(url, jobs=rows, batch=batch)
    bench.fill(20_000, finished=False)
    found = [{"beside": "nothing", "pages": _pages(bench, batch)}]
    bench.fill_finished(rows)
    bench.fill(20_000, finished=True)
    bench.fill(20_000, finished=False)
    found.append({"beside": f"{rows} finished", "pages": _pages(bench, batch)})
    with psycopg.connect(url) as reader, bench.open() as ledger:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute(f"SELECT count(*) FROM {bench.schema}.settings")
        for _ in range(15_000 // batch):
            jobs = ledger.lease("bench", batch, LEASE_S, job_type=DEFAULT_JOB_TYPE)
            ledger.submit_finishes([ended(job) for job in jobs]).result()
        begin = ledger._driver._hosts._places[DEFAULT_JOB_TYPE].begin
        found.append({"beside": "a held snapshot, 15000 jobs later", "pages": _pages(bench, batch, begin)})
        found.append({"beside": "the same, from the first entry", "pages": _pages(bench, batch)})
    bench.drop()
    return found


def _pages(bench: Bench, batch: int, after: tuple[int, int] = (-(2**31), 0)) -> int:
    """The lease is taken back. No sweep for leases that ran out, as in nine of ten calls."""
    words = (
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM {bench.schema}.work_v4('9s', 0, 0, NULL, NULL,"
        f" ARRAY['w'], ARRAY[{batch}], ARRAY['t'], 1000, false, '{DEFAULT_JOB_TYPE}', {2**60}, {after[0]}, {after[1]},"
        " '', false, NULL, NULL)"
    )
    plans = [bench.sql(f"BEGIN; {words}")[0][0][0]["Plan"] for _ in range(3)]
    return min(int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]) for plan in plans)


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.conformance.postgres_server import running_postgres

    with running_postgres(autovacuum_naptime="60s") as running:
        yield running.url


OURS = "this ledger"


def peers(python: Path, url: str, *, jobs: int, batch: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Other queues on PostgreSQL, in an environment of their own; what is missing there is said and left out."""
    if not are_there(python, "peers"):
        return []
    script = Path(__file__).with_name("postgres_peers.py")
    told = told_by([str(python), str(script), url, str(jobs), str(batch), *map(str, sizes)])
    return beside_ours([*(_ours(url, jobs, batch, size) for size in sizes), *told], OURS) if told else []


def _ours(url: str, jobs: int, batch: int, waiting: int) -> dict[str, Any]:
    """The ledger beside its peers: the better of two rounds on a new schema."""
    bench = Bench(url, jobs=jobs, batch=batch)
    bench.fill(waiting, finished=False)
    costs = [(bench.enqueue(LEDGER), bench.work_off(LEDGER)) for _ in range(2)]
    bench.drop()
    put, run = (round(1 / min(cost[n].wall_s for cost in costs)) for n in range(2))
    return {"queue": OURS, "waiting": waiting, "jobs": jobs, "enqueue_per_s": put, "jobs_per_s": run}


def aims(found: Mapping[str, Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Of the parts that were measured."""
    told = []
    if rows := found.get("floor"):
        worked = [row["ratio"] for row in rows if row["what"] == "lease and finish"]
        told.append(aim("lease and finish: ratio", min(worked), least=0.6))
    if rows := found.get("singly"):
        told.append(aim("eight connections: jobs a second", rows[0]["jobs_per_s"], least=1000))
    if rows := found.get("nodes"):
        told += [aim(f"four nodes beside one: {row['side']}", row["ratio"], least=3.5) for row in rows[1::2]]
    if rows := found.get("pages"):
        told += [
            aim(f"pages beside {row['beside']}, x alone", round(row["pages"] / rows[0]["pages"], 2), most=bound)
            for row, bound in ((rows[1], 1.5), (rows[2], 3.0))
        ]
    for row in found.get("peers", ()):
        if bound := {"procrastinate": 0.2, "pgqueuer": 1.0}.get(row["queue"]):
            told.append(aim(f"{row['queue']} with {row['waiting']:,} waiting: x_ours", row["x_ours"], most=bound))
    return told


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.postgres", description=__doc__)
    words.add_argument("--url", default=os.environ.get("TEST_POSTGRES_URL"), help="a server that runs already")
    words.add_argument("--rows", default="10000", help="rows waiting or finished beside the measured jobs")
    words.add_argument("--jobs", type=int, default=10_000, help="jobs measured in each round")
    words.add_argument("--batch", type=int, default=50, help="jobs leased and finished at once")
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--finished", type=int, default=100_000, help="finished rows beside which pages are counted")
    words.add_argument("--waits", type=int, default=400, help="jobs that only wait, for the nodes")
    peers_option(words, "procrastinate and pgqueuer")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    words.add_argument("--only", choices=PARTS, action="append", help="a part to measure alone; may be repeated")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    found: dict[str, list[dict[str, Any]]] = {}
    with server(given.url) as url:
        for part, (title, measure) in _parts(url, given).items():
            if part in (given.only or PARTS):
                # Told at once: the later parts take minutes, and what is known by then is worth having.
                found[part] = measure()
                show(title, found[part], out=given.out)
                if part == "floor":
                    found["growth"] = growth(found[part])
                    show("The ledger on PostgreSQL, from the smallest to the largest", found["growth"], out=given.out)
                if given.out is not None:
                    others = {name: rows for name, rows in found.items() if name != "floor"}
                    write(given.out, title, found.get("floor", []), aims=aims(found), **others)
    show("The ledger on PostgreSQL: what was aimed at", aims(found), out=given.out)
    return 0


def _parts(url: str, given: argparse.Namespace) -> dict[str, tuple[str, Callable[[], list[dict[str, Any]]]]]:
    sizes = [int(word) for word in given.rows.split(",")]
    return {
        "floor": (
            "The ledger on PostgreSQL against raw SQL that writes the same rows",
            lambda: _against_floor(url, given, sizes),
        ),
        "singly": (
            "Eight connections, one job at a time",
            lambda: one_at_a_time(url, count=8, jobs=given.jobs, rounds=3),
        ),
        "nodes": ("Nodes whose jobs only wait", lambda: _waiting(url, given.waits)),
        "pages": (
            f"Pages that a lease of {given.batch} touches",
            lambda: pages(url, rows=given.finished, batch=given.batch),
        ),
        "peers": (
            "Queues on PostgreSQL",
            lambda: peers(given.peers, url, jobs=min(given.jobs, 5000), batch=given.batch, sizes=sizes),
        ),
    }


def _against_floor(url: str, given: argparse.Namespace, sizes: Sequence[int]) -> list[dict[str, Any]]:
    shape = {"jobs": given.jobs, "batch": given.batch, "rounds": given.rounds}
    return [row for size in sizes for done in (False, True) for row in against_floor(url, size, finished=done, **shape)]


def _waiting(url: str, waits: int) -> list[dict[str, Any]]:
    """One node and four, by the ledger alone and as whole nodes."""
    found = []
    for measure in (nodes, drain):
        one = measure(url, count=1, slots=8, wait_s=0.2, jobs=waits)
        four = measure(url, count=4, slots=8, wait_s=0.2, jobs=waits * 4)
        found += [{**one, "ratio": 1.0}, {**four, "ratio": round(four["jobs_per_s"] / one["jobs_per_s"], 2)}]
    return found


if __name__ == "__main__":
    sys.exit(main())
