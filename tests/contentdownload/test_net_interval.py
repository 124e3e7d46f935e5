"""The distance between two requests to one host, where look-ups take long and the event loop is busy.

The server is a process of its own and counts from the moment a request reached the kernel, so what is measured here
is when we sent, whatever the machine did to the server.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from random import Random

import httpx2
import pytest
from tests import needs

from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.admission import Admission
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import SystemClock
from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.transport.adapters import AsyncEngineTransport
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl import CurlEngine
from DocsToKG.transport.guard import AddressGuard

INTERVAL_S = 0.15
# The kernel tells the arrival in steps of a few milliseconds.
STEP_S = 0.012


class SlowNames:
    """A look-up that takes its time, like most on a real network."""

    def __init__(self) -> None:
        self._random = Random(4)

    def known(self, host: str) -> None:
        return None

    async def lookup(self, host: str, port: int, *, timeout_s: float | None) -> list[str]:
        await asyncio.sleep(self._random.uniform(0.0, 1.3 * INTERVAL_S))
        return ["93.184.216.34"]


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with SandboxServer(works=5, faults=Faults.none()) as sandbox:
        yield sandbox


async def asked(transport: AsyncEngineTransport, gates: PermitQueues, number: int) -> int:
    """One request the way the client sends it, on a connection of its own."""
    url, clock, call = f"http://export.arxiv.org/abs/2104.{number:05d}", SystemClock(), Call("w")
    permit = await Admission(gates=gates, clock=clock, attempts=NullSink()).enter(url, "arxiv", Role.METADATA, call)
    try:
        headers = {"User-Agent": "tests (mailto:tests@sandbox.invalid)", "Connection": "close"}
        hooks = {"goes_out": permit.before_send, "sent": permit.on_sent}
        response = await transport.handle_async_request(httpx2.Request("GET", url, headers=headers, extensions=hooks))
        await response.aread()
        return response.status_code
    finally:
        permit.release()


async def busy(until: float) -> None:
    """Work that keeps the event loop in use."""
    while time.monotonic() < until:
        sum(range(40_000))
        await asyncio.sleep(0)


@pytest.mark.slow
@needs.system(sys.platform == "linux", "Linux, which says when the last data came")
def test_a_task_whose_look_up_takes_long_breaks_no_interval(server: SandboxServer) -> None:
    """NET-06: eight slots, fourteen tasks, a busy loop, and every look-up takes up to more than the interval."""
    limits = HostLimits(clock=SystemClock(), default_host=HostLimit(8, {"*": (Rate(1, INTERVAL_S),)}))

    async def crowd() -> list[int]:
        target = ConnectTo({"*": f"plain://127.0.0.1:{server.port}"})
        engine = CurlEngine(guard=AddressGuard(), names=SlowNames(), connect_to=target)
        transport, gates = AsyncEngineTransport(engine), PermitQueues(limits, clock=SystemClock())
        until = time.monotonic() + 3.0
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            works = [tasks.create_task(asked(transport, gates, number)) for number in range(14)]
            for _ in range(8):
                tasks.create_task(busy(until))
        await transport.aclose()
        return [work.result() for work in works]

    assert set(asyncio.run(crowd())) <= {200, 404}
    assert server.counters()["hosts"]["export.arxiv.org"]["min_gap_s"] >= INTERVAL_S - STEP_S
