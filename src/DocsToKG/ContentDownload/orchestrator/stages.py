"""At which stage the jobs of a worker are, and which of it the ledger is told.

Most jobs pass a stage in milliseconds and nobody will ask; a word about each would cost the ledger more than the job.
So a stage is kept here, and written once a job has stayed at it for a while. Knows the ledger's words for progress, not
how they are written. Promises: a job has at most one word under way; that a job has begun is written at once.
"""

from __future__ import annotations

from collections.abc import Callable

from DocsToKG.ContentDownload.api.stages import SCHEDULED
from DocsToKG.core.urls import BadUrl, host_key
from DocsToKG.Orchestrator.ledger.base import LeasedJob, Progress

# Hands a word to the ledger; the function given is called when the ledger has answered.
Submit = Callable[[Progress, Callable[[], None]], None]

_LASTING_S = 0.8
_MOST_AT_ONCE = 1000  # words in one go; more may wait a second longer


class Place:
    """One job's stage. Its worker moves it; whoever writes stages down reads it."""

    __slots__ = ("_at_once", "_begun", "_busy", "_clock", "_submit", "_tier", "_told", "_url", "job", "since", "stage")

    def __init__(self, job: LeasedJob, submit: Submit, clock: Callable[[], float], *, at_once: bool) -> None:
        self.job = job
        self.stage = SCHEDULED
        self.since = clock()
        self._url: str | None = None
        self._told: tuple[str, str | None] = (SCHEDULED, None)
        self._tier = ""
        self._begun = False
        self._busy = False
        self._at_once = at_once
        self._submit = submit
        self._clock = clock

    def is_new_tier(self, stage: str) -> bool:
        """Whether the job has come to a stage for the first time, and not back to its tier after a download."""
        if not stage.startswith("resolve:") or stage == self._tier:
            return False
        self._tier = stage
        return True

    def heads_for(self, url: str | None) -> None:
        self._url = url

    def come_to(self, stage: str) -> None:
        self.stage, self.since = stage, self._clock()
        if self._at_once and self._begun:
            self._say(stage, None)

    def begin(self) -> None:
        """The job has met the network."""
        self._begun = True
        self._say(self.stage, None)

    @property
    def has_news(self) -> bool:
        """Whether the ledger should know more than it does. A job that only waits for its first request is where the
        ledger thinks it is, unless it is known for which host it waits."""
        if self._busy or self._told == (self.stage, self._url):
            return False
        return self._begun or (self._url is not None and self.job.host_key is None)

    def tell(self) -> None:
        self._say(self.stage, self._url)

    def _say(self, stage: str, url: str | None) -> None:
        self._told, self._busy = (stage, url), True
        names = (self.job.job_id, self.job.fence, self.job.lease_id)
        self._submit(Progress(*names, stage, self._begun, _host(url)), self._answered)

    def _answered(self) -> None:
        self._busy = False


class JobStages:
    """The places of all jobs that a worker holds."""

    def __init__(self, *, submit: Submit, monotonic: Callable[[], float]) -> None:
        self._submit = submit
        self._monotonic = monotonic
        self._places: dict[str, Place] = {}

    def enter(self, job: LeasedJob, *, at_once: bool = False) -> Place:
        """A job begins; with `at_once` each of its stages is written as it comes."""
        place = self._places[job.lease_id] = Place(job, self._submit, self._monotonic, at_once=at_once)
        return place

    def come_to(self, job: LeasedJob, stage: str) -> None:
        place = self._places.get(job.lease_id)
        if place is not None:
            place.come_to(stage)

    def leave(self, job: LeasedJob) -> None:
        self._places.pop(job.lease_id, None)

    def write(self) -> None:
        """Write the stages that have lasted, those that have lasted longest first."""
        lasting = self._monotonic() - _LASTING_S
        news = [place for place in list(self._places.values()) if place.since <= lasting and place.has_news]
        news.sort(key=lambda place: place.since)
        for place in news[:_MOST_AT_ONCE]:
            place.tell()


def _host(url: str | None) -> str | None:
    try:
        return host_key(url) if url else None
    except BadUrl:
        return None
