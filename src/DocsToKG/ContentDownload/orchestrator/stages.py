"""At which stage the jobs of a worker are, and which of it the ledger is told.

Most jobs pass a stage in milliseconds and nobody will ask; a word about each would cost the ledger more than the job.
So a stage is kept here, and written once a job has stayed at it for a while. Knows the ledger's words for progress, not
how they are written. Promises: a job has at most one word under way; that a job has begun is written at once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Protocol

from DocsToKG.ContentDownload.api.stages import SCHEDULED, STORE, VERIFY
from DocsToKG.core.urls import BadUrl, host_key
from DocsToKG.Orchestrator.ledger.base import Callback, LeasedJob, Progress

# Hands a word to the ledger; the function given is called with what was refused, or None, when the ledger has answered.
Submit = Callable[[Progress, Callback], None]

NoteStage = Callable[[int, str], None]  # the job's number and its stage


class Hands(Protocol):
    """Where it is noted which jobs' files are being looked at, for whoever finds the process dead."""

    def take(self, number: int, /) -> int | None:
        """The place of the note, for `drop`."""

    def drop(self, place: int | None, /) -> None: ...


_LASTING_S = 0.8
_LOOKED_AT = frozenset({VERIFY, STORE})
_MOST_AT_ONCE = 1000  # words in one go; more may wait a second longer


class Place:
    """One job's stage. Its worker moves it; whoever writes stages down reads it."""

    __slots__ = (
        "_at_once",
        "_begun",
        "_busy",
        "_hand",
        "_on_begin",
        "_on_tier",
        "_stages",
        "_tier",
        "_told",
        "at",
        "job",
    )

    def __init__(
        self,
        job: LeasedJob,
        stages: JobStages,
        *,
        at_once: bool,
        on_begin: Callable[[], object] | None,
        on_tier: Callable[[str], None] | None,
    ) -> None:
        self.job = job
        # Stage, address, and since when; what has not moved yet is no news, however long it lasts.
        self.at: tuple[str, str | None, float] = (SCHEDULED, None, inf)
        self._told: tuple[str, str | None] = (SCHEDULED, None)
        self._tier = ""
        self._begun = False
        self._busy = False
        self._at_once = at_once
        self._on_begin = on_begin
        self._on_tier = on_tier
        self._stages = stages
        self._hand: int | None = None

    def come_to(self, stage: str, url: str | None = None) -> None:
        stages = self._stages
        self.at = (stage, url, stages.monotonic())
        if stages.in_hand is not None and (stage in _LOOKED_AT) is (self._hand is None):
            self._note_in_hand(stages.in_hand)
        if stages.note is not None:
            stages.note(self.job.job_id, stage)
        if self._on_tier is not None and stage != self._tier and stage.startswith("resolve:"):
            self._tier = stage  # to come back to it after a download is no news
            self._on_tier(stage)
        if self._at_once and self._begun:
            self._say(stage, None)

    def _note_in_hand(self, hands: Hands) -> None:
        if self._hand is None:
            self._hand = hands.take(self.job.job_id)
        else:
            self._let_go(hands)

    def _let_go(self, hands: Hands) -> None:
        place, self._hand = self._hand, None
        if place is not None:
            hands.drop(place)

    def leave(self) -> None:
        """The job is over."""
        if self._stages.in_hand is not None:
            self._let_go(self._stages.in_hand)

    def begin(self) -> None:
        """The job has met the network."""
        if self._on_begin is not None:
            self._on_begin()
        self._begun = True
        self._say(self.at[0], None)

    @property
    def has_news(self) -> bool:
        """Whether the ledger should know more than it does. A job that only waits for its first request is where the
        ledger thinks it is, unless it is known for which host it waits."""
        stage, url, _ = self.at
        if self._busy or self._told == (stage, url):
            return False
        return self._begun or (url is not None and self.job.host_key is None)

    def tell(self) -> None:
        stage, url, _ = self.at
        self._say(stage, url)

    def _say(self, stage: str, url: str | None) -> None:
        self._told, self._busy = (stage, url), True
        job = self.job
        host = _host(url) if url else None
        word = Progress(job.job_id, job.fence, job.lease_id, stage, self._begun, host)
        self._stages.submit(word, self._answered)

    def _answered(self, refused: BaseException | None) -> None:
        self._busy = False
        if refused is not None:
            self._stages.on_refused(refused)


class JobStages:
    """The places of all jobs that a worker holds; `on_refused` is told what the ledger says against a word, and `note`
    every stage as it comes."""

    def __init__(
        self,
        *,
        submit: Submit,
        monotonic: Callable[[], float],
        on_refused: Callable[[BaseException], None],
        note: NoteStage | None = None,
        in_hand: Hands | None = None,
    ) -> None:
        self.in_hand = in_hand
        self.note = note
        self.submit = submit
        self.monotonic = monotonic
        self.on_refused = on_refused
        self._places: dict[str, Place] = {}

    def enter(
        self,
        job: LeasedJob,
        *,
        at_once: bool = False,
        on_begin: Callable[[], object] | None = None,
        on_tier: Callable[[str], None] | None = None,
    ) -> Place:
        """A job begins; with `at_once` each of its stages is written as it comes."""
        place = self._places[job.lease_id] = Place(job, self, at_once=at_once, on_begin=on_begin, on_tier=on_tier)
        if self.note is not None:
            self.note(job.job_id, SCHEDULED)
        return place

    def come_to(self, job: LeasedJob, stage: str) -> None:
        """A stage after the downloads, for the file that was the last."""
        place = self._places.get(job.lease_id)
        if place is not None:
            place.come_to(stage, place.at[1])

    def leave(self, job: LeasedJob) -> None:
        place = self._places.pop(job.lease_id, None)
        if place is not None:
            place.leave()

    def write(self) -> None:
        """Write the stages that have lasted, those that have lasted longest first."""
        lasting = self.monotonic() - _LASTING_S
        news = [place for place in list(self._places.values()) if place.at[2] <= lasting and place.has_news]
        news.sort(key=lambda place: place.at[2])
        for place in news[:_MOST_AT_ONCE]:
            place.tell()


def _host(url: str) -> str | None:
    try:
        return host_key(url)
    except BadUrl:
        return None
