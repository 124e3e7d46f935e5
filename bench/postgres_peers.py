"""Other queues on PostgreSQL: put jobs, then let one worker run as many, while others wait. One line of JSON each.

Runs in an environment of its own and imports nothing of this project. The jobs do nothing; what waits is put by the
queue itself, a thousand at once. A queue that is not installed, or cannot be filled in time, is named on the error
stream and left out. Neither of them keeps a history or fences the end of a job.

    python bench/postgres_peers.py URL JOBS BATCH WAITING [WAITING ...]
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit
from uuid import uuid4

_AT_ONCE = 1000
_MOST_S = 60.0  # for filling a queue, and for the measured jobs
Put = Callable[[int], Awaitable[object]]  # so many jobs


class TooSlow(Exception):
    """The queue could not be filled in time."""


def procrastinate(url: str, jobs: int, batch: int, waiting: int) -> tuple[float, float]:
    from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=12))
    done, enough = 0, asyncio.Event()

    @app.task(name="nothing")  # type: ignore[untyped-decorator]
    async def nothing(number: int) -> None:
        nonlocal done
        done += 1
        if done >= jobs:
            enough.set()

    async def put(count: int) -> None:
        await nothing.batch_defer_async(*({"number": n} for n in range(count)))

    async def run() -> tuple[float, float]:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await _fill(put, waiting)
            await asyncio.to_thread(_execute, url, "VACUUM ANALYZE procrastinate_jobs")
            put_s = await _put(put, jobs)
            began = time.perf_counter()
            worker = asyncio.create_task(app.run_worker_async(wait=True, concurrency=10, install_signal_handlers=False))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(enough.wait(), _MOST_S)
            took_s, ran = time.perf_counter() - began, done
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await worker
            return put_s, took_s / max(1, ran)

    return asyncio.run(run())


def pgqueuer(url: str, jobs: int, batch: int, waiting: int) -> tuple[float, float]:
    import asyncpg  # type: ignore[import-not-found]
    from pgqueuer import PgQueuer  # type: ignore[import-not-found]
    from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
    from pgqueuer.queries import Queries  # type: ignore[import-not-found]

    async def run() -> tuple[float, float]:
        connection = await asyncpg.connect(url)
        driver = AsyncpgDriver(connection)
        queries = Queries(driver)
        await queries.install()

        async def put(count: int) -> None:
            await queries.enqueue(["nothing"] * count, [None] * count, [0] * count)

        await _fill(put, waiting)
        await asyncio.to_thread(_execute, url, "VACUUM ANALYZE pgqueuer")
        put_s = await _put(put, jobs)
        worker = PgQueuer(driver)
        done = 0
        began = time.perf_counter()

        @worker.entrypoint("nothing")  # type: ignore[untyped-decorator]
        async def nothing(job: object) -> None:
            nonlocal done
            done += 1
            if done >= jobs or time.perf_counter() - began > _MOST_S:
                worker.shutdown.set()

        await worker.run(batch_size=batch)
        took_s = time.perf_counter() - began
        await connection.close()
        return put_s, took_s / done

    return asyncio.run(run())


async def _fill(put: Put, waiting: int) -> None:
    until = time.perf_counter() + _MOST_S
    for start in range(0, waiting, _AT_ONCE):
        await put(min(_AT_ONCE, waiting - start))
        if time.perf_counter() > until:
            raise TooSlow


async def _put(put: Put, jobs: int) -> float:
    """Seconds for each."""
    began = time.perf_counter()
    for start in range(0, jobs, _AT_ONCE):
        await put(min(_AT_ONCE, jobs - start))
    return (time.perf_counter() - began) / jobs


def in_a_database_of_its_own(url: str, measure: Callable[[str], tuple[float, float]]) -> tuple[float, float]:
    name = f"peer_{uuid4().hex[:12]}"
    _execute(url, f"CREATE DATABASE {name}")
    try:
        return measure(urlsplit(url)._replace(path=f"/{name}").geturl())
    finally:
        _execute(url, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def main() -> int:
    url, jobs, batch, sizes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [int(word) for word in sys.argv[4:]]
    for name, measure in (("procrastinate", procrastinate), ("pgqueuer", pgqueuer)):
        if importlib.util.find_spec(name) is None:
            print(f"{name}: left out, not installed", file=sys.stderr)
            continue
        for waiting in sizes:
            try:
                put_s, run_s = in_a_database_of_its_own(url, lambda own: measure(own, jobs, batch, waiting))  # noqa: B023
            except TooSlow:
                print(f"{name}: left out, {waiting} jobs were not put in {_MOST_S:g} s", file=sys.stderr)
                break
            except Exception as error:
                print(f"{name}: left out, {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
                break
            row = {"queue": name, "waiting": waiting, "jobs": jobs, "enqueue_per_s": round(1 / put_s)}
            print(json.dumps({**row, "jobs_per_s": round(1 / run_s)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
