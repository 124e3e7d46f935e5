"""Real nodes on one Valkey that is flushed, restarted and paused meanwhile, judged by the server they ask."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import redis
from tests.conformance.conftest import Server
from tests.contentdownload.test_net_shared_processes import (  # noqa: F401
    AT_WORK,
    SLACK_S,
    CountingServer,
    Puller,
    counting,
    violations_of,
)
from tests.waiting import eventually
from tests.warm import WarmPrograms

from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # seconds of real sockets and processes

INTERVAL_S, SLOTS, EACH = 0.3, 2, 9

NODE = f"""
import sys, time
from DocsToKG.ContentDownload.net.limits.stores.redis import RedisLimitStore
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.core.bucket import Rate

url, (port, number, interval_s, slots, wrong_s) = sys.argv[1], map(float, sys.argv[2:])

class Clock:
    def now(self):
        return time.time() + wrong_s
    def monotonic(self):
        return time.monotonic() + wrong_s

clock = Clock()
store = RedisLimitStore(url, clock=clock, beat_s=0.3, lease_s=2.0, interval_s=lambda key: interval_s)
limits = HostLimits(clock=clock, default_host=HostLimit(int(slots), {{"*": (Rate(1, interval_s),)}}), store=store)
{AT_WORK}"""


def flush(server: Server, url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()


def restart(server: Server, url: str) -> None:
    server.stop()
    time.sleep(0.5)
    server.start()


def pause(server: Server, url: str) -> None:
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.kill(server.process.pid, signal.SIGCONT)


def nothing(server: Server, url: str) -> None:
    """The servers stay as they are; only the clock of one node is wrong by an hour."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", [nothing, flush, restart, pause])
def test_two_nodes_keep_interval_and_cap_whatever_becomes_of_their_server(
    counting: CountingServer,  # noqa: F811
    own_valkey: tuple[Server, str],
    fault: Callable[[Server, str], None],
) -> None:
    """LIM-06, LIM-13, across nodes"""
    server, url = own_valkey
    counting.answer_s = 0.5  # so that both slots are in use
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", NODE, url, *map(str, (counting.server_port, EACH, INTERVAL_S, SLOTS, wrong_s))]
        )
        for wrong_s in (0.0, 3600.0)
    ]
    try:
        while len(counting.starts) < EACH // 2:
            assert all(process.poll() is None for process in crowd)
            time.sleep(0.02)
        fault(server, url)
        for process in crowd:
            assert process.wait(90) == 0
    finally:
        for process in crowd:
            process.kill()
            process.wait()
    starts = sorted(counting.starts)
    assert len(starts) == 2 * EACH
    assert counting.most == SLOTS
    assert min(later - earlier for earlier, later in pairwise(starts)) > INTERVAL_S - SLACK_S
    assert starts[-1] - starts[0] > (len(starts) - 1) * INTERVAL_S - SLACK_S


@pytest.mark.timeout(240)
def test_two_pulls_that_share_only_a_server_are_as_polite_as_one(
    tmp_path: Path, own_valkey: tuple[Server, str], warm: WarmPrograms
) -> None:
    """Each in a folder of its own; the server is flushed on the way."""
    server, url = own_valkey
    with SandboxServer(works=80, seed=5) as sandbox:
        ids = sandbox.identifiers(80)
        pullers = [Puller(sandbox, warm, tmp_path / str(n), "run", ids[n::2]) for n in range(2)]
        for n in range(2):
            _share(tmp_path / str(n) / "run.json", url)
        try:
            for puller in pullers:
                puller.start()
            eventually(lambda: len(list(tmp_path.glob("*/run/PDF/*"))) >= 20)
            flush(server, url)
            results = [puller.result() for puller in pullers]
        finally:
            for puller in pullers:
                puller.stop()
        assert violations_of(sandbox, pullers) == []
        assert min(result["successful"] for result in results) > 30
    with redis.Redis.from_url(url) as client:
        kept = [name.decode() for name in client.scan_iter(match="*", count=1000)]
    assert any(":host:" in name for name in kept)
    assert any("breaker:host:" in name for name in kept)
    assert not any("alive:" in name for name in kept)


def _share(settings: Path, url: str) -> None:
    found = json.loads(settings.read_text())
    found["config"]["rate_limit"] = {"backend": "redis", "redis_url": url}
    del found["config"]["limits"]["store_path"]
    settings.write_text(json.dumps(found))
