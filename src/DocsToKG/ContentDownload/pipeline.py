"""One work from its identifiers to its outcome.

Knows the order: what is already there, then the tiers, then the outcome with everything the record needs. The work
is written once, as a generator of steps; `process` drives it while the caller waits, the scheduler drives thousands.
Does not know jobs, queues or HTTP.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from DocsToKG.ContentDownload.api.licences import spdx
from DocsToKG.ContentDownload.api.ports import Call, Limiter
from DocsToKG.ContentDownload.api.stages import WorkStages
from DocsToKG.ContentDownload.api.steps import Gatekeeper, Steps, Wait
from DocsToKG.ContentDownload.api.types import (
    DownloadOutcome,
    DownloadPlan,
    OutcomeClass,
    Reason,
    WorkArtifact,
)
from DocsToKG.ContentDownload.errors import PutOff, StorageAway
from DocsToKG.ContentDownload.fallback.budget import WorkBudget
from DocsToKG.ContentDownload.fallback.memory import WorkMemory
from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator, Found
from DocsToKG.ContentDownload.fallback.trail import Trail
from DocsToKG.ContentDownload.fallback.verdict import Verdict, verdict
from DocsToKG.ContentDownload.fallback.versions import asked_doi, stored_version
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.storage.outage import Hold
from DocsToKG.ContentDownload.supplement_download import SupplementDownload
from DocsToKG.ContentDownload.validation.identity.verdict import Proof
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.turns import giving_way
from DocsToKG.core.urls import host_key, index_url, mask_url
from DocsToKG.core.values import lean_dataclass

T = TypeVar("T")

# A work waits for the store so often and so long before it goes back, to be taken by a node whose store is there.
_LOOKS_AT_THE_STORE, _LONGEST_LOOK_S = 6, 5.0
_UNWANTED = frozenset({Reason.ROBOTS, Reason.FILTERED, Reason.TAKEN_DOWN})


@lean_dataclass(frozen=True, slots=True)
class JobContext:
    """What the caller brings to one work: how to call it off, and who wants to know its stage."""

    cancel: CancelToken = field(default_factory=CancelToken)
    on_stage: Callable[[str, str | None], None] = lambda stage, url: None  # with the file's address that it is for
    on_begin: Callable[[], None] = lambda: None  # told once, when the first exchange with the network is over
    is_first: bool = False  # nobody has worked on it before, so nobody has stored a file without saying so


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """What one work may cost (RES-26)."""

    total_s: float = 120.0
    attempts: int = 20


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of this work that the store already holds."""

    sha256: str
    size_bytes: int


class ResolverPipeline:
    """Drives works through the tiers. `already` looks for a file that an earlier run obtained, `starts_empty`: there
    was none; `refuse` says why a work is not wanted at all, or None; `held_up` why nothing could be stored now.

    `resolver_limiter` and `host_limiter` are the caller's own caps, held while the bytes of a file flow. They block a
    thread; the limits of the configuration do not, and hold with or without them.
    """

    def __init__(
        self,
        *,
        fallback: FallbackOrchestrator,
        gate: Gatekeeper,
        clock: Clock,
        limits: WorkLimits,
        already: Callable[[WorkArtifact], HeldFile | None] = lambda work: None,
        starts_empty: bool = False,
        refuse: Callable[[WorkArtifact], str | None] = lambda work: None,
        held_up: Callable[[], Hold | None] = lambda: None,
        threads: int = 3,
        resolver_limiter: Limiter | None = None,
        host_limiter: Limiter | None = None,
        supplements: SupplementDownload | None = None,
    ) -> None:
        self._supplements = supplements
        self._resolver_limiter = resolver_limiter
        self._host_limiter = host_limiter
        self._fallback = fallback
        self._gate = gate
        self._clock = clock
        self._limits = limits
        self._already = already
        self._starts_empty = starts_empty
        self._refuse = refuse
        self._held_up = held_up
        self._threads = threads
        self._memory = WorkMemory(clock)
        self._frontier: Frontier | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._closers: list[Callable[[], None]] = []

    @property
    def gate(self) -> Gatekeeper:
        return self._gate

    def process(self, artifact: WorkArtifact, ctx: JobContext | None = None) -> DownloadOutcome:
        """Obtain one work while the caller waits: for single-shot runs and debugging."""
        ctx = ctx or JobContext()
        outcome: DownloadOutcome = self._own_frontier().run(self.steps(artifact, ctx), cancel=ctx.cancel)
        return outcome

    run = process

    def candidates(self, artifact: WorkArtifact) -> tuple[list[tuple[str, DownloadPlan]], Trail]:
        """Where the work may be had, tier by tier, without fetching any body."""
        trail = Trail(artifact, self._clock)
        return self.drive(self._fallback.plan(trail, self._call(artifact, JobContext()))), trail

    async def steps(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        """The whole walk of one work as steps."""
        looks_left = _LOOKS_AT_THE_STORE
        while (hold := self._held_up()) is not None and looks_left:
            looks_left -= 1
            await Wait(self._clock.monotonic() + min(hold.seconds, _LONGEST_LOOK_S), f"the store: {hold.why}")
        try:
            if hold is not None:
                raise StorageAway(Reason.BACKOFF, hold.why, retry_after_s=hold.seconds)
            if (known := self._known_end(artifact, ctx)) is not None:
                return known
            began = self._clock.monotonic()
            trail = Trail(artifact, self._clock, past=self._memory.recall(artifact.work_id))
            stages = WorkStages(ctx.on_stage)
            found = await self._fallback.search(trail, self._call(artifact, ctx, stages), on_tier=stages.tier)
            ctx.cancel.raise_if_cancelled()
            elapsed_s = self._clock.monotonic() - began
            supplements = await self._obtain_supplements(trail, artifact, ctx) if found is not None else []
            return self._outcome(trail, found, elapsed_s, supplements)
        except PutOff as away:
            return _put_off(artifact, away)

    def _known_end(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome | None:
        """How the work ends that is there already, or not wanted; None when it is to be searched."""
        held = None if ctx.is_first and self._starts_empty else self._already(artifact)
        if held is not None:
            return _already_there(artifact, held)
        why_not = self._refuse(artifact)
        return _left_out(artifact, why_not) if why_not is not None else None

    async def _obtain_supplements(self, trail: Trail, artifact: WorkArtifact, ctx: JobContext) -> list[dict[str, Any]]:
        """What became of the files beside the paper, within a budget of their own."""
        if self._supplements is None:
            return []
        attempts = self._limits.attempts + self._supplements.most
        call = self._call(artifact, ctx).within(WorkBudget(total_s=self._limits.total_s, attempts=attempts))
        files = await self._fallback.supplements(trail, call)
        return await self._supplements(files, trail.work, self._fallback.client_of, call)

    def _outcome(
        self, trail: Trail, found: Found | None, elapsed_s: float, supplements: Sequence[Mapping[str, Any]] = ()
    ) -> DownloadOutcome:
        self._remember(trail, is_over=found is not None or trail.refused is not None or not trail.transient)
        if found is not None:
            return self._unchanged(trail, found, elapsed_s) or _success(trail, found, elapsed_s, supplements)
        if trail.refused is not None:
            return _left_out(trail.work, trail.refused)
        return _failure(trail, elapsed_s, now=self._clock.now())

    def close(self) -> None:
        with self._starting:
            self._closed = True
            if self._frontier is not None:
                self._frontier.stop(grace_s=0.0)
                self._frontier = None
        while self._closers:
            self._closers.pop()()

    def on_close(self, closer: Callable[[], None]) -> None:
        """Close something together with this pipeline."""
        self._closers.append(closer)

    def drive(self, steps: Steps[T], cancel: CancelToken | None = None) -> T:
        """Any other steps, through the same gate, while the caller waits."""
        value: T = self._own_frontier().run(steps, cancel=cancel)
        return value

    def _unchanged(self, trail: Trail, found: Found, elapsed_s: float) -> DownloadOutcome | None:
        """A skip when the cache gave the very file that is on record for this work (CACHE-20, CACHE-21)."""
        stream = found.copy.stream
        if not (stream.from_cache and found.copy.duplicate):
            return None
        held = self._already(trail.work)
        if held is None or held.sha256 != found.copy.sha256:
            return None
        meta = _found_meta(trail, found, elapsed_s) | {"dedupe": "adopted"}
        reason = Reason.NOT_MODIFIED if stream.revalidated else Reason.ALREADY_PRESENT
        return DownloadOutcome(False, OutcomeClass.SKIP, reason=reason, meta=meta)

    def _remember(self, trail: Trail, *, is_over: bool) -> None:
        """A work that may come again need not begin from nothing: only what may have changed is asked again."""
        if is_over:
            self._memory.forget(trail.work.work_id)
        else:
            self._memory.keep(trail.work.work_id, trail.past())

    @contextmanager
    def with_limits(self, resolver_name: str, url: str) -> Iterator[None]:
        """A place of the resolver, then one of the address's host, for the length of the body (LIM-04)."""
        with _place(self._resolver_limiter, resolver_name), _place(self._host_limiter, host_key(url)):
            yield

    def _call(self, artifact: WorkArtifact, ctx: JobContext, stages: WorkStages | None = None) -> Call:
        budget = WorkBudget(total_s=self._limits.total_s, attempts=self._limits.attempts, on_begin=ctx.on_begin)
        is_capped = self._resolver_limiter is not None or self._host_limiter is not None
        return Call(artifact.work_id, ctx.cancel, budget, stages, self.with_limits if is_capped else None)

    def _own_frontier(self) -> Frontier:
        with self._starting:
            if self._closed:
                raise Cancelled("the pipeline is closed")
            if self._frontier is None:
                self._frontier = Frontier(gate=self._gate, clock=self._clock, threads=self._threads, name="pipeline")
                self._frontier.start()
            return self._frontier


@contextmanager
def _place(limiter: Limiter | None, key: str) -> Iterator[None]:
    if limiter is None:
        yield
        return
    with giving_way():
        limiter.acquire(key)
    try:
        yield
    finally:
        limiter.release(key)


def _already_there(work: WorkArtifact, held: HeldFile) -> DownloadOutcome:
    meta = _work_meta(work) | {"sha256": held.sha256, "size_bytes": held.size_bytes, "dedupe": "adopted"}
    return DownloadOutcome(False, OutcomeClass.SKIP, reason=Reason.ALREADY_PRESENT, meta=meta)


def _left_out(work: WorkArtifact, why: str) -> DownloadOutcome:
    is_taken_down = why.startswith("taken down")
    reason = Reason.TAKEN_DOWN if is_taken_down else Reason.FILTERED
    said = f"{why[:1].upper()}{why[1:]}." if is_taken_down else f"Left out by your filters: {why}."
    meta = _work_meta(work) | {"cause": reason, "explanation": said}
    return DownloadOutcome(False, OutcomeClass.SKIP, reason=reason, meta=meta)


def _put_off(work: WorkArtifact, away: PutOff) -> DownloadOutcome:
    """Nothing was found out about the work: it is given back, and counts as not tried."""
    what = "The store takes no files now" if isinstance(away, StorageAway) else "The transfer was cut"
    meta = _work_meta(work) | {
        "retryable": True,
        "only_waited": True,
        "retry_after_s": away.retry_after_s,
        "cause": away.reason,
        "explanation": f"{what}: {away.detail}.",
    }
    return DownloadOutcome(False, OutcomeClass.ERROR, reason=Reason.BACKOFF, meta=meta)


def _success(
    trail: Trail, found: Found, elapsed_s: float, supplements: Sequence[Mapping[str, Any]] = ()
) -> DownloadOutcome:
    meta = _found_meta(trail, found, elapsed_s) | {"supplements": supplements}
    return DownloadOutcome(True, OutcomeClass.SUCCESS, found.copy.path, Reason.OK, meta)


def _found_meta(trail: Trail, found: Found, elapsed_s: float) -> dict[str, Any]:
    plan, copy = found.plan, found.copy
    version, version_doi = stored_version(trail.work, plan, copy)
    return _search_meta(trail, elapsed_s) | {
        "url": mask_url(plan.url),
        "canonical_url": mask_url(index_url(copy.stream.final_url)),
        "http_status": copy.stream.http_status,
        "mime": copy.mime,
        "size_bytes": copy.size_bytes,
        "sha256": copy.sha256,
        "cache_hit": copy.stream.from_cache,
        "resolver": found.source,
        "tier": found.tier,
        "version": version,
        "version_doi": version_doi,
        **_licence(plan.license),  # its own: another copy of the work may be under another
        "host_type": plan.host_type,
        "evidence": plan.evidence,
        "is_guess": plan.is_guess,
        "hops": copy.stream.hops,
        "doi_seen": copy.facts.get("doi_seen"),
        "dedupe": "duplicate" if copy.duplicate else "new",
        "ttfp_ms": round((elapsed_s - trail.meter.waited_s) * 1000),
        "proof": copy.facts.get("proof"),
        "damaged": bool(copy.facts.get("damaged")),
        "validation": dict(copy.facts),
    }


def _failure(trail: Trail, elapsed_s: float, *, now: float) -> DownloadOutcome:
    why = verdict(trail, now=now)
    meta = _search_meta(trail, elapsed_s) | {
        "retryable": trail.transient,
        "only_waited": trail.only_waited,
        "retry_after_s": trail.retry_after_s,
        "cause": why.cause,
        "explanation": why.sentence,
        "proof": Proof.UNPROVED if trail.quarantined else None,
    }
    if _is_skip(trail, why):
        return DownloadOutcome(False, OutcomeClass.SKIP, reason=why.cause, meta=meta)
    reason = Reason.BUDGET_EXHAUSTED if trail.out_of_budget else Reason.ALL_TIERS_EXHAUSTED
    return DownloadOutcome(False, OutcomeClass.ERROR, reason=reason, meta=meta)


def _is_skip(trail: Trail, why: Verdict) -> bool:
    """Nothing went wrong: the owners of the copies, or of the pages that name them, or the user do not want them
    fetched."""
    reasons = {tried.reason for tried in trail.tried if tried.is_copy}
    if trail.transient or not reasons <= _UNWANTED:
        return False
    return why.cause in (reasons or {Reason.ROBOTS})


def _search_meta(trail: Trail, elapsed_s: float) -> dict[str, Any]:
    return _work_meta(trail.work) | {
        "fallback_chain": trail.sources,
        "candidates": [asdict(tried) for tried in trail.in_order()],
        "duration_ms": round(elapsed_s * 1000),
        "waited_ms": round(trail.meter.waited_s * 1000),
    }


def _work_meta(work: WorkArtifact) -> dict[str, Any]:
    return {
        "title": work.title,
        "year": work.publication_year,
        **_licence(work.license),
        "oa_status": work.oa_status,
        "is_retracted": work.is_retracted,
        "doi": asked_doi(work),
    }


def _licence(said: str | None) -> dict[str, str | None]:
    """The licence by its SPDX name where it has one, and in the words of the source."""
    return {"license": spdx(said) if said else None, "license_raw": said}
