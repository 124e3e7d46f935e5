"""What has been tried for one work, by all its branches.

Knows the copies already tried (under any spelling), those set aside, what was learnt of the work, every candidate's
reason, and whether some failure may pass with time. Thread-safe: the branches of a race write here at once.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.copies import copy_key
from DocsToKG.ContentDownload.fallback.meter import WaitMeter
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import has_secret, mask_url

# The owner's wish, our own safety, or a file that is not the paper: an archived copy would be no better.
_NOT_TO_LOOK_UP = frozenset(
    {
        Reason.ROBOTS,
        Reason.SECURITY_POLICY,
        Reason.BAD_URL,
        Reason.FILTERED,
        Reason.WRONG_ARTICLE,
        Reason.SUPPLEMENT,
        Reason.BUDGET_EXHAUSTED,
    }
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate and why it was not the one."""

    url: str
    source: str
    reason: str
    http_status: int | None = None
    evidence: str | None = None
    detail: str | None = None
    is_guess: bool = False
    transient: bool = False  # it may work later
    is_copy: bool = True  # False: the source itself could not be asked


class Trail:
    """The memory of one work's search."""

    def __init__(self, work: WorkArtifact, clock: Clock) -> None:
        self.meter = WaitMeter(clock)
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        self._work = work
        self._claimed = False
        self._transient = False
        self._still_down = False
        self._retry_after_s: float | None = None
        self._places = itertools.count()
        self._asked: list[tuple[int, str]] = []
        self._aside: list[tuple[str, str, DownloadPlan]] = []
        self._failed: dict[str, bool] = {}  # addresses, and whether they were guessed
        self.out_of_budget = False
        self.refused: str | None = None  # why the user does not want this work
        self.tried: list[Tried] = []
        self.unasked: Counter[str] = Counter()  # copies in forms that nobody asked for
        self.notes: list[tuple[str, str]] = []  # what a source said when it had nothing to propose

    @property
    def work(self) -> WorkArtifact:
        return self._work

    @property
    def transient(self) -> bool:
        """Some candidate failed in a way that may pass."""
        return self._transient

    @property
    def only_waited(self) -> bool:
        """Nothing was sent: every candidate was told by our own gates and breakers to come back later.

        A host that was tested in the meantime and is still down is as good as tried: without that, works of a host
        that never comes back would wait for it for ever.
        """
        ours = (Reason.BREAKER_OPEN, Reason.RETRY_AFTER)
        waits = (tried.reason in ours and tried.http_status is None for tried in self.tried)
        return bool(self.tried) and not self._still_down and all(waits)

    @property
    def retry_after_s(self) -> float | None:
        """The soonest time a server named for coming back."""
        return self._retry_after_s

    def learn(self, work: WorkArtifact) -> None:
        with self._lock:
            self._work = self._work.learn(work)

    @property
    def sources(self) -> list[str]:
        """The sources asked, in their order; sources that race begin in this order too."""
        return [name for _, name in sorted(self._asked)]

    def place(self) -> int:
        """The next place in the order of sources."""
        return next(self._places)

    def ask_source(self, name: str, place: int) -> None:
        """The source of that place is asked."""
        with self._lock:
            self._asked.append((place, name))

    def in_order(self) -> list[Tried]:
        """What was tried, source by source in their order: how a race happened to go does not show."""
        place = {name: place for place, name in sorted(self._asked)}
        return sorted(self.tried, key=lambda tried: place.get(tried.source, -1))

    def note(self, source: str, said: str) -> None:
        """Only the word before a colon: what follows quotes addresses."""
        with self._lock:
            self.notes.append((source, said.partition(":")[0]))

    def is_new(self, plan: DownloadPlan) -> bool:
        """True the first time a copy is met, under whatever spelling of its address."""
        key = copy_key(plan.url)
        with self._lock:
            if key in self._seen:
                return False
            self._seen.add(key)
            return True

    def set_aside(self, form: str, source: str, plan: DownloadPlan) -> None:
        """A copy in another form than the wanted one: for when nothing else is left."""
        with self._lock:
            self._aside.append((form, source, plan))

    def alternatives(self, forms: Sequence[str]) -> list[tuple[str, DownloadPlan]]:
        """The copies set aside in these forms, best form first, evidence before guesses."""
        kept = [entry for entry in self._aside if entry[0] in forms]
        kept.sort(key=lambda entry: (forms.index(entry[0]), entry[2].is_guess))
        return [(source, plan) for _, source, plan in kept]

    def leave_out(self, form: str) -> None:
        """A copy in a form that was not asked for."""
        with self._lock:
            self.unasked[form] += 1

    def look_back(self) -> None:
        """Let archives know the addresses that failed: evidence first, guesses last."""
        with self._lock:
            known = [url for url in self._work.pdf_urls if url not in self._failed]
            failed = sorted(self._failed, key=self._failed.__getitem__)
            self._work = replace(self._work, pdf_urls=(*known, *failed))

    def claim(self) -> bool:
        """True for the one branch that may store its file; a rival that proved its copy a moment later drops it."""
        with self._lock:
            first, self._claimed = not self._claimed, True
            return first

    def missed(
        self, source: str, problem: CandidateRejected | TransientFailure, plan: DownloadPlan | None = None
    ) -> None:
        """A candidate was no good, or the source could not be asked."""
        url = plan.url if plan is not None else problem.url or ""
        tried = Tried(
            url=mask_url(url),
            source=source,
            reason=problem.reason,
            http_status=problem.http_status,
            evidence=plan.evidence if plan is not None else None,
            detail=problem.detail or None,
            is_guess=plan is not None and plan.is_guess,
            transient=isinstance(problem, TransientFailure),
            is_copy=plan is not None,
        )
        with self._lock:
            self.tried.append(tried)
            # An address with a key in it is nobody else's business.
            if plan is not None and problem.reason not in _NOT_TO_LOOK_UP and not has_secret(url):
                self._failed.setdefault(url, plan.is_guess)
            if isinstance(problem, TransientFailure):
                self._still_down = self._still_down or problem.tested
                self._may_pass(problem.retry_after_s)
            elif problem.reason == Reason.BUDGET_EXHAUSTED:
                self.out_of_budget = True

    def faulted(self, source: str, error: Exception) -> None:
        """Something unforeseen, perhaps this machine's own trouble: it says nothing against the paper."""
        with self._lock:
            reason = f"{Reason.WORKER_EXCEPTION}: {type(error).__name__}"
            self.tried.append(Tried("", source, reason, transient=True, is_copy=False))
            self._may_pass(None)

    def _may_pass(self, retry_after_s: float | None) -> None:
        self._transient = True
        if retry_after_s is not None:
            soonest = self._retry_after_s if self._retry_after_s is not None else retry_after_s
            self._retry_after_s = min(soonest, retry_after_s)
