"""What the search for one work has tried and learnt.

Holds the copies already tried (under any spelling), those set aside, the work as far as it is known, why each
candidate failed, and whether a failure is temporary. Begins with the snapshot of an earlier search of the same work,
if there is one, and makes the next. Used on one event loop.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, StoredCopy, Supplement, WorkArtifact
from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.candidates import address_key, copy_keys
from DocsToKG.ContentDownload.fallback.resume_cache import Failure, SearchSnapshot, SourceAnswer, known_of
from DocsToKG.ContentDownload.resolvers.links.copy_facts import is_refusal, refusals_metadata
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import has_secret, index_url, mask_url

# The owner's wish, our own safety, or a file that is not the paper: an archived copy would be no better.
_NOT_TO_LOOK_UP = frozenset(
    {
        Reason.ROBOTS,
        Reason.SECURITY_POLICY,
        Reason.BAD_URL,
        Reason.FILTERED,
        Reason.TAKEN_DOWN,
        Reason.WRONG_ARTICLE,
        Reason.SUPPLEMENT,
        Reason.UNPROVED,
        Reason.BUDGET_EXHAUSTED,
    }
)
# What is wrong with a host, not with the copy: another host of the same copy may still give it.
_OF_THE_HOST = frozenset({Reason.ROBOTS, Reason.CONN_ERROR, Reason.TIMEOUT, Reason.TLS_ERROR, Reason.BREAKER_OPEN})
_DAY = re.compile(r" until \d{4}-\d\d-\d\d", re.ASCII)


class SearchState:
    """What one work's search knows."""

    def __init__(
        self, work: WorkArtifact, clock: Clock, *, earlier: SearchSnapshot | None = None, waits: WorkWaits | None = None
    ) -> None:
        self.waits = waits or WorkWaits(clock)
        self._earlier = earlier
        self._seen: set[str] = set(earlier.keys if earlier else ())
        self._done: set[str] = set(self._seen)  # keys of copies that are no good
        self._open: set[str] = set()  # keys of copies that may be had another time
        self._answers: dict[str, SourceAnswer] = {}
        self._work = work.learn(earlier.work) if earlier else work
        self.work = self._work  # as far as it is known; once archives are asked, with the addresses that failed
        self._failed_addresses: tuple[str, ...] = ()
        self._refusals: dict[str, Any] = {}
        self._claimed = False
        self.transient = False  # some candidate failed in a way that may pass
        self.retry_after_s: float | None = None  # the soonest time a server named for coming back
        self._still_down = False
        self._positions = itertools.count()
        self._asked: list[tuple[int, str]] = []  # the sources by their positions
        self.offered_work = self.work  # the work as the sources of all tiers up to here have seen it
        self._aside: list[tuple[str, str, DownloadPlan]] = []
        # Addresses that failed, and whether they were guessed.
        self._failed: dict[str, bool] = dict(earlier.failed if earlier else {})
        self._refused: list[str] = list(earlier.refused if earlier else ())  # addresses whose owners do not want us
        self.out_of_budget = False
        self.refused: str | None = None  # why the user does not want this work
        self.failures: list[Failure] = list(earlier.rejected if earlier else ())
        self._earlier_failures = len(self.failures)
        self.unwanted_forms: dict[str, int] = {}  # copies in forms that nobody asked for
        self.notes: list[tuple[str, str]] = []  # what a source said when it had nothing to propose
        self._supplements: dict[str, Supplement] = {}

    @property
    def only_waited(self) -> bool:
        """Nothing was sent: every candidate was deferred by our own limits and breakers.

        A host that was probed and is still down counts as tried; otherwise works of a host that never comes back would
        be deferred for ever.
        """
        ours = (Reason.BREAKER_OPEN, Reason.RETRY_AFTER)
        failures = self.failures[self._earlier_failures :]
        waits = (each.reason in ours and each.http_status is None for each in failures)
        return bool(failures) and not self._still_down and all(waits)

    def learn(self, work: WorkArtifact) -> None:
        self._work = self._work.learn(work)
        self._show_work()

    @property
    def supplements(self) -> tuple[Supplement, ...]:
        """The files beside the paper that sources named."""
        return tuple(self._supplements.values())

    def add_supplements(self, supplements: Iterable[Supplement]) -> None:
        for supplement in supplements:
            self._supplements.setdefault(address_key(supplement.url), supplement)

    @property
    def sources(self) -> list[str]:
        """The sources asked, in their order; sources that race begin in this order too."""
        return [name for _, name in sorted(self._asked)]

    def has_asked(self, source: str) -> bool:
        return any(name == source for _, name in self._asked)

    def next_position(self) -> int:
        """The next position in the order of sources."""
        return next(self._positions)

    def record_source(self, name: str, position: int) -> None:
        """Record that the source of that position is queried."""
        self._asked.append((position, name))

    def failures_in_order(self) -> list[Failure]:
        """The failures in the order of their sources, whatever the order of a race."""
        position = {name: position for position, name in sorted(self._asked)}
        return sorted(self.failures, key=lambda failure: position.get(failure.source, -1))

    def add_note(self, source: str, said: str) -> None:
        """Keep the word before a colon, and the day after `embargo`; what follows other words may quote addresses."""
        word, _, rest = said.partition(":")
        self.notes.append((source, said if word == Reason.EMBARGO and _DAY.fullmatch(rest) else word))

    def is_new(self, plan: DownloadPlan) -> bool:
        """True the first time a copy is met, under whatever spelling of its address."""
        key, address = copy_keys(plan.url)
        if key in self._seen or address in self._seen:
            return False
        self._seen.add(key)
        return True

    def set_aside(self, form: str, source: str, plan: DownloadPlan) -> None:
        """Keep a copy in another form than the wanted one, to be tried last."""
        self._aside.append((form, source, plan))

    def alternatives(self, forms: Sequence[str]) -> list[tuple[str, DownloadPlan]]:
        """The copies set aside in these forms, best form first, evidence before guesses."""
        kept = [entry for entry in self._aside if entry[0] in forms]
        kept.sort(key=lambda entry: (forms.index(entry[0]), entry[2].is_guess))
        return [(source, plan) for _, source, plan in kept]

    def count_unwanted_form(self, form: str) -> None:
        """Count a copy in a form that is not accepted."""
        self.unwanted_forms[form] = self.unwanted_forms.get(form, 0) + 1

    def offer_failed_addresses(self) -> None:
        """Show archives the addresses that failed, evidence first, and those that their owners refuse."""
        self._failed_addresses = tuple(sorted(self._failed, key=self._failed.__getitem__))
        self._refusals = refusals_metadata("search", self._refused)
        self._show_work()

    def _show_work(self) -> None:
        if not self._failed_addresses and not self._refusals:
            self.work = self._work
            return
        known = [url for url in self._work.pdf_urls if url not in self._failed_addresses]
        metadata = {**self._work.metadata, **self._refusals}
        self.work = replace(self._work, pdf_urls=(*known, *self._failed_addresses), metadata=metadata)

    def claim(self) -> bool:
        """True for the first branch only: it may store its file."""
        first, self._claimed = not self._claimed, True
        return first

    def record_failure(
        self,
        source: str,
        problem: CandidateRejected | TransientFailure,
        plan: DownloadPlan | None = None,
        *,
        copy: StoredCopy | None = None,
    ) -> Failure:
        """Record that a candidate or a source failed. `copy` is a file that waits in quarantine."""
        url = plan.url if plan is not None else problem.url or ""
        failure = Failure(
            url=mask_url(url),
            source=source,
            reason=problem.reason,
            http_status=problem.http_status,
            evidence=plan.evidence if plan is not None else None,
            detail=problem.detail or None,
            is_guess=plan is not None and plan.is_guess,
            transient=isinstance(problem, TransientFailure),
            is_copy=plan is not None,
            quarantine=_quarantined(plan, copy) if plan is not None and copy is not None else None,
        )
        self.failures.append(failure)
        self._remember_addresses(problem, plan)
        if plan is not None:
            self._settle_copy(problem, plan)
        if isinstance(problem, TransientFailure):
            self._still_down = self._still_down or problem.tested
            self._note_transient(problem.retry_after_s)
        elif problem.reason == Reason.BUDGET_EXHAUSTED:
            self.out_of_budget = True
        return failure

    @property
    def quarantined(self) -> list[str]:
        """The names of the files that wait in quarantine."""
        return [str(each.quarantine["path"]) for each in self.failures if each.quarantine]

    def _remember_addresses(self, problem: CandidateRejected | TransientFailure, plan: DownloadPlan | None) -> None:
        """Remember which addresses archives may look up. An address with a key in it is not shown to others."""
        if is_refusal(problem.reason, problem.http_status):
            if isinstance(problem, CandidateRejected):
                self._refused += [url for url in (plan.url if plan else None, problem.url) if url]
        elif plan is not None and problem.reason not in _NOT_TO_LOOK_UP and not has_secret(plan.url):
            self._failed.setdefault(plan.url, plan.is_guess)

    def _settle_copy(self, problem: CandidateRejected | TransientFailure, plan: DownloadPlan) -> None:
        """Record whether the copy failed for good, and whether the copy or only its host is at fault."""
        key, address = copy_keys(plan.url)
        of_the_host = problem.reason in _OF_THE_HOST
        if of_the_host:
            self._seen.discard(key)
            self._seen.add(address)
        if isinstance(problem, TransientFailure) or problem.reason == Reason.BUDGET_EXHAUSTED:
            self._open |= {key, address}
        else:
            self._done.add(address if of_the_host else key)

    def record_error(self, source: str, error: Exception) -> None:
        """Record an unexpected exception: it may be the fault of this machine and counts as temporary."""
        reason = f"{Reason.WORKER_EXCEPTION}: {type(error).__name__}"
        self.failures.append(Failure("", source, reason, transient=True, is_copy=False))
        self._answers.pop(source, None)
        self._note_transient(None)

    def record_answer(self, key: str, answer: SourceAnswer) -> None:
        """Keep the answer; it is final unless a copy it names failed temporarily."""
        self._answers[key] = answer

    def reuse_answer(self, key: str, source: str, position: int) -> SourceAnswer | None:
        """The source's answer in an earlier search; None when it must be queried.

        Once more is known of the work than in the earlier search, the source may know more, too.
        """
        if self._earlier is None:
            return None
        answer = self._earlier.answers.get(key)
        if answer is None or not known_of(self.work) <= self._earlier.known:
            return None
        self.record_source(source, position)
        if answer.note is not None:
            self.add_note(source, answer.note)
        self._answers[key] = answer
        if answer.failure is not None:
            self.failures.insert(self._earlier_failures, answer.failure)
            self._earlier_failures += 1
        return answer

    def snapshot(self) -> SearchSnapshot:
        """What the next search of this work need not repeat."""
        copies = [each for each in self.failures if each.is_copy and not each.transient]
        return SearchSnapshot(
            work=self._work,
            known=known_of(self.work),
            answers={key: answer for key, answer in self._answers.items() if self._is_settled(answer)},
            rejected=tuple(each for each in copies if each.reason != Reason.BUDGET_EXHAUSTED),
            keys=frozenset(self._done),
            failed=dict(self._failed),
            refused=tuple(self._refused),
        )

    def _is_settled(self, answer: SourceAnswer) -> bool:
        keys = [set(copy_keys(plan.url)) for plan in answer.plans]
        if self.out_of_budget and any(self._done.isdisjoint(each) for each in keys):
            return False
        return all(self._open.isdisjoint(each) for each in keys)

    def _note_transient(self, retry_after_s: float | None) -> None:
        self.transient = True
        if retry_after_s is not None:
            soonest = self.retry_after_s if self.retry_after_s is not None else retry_after_s
            self.retry_after_s = min(soonest, retry_after_s)


def _quarantined(plan: DownloadPlan, copy: StoredCopy) -> dict[str, Any]:
    """What the record needs to accept the file later."""
    return {
        "path": copy.quarantined,
        "sha256": copy.sha256,
        "size_bytes": copy.size_bytes,
        "mime": copy.mime,
        "canonical_url": mask_url(index_url(copy.stream.final_url)),
        "http_status": copy.stream.http_status,
        "version": plan.version,
        "license": plan.license,
        "host_type": plan.host_type,
        "validation": dict(copy.facts),
    }
