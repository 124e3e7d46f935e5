"""What happens in a run, told to those who listen.

`Listener` has a method for every event, which does nothing; a listener overrides those it wants to hear. `Events` tells
each event to the listeners that hear it (the record, the traces, the log, the metrics), in the order in which they were
given. Promises: an event is told after the fact and answered by nobody; one that a single listener hears is a call of
that listener and nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Unpack

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from DocsToKG.ContentDownload.api.ports import Change, Whose
    from DocsToKG.ContentDownload.api.types import Attempt, DownloadOutcome
    from DocsToKG.ContentDownload.telemetry.metrics import QueueView
    from DocsToKG.Orchestrator.ledger.base import LeasedJob


class JobEnd(StrEnum):
    """How a try at a job ended, once the ledger has answered."""

    DONE = "done"
    SKIPPED = "skipped"
    ERROR = "error"
    RETRIED = "retried"  # failed, and comes back
    RELEASED = "released"  # given back, no attempt counted
    LOST = "lost"  # the ledger refused: the lease was another's by then, or the job was canceled

    @property
    def is_final(self) -> bool:
        return self in (JobEnd.DONE, JobEnd.SKIPPED, JobEnd.ERROR)


class Listener:
    """Hears nothing until it overrides a method."""

    def attempt(self, attempt: Attempt) -> None:
        """One network or cache decision."""

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **whose: Unpack[Whose]) -> None:
        """A request waited for one of our own limits (`host:...` or `resolver:...`)."""

    def breaker_transition(self, key: str, old_state: str, new_state: str, **change: Unpack[Change]) -> None:
        """A circuit breaker changed its state."""

    def on_start(self, view: QueueView) -> None:
        """Jobs are leased from now on; gauges are read at `view`."""

    def on_stop(self, view: QueueView) -> None:
        """No more jobs are leased, and none is held."""

    def on_lease(self, jobs: Sequence[LeasedJob], took_s: float) -> None:
        """The ledger was asked for jobs, and took so long to grant these."""

    def on_job_start(self, job: LeasedJob) -> None: ...

    def on_stage(self, job: LeasedJob, stage: str) -> None:
        """The job has come to a stage, such as `resolve:direct_oa`."""

    def on_wait(self, job: LeasedJob, kind: str, key: str, seconds: float) -> None:
        """The job waited for a slot of a `resolver` or a `host`."""

    def on_work_end(self, job: LeasedJob, outcome: DownloadOutcome) -> None:
        """The pipeline has finished the job."""

    def on_completing(self, job: LeasedJob, *, recorded: bool) -> None:
        """The ledger is being told how the job ended; before that it was `recorded`, or there was nothing to record."""

    def on_job_end(
        self, job: LeasedJob, end: JobEnd, reason: str | None = None, outcome: DownloadOutcome | None = None
    ) -> None:
        """The ledger has answered."""

    def on_heartbeat(self, leases: int) -> None:
        """So many leases were prolonged."""

    def on_robots(self, decisions: Mapping[str, int]) -> None:
        """At the end: how often robots.txt decided what."""

    def hears(self, event: str) -> bool:
        return getattr(type(self), event) is not getattr(Listener, event)


_EVENTS = tuple(name for name, of in vars(Listener).items() if callable(of) and name != "hears")


class Events(Listener):
    """Tells every event to its listeners."""

    def __init__(self, *listeners: Listener) -> None:
        for event in _EVENTS:
            heard = [getattr(listener, event) for listener in listeners if listener.hears(event)]
            if heard:
                setattr(self, event, heard[0] if len(heard) == 1 else _each(heard))

    def hears(self, event: str) -> bool:
        return event in vars(self)


def _each(handlers: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def tell(*about: Any, **more: Any) -> None:
        for handler in handlers:
            handler(*about, **more)

    return tell


def end_of(order: Finish | Fail | Release, answer: Any) -> tuple[JobEnd, str | None]:
    """How a job ended by what the ledger has answered to `order`; an exception is a refusal."""
    if isinstance(answer, Exception):
        return JobEnd.LOST, str(answer)
    match order:
        case Release():
            return JobEnd.RELEASED, order.why
        case Fail():
            return (JobEnd.RETRIED if answer == JobState.QUEUED else JobEnd.ERROR), order.last_error
        case Finish():
            ended = {JobState.DONE: JobEnd.DONE, JobState.SKIPPED: JobEnd.SKIPPED}
            return ended.get(order.state, JobEnd.ERROR), order.last_error
