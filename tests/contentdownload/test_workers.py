"""One job from its lease to its acknowledgement, with a real ledger and a real record; the pipeline is a stand-in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.errors import DiskFull, RunError
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.workers import Ended, JobRetry, Worker
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.cancel import Cancelled
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import LedgerClosed
from DocsToKG.Orchestrator.ledger.base import JobRecord, LeasedJob, NewJob

Process = Callable[[WorkArtifact, JobContext], DownloadOutcome]


class StandIn:
    """A pipeline that only knows the plain call."""

    def __init__(self) -> None:
        self.act: Process = lambda work, ctx: success()

    def process(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        return self.act(artifact, ctx)


class Bench:
    def __init__(self, root: Path, clock: ManualClock, queue: WorkQueue, record: RunTelemetry) -> None:
        self.clock = clock
        self.queue = queue
        self.root = root
        self.pipeline = StandIn()
        self.told: list[tuple[str, str]] = []
        self.faults: list[BaseException] = []
        self.listener_breaks = False
        self._record = record
        pipeline: Any = self.pipeline
        self.worker = Worker(
            "w",
            ledger=queue.ledger,
            pipeline=pipeline,
            telemetry=record,
            retry=JobRetry(max_attempts=3, backoff_s=60.0, jitter_s=15.0),
            relative_path=lambda path: path and path.removeprefix("/root/"),
            on_outcome=lambda work_id, outcome: self.listen(work_id, outcome),
            on_fault=self.faults.append,
        )

    def listen(self, work_id: str, outcome: DownloadOutcome) -> None:
        self.told.append((work_id, outcome.classification))
        if self.listener_breaks:
            raise RuntimeError("the listener broke")

    def lease(self, body: dict[str, Any] | None = None) -> LeasedJob:
        self.queue.ledger.enqueue_many([NewJob("doi:10.1/x", body or {})])
        [job] = self.queue.ledger.lease("w", 1, 600)
        return job

    def run(self, act: Process, job: LeasedJob | None = None) -> JobRecord:
        self.pipeline.act = act
        self.worker.run_one(job or self.lease())
        return self.settled()

    def settled(self) -> JobRecord:
        self._record.flush()
        self.queue.ledger.heartbeat("nobody", 1)  # one writer: what was handed in before is committed now
        return self.queue.ledger.job(1)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "manifest.jsonl").read_text().splitlines()]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    clock = ManualClock()
    record = RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=clock)
    with WorkQueue(tmp_path / "q.sqlite", clock=clock) as queue, record:
        yield Bench(tmp_path, clock, queue, record)


def success(**meta: Any) -> DownloadOutcome:
    return DownloadOutcome(True, "success", path="/root/PDF/x.pdf", reason="ok", meta={"sha256": "a" * 64, **meta})


def failure(*, retryable: bool, **meta: Any) -> DownloadOutcome:
    return DownloadOutcome(False, "error", reason="timeout", meta={"retryable": retryable, **meta})


def raising(error: BaseException) -> Process:
    def act(work: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        raise error

    return act


def test_the_work_is_rebuilt_from_what_the_ledger_holds(bench: Bench) -> None:
    """ORC-05."""
    seen: list[WorkArtifact] = []
    bench.run(lambda work, ctx: seen.append(work) or success(), bench.lease({"title": "A paper", "extra": 1}))
    assert seen == [WorkArtifact("doi:10.1/x", title="A paper", metadata={"extra": 1})]


def test_a_success_is_recorded_acknowledged_and_told(bench: Bench) -> None:
    """ORC-05, ORC-06: the line and the job name the same lease."""
    job = bench.lease({"title": "A paper"})
    ended = bench.run(lambda work, ctx: success(resolver="arxiv", license="cc-by", secret="x"), job)
    assert (ended.state, ended.outcome, ended.last_error) == ("done", "success", None)
    [line] = bench.lines()
    assert (line["path"], line["title"], line["attempt"]) == ("PDF/x.pdf", "A paper", 1)
    assert (line["lease_id"], line["worker_id"]) == (job.lease_id, "w")
    assert bench.told == [("doi:10.1/x", "success")]


def test_only_the_short_outcome_stays_with_the_job(bench: Bench) -> None:
    ended = bench.run(lambda work, ctx: success(resolver="arxiv", license="cc-by", evidence="a link"))
    kept = json.loads(ended.result_json or "")
    assert kept["resolver"] == "arxiv"
    assert "evidence" not in kept
    assert bench.lines()[0]["evidence"] == "a link"


def test_the_first_exchange_marks_the_job_as_begun(bench: Bench) -> None:
    """Before it a job is no suspect when its process dies; after it each stage is written down."""
    seen: list[tuple[str | None, bool]] = []

    def act(work: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        for step in (
            lambda: ctx.on_stage("resolve:one", None),
            ctx.on_begin,
            lambda: ctx.on_stage("resolve:two", None),
        ):
            step()
            job = bench.settled()
            seen.append((job.stage, job.started_at is not None))
        return success()

    bench.run(act)
    assert seen == [("scheduled", False), ("resolve:one", True), ("resolve:two", True)]


def test_the_backoff_doubles_with_each_attempt_and_carries_jitter(bench: Bench) -> None:
    """ORC-09: 60 s, then 120 s, each with up to 15 s more; then the tries are used up."""
    waits = []
    for _ in range(2):
        job = bench.run(lambda work, ctx: failure(retryable=True))
        waits.append(job.next_eligible_at - bench.clock.now())
        bench.clock.advance(waits[-1] + 0.001)
    assert 60 <= waits[0] <= 75
    assert 120 <= waits[1] <= 135
    assert bench.told == []
    assert bench.run(lambda work, ctx: failure(retryable=True)).state == "error"
    assert bench.told == [("doi:10.1/x", "error")]


def test_a_servers_wish_is_longer_than_our_backoff(bench: Bench) -> None:
    job = bench.run(lambda work, ctx: failure(retryable=True, retry_after_s=900.0))
    assert job.next_eligible_at - bench.clock.now() == pytest.approx(900, abs=0.01)
    assert (job.state, job.attempts, job.last_error) == ("queued", 1, "timeout")


def test_a_terminal_failure_ends_at_once(bench: Bench) -> None:
    """ORC-07."""
    job = bench.run(lambda work, ctx: failure(retryable=False, explanation="gone"))
    assert (job.state, job.last_error) == ("error", "timeout: gone")


def test_what_stood_in_the_way_is_named_beside_the_reason(bench: Bench) -> None:
    job = bench.run(
        lambda work, ctx: failure(retryable=False, explanation="The only copy is gone.", cause="http-status")
    )
    assert job.last_error == "timeout (http-status): The only copy is gone."


def test_an_exception_counts_an_attempt_and_its_text_is_kept(bench: Bench) -> None:
    """ORC-08: bounded, and the caller lives on."""
    job = bench.run(raising(KeyError("x" * 9000)))
    assert (job.state, job.attempts) == ("queued", 1)
    assert (job.last_error or "").startswith("worker_exception: KeyError: 'xxx")
    assert len(job.last_error or "") < 600
    assert bench.lines()[0]["reason"] == "worker_exception"


@pytest.mark.parametrize("error", [Cancelled(), DiskFull("no space")], ids=["cancelled", "run-error"])
def test_a_job_that_was_called_off_goes_back_as_it_was(bench: Bench, error: Exception) -> None:
    """ORC-11: no attempt, no line, nobody told; what stops the whole run is raised as well."""
    stops = isinstance(error, RunError)
    with pytest.raises(type(error)) if stops else contextlib.nullcontext():
        bench.run(raising(error))
    job = bench.settled()
    assert (job.state, job.attempts) == ("queued", 0)
    assert bench.queue.ledger.history(1)[-1].reason == (str(error) or "stopped")
    assert bench.told == []
    assert not (bench.root / "manifest.jsonl").exists() or bench.lines() == []


def test_an_end_under_a_lost_lease_changes_nothing_and_is_no_fault(bench: Bench) -> None:
    """ORC-10: another worker has the job; `then` still runs, so that nobody waits for ever."""
    old = bench.lease()
    bench.clock.advance(601)
    [new] = bench.queue.ledger.lease("other", 1, 600)
    answered: list[str] = []
    bench.worker.close_job(old, Ended(value=success()), then=lambda: answered.append("then"))
    job = bench.settled()
    assert (job.state, job.worker_id, job.fence) == ("in_progress", "other", new.fence)
    assert (answered, bench.told, bench.faults) == (["then"], [], [])


def test_a_ledger_that_cannot_write_is_a_fault_of_the_run(bench: Bench) -> None:
    job = bench.lease()
    bench.queue.close()
    with pytest.raises(LedgerClosed):
        bench.worker.close_job(job, Ended(error=Cancelled()))


def test_a_listener_that_fails_is_a_fault_of_the_run_and_the_job_stays_done(bench: Bench) -> None:
    bench.listener_breaks = True
    assert bench.run(lambda work, ctx: success()).state == "done"
    assert [str(error) for error in bench.faults] == ["the listener broke"]
