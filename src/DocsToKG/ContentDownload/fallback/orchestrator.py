"""Query the sources tier by tier until one copy is validated and stored.

Knows tiers, order and parallelism; gets plans from resolvers and passes each plan to `download`. Does not know HTTP,
files or jobs. Promises: a tier starts when the one before is exhausted; within a tier at most `parallel` sources run;
the first stored copy ends the search and cancels the others; a copy is tried once whatever its spelling; evidence is
tried before guesses; other forms than the wanted one are tried last; a failing source never fails the search; a store
that takes no files ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from DocsToKG.ContentDownload.api.ports import Call, Client, Resolver
from DocsToKG.ContentDownload.api.types import (
    DownloadPlan,
    Reason,
    ResolverResult,
    SourceAttempt,
    SourceOutcome,
    StoredCopy,
    Supplement,
    WorkArtifact,
)
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.errors import CandidateRejected, PutOff, RunError, TransientFailure
from DocsToKG.ContentDownload.fallback.budget import SourceShare
from DocsToKG.ContentDownload.fallback.candidates import ranked
from DocsToKG.ContentDownload.fallback.race import VersionRace
from DocsToKG.ContentDownload.fallback.resume_cache import Failure, SourceAnswer
from DocsToKG.ContentDownload.fallback.rules import SearchRules
from DocsToKG.ContentDownload.fallback.search_state import SearchState
from DocsToKG.ContentDownload.validation.forms import form_of
from DocsToKG.core.cancel import Cancelled
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import race
from DocsToKG.core.urls import BadUrl, host_key
from DocsToKG.core.values import lean_dataclass

IDENTIFY = "identify"  # stands for a tier where services are asked which paper is meant
ALTERNATIVES = "alternatives"  # stands for a tier when other forms of the paper are tried
SUPPLEMENTS = "supplements"  # and when files beside the paper are looked for
_SUPPLEMENT_SOURCES = ("pmc", "doi_redirect", "landing", "europe_pmc")
_ARCHIVES = frozenset({"wayback"})  # sources that look up addresses which failed
# Words of a source about itself, rather than about the paper: it refuses us, or its answer has another shape.
_OWN_FAULTS = ("refused", "malformed_answer")
_LACKS = "missing_"  # how a source begins to say that it could be asked, had it a key or an address
_ANSWERED_BEFORE = "answered_before"  # in an earlier try of the same work
_IN_QUARANTINE = "nothing in the file shows that it is the paper; it waits in quarantine"

Source = tuple[str, str]  # its tier and its name
Problem = CandidateRejected | TransientFailure


@lean_dataclass(frozen=True, slots=True)
class Found:
    """The copy that was validated and stored, with its tier and source."""

    plan: DownloadPlan
    copy: StoredCopy
    tier: str
    source: str


class Download(Protocol):
    """Fetch, validate and store one candidate. Nothing is stored, and None returned, unless `claim` says True."""

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None: ...


@dataclass(slots=True)
class _Ask:
    """One source that is asked about one work, in a tier and at its position in the order of sources."""

    tier: str
    name: str
    state: SearchState
    call: Call
    position: int
    began: float
    versions: VersionRace | None = None


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
        rules: SearchRules | None = None,
    ) -> None:
        self._tiers = tuple(tiers)
        self._sources = tuple([(tier.name, name) for name in tier.sources] for tier in tiers)
        self._resolvers = resolvers
        self._clients = clients
        self._download = download
        self._clock = clock
        self._rules = rules or SearchRules()
        self._identify = tuple(name for name in self._rules.identify if name in resolvers)

    async def search(
        self, state: SearchState, call: Call, *, on_tier: Callable[[str], None] = lambda tier: None
    ) -> Found | None:
        """The first proved copy, or None when every tier is exhausted; the state says what was tried. Files in
        quarantine are removed when another copy is found."""
        found = await self._search(state, call, on_tier)
        if found is not None:
            for name in state.quarantined:
                self._rules.release(name)
        return found

    async def _search(self, state: SearchState, call: Call, on_tier: Callable[[str], None]) -> Found | None:
        identify_at = 1 if self._identify and self._rules.knows_copies(state.work) else 0
        for number, tier in enumerate(self._tiers):
            if number == identify_at:
                await self._identify_work(state, call)
            if number == 0:
                state.refused = self._rules.refuse(state.work)
                if state.refused is not None:
                    return None
            on_tier(tier.name)
            await self._rules.prepare(tier.sources)
            if not _ARCHIVES.isdisjoint(tier.sources):
                state.offer_failed_addresses()
            for sources in self._groups(number, state):
                if (found := await self._try_sources(sources, tier.parallel, state, call)) is not None:
                    return found
            if self._rules.is_over(tier.name, state.work):
                break
        return await self._try_alternatives(state, call, on_tier)

    def _groups(self, number: int, state: SearchState) -> Iterator[list[Source]]:
        """The sources of a tier in groups: its own first, then those of all tiers so far that have become applicable.
        What one source reports (a PMCID, a landing page) is often what another needs."""
        own, first = self._sources[number], (self._tiers[number].name, state.work.work_id.partition(":")[0])
        if first in own:
            # Who asks by arXiv id wants the arXiv copy: the source of the id goes before the others of its tier.
            yield [first]
            own = [source for source in own if source != first]
        yield own
        while not state.out_of_budget and state.work is not state.offered_work:
            state.offered_work = state.work
            passed = (source for sources in self._sources[: number + 1] for source in sources)
            late = [each for each in passed if not state.has_asked(each[1]) and self._can_answer(each[1], state.work)]
            if not late:
                return
            yield late

    async def _try_sources(
        self, sources: Sequence[Source], parallel: int, state: SearchState, call: Call
    ) -> Found | None:
        """Run the applicable sources in parallel; a single one runs without a race."""
        able = self._applicable(sources, state, call)
        if len(able) < 2:
            return await self._try_source(self._ask(able[0], state, call)) if able else None
        versions = VersionRace(self._clock)
        branches = []
        for number, source in enumerate(able):
            ask = self._ask(source, state, call.of_branch(source[1]), versions)
            branches.append(partial(self._try_source, ask))
            if number < parallel:  # those who begin together know of each other, whoever is quicker
                versions.enter(source[1])
        return await race(branches, parallel)

    def _ask(self, source: Source, state: SearchState, call: Call, versions: VersionRace | None = None) -> _Ask:
        return _Ask(*source, state, call, state.next_position(), self._clock.monotonic(), versions)

    def _applicable(self, sources: Sequence[Source], state: SearchState, call: Call) -> list[Source]:
        """The sources that can be queried. A missing key or contact address is recorded, other reasons are not."""
        found = []
        for source in sources:
            why_not = self._why_not(source, state, call)
            if why_not is None:
                found.append(source)
            elif why_not.startswith(_LACKS):
                self._report(self._ask(source, state, call), SourceOutcome.SKIPPED, why_not)
        return found

    def _why_not(self, source: Source, state: SearchState, call: Call) -> str | None:
        """Why a source does not apply; an exception counts as a reason."""
        try:
            return self._resolvers[source[1]].applies_to(state.work)
        except Exception as error:
            self._record_error(self._ask(source, state, call), error)
            return Reason.WORKER_EXCEPTION

    def _can_answer(self, name: str, work: WorkArtifact) -> bool:
        """Whether the source applies, without a record."""
        try:
            return self._resolvers[name].applies_to(work) is None
        except Exception:  # recorded when it was asked the first time
            return False

    async def supplements(self, state: SearchState, call: Call) -> tuple[Supplement, ...]:
        """The supplements of a paper that was found: those already named, else those that pages and archives name which
        have not been queried yet."""
        await self._rules.prepare(_SUPPLEMENT_SOURCES)
        for name in _SUPPLEMENT_SOURCES:
            if state.supplements:
                break
            if name in self._resolvers and not state.has_asked(name) and self._can_answer(name, state.work):
                await self._resolve(self._ask((SUPPLEMENTS, name), state, call))
        return state.supplements

    def client_of(self, source: str) -> Client:
        return self._clients[source]

    async def plan(self, state: SearchState, call: Call) -> list[tuple[str, DownloadPlan]]:
        """Every candidate of every tier, in the order they would be tried, without downloading any."""
        plans: list[tuple[str, DownloadPlan]] = []
        await self._identify_work(state, call)
        for number, tier in enumerate(self._tiers):
            await self._rules.prepare(tier.sources)
            for source in (source for sources in self._groups(number, state) for source in sources):
                if self._why_not(source, state, call) is not None:
                    continue
                ask = self._ask(source, state, call)
                state.record_source(ask.name, ask.position)
                result = await self._resolve(ask)
                found = self._wanted(ask.name, result.plans, state) if result is not None else []
                plans += [(ask.tier, plan) for plan in found if state.is_new(plan)]
        others = state.alternatives(self._rules.formats[1:])
        return plans + [(ALTERNATIVES, plan) for _, plan in others if state.is_new(plan)]

    async def _identify_work(self, state: SearchState, call: Call) -> None:
        """Learn which paper is meant, until a DOI and a title are known. A service that fails is passed over."""
        await self._rules.prepare(self._identify)
        for name in self._identify:
            ask = self._ask((IDENTIFY, name), state, call)
            if state.reuse_answer(_identifying(name), name, ask.position) is not None:
                continue
            unknown = _needs_identity(state.work) or self._rules.lacks(state.work)
            if not unknown or self._why_not((IDENTIFY, name), state, call) is not None:
                continue
            state.record_source(name, ask.position)
            with state.waits.branch():
                result = await self._resolve(ask)
            if result is None:
                continue
            said = result.notes[0] if result.notes else "identified" if result.work else Reason.UNKNOWN_IDENTIFIER
            self._report(ask, SourceOutcome.ERROR if said.startswith(_OWN_FAULTS) else SourceOutcome.NO_PDF, said)
            note = said if result.work is None else None
            state.record_answer(_identifying(name), SourceAnswer(note=note))
            if note is not None:
                state.add_note(name, note)

    async def _resolve(self, ask: _Ask) -> ResolverResult | None:
        """The source's result; None when it failed, which is recorded."""
        name, state, call = ask.name, ask.state, ask.call
        share_s = self._rules.source_s.get(name)
        if share_s is not None and call.budget is not None:
            call = call.within(SourceShare(call.budget, seconds=share_s))
        try:
            result = await self._resolvers[name].resolve(state.work, self._clients[name], call)
            if result.work is not None:
                state.learn(result.work)
            if result.supplements:
                state.add_supplements(result.supplements)
            return result
        except (CandidateRejected, TransientFailure) as problem:
            failure = _record_failure(ask, problem)
            if isinstance(problem, CandidateRejected) and problem.reason != Reason.BUDGET_EXHAUSTED:
                key = name if ask.tier != IDENTIFY else _identifying(name)
                state.record_answer(key, SourceAnswer(failure=failure))
            self._report(ask, _outcome_of(problem), problem.reason, problem)
        except (Cancelled, RunError):
            raise
        except Exception as error:
            self._record_error(ask, error)
        return None

    async def _try_source(self, ask: _Ask, alternative: DownloadPlan | None = None) -> Found | None:
        """Query the source and try the copies it proposes, or try one `alternative` it proposed before. An unexpected
        exception is the failure of this source alone."""
        if ask.versions is not None:
            ask.versions.enter(ask.name)
        found = None
        try:
            with ask.state.waits.branch():
                if alternative is not None:
                    found = await self._fetch(ask, ResolverResult((alternative,)), [alternative])
                elif (result := await self._proposed(ask)) is not None:
                    found = await self._fetch(ask, result, self._wanted(ask.name, result.plans, ask.state))
        except (Cancelled, RunError, PutOff):
            raise
        except Exception as error:
            self._record_error(ask, error)
        finally:
            # A winner stays in the race until the others are cancelled: nobody fetches in between.
            if ask.versions is not None and found is None:
                ask.versions.leave(ask.name)
        return found

    async def _proposed(self, ask: _Ask) -> ResolverResult | None:
        """The source's result; None when it is skipped or failed."""
        name, state = ask.name, ask.state
        if state.out_of_budget:
            self._report(ask, SourceOutcome.SKIPPED, Reason.BUDGET_EXHAUSTED)
            return None
        answered = state.reuse_answer(name, name, ask.position)
        if answered is not None:
            self._wanted(name, answered.plans, state)
            self._report(ask, SourceOutcome.SKIPPED, _ANSWERED_BEFORE)
            return None
        state.record_source(name, ask.position)
        ask.began = self._clock.monotonic()
        result = await self._resolve(ask)
        if result is None:
            return None
        note = None if result.plans else result.notes[0] if result.notes else str(Reason.NO_OPEN_COPY)
        if note is not None:
            state.add_note(name, note)
        state.record_answer(name, SourceAnswer(result.plans, note))
        return result

    async def _fetch(self, ask: _Ask, result: ResolverResult, plans: Sequence[DownloadPlan]) -> Found | None:
        """Try the plans one after the other until a copy is proved."""
        name, state = ask.name, ask.state
        last: Problem | None = None
        for plan in plans:
            if ask.versions is not None:
                await ask.versions.wait_for_better(name, plan)
            if not state.is_new(plan):
                continue
            try:
                self._refuse_unwanted(plan, state.work)
                copy = await self._download(plan, state.work, self._clients[name], ask.call, state.claim)
            except PutOff:
                raise
            except (CandidateRejected, TransientFailure) as problem:
                last = problem
                _record_failure(ask, problem, plan)
                if state.out_of_budget:
                    break
                continue
            if copy is None:
                return None
            if copy.quarantined is not None:
                last = CandidateRejected(Reason.UNPROVED, _IN_QUARANTINE, url=plan.url)
                state.record_failure(name, last, plan, copy=copy)
                continue
            self._report(ask, SourceOutcome.SUCCESS, Reason.OK, url=plan.url, stage="fetch")
            return Found(plan, copy, ask.tier, name)
        self._report_failure(ask, result, last)
        return None

    async def _try_alternatives(self, state: SearchState, call: Call, on_tier: Callable[[str], None]) -> Found | None:
        """Try the copies in other forms than the wanted one."""
        others = state.alternatives(self._rules.formats[1:])
        if others:
            on_tier(ALTERNATIVES)
        for name, plan in others:
            if state.out_of_budget:
                break
            ask = self._ask((ALTERNATIVES, name), state, call)
            if (found := await self._try_source(ask, plan)) is not None:
                return found
        return None

    def _wanted(self, name: str, plans: Sequence[DownloadPlan], state: SearchState) -> list[DownloadPlan]:
        """The plans in the wanted form, in order; those in other accepted forms are set aside."""
        best = []
        for plan in ranked(plans):
            form = form_of(plan).name
            if form == self._rules.formats[0]:
                best.append(plan)
            elif form in self._rules.formats:
                state.set_aside(form, name, plan)
            else:
                state.count_unwanted_form(form)
        return best

    def _refuse_unwanted(self, plan: DownloadPlan, work: WorkArtifact) -> None:
        why = self._rules.allow(plan, work)
        if why is not None:
            reason = Reason.TAKEN_DOWN if why.startswith("taken down") else Reason.FILTERED
            raise CandidateRejected(reason, why, url=plan.url)

    def _record_error(self, ask: _Ask, error: Exception) -> None:
        ask.state.record_error(ask.name, error)
        self._report(ask, SourceOutcome.ERROR, Reason.WORKER_EXCEPTION)

    def _report_failure(self, ask: _Ask, result: ResolverResult, last: Problem | None) -> None:
        if last is not None:
            self._report(ask, _outcome_of(last), last.reason, last, stage="fetch")
            return
        said = result.notes[0] if result.notes else Reason.NO_OPEN_COPY
        at_fault = not result.plans and said.startswith(_OWN_FAULTS)
        self._report(ask, SourceOutcome.ERROR if at_fault else SourceOutcome.NO_PDF, said)

    def _report(
        self,
        ask: _Ask,
        outcome: SourceOutcome,
        reason: str,
        problem: Problem | None = None,
        *,
        url: str | None = None,
        stage: str = "resolve",
    ) -> None:
        """Report how a source ended."""
        self._rules.on_source(
            SourceAttempt(
                self._clock.now(),
                ask.state.work.work_id,
                ask.tier,
                ask.name,
                outcome,
                reason,
                _host(url or (problem.url if problem is not None else None)),
                problem.http_status if problem is not None else None,
                round((self._clock.monotonic() - ask.began) * 1000),
                stage,
            )
        )


def _outcome_of(problem: Problem) -> SourceOutcome:
    if isinstance(problem, CandidateRejected):
        return SourceOutcome.NONRETRYABLE
    return SourceOutcome.TIMEOUT if problem.reason == Reason.TIMEOUT else SourceOutcome.RETRYABLE


def _record_failure(ask: _Ask, problem: Problem, plan: DownloadPlan | None = None) -> Failure:
    """Record a failure. One that ends with the work's time used up ends the search (RES-26)."""
    failure = ask.state.record_failure(ask.name, problem, plan)
    if ask.call.budget is not None and ask.call.budget.seconds_left() <= 0:
        ask.state.out_of_budget = True
    return failure


def _identifying(name: str) -> str:
    """The key of a source's answer to the question which paper is meant."""
    return f"{IDENTIFY}:{name}"


def _needs_identity(work: WorkArtifact) -> bool:
    """A work with a DOI or a bare URL needs no identification."""
    named = work.pmid or work.pmcid or work.openalex_id or work.arxiv_id
    return work.doi is None and named is not None


def _host(url: str | None) -> str | None:
    try:
        return host_key(url) if url else None
    except BadUrl:
        return None
