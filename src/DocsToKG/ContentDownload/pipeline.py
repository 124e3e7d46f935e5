"""One work from its identifiers to its outcome.

Knows the order: what is already there, then the tiers, then the outcome with everything the record needs. `obtain` is
the work as a coroutine, of which the scheduler runs thousands; `process` runs one while the caller waits. Does not know
jobs, queues or HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from DocsToKG.ContentDownload.api.licences import spdx
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.stages import WorkStages
from DocsToKG.ContentDownload.api.types import (
    DownloadOutcome,
    DownloadPlan,
    OutcomeClass,
    Reason,
    WorkArtifact,
)
from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.ContentDownload.errors import PutOff, StorageAway
from DocsToKG.ContentDownload.fallback.budget import WorkBudget
from DocsToKG.ContentDownload.fallback.failure_reason import FailureReason, failure_reason
from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator, Found
from DocsToKG.ContentDownload.fallback.resume_cache import ResumeCache
from DocsToKG.ContentDownload.fallback.search_state import SearchState
from DocsToKG.ContentDownload.fallback.versions import asked_doi, stored_version
from DocsToKG.ContentDownload.net.limits.queues import Limiter, PermitQueues
from DocsToKG.ContentDownload.storage.outage import Hold
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.core.urls import index_url, mask_url
from DocsToKG.core.values import lean_dataclass

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.supplement_download import SupplementDownload

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
    waits: WorkWaits | None = None


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
    was none; `refuse` says why a work is not wanted at all, or None; `held_up` why nothing could be stored now;
    `asks_servers`: these answers take their time. `loop` is where works are run for callers who wait.

    `resolver_limiter` and `host_limiter` are the caller's own caps on exchanges at once, beside those of the
    configuration.
    """

    def __init__(
        self,
        *,
        fallback: FallbackOrchestrator,
        clock: Clock,
        limits: WorkLimits,
        loop: LoopThread | None = None,
        gates: PermitQueues | None = None,
        already: Callable[[WorkArtifact], HeldFile | None] = lambda work: None,
        starts_empty: bool = False,
        refuse: Callable[[WorkArtifact], str | None] = lambda work: None,
        held_up: Callable[[], Hold | None] = lambda: None,
        asks_servers: bool = False,
        resolver_limiter: Limiter | None = None,
        host_limiter: Limiter | None = None,
        supplements: SupplementDownload | None = None,
    ) -> None:
        if gates is not None and (resolver_limiter is not None or host_limiter is not None):
            gates.cap(resolver_limiter, host_limiter)
        self._supplements = supplements
        self._fallback = fallback
        self._gates = gates
        self._clock = clock
        self._limits = limits
        self._already = already
        self._starts_empty = starts_empty
        self._refuse = refuse
        self._held_up = held_up
        self._asks_servers = asks_servers
        self._resume_cache = ResumeCache(clock)
        self._loop = loop or LoopThread("pipeline")
        self._owns_loop = loop is None
        self._closers: list[Callable[[], None]] = []

    @property
    def loop(self) -> LoopThread:
        """Where the works are run."""
        return self._loop

    @property
    def gates(self) -> PermitQueues | None:
        """Where they wait for permits."""
        return self._gates

    def process(self, artifact: WorkArtifact, ctx: JobContext | None = None) -> DownloadOutcome:
        """Obtain one work while the caller waits: for single-shot runs and debugging."""
        ctx = ctx or JobContext()
        return self._loop.run(self.obtain(artifact, ctx), cancel=ctx.cancel)

    run = process

    def candidates(self, artifact: WorkArtifact) -> tuple[list[tuple[str, DownloadPlan]], SearchState]:
        """Where the work may be had, tier by tier, without fetching any body."""
        state = SearchState(artifact, self._clock)
        return self.drive(self._fallback.plan(state, self._call(artifact, JobContext()))), state

    async def obtain(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        """The whole way of one work."""
        looks_left, waits = _LOOKS_AT_THE_STORE, ctx.waits or WorkWaits(self._clock)
        while (hold := await self._asked(self._held_up)) is not None and looks_left:
            looks_left -= 1
            with waits.branch():
                await waits.sleep(min(hold.seconds, _LONGEST_LOOK_S))
        try:
            if hold is not None:
                raise StorageAway(Reason.BACKOFF, hold.why, retry_after_s=hold.seconds)
            known = await self._known_end(artifact, ctx)
            if known is not None:
                return known
            began = self._clock.monotonic()
            state = SearchState(artifact, self._clock, earlier=self._resume_cache.get(artifact.work_id), waits=waits)
            stages = WorkStages(ctx.on_stage)
            found = await self._fallback.search(state, self._call(artifact, ctx, waits, stages), on_tier=stages.tier)
            ctx.cancel.raise_if_cancelled()
            elapsed_s = self._clock.monotonic() - began
            supplements = await self._obtain_supplements(state, artifact, ctx) if found is not None else []
            return await self._outcome(state, found, elapsed_s, supplements)
        except PutOff as away:
            return _put_off(artifact, away)

    async def _asked(self, question: Callable[[], T]) -> T:
        """What store and record say; where they are servers, the loop does not wait for their answer."""
        return await asyncio.to_thread(question) if self._asks_servers else question()

    async def _known_end(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome | None:
        """How the work ends that is there already, or not wanted; None when it is to be searched."""
        is_new = ctx.is_first and self._starts_empty
        held = None if is_new else await self._asked(partial(self._already, artifact))
        if held is not None:
            return _already_there(artifact, held)
        why_not = await self._asked(partial(self._refuse, artifact))
        return _left_out(artifact, why_not) if why_not is not None else None

    async def _obtain_supplements(
        self, state: SearchState, artifact: WorkArtifact, ctx: JobContext
    ) -> list[dict[str, Any]]:
        """What became of the files beside the paper, within a budget of their own."""
        if self._supplements is None:
            return []
        attempts = self._limits.attempts + self._supplements.most
        call = self._call(artifact, ctx).within(WorkBudget(total_s=self._limits.total_s, attempts=attempts))
        files = await self._fallback.supplements(state, call)
        return await self._supplements(files, state.work, self._fallback.client_of, call)

    async def _outcome(
        self, state: SearchState, found: Found | None, elapsed_s: float, supplements: Sequence[Mapping[str, Any]] = ()
    ) -> DownloadOutcome:
        self._remember(state, is_over=found is not None or state.refused is not None or not state.transient)
        if found is not None:
            return await self._unchanged(state, found, elapsed_s) or _success(state, found, elapsed_s, supplements)
        if state.refused is not None:
            return _left_out(state.work, state.refused)
        return _failure(state, elapsed_s, now=self._clock.now())

    def close(self) -> None:
        while self._closers:
            self._closers.pop()()
        if self._owns_loop:
            self._loop.close()

    def on_close(self, closer: Callable[[], None]) -> None:
        """Close something together with this pipeline."""
        self._closers.append(closer)

    def drive(self, work: Coroutine[Any, Any, T], cancel: CancelToken | None = None) -> T:
        """Any other work on the same loop, while the caller waits."""
        return self._loop.run(work, cancel=cancel)

    async def _unchanged(self, state: SearchState, found: Found, elapsed_s: float) -> DownloadOutcome | None:
        """A skip when the cache gave the very file that is on record for this work (CACHE-20, CACHE-21)."""
        stream = found.copy.stream
        if not (stream.from_cache and found.copy.duplicate):
            return None
        held = await self._asked(partial(self._already, state.work))
        if held is None or held.sha256 != found.copy.sha256:
            return None
        meta = _found_meta(state, found, elapsed_s) | {"dedupe": "adopted"}
        reason = Reason.NOT_MODIFIED if stream.revalidated else Reason.ALREADY_PRESENT
        return DownloadOutcome(False, OutcomeClass.SKIP, reason=reason, meta=meta)

    def _remember(self, state: SearchState, *, is_over: bool) -> None:
        """A work that may come again need not begin from nothing: only what may have changed is asked again."""
        if is_over:
            self._resume_cache.forget(state.work.work_id)
        else:
            self._resume_cache.put(state.work.work_id, state.snapshot())

    def _call(
        self, artifact: WorkArtifact, ctx: JobContext, waits: WorkWaits | None = None, stages: WorkStages | None = None
    ) -> Call:
        budget = WorkBudget(total_s=self._limits.total_s, attempts=self._limits.attempts, on_begin=ctx.on_begin)
        return Call(artifact.work_id, ctx.cancel, budget, stages, waits)


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
    state: SearchState, found: Found, elapsed_s: float, supplements: Sequence[Mapping[str, Any]] = ()
) -> DownloadOutcome:
    meta = _found_meta(state, found, elapsed_s) | {"supplements": supplements}
    return DownloadOutcome(True, OutcomeClass.SUCCESS, found.copy.path, Reason.OK, meta)


def _found_meta(state: SearchState, found: Found, elapsed_s: float) -> dict[str, Any]:
    plan, copy = found.plan, found.copy
    version, version_doi = stored_version(state.work, plan, copy)
    return _search_meta(state, elapsed_s) | {
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
        "ttfp_ms": round((elapsed_s - state.waits.waited_s) * 1000),
        "proof": copy.facts.get("proof"),
        "damaged": bool(copy.facts.get("damaged")),
        "validation": dict(copy.facts),
    }


def _unproved() -> str:
    from DocsToKG.ContentDownload.validation.identity.verdict import Proof  # loaded already: a file was judged

    return Proof.UNPROVED


def _failure(state: SearchState, elapsed_s: float, *, now: float) -> DownloadOutcome:
    why = failure_reason(state, now=now)
    meta = _search_meta(state, elapsed_s) | {
        "retryable": state.transient,
        "only_waited": state.only_waited,
        "retry_after_s": state.retry_after_s,
        "cause": why.cause,
        "explanation": why.sentence,
        "proof": _unproved() if state.quarantined else None,
    }
    if _is_skip(state, why):
        return DownloadOutcome(False, OutcomeClass.SKIP, reason=why.cause, meta=meta)
    reason = Reason.BUDGET_EXHAUSTED if state.out_of_budget else Reason.ALL_TIERS_EXHAUSTED
    return DownloadOutcome(False, OutcomeClass.ERROR, reason=reason, meta=meta)


def _is_skip(state: SearchState, why: FailureReason) -> bool:
    """Nothing went wrong: the owners of the copies, or of the pages that name them, or the user do not want them
    fetched."""
    reasons = {tried.reason for tried in state.failures if tried.is_copy}
    if state.transient or not reasons <= _UNWANTED:
        return False
    return why.cause in (reasons or {Reason.ROBOTS})


def _search_meta(state: SearchState, elapsed_s: float) -> dict[str, Any]:
    return _work_meta(state.work) | {
        "fallback_chain": state.sources,
        "candidates": [asdict(tried) for tried in state.failures_in_order()],
        "duration_ms": round(elapsed_s * 1000),
        "waited_ms": round(state.waits.waited_s * 1000),
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
