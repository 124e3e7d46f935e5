"""Ask the sources tier by tier until one copy is proved.

Knows tiers, order and parallelism; asks resolvers for plans and hands each plan to `download`. Does not know HTTP,
files or jobs. Promises: a tier starts only when the one before is exhausted; within a tier at most `parallel` sources
run; the first proved copy ends the search and cuts its rivals; a copy is tried once whatever its spelling; of one
source evidence goes before guesses; other forms than the wanted one are tried when all tiers are exhausted; one bad
source costs one source; a store that takes no files ends the search, since every copy would be fetched in vain.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

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

Tell = Callable[..., None]  # how a source ended: the last words of `FallbackOrchestrator._tell`
Proposed = tuple[ResolverResult, list[DownloadPlan]]  # what a source says, and which of its copies are tried now


@lean_dataclass(frozen=True, slots=True)
class Found:
    """The copy that was proved and stored, and who found it."""

    plan: DownloadPlan
    copy: StoredCopy
    tier: str
    source: str


class Download(Protocol):
    """Fetch, prove and store one candidate. `claim` must say yes before anything is stored; None when it says no."""

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None: ...


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
        formats: Sequence[str] = ("pdf",),
        source_s: Mapping[str, float] | None = None,
        allow: Callable[[DownloadPlan, WorkArtifact], str | None] = lambda plan, work: None,
        lacks: Callable[[WorkArtifact], bool] = lambda work: False,
        refuse: Callable[[WorkArtifact], str | None] = lambda work: None,
        release: Callable[[str], None] = lambda name: None,
        on_source: Callable[[SourceAttempt], None] = lambda attempt: None,
        is_over: Callable[[str, WorkArtifact], bool] = lambda tier, work: False,
        knows_copies: Callable[[WorkArtifact], bool] = lambda work: False,
    ) -> None:
        """`formats` are the forms that are taken, best first. `source_s` bounds the seconds a source may use to say
        where a paper is. `allow` says why a candidate is not wanted, `refuse` why a work is not; `lacks` whether they
        need to know more of a work than is known. `release` removes a file from quarantine. `is_over` tells after a
        tier whether the search of a work ends there; one whose copies the first tier knows is identified after it."""
        self._tiers = tuple(tiers)
        self._at_home = tuple([(tier.name, name) for name in tier.sources] for tier in tiers)
        self._resolvers = resolvers
        self._clients = clients
        self._download = download
        self._clock = clock
        self._identify = tuple(name for name in identify if name in resolvers)
        self._formats = tuple(formats)
        self._source_s = source_s or {}
        self._allow = allow
        self._lacks = lacks
        self._refuse = refuse
        self._release = release
        self._on_source = on_source
        self._is_over = is_over
        self._knows_copies = knows_copies

    async def search(
        self, state: SearchState, call: Call, *, on_tier: Callable[[str], None] = lambda tier: None
    ) -> Found | None:
        """The first proved copy, or None when every tier is exhausted; the state says what was tried. What waits in
        quarantine waits for that."""
        found = await self._search(state, call, on_tier)
        for name in state.quarantined if found is not None else ():
            self._release(name)
        return found

    async def _search(self, state: SearchState, call: Call, on_tier: Callable[[str], None]) -> Found | None:
        identify_at = 1 if self._identify and self._knows_copies(state.work) else 0
        if self._identify and not identify_at:
            with state.waits.branch():
                await self._find_out(state, call)
        state.refused = self._refuse(state.work)
        for number, tier in enumerate(self._tiers if state.refused is None else ()):
            if number and number == identify_at:
                with state.waits.branch():
                    await self._find_out(state, call)
            on_tier(tier.name)
            if not _ARCHIVES.isdisjoint(tier.sources):
                state.offer_failed_addresses()
            for sources in self._turns(number, state):
                if (found := await self._ask(sources, tier.parallel, state, call)) is not None:
                    return found
            if self._is_over(tier.name, state.work):
                break
        return await self._try_alternatives(state, call, on_tier)

    async def _ask(
        self, sources: Sequence[tuple[str, str]], parallel: int, state: SearchState, call: Call
    ) -> Found | None:
        """Those who have something to ask by, in a race; one alone needs none."""
        asked = [(home, name) for home, name in sources if self._can_be_asked(home, name, state)]
        if len(asked) > 1:
            return await self._race(asked, parallel, state, call)
        for home, name in asked:
            return await self._branch(home, name, state.next_position(), None, state, call)
        return None

    async def _race(
        self, asked: Sequence[tuple[str, str]], parallel: int, state: SearchState, call: Call
    ) -> Found | None:
        versions = VersionRace(self._clock)
        branches = [
            partial(self._branch, home, name, state.next_position(), versions, state, call.of_branch(name))
            for home, name in asked
        ]
        for _, name in asked[:parallel]:  # those who begin together know of each other, whoever is quicker
            versions.enter(name)
        return await race(branches, parallel)

    def _can_be_asked(self, tier: str, name: str, state: SearchState) -> bool:
        """Whose business the work is not leaves no line; who lacks a key or an address for it does."""
        why_not = self._why_not(tier, name, state)
        if why_not is not None and why_not.startswith(_LACKS):
            self._tell(tier, name, state, self._clock.monotonic(), SourceOutcome.SKIPPED, why_not)
        return why_not is None

    def _why_not(self, tier: str, name: str, state: SearchState) -> str | None:
        """Why a source cannot be asked. One that trips over the question costs itself."""
        try:
            return self._resolvers[name].applies_to(state.work)
        except Exception as error:
            state.record_error(name, error)
            self._tell(tier, name, state, self._clock.monotonic(), SourceOutcome.ERROR, Reason.WORKER_EXCEPTION)
            return Reason.WORKER_EXCEPTION

    def _could_be_asked(self, name: str, work: WorkArtifact) -> bool:
        """The same question without a word about the answer."""
        try:
            return self._resolvers[name].applies_to(work) is None
        except Exception:  # told when it was asked the first time
            return False

    async def supplements(self, state: SearchState, call: Call) -> tuple[Supplement, ...]:
        """The files beside a paper that was found: those named on the way, else what the pages and archives say that
        have not been asked yet."""
        for name in _SUPPLEMENT_SOURCES:
            if state.supplements:
                break
            if name in self._resolvers and name not in state.sources and self._could_be_asked(name, state.work):
                await self._resolve_or_note(SUPPLEMENTS, name, state, call)
        return state.supplements

    def client_of(self, source: str) -> Client:
        return self._clients[source]

    async def plan(self, state: SearchState, call: Call) -> list[tuple[str, DownloadPlan]]:
        """Every candidate of every tier, in the order they would be tried, without downloading any."""
        plans: list[tuple[str, DownloadPlan]] = []
        await self._find_out(state, call)
        for number in range(len(self._tiers)):
            for home, name in (source for sources in self._turns(number, state) for source in sources):
                if self._why_not(home, name, state) is not None:
                    continue
                state.record_source(name, state.next_position())
                result = await self._resolve_or_note(home, name, state, call)
                found = self._wanted(name, result.plans, state) if result is not None else []
                plans += [(home, plan) for plan in found if state.is_new(plan)]
        others = state.alternatives(self._formats[1:])
        return plans + [(ALTERNATIVES, plan) for _, plan in others if state.is_new(plan)]

    def _turns(self, number: int, state: SearchState) -> Iterator[list[tuple[str, str]]]:
        """Who is asked in a tier, in groups of tier and source: its own sources first, then those up to here that could
        not be asked before and now can. What one source tells (a PMCID, a landing page) is often what another needs."""
        tier = self._tiers[number]
        own, home = self._at_home[number], (tier.name, state.work.work_id.partition(":")[0])
        if home in own:
            # Who asks by arXiv id wants the arXiv copy: the source of the id goes before the others of its tier.
            yield [home]
            own = [source for source in own if source != home]
        yield own
        known = [source for sources in self._at_home[: number + 1] for source in sources]
        while not state.out_of_budget:
            passed = [source for source in known if source[1] not in state.sources]
            late = [source for source in passed if self._could_be_asked(source[1], state.work)]
            if not late:
                return
            yield late
            known = [source for source in passed if source not in late]

    async def _find_out(self, state: SearchState, call: Call) -> None:
        """Which paper is meant? Asked until a DOI and a title are known; a service that fails leaves a gap, no more."""
        for name in self._identify:
            if state.reuse_answer(_identifying(name), name, state.next_position()) is not None:
                continue
            unknown = _needs_identity(state.work) or self._lacks(state.work)
            if not unknown or self._why_not(IDENTIFY, name, state) is not None:
                continue
            state.record_source(name, state.next_position())
            tell = partial(self._tell, IDENTIFY, name, state, self._clock.monotonic())
            result = await self._resolve_or_note(IDENTIFY, name, state, call)
            if result is None:
                continue
            said = result.notes[0] if result.notes else "identified" if result.work else Reason.UNKNOWN_IDENTIFIER
            tell(SourceOutcome.ERROR if said.startswith(_OWN_FAULTS) else SourceOutcome.NO_PDF, said)
            note = said if result.work is None else None
            state.record_answer(_identifying(name), SourceAnswer(note=note))
            if note is not None:
                state.add_note(name, note)

    async def _resolve_or_note(self, tier: str, name: str, state: SearchState, call: Call) -> ResolverResult | None:
        """What the source says; None when it failed, which the state then knows. It costs itself, never the work."""
        began = self._clock.monotonic()
        try:
            result = await self._resolvers[name].resolve(state.work, self._clients[name], self._shared(name, call))
            if result.work is not None:
                state.learn(result.work)
            if result.supplements:
                state.add_supplements(result.supplements)
            return result
        except (CandidateRejected, TransientFailure) as problem:
            tried = _note_miss(state, call, name, problem)
            if _is_for_good(problem):
                state.record_answer(name if tier != IDENTIFY else _identifying(name), SourceAnswer(failure=tried))
            self._tell(tier, name, state, began, _outcome_of(problem), problem.reason, problem)
        except (Cancelled, RunError):
            raise
        except Exception as error:
            state.record_error(name, error)
            self._tell(tier, name, state, began, SourceOutcome.ERROR, Reason.WORKER_EXCEPTION)
        return None

    def _shared(self, name: str, call: Call) -> Call:
        share_s = self._source_s.get(name)
        if share_s is None or call.budget is None:
            return call
        return call.within(SourceShare(call.budget, seconds=share_s))

    def _branch(
        self, tier: str, name: str, place: int, versions: VersionRace | None, state: SearchState, call: Call
    ) -> Coroutine[Any, Any, Found | None]:
        ask = partial(self._ask_source, tier, name, place, state, call)
        return self._guarded(ask, tier, name, state, call, versions)

    async def _guarded(
        self,
        ask: Callable[[Tell], Awaitable[Proposed | None]],
        tier: str,
        name: str,
        state: SearchState,
        call: Call,
        versions: VersionRace | None = None,
    ) -> Found | None:
        """A source that trips over what it was sent costs itself, never the run."""
        tell = partial(self._tell, tier, name, state, self._clock.monotonic())
        if versions is not None:
            versions.enter(name)
        found = None
        try:
            with state.waits.branch():
                found = await self._try_source(ask(tell), tier, name, state, call, tell, versions)
        except (Cancelled, RunError, PutOff):
            raise
        except Exception as error:
            state.record_error(name, error)
            tell(SourceOutcome.ERROR, Reason.WORKER_EXCEPTION)
        finally:
            # A winner stands until the others are told to stop: nobody fetches in between.
            if versions is not None and found is None:
                versions.leave(name)
        return found

    async def _ask_source(
        self, tier: str, name: str, place: int, state: SearchState, call: Call, tell: Tell
    ) -> Proposed | None:
        """What the source proposes now; None when it is not asked, or failed."""
        if state.out_of_budget:
            tell(SourceOutcome.SKIPPED, Reason.BUDGET_EXHAUSTED)
            return None
        answered = state.reuse_answer(name, name, place)
        if answered is not None:
            self._wanted(name, answered.plans, state)
            tell(SourceOutcome.SKIPPED, _ANSWERED_BEFORE)
            return None
        state.record_source(name, place)
        result = await self._resolve_or_note(tier, name, state, call)
        if result is None:
            return None
        note = None if result.plans else result.notes[0] if result.notes else str(Reason.NO_OPEN_COPY)
        if note is not None:
            state.add_note(name, note)
        state.record_answer(name, SourceAnswer(result.plans, note))
        return result, self._wanted(name, result.plans, state)

    async def _try_alternatives(self, state: SearchState, call: Call, on_tier: Callable[[str], None]) -> Found | None:
        """What was set aside: the paper in another form is better than none."""
        others = state.alternatives(self._formats[1:])
        if others:
            on_tier(ALTERNATIVES)
        for name, plan in others:
            if state.out_of_budget:
                break
            found = await self._guarded(partial(_set_aside, plan), ALTERNATIVES, name, state, call)
            if found is not None:
                return found
        return None

    def _wanted(self, name: str, plans: Sequence[DownloadPlan], state: SearchState) -> list[DownloadPlan]:
        """The plans in the best form, in order; those in other forms that are taken are set aside."""
        best = []
        for plan in ranked(plans):
            form = form_of(plan).name
            if form == self._formats[0]:
                best.append(plan)
            elif form in self._formats:
                state.set_aside(form, name, plan)
            else:
                state.count_unwanted_form(form)
        return best

    async def _try_source(
        self,
        asking: Awaitable[Proposed | None],
        tier: str,
        name: str,
        state: SearchState,
        call: Call,
        tell: Tell,
        versions: VersionRace | None,
    ) -> Found | None:
        """Ask, then try the copies that are proposed."""
        proposed = await asking
        if proposed is None:
            return None
        result, plans = proposed
        last: CandidateRejected | TransientFailure | None = None
        for plan in plans:
            if versions is not None:
                await versions.wait_for_better(name, plan)
            if not state.is_new(plan):
                continue
            try:
                self._refuse_unwanted(plan, state.work)
                copy = await self._download(plan, state.work, self._clients[name], call, state.claim)
            except PutOff:
                raise
            except (CandidateRejected, TransientFailure) as problem:
                last = problem
                _note_miss(state, call, name, problem, plan)
                if state.out_of_budget:
                    break
                continue
            if copy is None:
                return None
            if copy.quarantined is not None:
                last = CandidateRejected(Reason.UNPROVED, _IN_QUARANTINE, url=plan.url)
                state.record_failure(name, last, plan, copy=copy)
                continue
            tell(SourceOutcome.SUCCESS, Reason.OK, url=plan.url, stage="fetch")
            return Found(plan, copy, tier, name)
        _tell_miss(result, last, tell)
        return None

    def _refuse_unwanted(self, plan: DownloadPlan, work: WorkArtifact) -> None:
        why = self._allow(plan, work)
        if why is not None:
            reason = Reason.TAKEN_DOWN if why.startswith("taken down") else Reason.FILTERED
            raise CandidateRejected(reason, why, url=plan.url)

    def _tell(
        self,
        tier: str,
        name: str,
        state: SearchState,
        began: float,
        outcome: SourceOutcome,
        reason: str,
        problem: CandidateRejected | TransientFailure | None = None,
        *,
        url: str | None = None,
        stage: str = "resolve",
    ) -> None:
        url = url or (problem.url if problem is not None else None)
        self._on_source(
            SourceAttempt(
                self._clock.now(),
                state.work.work_id,
                tier,
                name,
                outcome,
                reason,
                _host(url),
                problem.http_status if problem is not None else None,
                round((self._clock.monotonic() - began) * 1000),
                stage,
            )
        )


async def _set_aside(plan: DownloadPlan, tell: Tell) -> Proposed | None:
    """What was proposed earlier: nobody is asked."""
    return ResolverResult((plan,)), [plan]


def _tell_miss(result: ResolverResult, last: CandidateRejected | TransientFailure | None, tell: Tell) -> None:
    if last is not None:
        tell(_outcome_of(last), last.reason, last, stage="fetch")
    else:
        said = result.notes[0] if result.notes else Reason.NO_OPEN_COPY
        at_fault = not result.plans and said.startswith(_OWN_FAULTS)
        tell(SourceOutcome.ERROR if at_fault else SourceOutcome.NO_PDF, said)


def _outcome_of(problem: CandidateRejected | TransientFailure) -> SourceOutcome:
    if isinstance(problem, CandidateRejected):
        return SourceOutcome.NONRETRYABLE
    return SourceOutcome.TIMEOUT if problem.reason == Reason.TIMEOUT else SourceOutcome.RETRYABLE


def _note_miss(
    state: SearchState,
    call: Call,
    name: str,
    problem: CandidateRejected | TransientFailure,
    plan: DownloadPlan | None = None,
) -> Failure:
    """A failure that found the work's time used up was our own cut: there is none for anything else (RES-26)."""
    tried = state.record_failure(name, problem, plan)
    if call.budget is not None and call.budget.seconds_left() <= 0:
        state.out_of_budget = True
    return tried


def _is_for_good(problem: CandidateRejected | TransientFailure) -> bool:
    return isinstance(problem, CandidateRejected) and problem.reason != Reason.BUDGET_EXHAUSTED


def _identifying(name: str) -> str:
    """The name of a source where it is asked which paper is meant: what it says there is another matter."""
    return f"{IDENTIFY}:{name}"


def _needs_identity(work: WorkArtifact) -> bool:
    """A DOI is enough: the sources of the tiers know the rest. A bare URL is looked at as it is."""
    named = work.pmid or work.pmcid or work.openalex_id or work.arxiv_id
    return work.doi is None and named is not None


def _host(url: str | None) -> str | None:
    try:
        return host_key(url) if url else None
    except BadUrl:
        return None
