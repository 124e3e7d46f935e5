"""Pack-runs: long tasks with a log, published artifacts and a heartbeat.

Knows runs by id, tenant and project, and the job of each. Does not know what a pack does, nor HTTP. Promises: only its
own tenant sees a run; the ledger numbers the lines of its log without a gap; an artifact keeps its digest; a run that
misses three heartbeats is timed out, and its job with it, which is canceled where it waits.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.control import pack_run_rows, paging
from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.control.jobs.service import JobService, ServedLedger
from DocsToKG.Orchestrator.control.pack_run_rows import Artifact, LogLine, LogPage, PackRun, PackRunPage
from DocsToKG.Orchestrator.control.tenants import refuse_blocked
from DocsToKG.Orchestrator.errors import BadJob, Conflict, LeaseLost, NotFound, UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.status import ENDS
from DocsToKG.Orchestrator.ledger import checks
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.control import ControlTx

JOB_TYPE = "pack-run"
MISSED = 3
_DIGEST = "sha256:"
_OVERDUE = 100


@dataclass(frozen=True, slots=True)
class Hints:
    """What a task runner is told of a run: artifacts to expect, where its log goes, how often it must be heard of."""

    artifacts: Sequence[str] = ()
    channel: str | None = None
    heartbeat_s: float = 30.0


class PackRunService:
    """The pack-runs of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger
        self._jobs = JobService(ledger)
        self._orphans: list[PackRun] = []  # timed out, and their jobs not yet
        self._settled: list[PackRun] = []  # timed out with their jobs, and nobody was told yet

    def register(
        self,
        tenant: str,
        *,
        payload: Mapping[str, Any],
        hints: Hints | None = None,
        actor: str,
        project: str | None = None,
        priority: int = 0,
        correlation_id: str | None = None,
        idempotency_key: str | None = None,
        trace_context: str | None = None,
    ) -> PackRun:
        """A new run and its job of the type `pack-run`. The same key again gives the same run.

        A run whose job would be refused is refused with it: it would stand there for ever.
        """
        hints = _checked(hints or Hints())
        more = {"priority": priority, "project": project, "trace_context": trace_context}
        row = {
            "id": f"pr_{uuid4().hex}",
            "tenant": plain_name("tenant", tenant),
            "project": None if project is None else plain_name("project", project),
            "channel": hints.channel,
            "heartbeat_s": float(hints.heartbeat_s),
            "hints": json.dumps({"artifacts": list(hints.artifacts)}, sort_keys=True),
            "correlation_id": None if correlation_id is None else plain_name("correlation id", correlation_id),
            "key": None if idempotency_key is None else plain_name("idempotency key", idempotency_key),
        }

        def write(tx: ControlTx) -> PackRun:
            run = pack_run_rows.add(tx, row, actor)
            if run.job_id is None:
                refuse_blocked(tx, tenant)
                checks.checked_job(_job(run, payload, more))
            return run

        run = self._ledger.write(write)
        if run.job_id is not None:
            return run
        # The run is there before its job, so that whoever leases the job finds it; a second try comes here again.
        [answer] = self._jobs.submit(tenant, [_job(run, payload, more)], actor=actor)
        self._ledger.write(lambda tx: pack_run_rows.set_job(tx, run.pack_run_id, answer.job_id))
        return self.get(tenant, run.pack_run_id)

    def get(self, tenant: str, pack_run_id: str, *, project: str | None = None) -> PackRun:
        """A run of this tenant, and of this project where one is named."""
        return self._ledger.read(lambda tx: _run(tx, tenant, pack_run_id, project))

    def list(self, tenant: str, *, page_size: int | None = None, page_token: str | None = None) -> PackRunPage:
        """The tenant's runs, newest first."""
        size = paging.page_size(page_size)
        return self._ledger.read(lambda tx: pack_run_rows.page(tx, tenant, size, page_token))

    def append_logs(self, tenant: str, pack_run_id: str, lines: Sequence[tuple[str, str]]) -> int:
        """Add lines, each with its stream (`stdout`, `stderr` or another short name); the number of the last one.

        A line that is too long is cut, and says so; too many lines at once are refused.
        """
        checked = pack_run_rows.checked_lines(lines)

        def write(tx: ControlTx) -> int:
            run = _open_run(tx, tenant, pack_run_id)
            pack_run_rows.beat(tx, run)
            return pack_run_rows.append(tx, pack_run_id, checked)

        return self._ledger.write(write)

    def logs(
        self, tenant: str, pack_run_id: str, *, after: int = 0, limit: int | None = None, project: str | None = None
    ) -> LogPage:
        """Lines after a number, in order, and whether the run may still add some."""
        size = paging.page_size(limit)

        def read(tx: ControlTx) -> LogPage:
            run = _run(tx, tenant, pack_run_id, project)
            return LogPage(pack_run_rows.lines(tx, pack_run_id, after, size), run.ended_at is not None)

        return self._ledger.read(read)

    def publish(
        self,
        tenant: str,
        pack_run_id: str,
        *,
        name: str,
        digest: str,
        uri: str,
        mime: str | None = None,
        size: int | None = None,
        content: bytes | None = None,
    ) -> Artifact:
        """An artifact of the run. Where its bytes are given they must have the digest; the same name keeps its own."""
        row = {
            "id": pack_run_id,
            "name": plain_name("artifact name", name),
            "digest": _checked_digest(digest, content),
            "uri": plain_name("artifact URI", uri, 2048),
            "mime": None if mime is None else plain_name("media type", mime),
            "size": _checked_size(size, content),
        }

        def write(tx: ControlTx) -> Artifact:
            run = _open_run(tx, tenant, pack_run_id)
            return pack_run_rows.publish(tx, run, row)

        return self._ledger.write(write)

    def artifacts(self, tenant: str, pack_run_id: str, *, project: str | None = None) -> Sequence[Artifact]:
        """What the run has published, by name."""

        def read(tx: ControlTx) -> Sequence[Artifact]:
            _run(tx, tenant, pack_run_id, project)
            return pack_run_rows.artifacts(tx, pack_run_id)

        return self._ledger.read(read)

    def heartbeat(self, tenant: str, pack_run_id: str) -> PackRun:
        """The run is alive. The first one says that it has begun."""

        def write(tx: ControlTx) -> PackRun:
            pack_run_rows.beat(tx, _open_run(tx, tenant, pack_run_id))
            return _run(tx, tenant, pack_run_id)

        return self._ledger.write(write)

    def finish(self, tenant: str, pack_run_id: str, status: str, *, actor: str, reason: str | None = None) -> PackRun:
        """The run is over: `succeeded`, `failed`, `canceled` or `timed_out`. Its job is completed by its lease.

        The same end again is no harm; another one is a `Conflict`.
        """
        if status not in ENDS:
            raise BadJob(f"a run ends as one of {', '.join(ENDS)}")
        return self._ledger.write(lambda tx: _finish(tx, tenant, pack_run_id, status, actor, reason))

    def time_out_overdue(self) -> Sequence[PackRun]:
        """End the runs that have missed three heartbeats, and their jobs; which these were. Any instance may do so, in
        one thread. One whose job could not be ended, as the ledger was busy, is ended and named by this instance's next
        call."""
        self._orphans += self._ledger.write(_time_out)
        while self._orphans:
            with contextlib.suppress(UnknownJob):  # it was cleaned away
                self._end_job(self._orphans[0])
            self._settled.append(self._orphans.pop(0))
        settled, self._settled = self._settled, []
        return settled

    def _end_job(self, run: PackRun) -> None:
        if run.job_id is None:
            return
        why = f"heartbeat_missed: the pack-run was not heard of for {MISSED} x {run.heartbeat_s:g} s"
        job = self._ledger.job(run.job_id)
        if job.state is JobState.IN_PROGRESS and job.lease_id is not None:
            end = Finish(job.job_id, job.fence, job.lease_id, JobState.TIMED_OUT, why)
            with contextlib.suppress(LeaseLost):  # it was settled in another way meanwhile, or waits again
                self._ledger.submit_finish(end).result()
        # One that waits, for the first time or again, is called off: whoever leased it could do nothing for its run.
        self._ledger.cancel(job.job_id, why, actor="ledger")


def _job(run: PackRun, payload: Mapping[str, Any], more: Mapping[str, Any]) -> NewJob:
    told = {"packRunId": run.pack_run_id, "heartbeatSeconds": run.heartbeat_s, **run.hints}
    return NewJob(
        run.pack_run_id, {**payload, "packRun": told}, job_type=JOB_TYPE, correlation_id=run.correlation_id, **more
    )


def _checked(hints: Hints) -> Hints:
    if not 1 <= hints.heartbeat_s <= 3600:
        raise BadJob("the heartbeat of a run comes every 1 to 3600 seconds")
    if len(hints.artifacts) > 1000:
        raise BadJob("a run names at most 1000 artifacts beforehand")
    for name in hints.artifacts:
        plain_name("artifact name", name)
    if hints.channel is not None:
        plain_name("log channel", hints.channel)
    return hints


def _checked_digest(digest: str, content: bytes | None) -> str:
    value = digest.removeprefix(_DIGEST)
    if not digest.startswith(_DIGEST) or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise BadJob("a digest is written as sha256: and 64 hexadecimal digits")
    if content is not None and sha256_hex(content) != value:
        raise BadJob("the artifact does not have the digest that it was published with")
    return digest


def _checked_size(size: int | None, content: bytes | None) -> int | None:
    counted = size if content is None else len(content)
    if size not in (None, counted) or not 0 <= (counted or 0) < 2**62:
        raise BadJob("the size of an artifact is the number of its bytes")
    return counted


def _run(tx: ControlTx, tenant: str, pack_run_id: str, project: str | None = None, lock: bool = False) -> PackRun:
    run = pack_run_rows.find(tx, tenant, pack_run_id, lock)
    if run is None or (project is not None and run.project != project):
        raise NotFound(f"no pack-run {pack_run_id[:64]}")
    return run


def _open_run(tx: ControlTx, tenant: str, pack_run_id: str) -> PackRun:
    run = _run(tx, tenant, pack_run_id, lock=True)
    if run.ended_at is not None:
        raise Conflict(f"the pack-run is over: {run.state}")
    return run


def _finish(tx: ControlTx, tenant: str, pack_run_id: str, status: str, actor: str, reason: str | None) -> PackRun:
    run = _run(tx, tenant, pack_run_id, lock=True)
    if run.ended_at is not None:
        if run.state != status:
            raise Conflict(f"the pack-run is over already: {run.state}")
        return run
    pack_run_rows.end(tx, run, status, actor, reason)
    return _run(tx, tenant, pack_run_id)


def _time_out(tx: ControlTx) -> list[PackRun]:
    overdue = pack_run_rows.overdue(tx, MISSED, _OVERDUE)
    for run in overdue:
        pack_run_rows.end(tx, run, "timed_out", "ledger", "heartbeat_missed")
    return overdue


__all__ = ["Artifact", "Hints", "LogLine", "LogPage", "PackRun", "PackRunPage", "PackRunService"]
