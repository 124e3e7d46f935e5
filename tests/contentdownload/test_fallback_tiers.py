"""Tiers: order, races, budgets, and that one bad source costs one source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.steps import Gate, Steps, Wait
from DocsToKG.ContentDownload.api.types import (
    DownloadPlan,
    DownloadStreamResult,
    Reason,
    ResolverResult,
    SourceAttempt,
    StoredCopy,
    WorkArtifact,
)
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.errors import CandidateRejected, DiskFull, TransientFailure
from DocsToKG.ContentDownload.fallback import FallbackOrchestrator
from DocsToKG.ContentDownload.fallback.budget import WorkBudget
from DocsToKG.ContentDownload.fallback.meter import WaitMeter, metered
from DocsToKG.ContentDownload.fallback.trail import Trail
from DocsToKG.ContentDownload.pipeline import HeldFile, ResolverPipeline, WorkLimits
from DocsToKG.core.clock import ManualClock, SystemClock

WORK = WorkArtifact("doi:10.1/x", doi="10.1/x")


class OpenGate:
    def ask(self, gate: Gate) -> object:
        return object()

    def on_free(self, callback: Callable[[str], None]) -> None:
        return None


@dataclass
class Source:
    """Proposes `urls`, after `delay_s`; or raises."""

    name: str
    urls: tuple[str, ...] = ()
    delay_s: float = 0.0
    error: Exception | None = None
    why_not: str | None = None
    learns: WorkArtifact | None = None
    asked: list[WorkArtifact] = field(default_factory=list)

    def applies_to(self, work: WorkArtifact) -> str | None:
        return self.why_not

    def resolve(self, work: WorkArtifact, client: Client, call: Call) -> Steps[ResolverResult]:
        self.asked.append(work)
        yield Wait(time.monotonic() + self.delay_s, "an answer")
        if self.error is not None:
            raise self.error
        return ResolverResult(tuple(DownloadPlan(url, self.name) for url in self.urls), (), self.learns)


@dataclass
class Downloads:
    """Knows which URLs are good; records what was tried."""

    good: frozenset[str] = frozenset()
    errors: dict[str, Exception] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    slow: dict[str, float] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)

    def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> Steps[StoredCopy | None]:
        self.tried.append(plan.url)
        yield Gate(plan.url, plan.resolver_name, "artifact")
        woken = threading.Event()
        with call.cancel.calling(woken.set):
            if woken.wait(self.slow.get(plan.url, 0.0)):
                self.cut.append(plan.url)
                call.cancel.raise_if_cancelled()
        if plan.url in self.errors:
            raise self.errors[plan.url]
        if plan.url not in self.good:
            raise CandidateRejected(Reason.HTTP_STATUS, "404", url=plan.url, http_status=404)
        if not claim():
            return None
        stream = DownloadStreamResult(Path("t"), 3, 200, "application/pdf", "ab", "cd", plan.url)
        return StoredCopy(Path("f.pdf"), "ab" * 32, 3, "application/pdf", stream)


@dataclass
class Bench:
    sources: list[Source]
    tiers: list[Tier]
    downloads: Downloads
    told: list[SourceAttempt] = field(default_factory=list)
    already: Callable[[WorkArtifact], HeldFile | None] = lambda work: None

    def run(self):
        pipeline = ResolverPipeline(
            fallback=FallbackOrchestrator(
                tiers=self.tiers,
                resolvers={source.name: source for source in self.sources},
                clients={source.name: None for source in self.sources},
                download=self.downloads,
                clock=SystemClock(),
                on_source=self.told.append,
            ),
            gate=OpenGate(),
            clock=SystemClock(),
            limits=WorkLimits(),
            already=self.already,
        )
        try:
            return pipeline.process(WORK)
        finally:
            pipeline.close()


def bench(*sources: Source, good: str = "", parallel: int = 1, one_tier: bool = False, **kwargs) -> Bench:
    names = tuple(source.name for source in sources)
    tiers = [Tier("only", parallel, names)] if one_tier else [Tier(f"t-{name}", parallel, (name,)) for name in names]
    return Bench(list(sources), tiers, Downloads(frozenset(good.split()), **kwargs))


def test_tiers_are_asked_in_order_and_the_search_stops_at_the_first_success() -> None:
    """RES-02, RES-04, RES-28."""
    a, b, c = Source("a"), Source("b", ("https://b.org/1",)), Source("c", ("https://c.org/1",))
    outcome = bench(a, b, c, good="https://b.org/1 https://c.org/1").run()
    assert outcome.ok
    assert (outcome.meta["resolver"], outcome.meta["tier"]) == ("b", "t-b")
    assert outcome.meta["fallback_chain"] == ["a", "b"]
    assert not c.asked


def test_every_candidate_of_a_source_is_tried_before_the_next() -> None:
    a = Source("a", ("https://a.org/1", "https://a.org/2"))
    run = bench(a, good="https://a.org/2")
    assert run.run().ok
    assert run.downloads.tried == ["https://a.org/1", "https://a.org/2"]


def test_one_copy_is_not_tried_twice_under_two_spellings() -> None:
    a = Source("a", ("https://A.org/x?b=1&a=2",))
    b = Source("b", ("http://a.org/x?a=2&b=1&utm_source=q", "https://b.org/y"))
    run = bench(a, b, good="https://b.org/y")
    assert run.run().ok
    assert run.downloads.tried == ["https://A.org/x?b=1&a=2", "https://b.org/y"]


def test_the_loser_of_a_race_is_cut() -> None:
    """RES-03, RES-04."""
    slow, quick = Source("slow", ("https://s.org/1",)), Source("quick", ("https://q.org/1",), delay_s=0.02)
    good, stall = "https://s.org/1 https://q.org/1", {"https://s.org/1": 30.0}
    run = bench(slow, quick, good=good, parallel=2, one_tier=True, slow=stall)
    began = time.monotonic()
    assert run.run().meta["resolver"] == "quick"
    assert time.monotonic() - began < 5
    assert run.downloads.cut == ["https://s.org/1"]


def test_exhausted_tiers_name_each_reason() -> None:
    """RES-23, RES-25."""
    run = bench(Source("a", ("https://a.org/1",)), Source("b"), Source("c", why_not="no_doi"))
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("error", "all_tiers_exhausted")
    assert outcome.meta["candidates"][0]["reason"] == "http-status"
    assert [(told.source, told.outcome) for told in run.told] == [
        ("a", "nonretryable"),
        ("b", "no_pdf"),
        ("c", "skipped"),
    ]
    assert not outcome.meta["retryable"]


def test_a_transient_failure_makes_the_work_retryable_at_the_time_named() -> None:
    """RES-27."""
    busy = TransientFailure(Reason.RETRY_AFTER, retry_after_s=90.0)
    outcome = bench(Source("a", error=busy), Source("b", ("https://b.org/1",))).run()
    assert outcome.meta["retryable"]
    assert outcome.meta["retry_after_s"] == 90.0


def test_only_robots_in_the_way_is_a_skip() -> None:
    """ROB-04."""
    denied = CandidateRejected(Reason.ROBOTS, url="https://a.org/1")
    outcome = bench(Source("a", ("https://a.org/1",)), errors={"https://a.org/1": denied}).run()
    assert (outcome.classification, outcome.reason) == ("skip", "robots")


def test_a_source_that_trips_costs_only_itself() -> None:
    outcome = bench(Source("a", error=KeyError("x")), Source("b", ("https://b.org/1",)), good="https://b.org/1").run()
    assert outcome.ok


def test_a_full_disk_stops_the_run() -> None:
    run = bench(Source("a", ("https://a.org/1",)), errors={"https://a.org/1": DiskFull("no room")})
    with pytest.raises(DiskFull):
        run.run()


def test_what_one_source_learns_the_next_one_knows() -> None:
    a, b = Source("a", learns=WorkArtifact("doi:10.1/x", title="T", arxiv_id="2101.00001")), Source("b")
    bench(a, b).run()
    assert (b.asked[0].title, b.asked[0].arxiv_id, b.asked[0].doi) == ("T", "2101.00001", "10.1/x")


def test_a_file_that_is_there_is_not_fetched() -> None:
    """CACHE-20, D17."""
    a = Source("a", ("https://a.org/1",))
    run = bench(a, good="https://a.org/1")
    run.already = lambda work: HeldFile("ab" * 32, 3)
    outcome = run.run()
    assert (outcome.classification, outcome.reason) == ("skip", "already-present")
    assert not a.asked


def test_only_one_branch_may_store() -> None:
    trail = Trail(WORK, ManualClock())
    assert [trail.claim() for _ in range(3)] == [True, False, False]


def test_a_budget_ends() -> None:
    """RES-26."""
    budget = WorkBudget(total_s=10, attempts=2)
    budget.take_attempt()
    budget.take_attempt()
    with pytest.raises(CandidateRejected, match="budget_exhausted"):
        budget.take_attempt()
    late = WorkBudget(total_s=1, attempts=2)
    late.spend(1.5)
    assert late.seconds_left() == 0
    with pytest.raises(CandidateRejected):
        late.take_attempt()


def test_time_counts_as_waiting_only_while_every_branch_waits() -> None:
    """SLO-01: the wait for our own limits is told apart."""
    clock = ManualClock()
    meter = WaitMeter(clock)

    def branch() -> Iterator[object]:
        yield Gate("https://a.org/", "t", "artifact")
        yield Wait(0.0, "the server")

    one, two = metered(branch(), meter), metered(branch(), meter)
    next(one)
    clock.advance(1)  # the only branch begun waits
    next(two)
    clock.advance(2)  # both wait
    one.send(None)
    clock.advance(4)  # one is with the server
    assert meter.waited_s == 3.0
    one.close()
    two.close()


def test_metered_steps_pass_values_and_exceptions_through() -> None:
    def steps() -> Steps[str]:
        got = yield Gate("https://a.org/", "t", "artifact")
        try:
            yield Wait(0.0, "x")
        except LookupError:
            return f"{got} caught"
        return "no"

    wrapped = metered(steps(), WaitMeter(ManualClock()))
    next(wrapped)
    wrapped.send("permit")
    with pytest.raises(StopIteration) as stop:
        wrapped.throw(LookupError())
    assert stop.value.value == "permit caught"
