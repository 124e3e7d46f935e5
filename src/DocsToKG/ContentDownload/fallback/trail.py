"""What has been tried for one work, by all its branches.

Knows the copies already tried (under any spelling), what was learnt of the work, every candidate's reason, and whether
some failure may pass with time. Thread-safe: the branches of a race write here at once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.meter import WaitMeter
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import BadUrl, index_url, mask_url


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate and why it was not the one."""

    url: str
    source: str
    reason: str
    http_status: int | None = None
    evidence: str | None = None
    detail: str | None = None


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
        self.tried: list[Tried] = []
        self.sources: list[str] = []
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

    def ask_source(self, name: str) -> None:
        with self._lock:
            self.sources.append(name)

    def note(self, source: str, said: str) -> None:
        """Only the word before a colon: what follows quotes addresses."""
        with self._lock:
            self.notes.append((source, said.partition(":")[0]))

    def is_new(self, plan: DownloadPlan) -> bool:
        """True the first time a copy is met, under whatever spelling of its address."""
        try:
            key = index_url(plan.url)
        except BadUrl:
            key = plan.url
        # http and https spellings of one address are one copy: http is tried as https first.
        key = key.partition("://")[2]
        with self._lock:
            if key in self._seen:
                return False
            self._seen.add(key)
            return True

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
        evidence = plan.evidence if plan is not None else None
        tried = Tried(mask_url(url), source, problem.reason, problem.http_status, evidence, problem.detail or None)
        with self._lock:
            self.tried.append(tried)
            if isinstance(problem, TransientFailure):
                self._still_down = self._still_down or problem.tested
                self._may_pass(problem.retry_after_s)

    def faulted(self, source: str, error: Exception) -> None:
        """Something unforeseen, perhaps this machine's own trouble: it says nothing against the paper."""
        with self._lock:
            self.tried.append(Tried("", source, f"{Reason.WORKER_EXCEPTION}: {type(error).__name__}"))
            self._may_pass(None)

    def _may_pass(self, retry_after_s: float | None) -> None:
        self._transient = True
        if retry_after_s is not None:
            soonest = self._retry_after_s if self._retry_after_s is not None else retry_after_s
            self._retry_after_s = min(soonest, retry_after_s)
