"""Why a job does not run, as text: the ledger's answer, and the process that holds the job.

The ledger's folder of live workers names the process of a worker. Promises to read only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.cli.tables import span_text

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.base import JobRecord, Why

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a leased job; all None for a job without a lease."""

    worker_id: str | None = None
    process: int | None = None
    stage: str | None = None
    begun: bool | None = None
    lease_until: float | None = None


def holder(ledger_path: Path, job: JobRecord) -> Holder:
    if job.worker_id is None:
        return Holder()
    process = _process(ledger_path, job.worker_id)
    return Holder(job.worker_id, process, job.stage, job.started_at is not None, job.lease_until)


def _process(ledger_path: Path, worker_id: str) -> int | None:
    """The process id that the worker wrote next to the ledger; None for another machine or an ended process."""
    if not _SAFE.fullmatch(worker_id):
        return None
    try:
        with open(ledger_path.with_name(f"{ledger_path.name}.workers") / f"{worker_id}.lock", "rb") as file:
            number = int(file.read(20))
        os.kill(number, 0)
    except PermissionError:
        return number
    except (OSError, ValueError, OverflowError):
        return None
    return number


def facts(why: Why, job: JobRecord, held_by: Holder, *, now: float) -> list[tuple[str, str]]:
    """Rows of label and value."""
    rows = [("job", f"{job.job_id}: {job.artifact_id}"), ("state", why.state), ("why", f"{why.reason}: {why.detail}")]
    if held_by.worker_id is not None:
        rows += _held(held_by, now)
    if why.host is not None:
        rows.append(("host", why.host))
    if why.at is not None:
        rows.append(("can continue", _moment(why.at, now)))
    if job.last_error:
        rows.append(("last error", job.last_error))
    rows.append(("tries", f"{job.attempts} of {job.max_attempts}"))
    return rows


def _held(held_by: Holder, now: float) -> list[tuple[str, str]]:
    process = f", process {held_by.process}" if held_by.process else ", whose process is not found here"
    begun = "at work" if held_by.begun else "parked before its first request"
    rows = [("held by", f"{held_by.worker_id}{process}"), ("stage", f"{held_by.stage or 'unknown'} ({begun})")]
    if held_by.lease_until is not None:
        rows.append(("lease until", _moment(held_by.lease_until, now)))
    return rows


def _moment(at: float, now: float) -> str:
    from DocsToKG.core.clock import utc_iso

    left_s = at - now
    return f"{utc_iso(at)}, " + (f"in {span_text(left_s)}" if left_s > 0 else f"{span_text(-left_s)} ago")
