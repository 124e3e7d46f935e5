"""Other queues of one machine: put jobs, then take and acknowledge each. One line of JSON per queue.

Runs in an environment of its own (requirements/bench.txt) and imports nothing of this project. A queue that is not
installed is named on the error stream and left out.
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
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def huey(folder: Path, jobs: int) -> tuple[float, float]:
    """Its storage takes a job off when it is handed out: no lease, no fence, no history, no acknowledgement."""
    from huey import SqliteHuey  # type: ignore[import-not-found]

    queue = SqliteHuey(filename=str(folder / "huey.sqlite"), fsync=True, results=False)
    task = queue.task()(_nothing)
    put_s = _timed(lambda: [task(f"10.1/{n}") for n in range(jobs)])
    take_s = _timed(lambda: [queue.dequeue() for _ in range(jobs)])
    queue.storage.close()
    return put_s, take_s


def persist_queue(folder: Path, jobs: int) -> tuple[float, float]:
    """Its queue with acknowledgements: no fence, no history, no priorities."""
    from persistqueue import SQLiteAckQueue  # type: ignore[import-not-found]

    queue = SQLiteAckQueue(str(folder / "persist"), auto_commit=True)
    put_s = _timed(lambda: [queue.put({"doi": f"10.1/{n}"}) for n in range(jobs)])
    take_s = _timed(lambda: [queue.ack(queue.get(block=False)) for _ in range(jobs)])
    queue.close()
    return put_s, take_s


def dramatiq(folder: Path, jobs: int) -> tuple[float, float]:
    """On a Valkey server of its own, which keeps jobs in memory: a lost machine loses them. No history."""
    import dramatiq as library  # type: ignore[import-not-found]
    from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

    with valkey(folder) as port:
        broker = RedisBroker(host="127.0.0.1", port=port)
        library.set_broker(broker)
        nothing = library.actor(_nothing)
        put_s = _timed(lambda: [nothing.send(f"10.1/{n}") for n in range(jobs)])
        worker = library.Worker(broker, worker_threads=4)

        def take() -> None:
            worker.start()
            broker.join("default", timeout=600_000)

        take_s = _timed(take)
        worker.stop()
        broker.close()
    return put_s, take_s


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


QUEUES: dict[str, tuple[str, Callable[[Path, int], tuple[float, float]]]] = {
    "huey": ("huey", huey),
    "persist-queue": ("persistqueue", persist_queue),
    "dramatiq on valkey": ("dramatiq", dramatiq),
}


def _nothing(doi: str) -> None: ...


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def main() -> None:
    jobs = int(sys.argv[1])
    for name, (module, measure) in QUEUES.items():
        if importlib.util.find_spec(module) is None:
            print(f"peers: {name} is not installed and left out", file=sys.stderr)
            continue
        if measure is dramatiq and not os.environ.get("VALKEY_SERVER"):
            print(f"peers: {name} is left out, VALKEY_SERVER names no server", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            put_s, take_s = measure(Path(folder), jobs)
        print(json.dumps({"queue": name, "jobs": jobs, "put_per_s": jobs / put_s, "take_per_s": jobs / take_s}))


if __name__ == "__main__":
    main()
