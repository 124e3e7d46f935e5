"""Where a running job is, as the ledger tells it (QUE-15): real ledger and record; sources and bodies do as told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.search_bench import Source
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.gates import Gate, Permit
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.stages import WorkStages
from DocsToKG.ContentDownload.api.types import DownloadOutcome, Role, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.download_execution import CandidateDownload, DownloadRules
from DocsToKG.ContentDownload.fallback import FallbackOrchestrator
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.orchestrator.limits import KeyedLimiter
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.orchestrator.workers import JobRetry, Worker
from DocsToKG.ContentDownload.pipeline import JobContext, ResolverPipeline, WorkLimits
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.events import Listener
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import ManualClock, SystemClock
from DocsToKG.Orchestrator.ledger.base import Callback, LeasedJob, NewJob, Progress
from DocsToKG.Sandbox.pdf import Paper, make_pdf

DOI, TITLE = "10.5555/nets.2020.5", "On the shape of very deep networks"
PAPER = make_pdf(Paper(TITLE, ("A. Author",), 2020, DOI), size_bytes=20_000, key="k")
LONG_S = 20.0


class Body:
    """A body whose second half comes when `go` is set; told when bytes begin and end to flow."""

    status, hops, from_cache, revalidated = 200, (), False, False

    def __init__(self, web: Web, url: str, permit: Permit) -> None:
        self.url = url
        self.headers = {"content-type": "application/pdf"}
        self._web = web
        self._permit = permit

    async def chunks(self) -> AsyncIterator[bytes]:
        self._web.flowing += 1
        self._web.most = max(self._web.most, self._web.flowing)
        try:
            yield PAPER[:5000]
            assert await asyncio.to_thread(self._web.go.wait, LONG_S)
            yield PAPER[5000:]
        finally:
            self._web.flowing -= 1

    async def aclose(self) -> None:
        self._permit.release()

    confirm = reject = lambda self, *words: None


class Web:
    """The network as a client sees it: one permit for each body, four at once at a host."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.flowing = self.most = 0
        limits = HostLimits(clock=SystemClock(), default_host=HostLimit(max_concurrent=4))
        self.gates = PermitQueues(limits, clock=SystemClock())

    async def open(self, url: str, role: str, call: Call, **_: Any) -> Any:
        permit = await self.gates.permit(Gate(url, "one", role), call)
        assert call.budget is not None
        call.budget.spend(0.0)
        return Body(self, url, permit)

    def interval_s(self, url: str) -> float:
        return 0.0


def pipeline_on(
    web: Web, root: Path, *, urls: tuple[str, ...] = ("https://pub.org/a.pdf",), rivals: int = 1, **more: Any
) -> Any:
    names = ("one", "two", "three")[:rivals]
    store = LocalStore(root / "docs", min_free_bytes=0, fsync=False)
    store.prepare()
    fallback = FallbackOrchestrator(
        tiers=[Tier("direct_oa", rivals, names)],
        resolvers={name: Source(name, tuple(f"{url}?{name}" for url in urls)) for name in names},
        clients=dict.fromkeys(names, web),  # type: ignore[arg-type]
        download=CandidateDownload(store, DownloadRules(), SystemClock()),
        clock=SystemClock(),
    )
    return ResolverPipeline(fallback=fallback, gates=web.gates, clock=SystemClock(), limits=WorkLimits(), **more)


# one work


def test_a_work_is_where_the_furthest_of_its_downloads_is() -> None:
    seen: list[tuple[str, str | None]] = []
    stages = WorkStages(lambda stage, url: seen.append((stage, url)))
    stages.tier("one")
    stages.at("a", "fetch", "https://a.org/")
    stages.at("b", "head_check", "https://b.org/")
    stages.at("b", "fetch", "https://b.org/")
    stages.at("b", "verify")
    stages.leave("b")
    stages.leave("a")
    stages.leave("a")
    stages.tier("two")
    assert seen == [
        ("resolve:one", None), ("fetch", "https://a.org/"), ("verify", "https://b.org/"), ("fetch", "https://a.org/"),
        ("resolve:one", None), ("resolve:two", None),
    ]  # fmt: skip


# many jobs


class Tiers(Listener):
    """Keeps the stages that it is told."""

    def __init__(self, tiers: list[str]) -> None:
        self._tiers = tiers

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        self._tiers.append(stage)


class Desk:
    """A worker on a real ledger, whose jobs are moved by hand."""

    def __init__(self, root: Path, queue: WorkQueue, record: RunTelemetry) -> None:
        self.clock = ManualClock()
        self.queue = queue
        self.words: list[Progress] = []
        self.tiers: list[str] = []
        ledger = queue.ledger
        self.ask_ledger: Callable[[Progress, Callback], object] = ledger.tell_progress

        def tell_progress(progress: Progress, told: Callback) -> None:
            self.words.append(progress)
            self.ask_ledger(progress, told)

        ledger.tell_progress = tell_progress  # type: ignore[method-assign]
        pipeline: Any = self
        self.worker = Worker(
            "w",
            ledger=ledger,
            pipeline=pipeline,
            telemetry=record,
            retry=JobRetry(),
            clock=self.clock,
            events=Tiers(self.tiers),
        )

    def begin(self, name: str = "doi:10.1/x", **more: Any) -> tuple[LeasedJob, JobContext]:
        self.queue.ledger.enqueue_many([NewJob(name, {}, **more)])
        [job] = self.queue.ledger.lease("w", 1, 600)
        return job, self.worker.context(job, CancelToken())

    def stage(self, job: LeasedJob) -> str | None:
        self.queue.ledger.heartbeat("nobody", 1)  # one writer: what was handed in before is committed now
        return self.queue.ledger.job(job.job_id).stage

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.worker.write_stages()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    record = RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=SystemClock())
    with WorkQueue(tmp_path / "q.sqlite") as queue, record:
        yield Desk(tmp_path, queue, record)


def test_a_job_that_passes_its_stages_quickly_costs_one_word(desk: Desk) -> None:
    job, ctx = desk.begin()
    assert desk.stage(job) == "scheduled"
    ctx.on_stage("resolve:direct_oa", None)
    ctx.on_begin()
    assert desk.stage(job) == "resolve:direct_oa"
    for stage in ("fetch", "verify", "store"):
        ctx.on_stage(stage, None)
        desk.later(0.2)
    assert [word.stage for word in desk.words] == ["resolve:direct_oa"]
    desk.later(1.0)
    assert desk.stage(job) == "store"
    desk.later(1.0)
    assert [word.stage for word in desk.words] == ["resolve:direct_oa", "store"]


def test_where_a_job_only_waits_the_ledger_is_told_of_the_host_it_did_not_know(desk: Desk) -> None:
    parked, ctx = desk.begin("doi:10.1/a")
    known, known_ctx = desk.begin("doi:10.1/b", host_key="pub.org")
    unknown, unknown_ctx = desk.begin("doi:10.1/c")
    for one in (ctx, known_ctx):
        one.on_stage("fetch", "https://PUB.org:443/a.pdf")
    unknown_ctx.on_stage("resolve:direct_oa", None)
    desk.later(1.0)
    assert [(word.job_id, word.stage, word.begun, word.host_key) for word in desk.words] == [
        (parked.job_id, "fetch", False, "pub.org")
    ]
    assert desk.stage(parked) == "fetch"
    assert desk.queue.ledger.job(parked.job_id).started_at is None
    assert (desk.stage(known), desk.stage(unknown)) == ("scheduled", "scheduled")


def test_a_job_has_one_word_under_way(desk: Desk) -> None:
    """However slow the ledger answers."""
    answers: list[Callback] = []
    desk.ask_ledger = lambda progress, told: answers.append(told)
    _, ctx = desk.begin()
    ctx.on_begin()
    ctx.on_stage("fetch", None)
    desk.later(5.0)
    assert len(desk.words) == 1
    answers.pop()(None)
    desk.later(1.0)
    assert [word.stage for word in desk.words] == ["scheduled", "fetch"]


def test_coming_back_to_a_tier_is_no_new_tier_for_those_who_watch(desk: Desk) -> None:
    _, ctx = desk.begin()
    for stage in ("resolve:one", "fetch", "resolve:one", "fetch", "resolve:two"):
        ctx.on_stage(stage, None)
    assert desk.tiers == ["resolve:one", "resolve:two"]


# a whole run


@pytest.mark.slow
def test_a_slow_body_shows_fetch_and_a_slow_record_index(tmp_path: Path) -> None:
    """QUE-15: within two seconds; the history has no line for it."""
    web = Web()
    cfg = load_config(None, {"orchestrator": {"max_workers": 2}}, environ={}, user_file=tmp_path / "none")
    record = RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=SystemClock())
    pipeline = pipeline_on(web, tmp_path)
    with WorkQueue(tmp_path / "q.sqlite") as queue, record:
        queue.enqueue(f"doi:{DOI}", {"doi": DOI, "title": TITLE})
        orchestrator = Orchestrator(cfg, queue, pipeline, record)
        orchestrator.start()
        try:
            eventually(lambda: web.flowing == 1)

            def shows(stage: str) -> Callable[[], bool]:
                def look() -> bool:
                    row = queue.ledger.job(1)
                    return (row.stage, row.host_key) == (stage, "pub.org")

                return look

            eventually(shows("fetch"), within_s=2.0)
            assert queue.ledger.job(1).started_at is not None
            finish, told = record.finish_together, threading.Event()
            record.finish_together = lambda *words: told.wait(LONG_S) and finish(*words)  # type: ignore[method-assign, func-returns-value, assignment]
            web.go.set()
            eventually(shows("index"), within_s=3.0)
            told.set()
            orchestrator.wait_until_drained()
        finally:
            web.go.set()
            orchestrator.stop(grace_s=5.0)
        row = queue.ledger.job(1)
        assert (row.state, row.stage) == ("done", None)
        assert [line.event for line in queue.ledger.history(1)] == ["enqueued", "leased", "finished"]
    pipeline.close()


# the caller's own caps


class Recorded(KeyedLimiter):
    """Tells who came and went."""

    def __init__(self, kind: str, events: list[str], limit: int = 1) -> None:
        super().__init__(limit)
        self._kind, self._events = kind, events

    def acquire(self, key: str, blocking: bool = True, timeout: float | None = None) -> bool:
        taken = super().acquire(key, blocking, timeout)
        if taken:
            self._events.append(f"+{self._kind} {key}")
        return taken

    def release(self, key: str) -> None:
        self._events.append(f"-{self._kind} {key}")
        super().release(key)


def asked_at(web: Web, role: Role, *, url: str = "https://PUB.org:443/x") -> None:
    """One exchange that fails."""

    async def exchange() -> None:
        permit = await web.gates.permit(Gate(url, "unpaywall", role), Call("w"))
        permit.release()
        permit.release()  # twice does no harm

    asyncio.run(exchange())


def test_the_resolver_comes_first_then_the_host_and_back_in_reverse(tmp_path: Path) -> None:
    """ORC-13, LIM-04; a limiter that is not given caps nothing, and no exchange that looks for a copy is capped."""
    events: list[str] = []
    resolver, host = Recorded("resolver", events), Recorded("host", events)
    web = Web()
    pipeline_on(web, tmp_path, resolver_limiter=resolver, host_limiter=host)
    asked_at(web, Role.METADATA)
    asked_at(web, Role.ARTIFACT)
    assert events == ["+resolver unpaywall", "+host pub.org", "-host pub.org", "-resolver unpaywall"]
    events.clear()
    web = Web()
    pipeline_on(web, tmp_path, host_limiter=host)
    asked_at(web, Role.ARTIFACT)
    assert events == ["+host pub.org", "-host pub.org"]
    events.clear()
    web = Web()
    pipeline_on(web, tmp_path)
    asked_at(web, Role.ARTIFACT)
    assert events == []


@pytest.mark.parametrize(("cap", "most"), [(1, 1), (2, 2), (None, 4)])
def test_injected_caps_hold_around_the_bytes_of_works_of_several_threads(
    tmp_path: Path, cap: int | None, most: int
) -> None:
    """ORC-13, LIM-04: beside those of the configuration."""
    web, events = Web(), list[str]()
    host = None if cap is None else Recorded("host", events, cap)
    pipeline = pipeline_on(web, tmp_path, host_limiter=host)
    outcomes: list[DownloadOutcome] = []

    def obtain(n: int) -> None:
        outcomes.append(pipeline.process(WorkArtifact(f"doi:{DOI}#{n}", doi=DOI, title=TITLE)))

    threads = [threading.Thread(target=obtain, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: web.flowing == most)
    time.sleep(0.1)  # nobody else comes in
    assert web.flowing == most
    web.go.set()
    for thread in threads:
        thread.join(LONG_S)
    pipeline.close()
    assert [outcome.ok for outcome in outcomes] == [True] * 6
    assert web.most == most
    assert host is None or host.in_use("pub.org") == 0


def test_sources_that_race_tell_their_stages_and_keep_to_the_caps(tmp_path: Path) -> None:
    """QUE-15, ORC-13: each of them by itself."""
    web, events, seen = Web(), list[str](), list[str]()
    host = Recorded("host", events)
    web.go.set()
    pipeline = pipeline_on(web, tmp_path, rivals=3, host_limiter=host)
    work = WorkArtifact(f"doi:{DOI}", doi=DOI, title=TITLE)
    assert pipeline.process(work, JobContext(on_stage=lambda stage, url: seen.append(stage))).ok
    pipeline.close()
    assert web.most == 1
    assert events[:2] == ["+host pub.org", "-host pub.org"]
    assert {"fetch", "verify", "store"} <= set(seen)


def test_asking_where_a_paper_is_takes_no_place(tmp_path: Path) -> None:
    """ORC-14: only the bytes of a file do; a work without a copy never asks for one."""
    events: list[str] = []
    limiters = {"resolver_limiter": Recorded("resolver", events), "host_limiter": Recorded("host", events)}
    pipeline = pipeline_on(Web(), tmp_path, urls=(), **limiters)
    assert pipeline.process(WorkArtifact(f"doi:{DOI}", doi=DOI)).ok is False
    pipeline.close()
    assert events == []
