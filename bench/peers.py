"""Other queues of one machine: put jobs, then take and acknowledge each, while others wait. One line of JSON each.

Runs in an environment of its own (requirements/bench.txt) and imports nothing of this project. A queue that is not
installed, or whose waiting jobs take too long to put, is named on the error stream and left out.

    python bench/peers.py JOBS WAITING [WAITING ...]
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_MOST_S = 60.0  # for filling a queue, and for taking jobs from it


class TooSlow(Exception):
    """The queue could not be filled in time."""


def huey(folder: Path, jobs: int, waiting: int) -> tuple[float, float]:
    """Its storage takes a job off when it is handed out: no lease, no fence, no history, no acknowledgement."""
    from huey import SqliteHuey  # type: ignore[import-not-found]

    queue = SqliteHuey(filename=str(folder / "huey.sqlite"), fsync=True, results=False)
    task = queue.task()(_nothing)
    messages = (queue.serialize_task(task.s(f"waiting/{n}")) for n in range(waiting))
    with queue.storage.db(commit=True) as cursor:  # its own rows, in one transaction
        rows = ((queue.storage.name, message, 0) for message in _in_time(messages))
        cursor.executemany("INSERT INTO task (queue, data, priority) VALUES (?, ?, ?)", rows)
    put_s = _each(jobs, lambda: task("10.1/1"))
    take_s = _each(jobs, queue.dequeue)
    queue.storage.close()
    return put_s, take_s


def persist_queue(folder: Path, jobs: int, waiting: int) -> tuple[float, float]:
    """Its queue with acknowledgements: no fence, no history, no priorities."""
    from persistqueue import SQLiteAckQueue  # type: ignore[import-not-found]

    queue = SQLiteAckQueue(str(folder / "persist"), auto_commit=True)
    items = (queue._serializer.dumps({"doi": f"waiting/{n}"}) for n in range(waiting))
    with queue._putter as connection:  # its own rows, in one transaction
        connection.executemany(queue._sql_insert, ((item, time.time()) for item in _in_time(items)))
    queue.total = queue._count()
    put_s = _each(jobs, lambda: queue.put({"doi": "10.1/1"}))
    take_s = _each(jobs, lambda: queue.ack(queue.get(block=False)))
    queue.close()
    return put_s, take_s


def dramatiq(folder: Path, jobs: int, waiting: int) -> tuple[float, float]:
    """On a Valkey server of its own, which keeps jobs in memory: a lost machine loses them. No history."""
    import dramatiq as library  # type: ignore[import-not-found]
    from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

    done, enough = 0, threading.Event()

    def count(doi: str) -> None:
        nonlocal done
        done += 1  # a thread too many would only make it seem slower
        if done >= jobs:
            enough.set()

    with valkey(folder) as port:
        broker = RedisBroker(host="127.0.0.1", port=port)
        library.set_broker(broker)
        actor = library.actor(count)
        for n in _in_time(range(waiting)):
            actor.send(f"waiting/{n}")
        put_s = _each(jobs, lambda: actor.send("10.1/1"))
        worker = library.Worker(broker, worker_threads=4)
        began = time.perf_counter()
        worker.start()
        enough.wait(_MOST_S)
        took_s = time.perf_counter() - began
        taken = done
        worker.stop()
        broker.close()
    return put_s, took_s / max(1, taken)


@contextlib.contextmanager
def valkey(folder: Path) -> Iterator[int]:
    """A server as shipped, started by the program that VALKEY_SERVER names."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = [os.environ["VALKEY_SERVER"], "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(500):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                time.sleep(0.02)
            yield port
        finally:
            server.terminate()


QUEUES: dict[str, tuple[str, Callable[[Path, int, int], tuple[float, float]]]] = {
    "huey": ("huey", huey),
    "persist-queue": ("persistqueue", persist_queue),
    "dramatiq on valkey": ("dramatiq", dramatiq),
}


def _nothing(doi: str) -> None: ...


def _in_time(waiting: Iterable[Any]) -> Iterator[Any]:
    """What is put before the measurement, as long as there is time for it."""
    until = time.perf_counter() + _MOST_S
    for each in waiting:
        if time.perf_counter() > until:
            raise TooSlow
        yield each


def _each(most: int, action: Callable[[], Any]) -> float:
    """Seconds for each of so many, or of as many as there is time for."""
    began, count = time.perf_counter(), 0
    while count < most and time.perf_counter() - began < _MOST_S:
        action()
        count += 1
    return (time.perf_counter() - began) / count


def main() -> None:
    jobs, sizes = int(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    for name, (module, measure) in QUEUES.items():
        if importlib.util.find_spec(module) is None:
            print(f"peers: {name} is not installed and left out", file=sys.stderr)
            continue
        if measure is dramatiq and not os.environ.get("VALKEY_SERVER"):
            print(f"peers: {name} is left out, VALKEY_SERVER names no server", file=sys.stderr)
            continue
        for waiting in sizes:
            try:
                with tempfile.TemporaryDirectory() as folder:
                    put_s, take_s = measure(Path(folder), jobs, waiting)
            except TooSlow:
                print(f"peers: {name} is left out, {waiting} jobs were not put in {_MOST_S:g} s", file=sys.stderr)
                break
            row = {"queue": name, "waiting": waiting, "jobs": jobs, "enqueue_per_s": round(1 / put_s)}
            print(json.dumps({**row, "jobs_per_s": round(1 / take_s)}), flush=True)


if __name__ == "__main__":
    main()
