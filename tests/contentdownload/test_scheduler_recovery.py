"""Jobs whose worker is gone come back and complete (TEST-03)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stand_in import SUCCESS, Exchange, StandIn
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import SystemClock

TTL_S = 600


@pytest.fixture
def path(tmp_path):
    return tmp_path / "workqueue.sqlite"


@pytest.fixture
def queue(path, clock):
    with WorkQueue(path, clock=clock) as opened:
        yield opened


def test_a_job_that_was_never_acknowledged_is_leased_again_and_completes(queue, clock):
    queue.enqueue("doi:10.1/x", {})
    [lost] = queue.lease("crashed", 1, TTL_S)
    clock.advance(TTL_S - 1)
    assert queue.lease("next", 1, TTL_S) == []
    clock.advance(1)
    [job] = queue.lease("next", 1, TTL_S)
    assert (job["id"], job["attempts"]) == (lost["id"], 0)
    queue.ack(job["id"], "done")
    assert queue.stats()["done"] == 1


def test_the_same_worker_name_may_pick_its_job_up_again(queue, clock):
    queue.enqueue("doi:10.1/x", {})
    queue.lease("w", 1, TTL_S)
    clock.advance(TTL_S)
    [job] = queue.lease("w", 1, TTL_S)
    queue.ack(job["id"], "done")
    assert queue.stats()["done"] == 1


def test_recovery_works_across_a_restart(queue, path, clock):
    """QUE-20: the first process is gone without a word; the next one opens the file."""
    queue.bulk_import((f"a:{n}", {}, None) for n in range(3))
    queue.lease("crashed", 2, TTL_S)
    with WorkQueue(path, clock=clock) as restarted:
        assert [job["artifact_id"] for job in restarted.lease("next", 9, TTL_S)] == ["a:2"]
        clock.advance(TTL_S - 1)
        restarted.heartbeat("next")
        clock.advance(1)
        assert [job["artifact_id"] for job in restarted.lease("next", 9, TTL_S)] == ["a:0", "a:1"]
        for job_id in (1, 2, 3):
            restarted.ack(job_id, "done")
        assert restarted.stats()["done"] == restarted.stats()["total"] == 3


@pytest.mark.parametrize("workers", [["w"] * 4, ["a", "b", "c", "d"]], ids=["one-name", "many-names"])
def test_no_number_of_leases_that_run_out_ends_a_job(workers, queue, clock):
    """QUE-21: what ends its worker is told by processes, not by leases."""
    queue.enqueue("doi:10.1/unlucky", {})
    leases = []
    for worker in workers:
        leases += queue.lease(worker, 1, TTL_S)
        clock.advance(TTL_S)
    [last] = queue.lease("patient", 1, TTL_S)
    assert [job["attempts"] for job in [*leases, last]] == [0] * 5
    assert "lease_expired" in (queue.job(1).last_error or "")
    queue.ack(last["id"], "done")
    assert queue.stats()["done"] == 1


def test_a_heartbeat_keeps_a_long_download_from_being_handed_on(queue, clock):
    """ORC-10."""
    queue.enqueue("doi:10.1/big", {})
    [job] = queue.lease("slow", 1, TTL_S)
    for _ in range(100):
        clock.advance(TTL_S / 10)
        queue.heartbeat("slow")
    assert queue.lease("other", 1, TTL_S) == []
    queue.ack(job["id"], "done")
    assert queue.job(job["id"]).attempts == 0


class Instant(StandIn):
    """A pipeline whose works succeed at once."""

    def __init__(self) -> None:
        super().__init__(self._succeed, HostLimits(clock=SystemClock(), default_host=HostLimit()), most=8)
        self.worked_on: list[str] = []

    async def _succeed(self, artifact: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        self.worked_on.append(artifact.work_id)
        return SUCCESS


@contextlib.contextmanager
def orchestrator(root: Path, queue: WorkQueue) -> Iterator[tuple[Orchestrator, Instant]]:
    cfg = load_config(None, {}, environ={}, user_file=root / "none")
    pipeline: Any = Instant()
    with RunTelemetry(root, run_id="r", config_hash="c", clock=SystemClock()) as record:
        running = Orchestrator(cfg, queue, pipeline, record)
        running.start()
        try:
            yield running, pipeline
        finally:
            running.stop()
            pipeline.close()


def test_the_orchestrator_completes_what_a_crashed_worker_left(queue, clock, tmp_path):
    """TEST-03, QUE-20: not before the lease has run out, and the run is not drained until then."""
    queue.bulk_import((f"a:{n}", {}, None) for n in range(3))
    queue.lease("crashed", 2, TTL_S)
    with orchestrator(tmp_path, queue) as (running, pipeline):
        drained = threading.Thread(target=running.wait_until_drained)
        drained.start()
        eventually(lambda: queue.job(3).state == "done")
        assert pipeline.worked_on == ["a:2"]
        assert drained.is_alive()
        clock.advance(TTL_S)
        drained.join(20)
        assert not drained.is_alive()
    assert sorted(pipeline.worked_on) == ["a:0", "a:1", "a:2"]
    assert [(queue.job(n).state, queue.job(n).attempts) for n in (1, 2, 3)] == [("done", 0)] * 3


def test_the_orchestrator_completes_a_job_that_was_lost_many_times(queue, clock, tmp_path):
    """QUE-21: it is not held against it, and the run ends."""
    queue.enqueue("a:unlucky", {})
    for _ in range(4):
        assert queue.lease("crashed", 1, TTL_S)
        clock.advance(TTL_S)
    with orchestrator(tmp_path, queue) as (running, pipeline):
        running.wait_until_drained()
    assert pipeline.worked_on == ["a:unlucky"]
    assert (queue.job(1).state, queue.job(1).attempts) == ("done", 0)
