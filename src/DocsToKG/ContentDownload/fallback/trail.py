"""What has been tried for one work, by all its branches.

Knows the copies already tried (under any spelling), what was learnt of the work, every candidate's reason, and whether
some failure may pass with time. Thread-safe: the branches of a race write here at once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
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


class Trail:
    """The memory of one work's search."""

    def __init__(self, work: WorkArtifact, clock: Clock) -> None:
        self.meter = WaitMeter(clock)
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        self._work = work
        self._claimed = False
        self._transient = False
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

    def missed(self, url: str, source: str, reason: str, http_status: int | None, evidence: str | None = None) -> None:
        with self._lock:
            self.tried.append(Tried(mask_url(url), source, reason, http_status, evidence))

    def may_pass(self, retry_after_s: float | None) -> None:
        with self._lock:
            self._transient = True
            if retry_after_s is not None:
                soonest = self._retry_after_s if self._retry_after_s is not None else retry_after_s
                self._retry_after_s = min(soonest, retry_after_s)
