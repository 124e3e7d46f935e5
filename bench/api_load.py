"""Requests at their times, whatever the answers take: an open loop, with a client of the standard library.

A request that had to wait for a free connection is counted from when it should have been sent, so that a server that
falls behind cannot hide it.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_CONNECTIONS = 48


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of request; `path` is asked anew each time, so that requests differ."""

    kind: str
    method: str
    path: Callable[[], str]
    body: Mapping[str, Any] | None = None


class Client:
    """One connection that is kept open."""

    def __init__(self, url: str, token: str | None = None) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._headers = {"Content-Type": "application/json"} | (
            {} if token is None else {"Authorization": f"Bearer {token}"}
        )

    def send(self, call: Call) -> tuple[int, bytes]:
        content = None if call.body is None else json.dumps(call.body)
        self._connection.request(call.method, call.path(), content, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._connection.close()


def open_loop(
    url: str, token: str, calls: Sequence[Call], *, per_second: float, seconds: float
) -> tuple[dict[str, list[float]], int]:
    """The times that answers took, by kind, in seconds; and how many requests did not succeed."""
    due: queue.SimpleQueue[tuple[float, Call] | None] = queue.SimpleQueue()
    took: dict[str, list[float]] = defaultdict(list)
    lock, bad = threading.Lock(), [0]

    def work() -> None:
        client = Client(url, token)
        while (item := due.get()) is not None:
            at, call = item
            try:
                status = client.send(call)[0]
            except (OSError, http.client.HTTPException):
                status, client = 599, Client(url, token)
            spent = time.perf_counter() - at
            with lock:
                took[call.kind].append(spent)
                bad[0] += status >= 400
        client.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    start = time.perf_counter() + 0.2
    for number in range(round(per_second * seconds)):
        at = start + number / per_second
        time.sleep(max(0.0, at - time.perf_counter()))
        due.put((at, calls[number % len(calls)]))
    for _ in threads:
        due.put(None)
    for thread in threads:
        thread.join(120)
    return dict(took), bad[0]


def one_by_one(url: str, token: str | None, call: Call, count: int) -> float:
    """The seconds that `count` requests take, one after another on one connection."""
    client = Client(url, token)
    began = time.perf_counter()
    for _ in range(count):
        status, content = client.send(call)
        if status >= 400:
            raise RuntimeError(f"{call.kind} answers {status}: {content[:200]!r}")
    spent = time.perf_counter() - began
    client.close()
    return spent
