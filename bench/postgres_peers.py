"""Other queues on PostgreSQL: put jobs, then let one worker run them, each doing nothing. One line of JSON per queue.

Runs in an environment of its own and imports nothing of this project. A queue that is not installed is named on the
error stream and left out. Neither of them keeps a history or fences the end of a job.

    python bench/postgres_peers.py URL JOBS BATCH
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit
from uuid import uuid4


def procrastinate(url: str, jobs: int, batch: int) -> tuple[float, float]:
    from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=12))

    @app.task(name="nothing")  # type: ignore[untyped-decorator]
    async def nothing(number: int) -> None:
        return None

    async def run() -> tuple[float, float]:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            began = time.perf_counter()
            for start in range(0, jobs, 1000):
                await nothing.batch_defer_async(*({"number": n} for n in range(start, min(jobs, start + 1000))))
            put_s = time.perf_counter() - began
            began = time.perf_counter()
            await app.run_worker_async(wait=False, concurrency=10, install_signal_handlers=False)
            return put_s, time.perf_counter() - began

    return asyncio.run(run())


def pgqueuer(url: str, jobs: int, batch: int) -> tuple[float, float]:
    import asyncpg  # type: ignore[import-not-found]
    from pgqueuer import PgQueuer  # type: ignore[import-not-found]
    from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
    from pgqueuer.queries import Queries  # type: ignore[import-not-found]

    async def run() -> tuple[float, float]:
        connection = await asyncpg.connect(url)
        driver = AsyncpgDriver(connection)
        queries = Queries(driver)
        await queries.install()
        began = time.perf_counter()
        for start in range(0, jobs, 1000):
            count = min(1000, jobs - start)
            await queries.enqueue(["nothing"] * count, [None] * count, [0] * count)
        put_s = time.perf_counter() - began
        worker = PgQueuer(driver)
        done = 0

        @worker.entrypoint("nothing")  # type: ignore[untyped-decorator]
        async def nothing(job: object) -> None:
            nonlocal done
            done += 1
            if done == jobs:
                worker.shutdown.set()

        began = time.perf_counter()
        await worker.run(batch_size=batch)
        took_s = time.perf_counter() - began
        await connection.close()
        return put_s, took_s

    return asyncio.run(run())


def in_a_database_of_its_own(
    url: str, measure: Callable[[str, int, int], tuple[float, float]], jobs: int, batch: int
) -> tuple[float, float]:
    import psycopg

    name = f"peer_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        return measure(urlsplit(url)._replace(path=f"/{name}").geturl(), jobs, batch)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def main() -> int:
    url, jobs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for name, measure in (("procrastinate", procrastinate), ("pgqueuer", pgqueuer)):
        if importlib.util.find_spec(name) is None:
            print(f"{name}: left out, not installed", file=sys.stderr)
            continue
        try:
            put_s, run_s = in_a_database_of_its_own(url, measure, jobs, batch)
        except Exception as error:
            print(f"{name}: left out, {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        row = {"queue": name, "jobs": jobs, "enqueue_per_s": round(jobs / put_s), "jobs_per_s": round(jobs / run_s)}
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
