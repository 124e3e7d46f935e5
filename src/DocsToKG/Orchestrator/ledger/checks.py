"""What may enter the ledger: sizes and shapes of jobs and answers, checked before the transaction.

Everything that comes from outside is bounded here. Raises `BadJob` with the field and its limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from DocsToKG.core.digest import canonical_json, sha256_hex
from DocsToKG.Orchestrator.domain.retry import RELEASE_CAP_S
from DocsToKG.Orchestrator.domain.states import TERMINAL, JobState
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob

MAX_PAYLOAD_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 256 * 1024
MAX_NAME_CHARS = 2048
MAX_ERROR_CHARS = 500
_FAR_S = 366 * 24 * 3600.0
_LARGE = 1_000_000


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """A job ready to be written: its columns, and how long it waits first."""

    columns: dict[str, Any]
    delay_ms: int


def checked_job(job: NewJob) -> CheckedJob:
    """The job with its payload in canonical form, or `BadJob`."""
    text = _payload_text(job)
    digest = sha256_hex(text.encode())
    if job.payload_digest is not None and job.payload_digest.removeprefix("sha256:") != digest:
        raise BadJob(f"{job.artifact_id[:80]}: the payload does not match its digest")
    if not 1 <= job.max_attempts <= _LARGE or not -_LARGE <= job.priority <= _LARGE:
        raise BadJob(f"{job.artifact_id[:80]}: max_attempts must be at least 1, and priority a small number")
    columns: dict[str, Any] = {
        name: _name(name, getattr(job, name))
        for name in ("project", "source", "resolver_hint", "host_key", "idempotency_key", "correlation_id",
                     "trace_context")
    }  # fmt: skip
    columns |= {name: _name(name, getattr(job, name), needed=True) for name in ("artifact_id", "tenant", "job_type")}
    columns |= {"priority": job.priority, "max_attempts": job.max_attempts, "replay_of": job.replay_of}
    columns |= {"artifact_json": text, "payload_digest": digest}
    return CheckedJob(columns, delay_ms(job.delay_s))


def _payload_text(job: NewJob) -> str:
    try:
        if isinstance(job.payload, str):
            return _canonical(_parsed(job.payload))
        return _canonical(dict(job.payload))
    except BadJob as error:
        raise BadJob(f"{job.artifact_id[:80]}: {error}") from None


def _parsed(text: str) -> Any:
    if len(text) > MAX_PAYLOAD_BYTES:
        raise BadJob(f"the payload is over {MAX_PAYLOAD_BYTES} bytes")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise BadJob("the payload is not JSON") from None
    if not isinstance(value, dict):
        raise BadJob("the payload is not a JSON object")
    return value


def _canonical(value: Any, limit: int = MAX_PAYLOAD_BYTES) -> str:
    try:
        data = canonical_json(value)
    except (TypeError, ValueError, RecursionError):
        raise BadJob("the value cannot be written as JSON") from None
    if len(data) > limit:
        raise BadJob(f"the JSON is over {limit} bytes")
    return data.decode()


def _name(field: str, value: str | None, *, needed: bool = False) -> str | None:
    if value is None and not needed:
        return None
    if not isinstance(value, str) or (needed and not value.strip()):
        raise BadJob(f"{field} must be a text that is not empty")
    if len(value) > MAX_NAME_CHARS:
        raise BadJob(f"{field} is over {MAX_NAME_CHARS} characters")
    return _storable(value)


def result_text(result: Mapping[str, Any] | None) -> str | None:
    return None if result is None else _canonical(dict(result), MAX_RESULT_BYTES)


def short_error(text: str | None) -> str | None:
    """An error as it is kept: one text of bounded length."""
    return None if text is None else _storable(str(text)[:MAX_ERROR_CHARS])


def _storable(text: str) -> str:
    # SQLite stores UTF-8, which has no place for half of a surrogate pair.
    return text.encode("utf-8", "replace").decode()


def finish_values(finish: Finish) -> dict[str, Any]:
    """The columns that an end writes, or `BadJob`."""
    if finish.state not in TERMINAL:
        raise BadJob(f"{finish.state!r} does not end a job; use one of {', '.join(sorted(TERMINAL))}")
    state = JobState(finish.state)
    return {
        "job_id": finish.job_id,
        "fence": finish.fence,
        "lease_id": finish.lease_id,
        "state": state.value,
        "outcome": _storable((finish.outcome or state.value)[:64]),
        "last_error": None if state is JobState.DONE else short_error(finish.last_error),
        "result_json": result_text(finish.result),
    }


def delay_ms(seconds: float, cap_s: float = _FAR_S) -> int:
    """A delay in whole milliseconds between nothing and `cap_s`; a fraction waits the whole millisecond."""
    if math.isnan(seconds):
        raise BadJob("a delay must be a number")
    return math.ceil(min(max(0.0, seconds), cap_s) * 1000)


def release_delay_ms(seconds: float) -> int:
    return delay_ms(seconds, RELEASE_CAP_S)


def worker_name(worker_id: str) -> str:
    return str(_name("worker_id", worker_id, needed=True))


def lease_ms(ttl_s: float) -> int:
    if not 0 < ttl_s <= _FAR_S:
        raise BadJob("a lease must last longer than no time and at most a year")
    return max(1, int(ttl_s * 1000))
