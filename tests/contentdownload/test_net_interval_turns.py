"""The distance between two requests to one host, where every thread that connects must wait for its turn again.

The server is a process of its own and counts from the moment a request reached the kernel, so what is measured here
is when we sent, whatever the machine did to the server.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from random import Random

import httpx2
import pytest
from tests import needs

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.steps import Steps, Wait
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.ContentDownload.net.connections import Connections
from DocsToKG.ContentDownload.net.limits import HostLimit, Limits
from DocsToKG.ContentDownload.net.permits import admission
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.turns import giving_way
from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.http1 import LeanTransport

INTERVAL_S = 0.15
# The kernel tells the arrival in steps of a few milliseconds.
STEP_S = 0.012


class SlowNames:
    """A look-up that takes its time, like most on a real network, and gives its turn away meanwhile."""

    def __init__(self) -> None:
        self._random = Random(4)

    def resolve(self, host: str, port: int, **options: object) -> list[str]:
        with giving_way():
            time.sleep(self._random.uniform(0.0, 1.3 * INTERVAL_S))
        return ["93.184.216.34"]


class Silent:
    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        return None


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(works=5, faults=Faults.none()) as sandbox:
        yield sandbox


async def asked(transport: LeanTransport, number: int) -> int:
    """One request the way the client sends it, on a connection of its own."""
    url, clock, call = f"http://export.arxiv.org/abs/2104.{number:05d}", SystemClock(), Call("w")
    about, sink = (url, "arxiv", Role.METADATA), Silent()
    permit = await admission(*about, clock=clock, call=call, attempts=sink, connections=Connections())  # type: ignore[arg-type]
    try:
        headers = {"User-Agent": "tests (mailto:tests@sandbox.invalid)", "Connection": "close"}
        request = httpx2.Request("GET", url, headers=headers, extensions={"sent": permit.is_sent})
        response = transport.handle_request(request)
        response.read()
        return response.status_code
    finally:
        permit.release()


async def busy(until: float) -> None:
    """Work that keeps the few turns in use."""
    while time.monotonic() < until:
        sum(range(40_000))
        await Wait(0.0, "nothing")


@pytest.mark.slow
@needs.system(sys.platform == "linux", "Linux, which says when the last data came")
def test_a_thread_that_waits_for_its_turn_before_it_sends_breaks_no_interval(server: SandboxServer) -> None:
    """NET-06: eight slots, twenty-four threads, one turn, and every look-up takes up to more than the interval."""
    limit = HostLimit(8, {"*": (Rate(1, INTERVAL_S),)})
    limits = Limits(clock=SystemClock(), default_host=limit)
    transport = LeanTransport(
        guard=AddressGuard(), names=SlowNames(), connect_to=ConnectTo({"*": f"plain://127.0.0.1:{server.port}"})
    )
    ended: list[Ended] = []
    over = threading.Semaphore(0)

    def done(end: Ended) -> None:
        ended.append(end)
        over.release()

    until = time.monotonic() + 3.0
    works: list[Steps[object]] = [asked(transport, number) for number in range(14)]
    works += [busy(until) for _ in range(8)]
    with Frontier(gate=limits, clock=SystemClock(), threads=24, most_running=1) as pool:
        for work in works:
            pool.submit(work, cancel=CancelToken(), on_done=done)
        for _ in works:
            assert over.acquire(timeout=60)
    transport.close()
    assert [end.unwrap() for end in ended].count(404) + [end.unwrap() for end in ended].count(200) == 14
    assert server.counters()["hosts"]["export.arxiv.org"]["min_gap_s"] >= INTERVAL_S - STEP_S
