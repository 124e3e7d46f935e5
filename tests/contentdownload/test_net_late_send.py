"""Who took long to connect asks once more, right before the first byte, whether others have gone ahead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.contentdownload.polite_rig import reach

from DocsToKG.ContentDownload.api.gates import Gate
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import ManualClock
from DocsToKG.core.tasks import called_off_by
from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.transport.errors import DeadlineExceeded

INTERVAL_S = 3.0


def limits_of(clock: ManualClock, store: SqliteLimitStore | None = None) -> HostLimits:
    return HostLimits(clock=clock, default_host=HostLimit(2, {"*": (Rate(1, INTERVAL_S),)}), store=store)


def begun(limits: HostLimits) -> HostPermit:
    permit = limits.ask(Gate("https://a.org/x", "s", Role.METADATA))
    assert isinstance(permit, HostPermit), permit
    assert permit.start() == 0.0
    return permit


def test_one_that_was_overtaken_while_it_connected_keeps_its_distance() -> None:
    clock = ManualClock()
    limits = limits_of(clock)
    slow = begun(limits)
    clock.advance(5.4)
    quick = begun(limits)
    assert slow.before_send() > 0, "another's request is not on the wire yet"
    assert quick.before_send() == 0.0
    quick.on_sent()
    clock.advance(0.4)
    assert slow.before_send() == pytest.approx(INTERVAL_S - 0.4)
    clock.advance(INTERVAL_S - 0.4)
    assert slow.before_send() == 0.0
    slow.on_sent()
    quick.release()
    clock.advance(0.1)
    third = limits.ask(Gate("https://a.org/x", "s", Role.METADATA))
    assert not isinstance(third, HostPermit) or third.start() > INTERVAL_S - 0.2


@pytest.mark.parametrize("took_s", [0.0, 0.5, 4.9, 60.0])
def test_one_that_nobody_overtook_goes_at_once(took_s: float) -> None:
    clock = ManualClock()
    permit = begun(limits_of(clock))
    clock.advance(took_s)
    assert permit.before_send() == 0.0
    permit.on_sent()
    assert permit.before_send() == 0.0, "sent again on a fresh connection"


def test_a_pause_that_the_host_asked_for_meanwhile_holds() -> None:
    """NET-06. Also where no distance is kept."""
    clock = ManualClock()
    limits = HostLimits(clock=clock, default_host=HostLimit(2))
    slow = begun(limits)
    limits.hold("a.org", clock.monotonic() + 3.0, "Retry-After")
    assert slow.before_send() == 0.0, "it is on its way"
    clock.advance(0.4)
    assert slow.before_send() == pytest.approx(2.6)
    clock.advance(2.6)
    assert slow.before_send() == 0.0


def test_another_process_is_not_met_at_the_server(tmp_path: Path) -> None:
    """It cannot know that we still connect, and is granted when our interval is over."""
    clock = ManualClock()
    ours, theirs = (
        limits_of(clock, SqliteLimitStore(tmp_path / "l.sqlite", clock=clock, boot_id="b")) for _ in range(2)
    )
    slow = begun(ours)
    clock.advance(INTERVAL_S + 0.1)
    quick = begun(theirs)
    assert quick.before_send() == 0.0
    quick.on_sent()
    clock.advance(0.4)
    assert slow.before_send() == pytest.approx(INTERVAL_S - 0.4)
    clock.advance(INTERVAL_S - 0.4)
    assert slow.before_send() == 0.0
    slow.on_sent()
    for limits in (ours, theirs):
        limits.close()


@pytest.fixture
def server() -> Iterator[SandboxServer]:
    with SandboxServer(works=2, faults=Faults.none(), thread=True) as server:
        yield server


async def asked(server: SandboxServer, *requests: httpx2.Request) -> None:
    """One after the other, over one transport."""
    transport = reach(server.port)
    try:
        for request in requests:
            response = await transport.handle_async_request(request)
            await response.aread()
    finally:
        await transport.aclose()


def request(**extensions: object) -> httpx2.Request:
    return httpx2.Request("GET", "http://a.org/", headers={"User-Agent": "t"}, extensions=extensions)


def test_a_request_is_held_back_before_its_first_byte(server: SandboxServer) -> None:
    """On a new and on a kept connection."""
    left = [0.15, 0.05, 0.0, 0.1, 0.0]
    told: list[float] = []
    began = time.monotonic()
    one = request(goes_out=lambda: left.pop(0), sent=lambda: told.append(time.monotonic()))
    asyncio.run(asked(server, one, one))
    assert not left
    assert told[0] - began >= 0.2
    assert told[1] - told[0] >= 0.1
    assert server.counters()["requests"] == 2


def test_who_is_held_back_can_be_called_off_and_ends_with_the_deadline(server: SandboxServer) -> None:
    cancel = CancelToken()
    threading.Timer(0.1, cancel.cancel).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        asyncio.run(called_off_by(cancel, asked(server, request(goes_out=lambda: 30.0))))
    with pytest.raises(DeadlineExceeded):
        asyncio.run(asked(server, request(goes_out=lambda: 30.0, deadline=time.monotonic() + 0.1)))
    assert time.monotonic() - began < 25
