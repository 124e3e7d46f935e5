"""Ask the sources tier by tier until one copy is proved.

Knows tiers, order and parallelism; asks resolvers for plans and hands each plan to `download`. Does not know HTTP,
files or jobs. Promises: a tier starts only when the one before is exhausted; within a tier at most `parallel` sources
run; the first proved copy ends the search and cuts its rivals; a copy is tried once whatever its spelling; one bad
source costs one source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from DocsToKG.ContentDownload.api.ports import Call, Client, Resolver
from DocsToKG.ContentDownload.api.steps import Race, Steps
from DocsToKG.ContentDownload.api.types import (
    DownloadPlan,
    Reason,
    ResolverResult,
    SourceAttempt,
    SourceOutcome,
    StoredCopy,
    WorkArtifact,
)
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.errors import CandidateRejected, RunError, TransientFailure
from DocsToKG.ContentDownload.fallback.meter import metered
from DocsToKG.ContentDownload.fallback.trail import Trail
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import BadUrl, host_key


@dataclass(frozen=True, slots=True)
class Found:
    """The copy that was proved and stored, and who found it."""

    plan: DownloadPlan
    copy: StoredCopy
    tier: str
    source: str


class Download(Protocol):
    """Fetch, prove and store one candidate. `claim` must say yes before anything is stored; None when it says no."""

    def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> Steps[StoredCopy | None]: ...


class FallbackOrchestrator:
    """The tiers over their resolvers and clients."""

    def __init__(
        self,
        *,
        tiers: Sequence[Tier],
        resolvers: Mapping[str, Resolver],
        clients: Mapping[str, Client],
        download: Download,
        clock: Clock,
        identify: Sequence[str] = (),
        on_source: Callable[[SourceAttempt], None] = lambda attempt: None,
    ) -> None:
        self._tiers = tuple(tiers)
        self._resolvers = resolvers
        self._clients = clients
        self._download = download
        self._clock = clock
        self._identify = tuple(name for name in identify if name in resolvers)
        self._on_source = on_source

    def search(
        self, trail: Trail, call: Call, *, on_tier: Callable[[str], None] = lambda tier: None
    ) -> Steps[Found | None]:
        """The first proved copy, or None when every tier is exhausted; the trail says what was tried."""
        yield from metered(self._find_out(trail, call), trail.meter)
        for tier in self._tiers:
            on_tier(tier.name)
            for sources in _at_home_first(tier, trail.work):
                branches = [partial(self._branch, tier.name, name, trail, call) for name in sources]
                found = yield Race(branches, tier.parallel, call.cancel)
                if found is not None:
                    return found  # type: ignore[no-any-return]  # a step's answer is as its kind says
        return None

    def plan(self, trail: Trail, call: Call) -> Steps[list[tuple[str, DownloadPlan]]]:
        """Every candidate of every tier, in the order they would be tried, without downloading any."""
        plans: list[tuple[str, DownloadPlan]] = []
        yield from self._find_out(trail, call)
        for tier in self._tiers:
            for name in (name for sources in _at_home_first(tier, trail.work) for name in sources):
                if self._resolvers[name].applies_to(trail.work) is not None:
                    continue
                trail.ask_source(name)
                result = yield from self._resolve_or_note(name, trail, call)
                found = result.plans if result is not None else ()
                plans += [(tier.name, plan) for plan in found if trail.is_new(plan)]
        return plans

    def _find_out(self, trail: Trail, call: Call) -> Steps[None]:
        """Which paper is meant? Asked until a DOI and a title are known; a service that fails leaves a gap, no more."""
        for name in self._identify:
            if not _needs_identity(trail.work) or self._resolvers[name].applies_to(trail.work) is not None:
                continue
            trail.ask_source(name)
            result = yield from self._resolve_or_note(name, trail, call)
            if result is not None and result.work is None:
                trail.note(name, result.notes[0] if result.notes else Reason.UNKNOWN_IDENTIFIER)

    def _resolve_or_note(self, name: str, trail: Trail, call: Call) -> Steps[ResolverResult | None]:
        """What the source says; None when it failed, which the trail then knows. It costs itself, never the work."""
        try:
            return (yield from self._resolve(name, trail, call))
        except (CandidateRejected, TransientFailure) as problem:
            trail.missed(name, problem)
        except (Cancelled, RunError):
            raise
        except Exception as error:
            trail.faulted(name, error)
        return None

    def _branch(self, tier: str, name: str, trail: Trail, call: Call, cancel: CancelToken) -> Steps[Found | None]:
        began = self._clock.monotonic()
        tell = partial(self._tell, tier, name, trail, began)
        try:
            steps = self._try_source(tier, name, trail, replace(call, cancel=cancel), tell)
            return (yield from metered(steps, trail.meter))
        except (Cancelled, RunError):
            raise
        except Exception as error:
            # A source that trips over what it was sent costs itself, never the run.
            trail.faulted(name, error)
            tell(SourceOutcome.ERROR, Reason.WORKER_EXCEPTION)
            return None

    def _try_source(
        self, tier: str, name: str, trail: Trail, call: Call, tell: Callable[..., None]
    ) -> Steps[Found | None]:
        why_not = self._resolvers[name].applies_to(trail.work)
        if why_not is not None:
            tell(SourceOutcome.SKIPPED, why_not)
            return None
        trail.ask_source(name)
        try:
            result = yield from self._resolve(name, trail, call)
        except (CandidateRejected, TransientFailure) as problem:
            trail.missed(name, problem)
            tell(_outcome_of(problem), problem.reason, problem)
            return None
        return (yield from self._try_plans(tier, name, result, trail, call, tell))

    def _try_plans(
        self, tier: str, name: str, result: ResolverResult, trail: Trail, call: Call, tell: Callable[..., None]
    ) -> Steps[Found | None]:
        last: CandidateRejected | TransientFailure | None = None
        for plan in result.plans:
            if not trail.is_new(plan):
                continue
            try:
                copy = yield from self._download(plan, trail.work, self._clients[name], call, trail.claim)
            except (CandidateRejected, TransientFailure) as problem:
                last = problem
                trail.missed(name, problem, plan)
                if problem.reason == Reason.BUDGET_EXHAUSTED:
                    break
                continue
            if copy is None:
                return None
            tell(SourceOutcome.SUCCESS, Reason.OK, url=plan.url)
            return Found(plan, copy, tier, name)
        if last is None and not result.plans:
            trail.note(name, result.notes[0] if result.notes else Reason.NO_OPEN_COPY)
        self._tell_miss(result, last, tell)
        return None

    def _resolve(self, name: str, trail: Trail, call: Call) -> Steps[ResolverResult]:
        result = yield from self._resolvers[name].resolve(trail.work, self._clients[name], call)
        if result.work is not None:
            trail.learn(result.work)
        return result

    def _tell_miss(
        self, result: ResolverResult, last: CandidateRejected | TransientFailure | None, tell: Callable[..., None]
    ) -> None:
        if last is None:
            tell(SourceOutcome.NO_PDF, result.notes[0] if result.notes else Reason.NO_OPEN_COPY)
        else:
            tell(_outcome_of(last), last.reason, last)

    def _tell(
        self,
        tier: str,
        name: str,
        trail: Trail,
        began: float,
        outcome: SourceOutcome,
        reason: str,
        problem: CandidateRejected | TransientFailure | None = None,
        url: str | None = None,
    ) -> None:
        url = url or (problem.url if problem is not None else None)
        self._on_source(
            SourceAttempt(
                ts=self._clock.now(),
                work_id=trail.work.work_id,
                tier=tier,
                source=name,
                outcome=outcome,
                reason=reason,
                host=_host(url),
                http_status=problem.http_status if problem is not None else None,
                elapsed_ms=round((self._clock.monotonic() - began) * 1000),
            )
        )


def _outcome_of(problem: CandidateRejected | TransientFailure) -> SourceOutcome:
    return SourceOutcome.RETRYABLE if isinstance(problem, TransientFailure) else SourceOutcome.NONRETRYABLE


def _needs_identity(work: WorkArtifact) -> bool:
    """A DOI is enough: the sources of the tiers know the rest. A bare URL is looked at as it is."""
    named = work.pmid or work.pmcid or work.openalex_id or work.arxiv_id
    return work.doi is None and named is not None


def _at_home_first(tier: Tier, work: WorkArtifact) -> list[tuple[str, ...]]:
    """Who asks by arXiv id wants the arXiv copy: the source of the id goes before the others of its tier."""
    home = work.work_id.partition(":")[0]
    if home not in tier.sources:
        return [tier.sources]
    return [(home,), tuple(name for name in tier.sources if name != home)]


def _host(url: str | None) -> str | None:
    try:
        return host_key(url) if url else None
    except BadUrl:
        return None
