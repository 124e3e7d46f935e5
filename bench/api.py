"""The API on a large ledger: how long answers take under a steady load, and what a request costs beside a bare one.

A PostgreSQL ledger (one that --url or TEST_POSTGRES_URL names, else one that is started) is filled with jobs of which
most are over, and `docstokg-orchestrator serve` answers an open-loop load of list, detail, dashboard, why and lease.
Then each kind is asked one by one, in turns with a bare FastAPI application that makes the same statements: the
processor's time of the serving process per request is compared.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import psycopg

from bench.api_load import Call, one_by_one, open_loop
from bench.facts import aim, report, show
from bench.postgres import server
from DocsToKG.Orchestrator.control.dashboard import DashboardService
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.service import JobService
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

SCHEMA = "orchestrator"
HOME = "/api/v1/orchestrator"
READS = ("list", "detail", "dashboard", "why")
P99_MS = {**dict.fromkeys(READS, 200), "lease": 50}
_WAITING_SHARE = 0.2
_FILL = (
    """
    INSERT INTO jobs (
      artifact_id, artifact_json, payload_digest, tenant, job_type, priority, state, due, max_attempts, fence,
      next_eligible_at, created_at, updated_at, started_at, finished_at, outcome, result_json
    )
    SELECT
      'doi:10.5555/' || n, json_build_object('doi', '10.5555/' || n, 'title', 'A study of ' || md5(n::text))::text,
      md5(n::text) || md5((-n)::text), 'default', 'content.download', 0,
      CASE WHEN n <= %(over)s THEN 'done' ELSE 'queued' END, n > %(over)s, 3, (n <= %(over)s)::integer,
      m, m, m, CASE WHEN n <= %(over)s THEN m END, CASE WHEN n <= %(over)s THEN m END,
      CASE WHEN n <= %(over)s THEN 'success' END,
      CASE WHEN n <= %(over)s THEN json_build_object('resolver', 'arxiv', 'sha256', md5(n::text))::text END
    FROM (SELECT n, %(first)s::bigint + n * 100 AS m FROM generate_series(1, %(rows)s::bigint) AS n) AS made
    """,
    """
    INSERT INTO job_history (
      tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, prev_hash, hash
    )
    SELECT
      'default', 0, row_number() OVER (ORDER BY j.created_at, j.id, e.place), j.id, j.created_at, e.event, e.before,
      e.after, least(e.place, 1), 0, e.actor, %(hash)s, %(hash)s
    FROM jobs AS j, (VALUES (0, 'enqueued', NULL, 'queued', 'producer'), (1, 'leased', 'queued', 'in_progress', 'w'),
      (2, 'finished', 'in_progress', 'done', 'w')) AS e (place, event, before, after, actor)
    WHERE e.place = 0 OR j.state = 'done'
    """,
    """
    INSERT INTO history_heads (tenant, shard, link, hash, at)
    SELECT 'default', 0, max(link), %(hash)s, %(now)s FROM job_history
    ON CONFLICT (tenant, shard) DO UPDATE SET link = excluded.link, hash = excluded.hash, at = excluded.at
    """,
    """
    INSERT INTO job_counts (tenant, job_type, state, n)
    VALUES ('default', 'content.download', 'done', %(over)s),
      ('default', 'content.download', 'queued', %(rows)s - %(over)s)
    """,
)
_TICKS = os.sysconf("SC_CLK_TCK")
_BEGUN = re.compile(r"^BEGIN[^;]*; ")
Statement = tuple[str, Any, bool]  # the text, its values, and whether the driver writes them into it


def fill(url: str, rows: int) -> None:
    """A ledger of so many jobs, a fifth of them waiting and the others done, with their history; made by the server
    itself, since the rows and not their making are what is needed."""
    PostgresLedger(url).close()
    now, over = round(time.time() * 1000), rows - max(1, round(rows * _WAITING_SHARE))
    values = {"rows": rows, "over": over, "now": now, "first": now - 1000 * rows // 10, "hash": bytes(32)}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}")
        for statement in _FILL:
            connection.execute(statement, values)
        for table in ("jobs", "job_history", "count_changes"):
            connection.execute(f"VACUUM ANALYZE {table}")


@contextlib.contextmanager
def own_database(url: str, kept: str | None = None) -> Iterator[tuple[str, bool]]:
    """A database of its own on the server, gone afterwards unless it is to be `kept` under a name; and whether it was
    there before."""
    name = kept or f"bench_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        is_there = bool(connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchall())
        if not is_there:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
        host, port = connection.info.host, connection.info.port
        user, password = connection.info.user, connection.info.password
    conninfo = psycopg.conninfo.make_conninfo(host=host, port=port, user=user, password=password or None, dbname=name)
    if kept is not None:
        yield conninfo, is_there
        return
    try:
        yield conninfo, is_there
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def statements_of(url: str, job_id: int) -> dict[str, list[Statement]]:
    """What the service asks the database for one request of each kind, on whatever cursor."""
    heard: list[Statement] = []
    execute = psycopg.Cursor.execute

    def hear(cursor: Any, query: Any, params: Any = None, **more: Any) -> Any:
        heard.append((str(query), params, isinstance(cursor, psycopg.ClientCursor)))
        return execute(cursor, query, params, **more)

    found: dict[str, list[Statement]] = {}
    with PostgresLedger(url) as ledger:
        jobs, dashboard = JobService(ledger), DashboardService(ledger)
        asked: dict[str, Callable[[], object]] = {
            "list": lambda: jobs.list("default", JobQuery(), page_size=50),
            "detail": lambda: jobs.detail("default", job_id),
            "dashboard": lambda: dashboard.metrics("default"),
            "why": lambda: jobs.why("default", job_id),
        }
        for kind, ask in asked.items():
            ask()  # the first dashboard reads the last hour; those after it what is new
            with patch.object(psycopg.Cursor, "execute", hear):
                heard.clear()
                ask()
            # A transaction of its own is begun and ended on either side.
            found[kind] = [
                (_BEGUN.sub("", text), values, literal) for text, values, literal in heard if text != "COMMIT"
            ]
    return found


@contextlib.contextmanager
def serving(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """A server in a process of its own: its number, address, and what it printed next."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"{words[2]} did not start")
        second = process.stdout.readline().strip() if "serve" in words else ""
        _answers(address)
        yield process.pid, address, second.removeprefix("token ")
    finally:
        process.terminate()
        process.wait(30)


def _answers(address: str) -> None:
    import urllib.error
    import urllib.request

    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/healthz", timeout=5)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{address} does not answer")


@contextlib.contextmanager
def service(url: str, folder: Path) -> Iterator[tuple[int, str, str]]:
    """The service over the ledger, with no limit of requests."""
    settings = folder / "server.json"
    limits = {"requests_per_second": 1_000_000, "burst": 1_000_000}
    address = _address(url)
    settings.write_text(
        json.dumps({"connection_string": address, "ledger": str(folder / "x.sqlite"), "port": 0, "limits": limits})
    )
    script = "from DocsToKG.Orchestrator.cli.app import app; app()"
    with serving([sys.executable, "-c", script, "serve", "-c", str(settings)]) as found:
        yield found


def _address(conninfo: str) -> str:
    """As an address, which is how the service takes it."""
    from urllib.parse import quote

    parts = psycopg.conninfo.conninfo_to_dict(conninfo)
    secret = f":{quote(str(parts['password']), safe='')}" if parts.get("password") else ""
    host, where = str(parts["host"]), ""
    if host.startswith("/"):
        host, where = "", f"?host={quote(host, safe='')}"
    return f"postgresql://{parts['user']}{secret}@{host}:{parts['port']}/{parts['dbname']}{where}"


def calls(rows: int) -> list[Call]:
    """The kinds in turn; jobs and filters are chosen anew each time, the same in every measurement."""
    chance = random.Random(8)
    filters = itertools.cycle(["", "?status=queued", "?status=succeeded&page_size=100", "?jobType=content.download"])
    return [
        Call("list", "GET", lambda: f"{HOME}/jobs{next(filters)}"),
        Call("detail", "GET", lambda: f"{HOME}/jobs/{chance.randint(1, rows)}"),
        Call("dashboard", "GET", lambda: f"{HOME}/dashboard/metrics"),
        Call("why", "GET", lambda: f"{HOME}/jobs/{chance.randint(1, rows)}/why"),
        Call("lease", "POST", lambda: f"{HOME}/leases", {"workerId": "bench", "limit": 1}),
    ]


def under_load(address: str, token: str, rows: int, *, per_second: float, seconds: float) -> list[dict[str, Any]]:
    warm = max(1.0, min(5.0, seconds / 10))
    open_loop(address, token, calls(rows), per_second=per_second, seconds=warm)
    took, bad = open_loop(address, token, calls(rows), per_second=per_second, seconds=seconds)
    return [
        {
            "kind": kind, "requests": len(times), **{f"p{p}_ms": _percentile(times, p) for p in (50, 95, 99)},
            "most_ms": round(max(times) * 1000, 1), "refused": bad,
        }
        for kind, times in took.items()
    ]  # fmt: skip


def _percentile(times: Sequence[float], percent: int) -> float:
    ordered = sorted(times)
    return round(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1000, 1)


def beside_bare(
    ours: tuple[int, str, str], bare: tuple[int, str, str], job_id: int, *, count: int, rounds: int
) -> list[dict[str, Any]]:
    paths = {
        "list": "/jobs",
        "detail": f"/jobs/{job_id}",
        "dashboard": "/dashboard/metrics",
        "why": f"/jobs/{job_id}/why",
    }
    rows = []
    for kind in (*READS, "lease"):
        method, body = ("POST", {"workerId": "bench", "limit": 1}) if kind == "lease" else ("GET", None)
        path = f"{HOME}{paths.get(kind, '/leases')}"
        sides = {
            "ours": (ours, ours[2], Call(kind, method, lambda path=path: path, body)),  # type: ignore[misc]
            "bare": (bare, None, Call(kind, method, lambda kind=kind: f"/{kind}", body)),  # type: ignore[misc]
        }
        cost: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
        for turn in range(rounds + 1):
            for side in sorted(sides, reverse=bool(turn % 2)):
                (pid, address, _), token, call = sides[side]
                before = _cpu_s(pid)
                wall = one_by_one(address, token, call, count)
                if turn:  # the first round warms up
                    cost[side].append(((_cpu_s(pid) - before) / count, wall / count))
        cpu = {side: min(one for one, _ in found) for side, found in cost.items()}
        spent = {side: min(one for _, one in found) for side, found in cost.items()}
        rows.append(
            {
                "kind": kind, "cpu_ms": round(cpu["ours"] * 1000, 2), "bare_cpu_ms": round(cpu["bare"] * 1000, 2),
                "cpu_ratio": round(cpu["ours"] / max(cpu["bare"], 1e-9), 2), "ms": round(spent["ours"] * 1000, 2),
                "bare_ms": round(spent["bare"] * 1000, 2), "ratio": round(spent["ours"] / spent["bare"], 2),
            }
        )  # fmt: skip
    return rows


def _cpu_s(pid: int) -> float:
    """What a process has used of the processor, in user and system time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def aims(loaded: Sequence[dict[str, Any]], costs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        *(aim(f"{row['kind']}: p99_ms", row["p99_ms"], most=P99_MS[row["kind"]]) for row in loaded),
        *(aim(f"{row['kind']}: cpu_ratio", row["cpu_ratio"], most=3) for row in costs),
    ]


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.api", description=__doc__)
    words.add_argument("--url", default=os.environ.get("TEST_POSTGRES_URL"), help="a server that runs already")
    words.add_argument("--keep", metavar="NAME", help="a database that is filled once and kept, with --url")
    words.add_argument("--rows", type=int, default=1_000_000, help="jobs on the ledger")
    words.add_argument("--per-second", type=float, default=100.0, help="requests that are sent in a second")
    words.add_argument("--seconds", type=float, default=60.0, help="how long they are sent")
    words.add_argument("--count", type=int, default=200, help="requests of a round, one by one")
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    with (
        server(given.url) as url,
        own_database(url, given.keep) as (database, is_filled),
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)
        began = time.perf_counter()
        if not is_filled:
            fill(database, given.rows)
            print(f"{given.rows} jobs were filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        job_id = given.rows // 2
        told = {"url": database, "schema": SCHEMA, "statements": statements_of(database, job_id)}
        (folder / "bare.json").write_text(json.dumps(told))
        with service(database, folder) as ours:
            loaded = under_load(ours[1], ours[2], given.rows, per_second=given.per_second, seconds=given.seconds)
            with serving([sys.executable, "-m", "bench.api_bare", str(folder / "bare.json")]) as bare:
                costs = beside_bare(ours, bare, job_id, count=given.count, rounds=given.rounds)
    show("What a request costs beside a bare one", costs, out=given.out)
    title = f"{given.rows} jobs, {given.per_second:g} requests a second for {given.seconds:g} s"
    report(title, loaded, out=given.out, aims=aims(loaded, costs), costs=costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
