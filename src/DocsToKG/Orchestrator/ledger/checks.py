"""What may enter the ledger: sizes and shapes of jobs and answers, checked before the transaction.

Everything that comes from outside is bounded here. Raises `BadJob` with the field and its limit.
"""

from __future__ import annotations

import json
import json.encoder
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.jobs.retry import RELEASE_CAP_S
from DocsToKG.Orchestrator.jobs.states import TERMINAL
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, DEFAULT_TENANT, Finish, NewJob

MAX_PAYLOAD_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 256 * 1024
MAX_NAME_CHARS = 2048
MAX_ERROR_CHARS = 500
MAX_NEEDS = 1000
_ENDS = {state.value: state.value for state in TERMINAL}
_FAR_S = 366 * 24 * 3600.0
_LARGE = 1_000_000


# The form of `core.digest.canonical_json`, which a test compares.
_plain = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _kept_encoder() -> Callable[[Any], str]:
    """`_plain.encode` without what it makes anew for each value, which takes longer than a small value itself."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _plain.encode
    encode_parts = make(None, _plain.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
    return lambda value: "".join(encode_parts(value, 0))


_encode = _kept_encoder()


class CheckedJob(NamedTuple):
    """A job ready to be written: its columns in the order of the `enqueue` statement, and what they hang on."""

    key: tuple[str, str, str]  # tenant, job type, artifact
    columns: tuple[Any, ...]
    idempotency_key: str | None
    replay_of: int | None
    needs: tuple[int | str, ...]
    delay_ms: int


def checked_job(job: NewJob) -> CheckedJob:
    """The job with its payload in canonical form, or `BadJob`."""
    text = _payload_text(job)
    digest = sha256_hex(text.encode())
    if job.payload_digest is not None and job.payload_digest.removeprefix("sha256:") != digest:
        raise BadJob(f"{job.artifact_id[:80]}: the payload does not match its digest")
    if not 1 <= job.max_attempts <= _LARGE or not -_LARGE <= job.priority <= _LARGE:
        raise BadJob(f"{job.artifact_id[:80]}: max_attempts must be at least 1, and priority a small number")
    artifact, key = _needed("artifact_id", job.artifact_id), _name("idempotency_key", job.idempotency_key)
    # What nearly every job has needs no look.
    tenant = job.tenant if job.tenant is DEFAULT_TENANT else _needed("tenant", job.tenant)
    job_type = job.job_type if job.job_type is DEFAULT_JOB_TYPE else _needed("job_type", job.job_type)
    wait_ms = delay_ms(job.delay_s) if job.delay_s else 0
    columns = (
        artifact, text, digest, tenant, _name("project", job.project), job_type, _name("source", job.source),
        _name("resolver_hint", job.resolver_hint), host_name(job.host_key), job.priority, job.max_attempts, key,
        _name("correlation_id", job.correlation_id), _name("trace_context", job.trace_context), job.replay_of,
    )  # fmt: skip
    names = (tenant, job_type, artifact)
    return CheckedJob(names, columns, key, job.replay_of, _needs(job) if job.depends_on else (), wait_ms)


def _needs(job: NewJob) -> tuple[int | str, ...]:
    if isinstance(job.depends_on, str) or len(job.depends_on) > MAX_NEEDS:
        raise BadJob(f"{job.artifact_id[:80]}: depends_on is a list of at most {MAX_NEEDS} jobs")
    if job.artifact_id in job.depends_on:
        raise BadJob(f"{job.artifact_id[:80]}: a job cannot wait for itself")
    return tuple(need if isinstance(need, int) else _needed("depends_on", need) for need in job.depends_on)


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
        text = _encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError):
        raise BadJob("the value cannot be written as JSON") from None
    if size > limit:
        raise BadJob(f"the JSON is over {limit} bytes")
    return text


def _name(field: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadJob(f"{field} must be a text")
    if len(value) > MAX_NAME_CHARS:
        raise BadJob(f"{field} is over {MAX_NAME_CHARS} characters")
    if "\0" in value:
        raise BadJob(f"{field} has a character that no name has (NUL)")
    return storable(value)


def _needed(field: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadJob(f"{field} must be a text that is not empty")
    return str(_name(field, value))


def host_name(host_key: str | None) -> str | None:
    """The host that a job waits for; an empty one is none."""
    return _name("host_key", host_key) or None


def result_text(result: Mapping[str, Any] | None) -> str | None:
    return None if result is None else _canonical(dict(result), MAX_RESULT_BYTES)


def short_error(text: str | None) -> str | None:
    """An error as it is kept: one text of bounded length."""
    return None if text is None else storable(str(text)[:MAX_ERROR_CHARS])


def cancel_note(reason: str) -> str:
    """Why a job is called off, as it is kept, or `BadJob` where nobody says."""
    note = short_error(reason.strip())
    if not note:
        raise BadJob("a cancel needs a reason")
    return note


def storable(text: str) -> str:
    """The text as every database can hold it: no half of a surrogate pair (UTF-8), and no NUL (PostgreSQL)."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class End(NamedTuple):
    """A `Finish` as it is written."""

    job_id: int
    fence: int
    lease_id: str
    state: str
    outcome: str
    last_error: str | None
    result_json: str | None


_new_end = tuple.__new__  # past the checks of a call with seven arguments, which take longer than all else here


def checked_end(finish: Finish) -> End:
    """The columns that an end writes, or `BadJob`."""
    job_id, fence, lease_id, state, last_error, result, outcome = finish
    word = _ENDS.get(state)
    if word is None:
        raise BadJob(f"{state!r} does not end a job; use one of {', '.join(sorted(TERMINAL))}")
    error = None if last_error is None or word == "done" else short_error(last_error)
    noted = word if outcome is None else _outcome(outcome) or word
    if "\0" in lease_id:  # no lease has such an id, and no call is spent on all others
        lease_id = storable(lease_id)
    return _new_end(End, (job_id, fence, lease_id, word, noted, error, result_text(result)))


@lru_cache(maxsize=256)
def _outcome(text: str) -> str:
    """An outcome as it is kept; there are few of them."""
    return storable(text[:64])


def delay_ms(seconds: float, cap_s: float = _FAR_S) -> int:
    """A delay in whole milliseconds between nothing and `cap_s`; a fraction waits the whole millisecond."""
    if math.isnan(seconds):
        raise BadJob("a delay must be a number")
    return math.ceil(min(max(0.0, seconds), cap_s) * 1000)


def release_delay_ms(seconds: float) -> int:
    return delay_ms(seconds, RELEASE_CAP_S)


def worker_name(worker_id: str) -> str:
    return _needed("worker_id", worker_id)


def lease_ms(ttl_s: float) -> int:
    if not 0 < ttl_s <= _FAR_S:
        raise BadJob("a lease must last longer than no time and at most a year")
    return max(1, int(ttl_s * 1000))
