"""A search over sources and downloads that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import (
    DownloadOutcome,
    DownloadPlan,
    DownloadStreamResult,
    Reason,
    ResolverResult,
    SourceAttempt,
    StoredCopy,
    WorkArtifact,
)
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.fallback import FallbackOrchestrator, SearchRules
from DocsToKG.ContentDownload.pipeline import HeldFile, ResolverPipeline, WorkLimits
from DocsToKG.core.clock import Clock, SystemClock

WORK = WorkArtifact("doi:10.1/x", doi="10.1/x")


@dataclass
class Source:
    """Proposes `urls` and `plans`, after `delay_s`; or raises. `costs` are exchanges it makes: role and seconds."""

    name: str
    urls: tuple[str, ...] = ()
    delay_s: float = 0.0
    error: Exception | None = None
    why_not: str | None = None
    learns: WorkArtifact | None = None
    plans: tuple[DownloadPlan, ...] = ()
    notes: tuple[str, ...] = ()
    costs: tuple[tuple[str, float], ...] = ()
    asked: list[WorkArtifact] = field(default_factory=list)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return self.why_not

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        self.asked.append(work)
        await asyncio.sleep(self.delay_s)
        for role, seconds in self.costs:
            assert call.budget is not None
            call.budget.take_attempt(role)
            call.budget.spend(seconds)
        if self.error is not None:
            raise self.error
        plans = (*(DownloadPlan(url, self.name) for url in self.urls), *self.plans)
        return ResolverResult(plans, self.notes, self.learns)


@dataclass
class Downloads:
    """Knows which URLs are good; records what was tried."""

    good: frozenset[str] = frozenset()
    errors: dict[str, Exception] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    slow: dict[str, float] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None:
        assert call.budget is not None
        call.budget.take_attempt("artifact")
        self.tried.append(plan.url)
        try:
            await asyncio.sleep(self.slow.get(plan.url, 0.0))
        except asyncio.CancelledError:
            self.cut.append(plan.url)
            raise
        if plan.url in self.errors:
            raise self.errors[plan.url]
        if plan.url not in self.good:
            raise CandidateRejected(Reason.HTTP_STATUS, "404", url=plan.url, http_status=404)
        if not claim():
            return None
        stream = DownloadStreamResult(Path("t"), 3, 200, "application/pdf", "ab", "cd", plan.url)
        return StoredCopy("f.pdf", "ab" * 32, 3, "application/pdf", stream, facts=self.facts)


@dataclass
class Bench:
    sources: list[Source]
    tiers: list[Tier]
    downloads: Downloads
    told: list[SourceAttempt] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)
    already: Callable[[WorkArtifact], HeldFile | None] = lambda work: None
    refuse: Callable[[WorkArtifact], str | None] = lambda work: None
    limits: WorkLimits = field(default_factory=WorkLimits)
    more: dict[str, Any] = field(default_factory=dict)  # further rules of the search
    about_store: dict[str, Any] = field(default_factory=dict)  # further arguments of the pipeline

    def run(self, work: WorkArtifact = WORK) -> DownloadOutcome:
        pipeline = self.pipeline()
        try:
            return pipeline.process(work)
        finally:
            pipeline.close()

    def run_again(self, tries: int, work: WorkArtifact = WORK) -> Iterator[DownloadOutcome]:
        """The outcomes of several tries in one process; the bench may be changed between them."""
        pipeline = self.pipeline()
        try:
            for _ in range(tries):
                yield pipeline.process(work)
        finally:
            pipeline.close()

    def plan(self, work: WorkArtifact = WORK) -> list[tuple[str, DownloadPlan]]:
        pipeline = self.pipeline()
        try:
            return pipeline.candidates(work)[0]
        finally:
            pipeline.close()

    def fallback(self) -> FallbackOrchestrator:
        return FallbackOrchestrator(
            tiers=self.tiers,
            resolvers={source.name: source for source in self.sources},
            clients={source.name: None for source in self.sources},
            download=self.downloads,
            clock=self.clock,
            rules=SearchRules(on_source=self.told.append, **self.more),
        )

    def pipeline(self) -> ResolverPipeline:
        return ResolverPipeline(
            fallback=self.fallback(),
            clock=self.clock,
            limits=self.limits,
            already=self.already,
            refuse=self.refuse,
            **self.about_store,
        )


def bench(*sources: Source, good: str = "", parallel: int = 1, one_tier: bool = False, **kwargs: Any) -> Bench:
    """Each source in a tier of its own, unless `one_tier`; `kwargs` are those of `Downloads`."""
    names = tuple(source.name for source in sources)
    tiers = [Tier("only", parallel, names)] if one_tier else [Tier(f"t-{name}", parallel, (name,)) for name in names]
    return Bench(list(sources), tiers, Downloads(frozenset(good.split()), **kwargs))
