"""The orchestrator of one process: caps, outcomes, retries, lost leases, stopping (TEST-02).

Ledger, record, limits, loop and threads are real; only the pipeline is a stand-in that takes its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stand_in import Act, Exchange, StandIn, until
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import DiskFull, RecordError
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import Clock, ManualClock, SystemClock
from DocsToKG.core.tasks import finished
from DocsToKG.Orchestrator.ledger.base import NewJob

LONG_S = 20.0


@dataclass
class Bench:
    root: Path
    queue: WorkQueue
    pipeline: StandIn
    orchestrator: Orchestrator
    told: list[tuple[str, str]] = field(default_factory=list)

    def state(self, job_id: int = 1) -> str:
        return self.queue.job(job_id).state

    def events(self, job_id: int = 1) -> list[str]:
        return [row.event for row in self.queue.ledger.history(job_id)]

    def lines(self) -> list[tuple[str, int, str]]:
        with contextlib.closing(sqlite3.connect(self.root / "manifest.sqlite")) as db:
            return db.execute("SELECT doc_id, attempt, status FROM manifests ORDER BY id").fetchall()


@pytest.fixture
def working(tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[Bench]]:
    """`with working(act, works=3, max_workers=2) as bench:` an orchestrator at work; stopped at the end."""

    @contextlib.contextmanager
    def begin(
        act: Act,
        *,
        root: Path = tmp_path,
        works: int = 1,
        per_resolver: int = 8,
        per_host: int = 8,
        ledger_clock: Clock | None = None,
        paused: bool = False,
        record_window_s: float = 0.005,
        on_outcome: Callable[[str, DownloadOutcome], None] = lambda work_id, outcome: None,
        **settings: Any,
    ) -> Iterator[Bench]:
        cfg = load_config(None, {}, environ={}, user_file=tmp_path / "none")
        chosen = {"retry_backoff_seconds": 0, "jitter_seconds": 0, **settings}
        # Copied past the bounds of a configuration file, so that a heartbeat need not take a second.
        cfg = cfg.model_copy(update={"orchestrator": cfg.orchestrator.model_copy(update=chosen)})
        limits = HostLimits(
            clock=SystemClock(),
            default_host=HostLimit(max_concurrent=per_host),
            default_resolver_slots=per_resolver,
        )
        record = RunTelemetry(root, run_id="r", config_hash="c", clock=SystemClock(), batch_window_s=record_window_s)
        with WorkQueue(root / "q.sqlite", clock=ledger_clock) as queue, record:
            queue.bulk_import((f"test:{n}", {}, None) for n in range(1, works + 1))
            if paused:
                queue.ledger.pause()
            told: list[tuple[str, str]] = []

            def tell(work_id: str, outcome: DownloadOutcome) -> None:
                on_outcome(work_id, outcome)
                told.append((work_id, outcome.classification))

            pipeline: Any = StandIn(act, limits, most=cfg.orchestrator.max_workers)
            orchestrator = Orchestrator(cfg, queue, pipeline, record, on_outcome=tell)
            orchestrator.start()
            try:
                yield Bench(root, queue, pipeline, orchestrator, told)
            finally:
                with contextlib.suppress(Exception):  # what a test expects to be raised, it has asked for by itself
                    orchestrator.stop(grace_s=0.0)
                pipeline.close()

    return begin


def success(work: WorkArtifact) -> DownloadOutcome:
    return DownloadOutcome(True, "success", path=f"{work.work_id}.pdf", reason="ok", meta={"sha256": "a" * 64})


def failure(reason: str = "timeout", *, retryable: bool, **meta: Any) -> DownloadOutcome:
    return DownloadOutcome(False, "error", reason=reason, meta={"retryable": retryable, **meta})


def ends(outcome: Callable[[WorkArtifact], DownloadOutcome]) -> Act:
    """A work that ends at once."""

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        return outcome(work)

    return act


def in_turn(*outcomes: DownloadOutcome | Exception) -> Act:
    """The n-th try of a work ends as the n-th outcome; tries beyond them succeed."""
    tries: Counter[str] = Counter()

    def outcome(work: WorkArtifact) -> DownloadOutcome:
        tries[work.work_id] += 1
        if tries[work.work_id] > len(outcomes):
            return success(work)
        chosen = outcomes[tries[work.work_id] - 1]
        if isinstance(chosen, Exception):
            raise chosen
        return chosen

    return ends(outcome)


class Meter:
    """How many were inside at once, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: Counter[str] = Counter()
        self.peak: defaultdict[str, int] = defaultdict(int)
        self.entered = 0

    @contextlib.contextmanager
    def inside(self, *keys: str) -> Iterator[None]:
        with self._lock:
            self.entered += 1
            for key in keys:
                self._now[key] += 1
                self.peak[key] = max(self.peak[key], self._now[key])
        try:
            yield
        finally:
            with self._lock:
                self._now.subtract(keys)


def streaming(meter: Meter, together: int, *, hosts: int, resolvers: int) -> Act:
    """The first works stay until as many are inside as may be: `together`."""

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        number = int(work.work_id.partition(":")[2])
        host, resolver = f"h{number % hosts}.org", f"r{number % resolvers}"
        async with exchange(f"https://{host}/{number}", resolver), asyncio.timeout(LONG_S):
            with meter.inside("all", host, resolver):
                await until(lambda: meter.entered >= together)
                await asyncio.sleep(0.01)  # for whoever would come in as well
        return success(work)

    return act


@pytest.mark.parametrize(
    ("hosts", "resolvers", "at_once"),
    [(1, 1, 1), (20, 1, 2), (20, 20, 8)],
    ids=["host-cap", "resolver-cap", "worker-cap"],
)
def test_twenty_jobs_never_exceed_a_cap_and_make_use_of_it(working, hosts, resolvers, at_once):
    """TEST-02, LIM-06, ORC-04: caps 8 / 2 / 1."""
    meter = Meter()
    act = streaming(meter, at_once, hosts=hosts, resolvers=resolvers)
    with working(act, works=20, max_workers=8, per_resolver=2, per_host=1) as bench:
        bench.orchestrator.wait_until_drained()
        assert bench.queue.stats()["done"] == 20
    assert meter.peak["all"] == at_once
    assert max(meter.peak[f"h{n}.org"] for n in range(hosts)) == 1
    assert max(meter.peak[f"r{n}"] for n in range(resolvers)) <= 2


def test_a_job_that_waits_for_a_host_holds_no_place(working):
    """ORC-04: with one place, the others pass the one that is parked."""

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        host = "busy.org" if work.work_id == "test:1" else "free.org"
        async with exchange(f"https://{host}/"):
            return success(work)

    with working(act, works=0, max_workers=1, per_host=1) as bench:
        taken = bench.pipeline.occupy("busy.org")
        bench.queue.bulk_import((f"test:{n}", {}, None) for n in (1, 2, 3))
        eventually(lambda: bench.queue.stats()["done"] == 2)
        assert bench.state(1) == "in_progress"
        assert bench.orchestrator.waits() == {"busy.org has 1 requests running": 1}
        taken.release()
        bench.orchestrator.wait_until_drained()
        assert bench.state(1) == "done"


def test_no_more_leases_are_held_than_the_lookahead(working):
    """ORC-03: jobs parked in the process count too."""
    meter = Meter()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        with meter.inside("begun"):
            await asyncio.sleep(0.02)
        return success(work)

    with working(act, works=20, max_workers=4, lookahead=5) as bench:
        bench.orchestrator.wait_until_drained()
        assert bench.queue.stats()["done"] == 20
    assert meter.peak["begun"] == 5


def test_a_job_counts_against_the_lookahead_until_the_ledger_has_its_end(working):
    """ORC-03: a slow record must slow the leasing down."""
    leased: list[int] = []

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        leased.append(bench.queue.stats()["in_progress"])
        return success(work)

    with working(act, works=0, max_workers=4, lookahead=5, record_window_s=0.1) as bench:
        bench.queue.bulk_import((f"test:{n}", {}, None) for n in range(20))
        bench.orchestrator.wait_until_drained()
    assert max(leased) <= 5


def test_jobs_not_begun_are_no_more_than_twice_the_workers(working):
    """ORC-03: the hand-over is bounded, however wide the lookahead."""
    go = threading.Event()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        async with exchange(f"https://h{work.work_id[5:]}.org/"):
            await until(go.is_set)
        return success(work)

    with working(act, works=30, max_workers=2, lookahead=100) as bench:
        eventually(lambda: bench.orchestrator.active == 2)
        eventually(lambda: bench.queue.stats()["in_progress"] >= 4)
        time.sleep(0.1)  # it is asked for more when half of those that wait have begun
        assert bench.queue.stats()["in_progress"] <= 6
        go.set()
        bench.orchestrator.wait_until_drained()
        assert bench.queue.stats()["done"] == 30


def test_a_process_is_a_loop_a_dispatcher_a_heartbeat_and_one_who_doubts(working):
    """ORC-02: however many workers; and all of them are gone after the stop."""
    before = set(threading.enumerate())
    with working(ends(success), works=0, max_workers=30) as bench:
        assert bench.orchestrator.worker_id.startswith("cdw-")
        bench.queue.enqueue("test:1", {})
        bench.orchestrator.wait_until_drained()
        names = Counter(thread.name for thread in set(threading.enumerate()) - before)
        assert [names[name] for name in ("content", "dispatch", "beat", "doubt")] == [1, 1, 1, 1]
        assert names.total() <= 8, names
    eventually(lambda: set(threading.enumerate()) <= before)


SKIPPED = DownloadOutcome(False, "skip", reason="already-present")


@pytest.mark.parametrize(
    ("outcome", "state", "error", "event"),
    [
        (success, "done", None, "finished"),
        (lambda work: SKIPPED, "skipped", "already-present", "finished"),
        (lambda work: failure("no_open_copy", retryable=False), "error", "no_open_copy", "finished"),
        (lambda work: failure("x", retryable=False, explanation="why"), "error", "x: why", "finished"),
    ],
    ids=["success", "skip", "terminal", "explained"],
)
def test_an_outcome_becomes_a_state(working, outcome, state, error, event):
    """ORC-06, ORC-07: a terminal reason ends the job at once."""
    with working(ends(outcome)) as bench:
        bench.orchestrator.wait_until_drained()
        job = bench.queue.job(1)
        assert (job.state, job.last_error) == (state, error)
        assert bench.events()[-1] == event
        assert len(bench.lines()) == 1


def test_a_retryable_failure_comes_back_after_its_backoff_and_may_succeed(working):
    """ORC-07, ORC-09: the delay doubles, and each try leaves a line."""
    act = in_turn(failure(retryable=True), failure(retryable=True))
    with working(act, retry_backoff_seconds=0.1) as bench:
        bench.orchestrator.wait_until_drained()
        assert (bench.state(), bench.queue.job(1).attempts) == ("done", 2)
        assert bench.lines() == [("test:1", 1, "error"), ("test:1", 2, "error"), ("test:1", 3, "ok")]
        failed = [row.at for row in bench.queue.ledger.history(1) if row.event == "failed"]
        leased = [row.at for row in bench.queue.ledger.history(1) if row.event == "leased"][1:]
        assert [
            round(later - earlier, 3) >= delay for earlier, later, delay in zip(failed, leased, (0.1, 0.2), strict=True)
        ] == [True, True]
        assert bench.told == [("test:1", "success")]


def test_a_retryable_failure_ends_in_error_when_its_tries_are_used_up(working):
    """ORC-07: told once, at the end."""
    with working(ends(lambda work: failure(retryable=True)), max_job_attempts=3) as bench:
        bench.orchestrator.wait_until_drained()
        assert (bench.state(), bench.queue.job(1).attempts) == ("error", 3)
        assert bench.told == [("test:1", "error")]


def test_an_exception_costs_an_attempt_and_never_the_thread(working):
    """ORC-08: one thread goes on with the next job, and with the same one again."""
    with working(in_turn(ZeroDivisionError("by zero")), works=2, max_workers=1) as bench:
        bench.orchestrator.wait_until_drained()
        assert [bench.queue.job(n).attempts for n in (1, 2)] == [1, 1]
        assert bench.queue.stats()["done"] == 2
        reasons = [row.reason for row in bench.queue.ledger.history(1) if row.event == "failed"]
        assert reasons == ["worker_exception: ZeroDivisionError: by zero"]


def test_an_error_of_the_run_stops_it_and_costs_the_job_nothing(working):
    with working(in_turn(DiskFull("no space")), works=30, max_workers=1) as bench:
        bench.orchestrator.wait_until_drained()
        with pytest.raises(DiskFull, match="no space"):
            bench.orchestrator.stop()
    with WorkQueue(bench.root / "q.sqlite") as queue:
        assert {queue.job(n).attempts for n in range(1, 31)} == {0}
        assert queue.stats()["in_progress"] == 0
        assert queue.stats()["error"] == 0


def test_what_cannot_be_recorded_is_not_acknowledged(working):
    """The record goes first: a broken one stops the run, and the job is still to do."""

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        with contextlib.closing(sqlite3.connect(bench.root / "manifest.sqlite")) as db:
            db.execute("DROP TABLE manifests")
        return success(work)

    with contextlib.suppress(RecordError), working(act, works=0) as bench:
        bench.queue.enqueue("test:1", {})
        bench.orchestrator.wait_until_drained()
        with pytest.raises(RecordError):
            bench.orchestrator.stop()
        assert bench.state() == "in_progress"
        assert bench.told == []


def until_cancelled(begun: threading.Event, heard: threading.Event, *, obey: bool) -> Act:
    """A transfer that goes on until it is cut; one that does not obey comes home with its file."""

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        begun.set()
        try:
            transfer = until(lambda: heard.is_set() or (not obey and ctx.cancel.cancelled))
            await (transfer if obey else finished(transfer))
        finally:
            heard.set()
        return success(work)

    return act


@pytest.mark.parametrize("obey", [True, False], ids=["cut", "late"])
def test_a_lost_lease_cancels_the_job_and_its_late_end_is_refused(working, obey):
    """ORC-10: the ledger says who owns a job, and nobody is told of an end that did not count."""
    begun, heard = threading.Event(), threading.Event()
    with working(until_cancelled(begun, heard, obey=obey), heartbeat_seconds=0.02) as bench:
        assert begun.wait(LONG_S)
        bench.queue.ledger.cancel(1, "withdrawn")
        assert heard.wait(LONG_S)
        bench.orchestrator.wait_until_drained()
        bench.orchestrator.stop()
        assert bench.state() == "canceled"
        assert bench.told == []


def test_a_job_taken_over_by_another_worker_is_dropped(working):
    """ORC-10: after a long freeze the lease is another's; the first owner writes nothing more to the ledger."""
    begun, heard, clock = threading.Event(), threading.Event(), ManualClock()
    # With a lookahead of one, the first owner cannot be the one who takes its own job again.
    settings = {"heartbeat_seconds": LONG_S, "lookahead": 1}
    with working(until_cancelled(begun, heard, obey=False), ledger_clock=clock, **settings) as bench:
        assert begun.wait(LONG_S)
        clock.advance(601)
        [taken] = bench.queue.ledger.lease("other", 1, 600)
        heard.set()
        bench.orchestrator.stop(LONG_S)
        job = bench.queue.ledger.job(1)
        assert (job.state, job.worker_id, job.fence) == ("in_progress", "other", taken.fence)
        assert bench.told == []


def test_the_heartbeat_outlives_the_lease_also_for_jobs_that_wait_in_process(working):
    """ORC-10: one runs, one waits behind it, for five times the lease."""
    go, clock = threading.Event(), ManualClock()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        await until(go.is_set)
        return success(work)

    settings = {"max_workers": 1, "lease_ttl_seconds": 600, "heartbeat_seconds": 0.01}
    with working(act, works=2, ledger_clock=clock, **settings) as bench:
        ledger = bench.queue.ledger
        eventually(lambda: ledger.stats()["in_progress"] == 2)
        for _ in range(10):
            clock.advance(300)
            eventually(lambda: all((ledger.job(n).lease_until or 0) >= clock.now() + 600 for n in (1, 2)))
            assert ledger.lease("other", 2, 600) == []
        go.set()
        bench.orchestrator.wait_until_drained()
        assert [bench.queue.job(n).attempts for n in (1, 2)] == [0, 0]
        assert ledger.stats()["done"] == 2


def test_stop_lets_running_jobs_finish_and_gives_back_what_waits(working):
    """ORC-11: nothing that was given back counts an attempt."""
    finish = threading.Event()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        if work.work_id == "test:1":
            await until(finish.is_set)
        else:
            async with exchange("https://busy.org/"):
                pass
        return success(work)

    with working(act, works=0, max_workers=2, per_host=1) as bench:
        bench.pipeline.occupy("busy.org")
        bench.queue.bulk_import((f"test:{n}", {}, None) for n in (1, 2, 3))
        eventually(lambda: sum(bench.orchestrator.waits().values()) == 2)
        stopping = threading.Thread(target=bench.orchestrator.stop, args=(LONG_S,))
        stopping.start()
        eventually(lambda: bench.queue.stats()["queued"] == 2)
        assert bench.state(1) == "in_progress"
        finish.set()
        stopping.join()
        assert bench.state(1) == "done"
        assert [(bench.state(n), bench.queue.job(n).attempts) for n in (2, 3)] == [("queued", 0)] * 2
        assert bench.told == [("test:1", "success")]


def test_what_outlasts_the_grace_is_cut_and_given_back(working):
    """ORC-11: the running one and the one that never began."""
    begun, heard = threading.Event(), threading.Event()
    with working(until_cancelled(begun, heard, obey=True), works=2, max_workers=1) as bench:
        assert begun.wait(LONG_S)
        bench.orchestrator.stop(grace_s=0.0)
        assert heard.is_set()
        assert [(bench.state(n), bench.queue.job(n).attempts) for n in (1, 2)] == [("queued", 0)] * 2
        assert bench.queue.ledger.job(2).started_at is None
        assert bench.lines() == []


def test_after_a_halt_no_further_job_begins(working):
    """ORC-11."""
    with working(ends(success), works=0) as bench:
        bench.orchestrator.halt()
        bench.queue.enqueue("test:1", {})
        bench.orchestrator.stop()
        assert bench.state() == "queued"
        # A lease that was being asked for when the halt came is given back.
        assert bench.events() in (["enqueued"], ["enqueued", "leased", "released"])


def test_draining_waits_for_a_delayed_retry(working):
    """A server's wish is waited for, and nothing ends before it."""
    with working(in_turn(failure(retryable=True, retry_after_s=0.3)), works=3) as bench:
        began = time.monotonic()
        bench.orchestrator.wait_until_drained()
        assert time.monotonic() - began >= 0.3
        assert bench.queue.stats()["done"] == 3


def test_with_patience_only_what_comes_soon_is_waited_for(working):
    def outcome(work: WorkArtifact) -> DownloadOutcome:
        return failure(retryable=True, retry_after_s=3600) if work.work_id == "test:1" else success(work)

    with working(ends(outcome), works=4) as bench:
        bench.orchestrator.wait_until_drained(patience_s=60)
        assert (bench.state(1), bench.queue.job(1).attempts) == ("queued", 1)
        assert bench.queue.stats()["done"] == 3
        assert sorted(bench.told) == [(f"test:{n}", "success") for n in (2, 3, 4)]


def test_a_job_of_another_type_is_neither_taken_nor_waited_for(working):
    with working(ends(success), works=0) as bench:
        ledger = bench.queue.ledger
        ledger.enqueue_many([NewJob("pack:1", {}, job_type="pack-run", priority=5)])
        bench.queue.bulk_import((f"test:{n}", {}, None) for n in range(3))
        asked: list[int] = []
        lease = ledger.lease
        ledger.lease = lambda *words, **more: asked.append(1) or lease(*words, **more)
        bench.orchestrator.wait_until_drained()
        time.sleep(0.3)
        assert len(asked) < 30, "what others are to do must not keep the dispatcher awake"
        assert bench.queue.stats()["done"] == bench.queue.stats()["total"] == 3
        assert ledger.stats()["queued"] == 1
        assert bench.events(ledger.find("pack:1", job_type="pack-run").job_id) == ["enqueued"]
        assert sorted(bench.told) == [(f"test:{n}", "success") for n in range(3)]


def test_draining_a_paused_queue_ends_and_begins_nothing(working):
    with working(ends(success), works=2, paused=True) as bench:
        bench.orchestrator.wait_until_drained()
        assert bench.queue.stats()["queued"] == 2
        bench.queue.ledger.resume()
        bench.orchestrator.wait_until_drained()
        assert bench.queue.stats()["done"] == 2


def test_each_final_outcome_is_told_once_and_only_after_it_is_safe(working):
    """By then the record has its line and the ledger its state."""
    seen: list[tuple[str, str]] = []

    def look(work_id: str, outcome: DownloadOutcome) -> None:
        with contextlib.closing(sqlite3.connect(bench.root / "q.sqlite")) as db:
            [(state,)] = db.execute("SELECT state FROM jobs WHERE artifact_id = ?", (work_id,))
        last = [status for doc_id, _, status in bench.lines() if doc_id == work_id][-1]
        seen.append((state, last))

    with working(in_turn(failure(retryable=True)), works=0, on_outcome=look) as bench:
        bench.queue.bulk_import((f"test:{n}", {}, None) for n in range(20))
        bench.orchestrator.wait_until_drained()
        bench.orchestrator.stop()
        eventually(lambda: len(bench.told) == 20)
    assert sorted(work_id for work_id, _ in bench.told) == sorted(f"test:{n}" for n in range(20))
    assert set(seen) == {("done", "ok")}


def test_a_job_leased_while_the_heartbeat_is_under_way_is_not_taken_for_lost(working):
    """ORC-10."""
    begun, beaten = threading.Event(), threading.Event()

    async def act(work: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        begun.set()
        await until(beaten.is_set)
        ctx.cancel.raise_if_cancelled()
        return success(work)

    with working(act, works=0, heartbeat_seconds=0.02) as bench:
        real, beats = bench.queue.ledger.heartbeat, Counter[str]()

        def slow_answer(worker_id: str, ttl_s: float) -> set[str]:
            still_ours = real(worker_id, ttl_s)
            beats["all"] += 1
            if beats["all"] == 1:
                bench.queue.enqueue("test:1", {})
                assert begun.wait(LONG_S)
            else:
                beaten.set()
            return still_ours

        bench.queue.ledger.heartbeat = slow_answer
        eventually(lambda: beats["all"] > 1)
        bench.orchestrator.wait_until_drained()
        assert "released" not in bench.events()


@pytest.mark.parametrize("body", [{"metadata": "text"}, {"landing_urls": 5}, {"title": 5}], ids=str)
def test_a_job_that_cannot_be_read_ends_in_error_and_the_others_go_on(working, body):
    """ORC-08: one bad row must not stop every run on this queue."""
    with working(ends(success), works=0) as bench:
        bench.queue.bulk_import([("test:1", body, None), ("test:2", {}, None)])
        bench.orchestrator.wait_until_drained()
        bench.orchestrator.stop()
        assert (bench.state(1), bench.state(2)) == ("error", "done")


def test_a_paused_queue_is_not_asked_all_the_time(working):
    with working(ends(success), works=1, paused=True) as bench:
        real, asked = bench.queue.ledger.lease, Counter[str]()

        def counted(*given: Any, **named: Any) -> Any:
            asked["lease"] += 1
            return real(*given, **named)

        bench.queue.ledger.lease = counted
        time.sleep(0.5)
        assert asked["lease"] < 10


@pytest.mark.slow
def test_a_drained_run_has_told_every_outcome(working):
    """Who counts outcomes may read the sum when the run is drained."""
    go = threading.Event()
    with working(ends(success), on_outcome=lambda work_id, outcome: go.wait(1.0) or None) as bench:
        bench.orchestrator.wait_until_drained()
        told = list(bench.told)
        go.set()
        assert told == [("test:1", "success")]
