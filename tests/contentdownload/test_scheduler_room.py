"""What a process holds while it waits: room for other hosts, fewer leases on a slow disk, live leases to the last.

Ledger, record, limits, loop and threads are real; the pipeline is a stand-in that asks for permits.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stand_in import SUCCESS, Exchange, StandIn, until
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.gates import GateShut
from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.pressure import Pressure
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import ManualClock, SystemClock
from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

LONG_S = 20.0


class Visits(StandIn):
    """A pipeline that makes one exchange with the host its work names; `inside` says when it may end."""

    def __init__(self, *, most: int = 2) -> None:
        limits = HostLimits(clock=SystemClock(), default_host=HostLimit(max_concurrent=1))
        super().__init__(self._visit, limits, most=most)
        self.visited: list[str] = []
        self.inside: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)

    async def _visit(self, artifact: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        host = artifact.metadata["host"]
        try:
            async with exchange(f"https://{host}/"):
                ctx.on_begin()
                await self.inside()
        except GateShut as shut:
            meta = {"retryable": True, "only_waited": True, "retry_after_s": shut.at - time.monotonic()}
            return DownloadOutcome(False, "error", reason="rate_limited", meta=meta)
        self.visited.append(host)
        return SUCCESS


@contextlib.contextmanager
def orchestrating(
    root: Path,
    hosts: list[str],
    *,
    pipeline: Visits | None = None,
    clock: Any = None,
    storing_s: float | None = None,
    **settings: Any,
) -> Iterator[tuple[Orchestrator, WorkQueue, Visits]]:
    """`storing_s`: how long the disk took for each file lately, before anything is leased."""
    cfg = load_config(None, {}, environ={}, user_file=root / "none")
    chosen = {"max_workers": 2, "retry_backoff_seconds": 0, "jitter_seconds": 0, **settings}
    cfg = cfg.model_copy(update={"orchestrator": cfg.orchestrator.model_copy(update=chosen)})
    stand_in: Any = pipeline or Visits()
    record = RunTelemetry(root, run_id="r", config_hash="c", clock=SystemClock())
    with WorkQueue(root / "q.sqlite", clock=clock) as queue, record:
        queue.bulk_import((f"test:{n}", {"metadata": {"host": host}}, None) for n, host in enumerate(hosts, start=1))
        running = Orchestrator(cfg, queue, stand_in, record)
        for _ in range(20 if storing_s is not None else 0):
            running.pressure.took("storage", storing_s)
        running.start()
        try:
            yield running, queue, stand_in
        finally:
            with contextlib.suppress(Exception):
                running.stop(grace_s=0.0)
            stand_in.close()


def test_works_that_fill_the_lookahead_and_only_wait_make_room_for_others(tmp_path):
    """ORC-03, EXT-03: input sorted by host; the first host is busy, and its works would fill every place."""
    pipeline = Visits()
    taken = pipeline.occupy("busy.org")
    hosts = ["busy.org"] * 24 + ["free.org"] * 5
    with orchestrating(tmp_path, hosts, pipeline=pipeline, lookahead=8) as (_, queue, visits):
        eventually(lambda: visits.visited.count("free.org") == 5)
        assert queue.stats()["in_progress"] <= 8
        released = [n for n in range(1, 25) if any(r.event == "released" for r in queue.ledger.history(n))]
        assert released
        job = queue.ledger.job(released[0])
        assert (job.host_key, job.attempts) == ("busy.org", 0)
        taken.release()
        eventually(lambda: visits.visited.count("busy.org") >= 4)
        assert {queue.job(n).attempts for n in range(1, 30)} == {0}


def test_works_that_nearly_fill_the_lookahead_make_room_too(tmp_path):
    """ORC-03: more are leased only once some places are free, so that nearly full is full."""
    pipeline = Visits()
    pipeline.occupy("busy.org")
    with orchestrating(tmp_path, ["busy.org"] * 7, pipeline=pipeline, lookahead=8) as (_, queue, visits):
        eventually(lambda: queue.stats()["in_progress"] >= 4)
        queue.bulk_import((f"more:{n}", {"metadata": {"host": "free.org"}}, None) for n in range(3))
        eventually(lambda: visits.visited.count("free.org") == 3)


def test_on_a_slow_disk_too_works_that_only_wait_make_room_for_others(tmp_path):
    """ORC-03, EXT-06: the one lease that is allowed must not stay with a host that is busy."""
    pipeline = Visits()
    pipeline.occupy("busy.org")
    with orchestrating(tmp_path, [], pipeline=pipeline, lookahead=8, storing_s=5.0) as (_, queue, visits):
        hosts = ["busy.org"] * 3 + ["free.org"] * 3
        queue.bulk_import((f"more:{n}", {"metadata": {"host": host}}, None) for n, host in enumerate(hosts))
        eventually(lambda: visits.visited.count("free.org") == 3)
        assert queue.stats()["in_progress"] <= 1


@pytest.mark.slow
def test_where_all_wait_for_the_same_host_jobs_are_not_sent_round_and_round(tmp_path):
    """ORC-03: what was sent away for the same host before is sent away again ever more rarely."""
    pipeline = Visits()
    pipeline.occupy("busy.org")
    with orchestrating(tmp_path, ["busy.org"] * 12, pipeline=pipeline, lookahead=8) as (_, queue, _visits):
        eventually(lambda: queue.stats()["in_progress"] >= 7)
        time.sleep(1.8)
        events = [row.event for n in range(1, 13) for row in queue.ledger.history(n)]
        assert 1 <= events.count("released") <= 16


@pytest.mark.parametrize(("seconds", "most"), [(0.0, 16), (0.3, 4)])
def test_the_shorter_works_are_the_more_are_leased_at_once(tmp_path, monkeypatch, seconds, most):
    """ORC-03: two for each worker last while the ledger is asked for more, unless a work takes next to no time."""
    pipeline, asked = Visits(), []
    pipeline.inside = lambda: asyncio.sleep(seconds)
    lease = SqliteLedger.lease

    def leasing(self: SqliteLedger, worker_id: str, limit: int, *given: Any, **named: Any) -> list[LeasedJob]:
        asked.append(limit)
        return lease(self, worker_id, limit, *given, **named)

    monkeypatch.setattr(SqliteLedger, "lease", leasing)
    hosts = [f"host-{n}.org" for n in range(1500 if most > 4 else 8)]
    with orchestrating(tmp_path, hosts, pipeline=pipeline) as (running, _, visits):
        running.wait_until_drained()
        assert len(visits.visited) == len(hosts)
    assert asked[0] == 4
    assert 4 < max(asked) <= most if most > 4 else max(asked) <= most


def test_a_gate_that_opens_later_than_in_a_minute_holds_no_lease(tmp_path):
    """ORC-03: the job goes back with its host and the time, and counts no attempt."""
    pipeline = Visits()
    pipeline.limits.hold("away.org", time.monotonic() + 600, "Retry-After")
    with orchestrating(tmp_path, ["away.org", "free.org"], pipeline=pipeline) as (running, queue, _):
        running.wait_until_drained(patience_s=60)
        job = queue.ledger.job(1)
        assert (job.state, job.host_key, job.attempts) == ("queued", "away.org", 0)
        assert 500 < job.next_eligible_at - time.time() < 700
        assert queue.ledger.job(2).state == "done"


def test_leases_are_kept_alive_during_the_grace(tmp_path):
    """ORC-10, ORC-11: a long last download is not handed to somebody else while it may finish."""
    go, clock, pipeline = threading.Event(), ManualClock(), Visits()
    pipeline.inside = lambda: until(go.is_set)
    with orchestrating(tmp_path, ["a.org"], pipeline=pipeline, clock=clock, heartbeat_seconds=0.01) as (run, queue, _):
        eventually(lambda: run.active == 1)
        stopping = threading.Thread(target=run.stop, args=(LONG_S,))
        stopping.start()
        for _ in range(5):
            clock.advance(400)
            eventually(lambda: (queue.ledger.job(1).lease_until or 0) >= clock.now() + 600)
            assert queue.ledger.lease("other", 1, 600) == []
        go.set()
        stopping.join()
        assert (queue.job(1).state, queue.job(1).attempts) == ("done", 0)


@pytest.mark.slow
def test_a_slow_disk_lowers_the_leases_and_says_so(tmp_path):
    """EXT-06: with jobs that wait at a gate and a disk that takes seconds, one is leased at a time."""
    pipeline = Visits()
    taken = pipeline.occupy("busy.org")
    with orchestrating(tmp_path, [], pipeline=pipeline, lookahead=64, storing_s=5.0) as (running, queue, _):
        queue.bulk_import((f"more:{n}", {"metadata": {"host": "busy.org"}}, None) for n in range(30))
        eventually(lambda: queue.stats()["in_progress"] >= 1)
        assert next(iter(running.waits())) == "storage is slow (5.0 s each)"
        for _ in range(30):
            assert queue.stats()["in_progress"] <= 1
            time.sleep(0.01)
        for _ in range(20):
            running.pressure.took("storage", 0.01)
        eventually(lambda: queue.stats()["in_progress"] == 30)
        assert list(running.waits()) == ["busy.org has 1 requests running"]
        taken.release()
        running.wait_until_drained()


def test_the_time_the_record_takes_counts_as_pressure(tmp_path):
    """EXT-06."""
    pipeline = Visits()
    with orchestrating(tmp_path, ["a.org"], pipeline=pipeline) as (running, _, _visits):
        running.wait_until_drained()
        assert 0 < running.pressure.seconds < 60


@pytest.mark.parametrize(("seconds", "allowed"), [(0.0, 512), (0.5, 512), (1.0, 8), (4.0, 2), (100.0, 1)])
def test_the_slower_the_disk_the_fewer_leases(seconds, allowed):
    pressure = Pressure(slow_s=0.5)
    for _ in range(100):
        pressure.took("storage", seconds)
    assert pressure.allowed(512, workers=8) == allowed


def test_one_slow_write_is_no_pressure():
    pressure = Pressure(slow_s=0.5)
    for _ in range(10):
        pressure.took("storage", 0.01)
    pressure.took("storage", 1.5)
    assert pressure.words() is None
