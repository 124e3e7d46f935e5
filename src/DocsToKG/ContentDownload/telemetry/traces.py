"""The spans of a job, from its enqueueing to its acknowledged end, on whatever threads and processes it ran.

    enqueue > schedule, lease, worker_execute > job > artifact > content.process_work > resolve.tier > download >
    prepare, stream, finalize > verify; http.request below what asked; catalog.write and complete below job

Knows names, attributes and who is whose parent. Times that are known only afterwards become spans afterwards. Does not
know exporters. Promises: whatever is open when a job ends is ended; a loser of a race that speaks late is ignored.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from time import time_ns
from typing import Any, Protocol

from DocsToKG.ContentDownload.api.ports import Call, Client, OpenBody
from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    DownloadOutcome,
    DownloadPlan,
    Role,
    StoredCopy,
    WorkArtifact,
)
from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.attempts import SENT
from DocsToKG.ContentDownload.telemetry.events import JobEnd, Listener
from DocsToKG.core.urls import mask_text, mask_url
from DocsToKG.Orchestrator.ledger.base import LeasedJob, TracedJob
from DocsToKG.Orchestrator.tracing import Tracing

# Every span, with what it covers and its attributes: the reference is held against it.
SPANS: dict[str, tuple[str, tuple[str, ...]]] = {
    "enqueue": ("putting one work on the ledger", ("artifact.id",)),
    "orchestrator.dispatch": ("one question to the ledger that was answered with leases", ("leased",)),
    "schedule": ("from when a job could run to its lease, by the ledger's time", ("job.id",)),
    "lease": ("from its lease to its first step in the worker that got it", ("job.id",)),
    "worker_execute": ("one try at a job in one worker", ("job.id", "worker.id")),
    "job": (
        "the same, from its lease to its acknowledged end",
        ("job.id", "artifact.id", "job.attempt", "job.outcome", "job.reason"),
    ),
    "artifact": ("the pipeline, end to end", ("artifact.id", "outcome", "duration_ms")),
    "content.process_work": ("the same", ("doc_id", "tier", "resolver", "cache.hit")),
    "resolve.tier": ("one tier, from its beginning to the next or to the end", ("tier",)),
    "download": ("one candidate, from asking for it to its place in the store", ("url", "resolver", "cache.hit")),
    "prepare": ("until the head of the answer has come", ()),
    "stream": ("the body", ("bytes",)),
    "finalize": ("proof and storing", ()),
    "verify": ("the proof", ()),
    "http.request": (
        "one exchange with the network or the cache",
        (
            *("resolver", "host", "http.status_code", "hishel.from_cache", "hishel.revalidated"),
            *("cache.hit", "duration_ms"),
        ),
    ),
    "catalog.write": ("the row of the work, until it is committed", ()),
    "complete": ("telling the ledger, until it has answered", ()),
}

_REQUESTS = SENT | {AttemptStatus.DOWNLOAD_ERROR}


class Download(Protocol):
    """Fetch, prove and store one candidate."""

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None: ...


@dataclass(slots=True, eq=False)
class _Open:
    """The spans of one try that are open, outermost first."""

    spans: list[Any]
    job: Any
    work: Any
    tier: Any = None
    downloads: dict[str, Any] = field(default_factory=dict)  # by source
    completing: Any = None
    work_ended_ns: int | None = None

    @property
    def inmost(self) -> Any:
        return self.tier if self.tier is not None else self.work


class JobTraces(Listener):
    """The traces of one process."""

    def __init__(self, tracing: Tracing, *, worker_id: str = "") -> None:
        self._tracing = tracing
        self._worker_id = worker_id
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}  # by lease
        self._works: dict[str, _Open] = {}  # by work

    @property
    def under_way(self) -> int:
        """How many jobs and works have begun here and not ended."""
        with self._lock:
            return len(self._open) + len(self._works)

    def enqueue(self, artifact_id: str) -> str | None:
        """Begin the trace of a work that is put on the ledger; the words by which its worker goes on with it."""
        span = self._tracing.start("enqueue", None, {"artifact.id": artifact_id})
        words = self._tracing.traceparent(span)
        span.end()
        return words

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        # Asking in vain is how an idle process waits; a span for each question would only be noise.
        if not jobs:
            return
        now = time_ns()
        span = self._tracing.start(metrics.DISPATCH_SPAN, None, {"leased": len(jobs)}, now - round(took_s * 1e9))
        span.end(now)

    def on_job_start(self, job: LeasedJob) -> None:
        start, names = self._tracing.start, {"job.id": job.job_id, "artifact.id": job.artifact_id}
        producer = self._tracing.remote(job.trace_context)
        executing = start("worker_execute", producer, {"job.id": job.job_id, "worker.id": self._worker_id})
        if not isinstance(job, TracedJob):
            self._before(job, executing if producer is None else producer)
        span = start(metrics.JOB_SPAN, executing, {**names, "job.attempt": job.attempts + 1})
        artifact = start("artifact", span, {"artifact.id": job.artifact_id})
        work = start("content.process_work", artifact, {"doc_id": job.artifact_id})
        opened = _Open([executing, span, artifact, work], span, work)
        with self._lock:
            self._open[job.lease_id] = self._works[job.artifact_id] = opened

    def _before(self, job: LeasedJob, parent: Any) -> None:
        """How long the job waited on the ledger, and on its way from there."""
        eligible_ns, leased_ns, now = round(job.eligible_at * 1e9), round(job.leased_at * 1e9), time_ns()
        for name, begin, end in (("schedule", eligible_ns, leased_ns), ("lease", leased_ns, now)):
            if 0 < begin <= end:
                self._tracing.start(name, parent, {"job.id": job.job_id}, begin).end(end)

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        name = stage.removeprefix("resolve:")
        if name == stage:
            return
        opened = self._open.get(job.lease_id)
        if opened is None or opened.work_ended_ns is not None:
            return
        _end(opened.tier)
        opened.tier = self._tracing.start("resolve.tier", opened.work, {"tier": name})

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        opened = self._open.get(job.lease_id)
        if opened is not None:
            opened.job.add_event(metrics.WAIT_EVENTS[kind], {"ms": round(seconds * 1000), kind: key})

    def on_work_end(self, job: LeasedJob, outcome: DownloadOutcome | None) -> None:
        """The pipeline is through with the work; now it is recorded and the ledger is told."""
        opened = self._open.get(job.lease_id)
        if opened is None or opened.work_ended_ns is not None:
            return
        opened.work_ended_ns = time_ns()
        if outcome is not None:
            _describe(opened, outcome)
        for span in [*opened.downloads.values(), opened.tier, *reversed(opened.spans[2:])]:
            _end(span)

    def on_completing(self, job: LeasedJob, *, recorded: bool) -> None:
        """The ledger is being told; what was to be `recorded` is."""
        self.on_work_end(job, None)
        opened = self._open.get(job.lease_id)
        if opened is None:
            return
        if recorded:
            _end(self._tracing.start("catalog.write", opened.job, None, opened.work_ended_ns))
        opened.completing = self._tracing.start("complete", opened.job)

    def on_job_end(
        self, job: LeasedJob, end: JobEnd, reason: str | None = None, outcome: DownloadOutcome | None = None
    ) -> None:
        self.on_work_end(job, None)
        with self._lock:
            opened = self._open.pop(job.lease_id, None)
            if opened is not None and self._works.get(job.artifact_id) is opened:
                del self._works[job.artifact_id]
        if opened is None:
            return
        opened.job.set_attribute("job.outcome", end.value)
        if reason:
            opened.job.set_attribute("job.reason", mask_text(reason[:200]))
        for span in (opened.completing, opened.spans[1], opened.spans[0]):
            _end(span)

    def attempt(self, attempt: Attempt) -> None:
        """An exchange that is over becomes a span that is over."""
        opened = self._works.get(attempt.work_id or "")
        if opened is None or opened.work_ended_ns is not None or attempt.status not in _REQUESTS:
            return
        elapsed_ms, now = attempt.elapsed_ms or 0, time_ns()
        parent = opened.downloads.get(attempt.resolver) if attempt.role is Role.ARTIFACT else None
        about: dict[str, Any] = {
            "resolver": attempt.resolver,
            "host": attempt.host or "",
            "hishel.from_cache": attempt.from_cache,
            "hishel.revalidated": attempt.http_status == 304,
            "cache.hit": attempt.from_cache or attempt.http_status == 304,
            "duration_ms": elapsed_ms,
        }
        if attempt.http_status is not None:
            about["http.status_code"] = attempt.http_status
        span = self._tracing.start("http.request", parent or opened.inmost, about, now - elapsed_ms * 1_000_000)
        span.end(now)

    def traced(self, download: Download) -> Download:
        """The same download, with the spans of its stages."""

        async def fetch(
            plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
        ) -> StoredCopy | None:
            opened = self._works.get(call.work_id)
            if opened is None:
                return await download(plan, work, client, call, claim)
            about = {"url": mask_url(plan.url), "resolver": plan.resolver_name}
            span = self._tracing.start("download", opened.inmost, about)
            opened.downloads[plan.resolver_name] = span
            stages = _Stages(self._tracing, span)
            try:
                copy = await download(plan, work, stages.client(client), call, stages.claim(claim))
                if copy is not None:
                    span.set_attribute("cache.hit", copy.stream.from_cache)
                return copy
            finally:
                stages.end()
                opened.downloads.pop(plan.resolver_name, None)
                span.end()

        return fetch


class _Stages:
    """Where a download stands, seen from what it asks for: the answer, the body, the right to store."""

    def __init__(self, tracing: Tracing, download: Any) -> None:
        self._tracing = tracing
        self._download = download
        self._open: list[Any] = []
        self.enter("prepare")

    def enter(self, *names: str) -> None:
        """The stages named, one below the other, follow what is open."""
        self.end()
        for name in names:
            self._open.append(self._tracing.start(name, self._open[-1] if self._open else self._download))

    def end(self) -> None:
        while self._open:
            self._open.pop().end()

    def streamed(self, size: int) -> None:
        if self._open:
            self._open[0].set_attribute("bytes", size)
        self.enter("finalize", "verify")

    def claim(self, claim: Callable[[], bool]) -> Callable[[], bool]:
        def proved() -> bool:
            if len(self._open) > 1:
                self._open.pop().end()
            return claim()

        return proved

    def client(self, client: Client) -> Client:
        return _StagedClient(client, self)


class _StagedClient:
    """The client; its bodies tell when they are read."""

    def __init__(self, client: Client, stages: _Stages) -> None:
        self._client = client
        self._stages = stages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def open(self, *args: Any, **kwargs: Any) -> Any:
        body = await self._client.open(*args, **kwargs)
        self._stages.enter("stream")
        return _StagedBody(body, self._stages)


class _StagedBody:
    """The body; it tells when it has been read."""

    def __init__(self, body: OpenBody, stages: _Stages) -> None:
        self._body = body
        self._stages = stages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    async def chunks(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body.chunks():
            size += len(chunk)
            yield chunk
        self._stages.streamed(size)


def _describe(opened: _Open, outcome: DownloadOutcome) -> None:
    artifact, meta = opened.spans[2], outcome.meta
    artifact.set_attribute("outcome", str(outcome.classification))
    for span, key, name in (
        (artifact, "duration_ms", "duration_ms"),
        (opened.work, "tier", "tier"),
        (opened.work, "resolver", "resolver"),
        (opened.work, "cache.hit", "cache_hit"),
    ):
        if meta.get(name) is not None:
            span.set_attribute(key, meta[name])


def _end(span: Any) -> None:
    if span is not None:
        span.end()
