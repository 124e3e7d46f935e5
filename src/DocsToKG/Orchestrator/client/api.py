"""What can be asked of the service, one method each. Bodies are plain mappings, as the API has them; leases are typed.

Promises: what is submitted or leased is so once, also when an answer was lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import uuid4

from DocsToKG.Orchestrator.client.calls import Calls
from DocsToKG.Orchestrator.errors import LedgerError

Body = Mapping[str, Any]
End = Literal["succeeded", "failed", "canceled", "timed_out"]


@dataclass(frozen=True, slots=True)
class RemoteLease:
    """A job with the right to work on it until `lease_until` (Unix seconds of ledger time), unless renewed."""

    lease_id: str
    lease_until: float
    fence: int
    job_id: int
    artifact_id: str
    job_type: str
    payload: Mapping[str, Any]
    payload_digest: str
    idempotency_key: str
    priority: int
    attempt: int
    max_attempts: int
    backoff_s: float
    renew_s: float
    tenant: str
    project: str | None
    correlation_id: str | None
    source: str | None
    host_key: str | None
    resolver_hint: str | None
    traceparent: str | None
    wait_told: bool
    replay_of: int | None
    waited_s: float


@dataclass(frozen=True, slots=True)
class RemoteRenewal:
    """What became of a lease: `held`, `lost`, or `canceled` with the reason."""

    lease_id: str
    state: str
    lease_until: float | None
    reason: str | None


class OrchestratorClient:
    """The service at `url`. Close it, or use it in a `with`."""

    def __init__(self, url: str, token: str, *, tenant: str | None = None, **more: Any) -> None:
        self._calls = Calls(url, token, tenant=tenant, **more)

    def __enter__(self) -> OrchestratorClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._calls.close()

    def enqueue(self, payload: Body, *, idempotency_key: str | None = None, **fields: Any) -> Body:
        """Put one job on the ledger; `fields` are those of a job request: `jobType`, `artifactId`, `priority`..."""
        return _object(self._calls.post("/jobs", {"payload": payload, **fields}, key=idempotency_key or _key()))

    def enqueue_many(self, jobs: Sequence[Body]) -> list[Body]:
        return _rows(self._calls.post("/jobs/bulk", {"jobs": list(jobs)}, key=_key()), "jobs")

    def lease(
        self,
        worker_id: str,
        *,
        job_types: Sequence[str] = (),
        limit: int = 1,
        lease_s: float = 600.0,
        wait_s: float = 0.0,
    ) -> list[RemoteLease]:
        """Up to `limit` jobs; where there are none, wait for some for up to `wait_s` (at most 30)."""
        body = {
            "workerId": worker_id, "jobTypes": list(job_types), "limit": limit, "leaseSeconds": lease_s,
            "waitSeconds": wait_s,
        }  # fmt: skip
        return _leases(self._calls.post("/leases", body, key=_key(), wait_s=wait_s))

    def renew(self, lease_ids: Sequence[str], *, lease_s: float = 600.0) -> list[RemoteRenewal]:
        body = {"leaseIds": list(lease_ids), "leaseSeconds": lease_s}
        return [_renewal(row) for row in _rows(self._calls.post("/leases/renew", body, again=True), "renewals")]

    def progress(self, lease_id: str, stage: str, result: Body | None = None) -> None:
        self._calls.post(f"/leases/{lease_id}/progress", {"stage": stage, "result": result}, again=True)

    def complete(
        self,
        lease_id: str,
        status: End,
        *,
        reason: str | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        result: Body | None = None,
        outcome: str | None = None,
    ) -> Body:
        return self._complete(lease_id, status, reason, retryable, retry_after_s, result, outcome)

    def complete_and_lease(
        self,
        lease_id: str,
        status: End,
        worker_id: str,
        *,
        job_types: Sequence[str] = (),
        limit: int = 1,
        lease_s: float = 600.0,
        reason: str | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        result: Body | None = None,
        outcome: str | None = None,
    ) -> list[RemoteLease]:
        """Say how a job ended and lease the next ones, in one request: for a worker with one job at a time.

        Raises `LeaseLost` where the job was not its own any more; then nothing was leased.
        """
        wanted = {"workerId": worker_id, "jobTypes": list(job_types), "limit": limit, "leaseSeconds": lease_s}
        done = self._complete(lease_id, status, reason, retryable, retry_after_s, result, outcome, next=wanted)
        return _leases(done)

    def _complete(
        self,
        lease_id: str,
        status: End,
        reason: str | None,
        retryable: bool | None,
        retry_after_s: float | None,
        result: Body | None,
        outcome: str | None,
        **more: Any,
    ) -> Body:
        body = {
            "status": status, "reason": reason, "retryable": retryable, "retryAfterSeconds": retry_after_s,
            "result": result, "outcome": outcome, **more,
        }  # fmt: skip
        key = _key() if more else None  # leases that were given must not be given again to the same word
        return _object(self._calls.post(f"/leases/{lease_id}/complete", body, key=key, again=True))

    def release(self, lease_id: str, **fields: Any) -> None:
        """Give a job back: `delaySeconds`, `hostKey`, `reason`, `countAttempt`."""
        self._calls.post(f"/leases/{lease_id}/release", fields)

    def job(self, job_id: int) -> Body:
        return _object(self._calls.get(f"/jobs/{job_id}"))

    def jobs(self, **filters: Any) -> Iterator[Body]:
        """Every job that fits, page by page."""
        token: str | None = None
        while True:
            page = _object(self._calls.get("/jobs", **filters, page_token=token))
            yield from _rows(page, "jobs")
            token, before = page.get("next_page_token"), token
            if token is None:
                return
            with _known_form():
                if not token.isascii() or token == before:  # no token of ours, or a page that leads to itself
                    raise ValueError

    def why(self, job_id: int) -> Body:
        return _object(self._calls.get(f"/jobs/{job_id}/why"))

    def history(self, job_id: int) -> list[Body]:
        return _rows(self._calls.get(f"/jobs/{job_id}/history", page_size=500), "events")

    def cancel(self, job_id: int, reason: str, *, ticket: str | None = None) -> Body:
        body = {"reason": reason, "ticket": ticket}
        return _object(self._calls.post(f"/jobs/{job_id}/cancel", body, again=True))

    def replay(self, job_id: int, reason: str, *, ticket: str | None = None) -> Body:
        return _object(self._calls.post(f"/jobs/{job_id}/replay", {"reason": reason, "ticket": ticket}, key=_key()))

    def whoami(self) -> Body:
        return _object(self._calls.get("/whoami"))

    def dashboard(self) -> Body:
        return _object(self._calls.get("/dashboard/metrics"))

    def maintenance(self) -> Body:
        return _object(self._calls.get("/maintenance"))

    def report_worker(self, worker_id: str, **fields: Any) -> None:
        self._calls.post("/workers", {"workerId": worker_id, **fields}, again=True)

    def report_hosts(self, worker_id: str, hosts: Sequence[Body], steps: Sequence[Body] = ()) -> Body:
        """Add up what a worker knows of hosts, and how its breakers changed; what operators want of it."""
        said = {"workerId": worker_id, "hosts": list(hosts)} | ({"breakerSteps": list(steps)} if steps else {})
        return _object(self._calls.post("/source-hosts", said))


def _key() -> str:
    return uuid4().hex


@contextmanager
def _known_form() -> Iterator[None]:
    """Whoever works for a service has one family of errors to catch, also when something else answers in its place."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise LedgerError("the service answered in a form that this program does not know: see its version") from None


def _object(value: Any) -> Body:
    with _known_form():
        return dict(value)


def _rows(value: Any, name: str) -> list[Body]:
    with _known_form():
        return [dict(row) for row in value[name]]


def _leases(value: Any) -> list[RemoteLease]:
    return [_lease(row) for row in _rows(value, "leases")]


def _lease(row: Body) -> RemoteLease:
    with _known_form():
        return RemoteLease(
            lease_id=row["leaseId"],
            lease_until=moment(row["leaseUntil"]),
            fence=row["fence"],
            job_id=row["jobId"],
            artifact_id=row["artifactId"],
            job_type=row["jobType"],
            payload=row["payload"],
            payload_digest=row["payloadDigest"].removeprefix("sha256:"),
            idempotency_key=row["idempotencyKey"],
            priority=row["priority"],
            attempt=row["retry"]["attempt"],
            max_attempts=row["retry"]["maxAttempts"],
            backoff_s=row["retry"]["backoffSeconds"],
            renew_s=row["renewSeconds"],
            tenant=row["provenance"]["tenant"],
            project=row["provenance"]["project"],
            correlation_id=row["provenance"]["correlationId"],
            source=row["source"],
            host_key=row["hostKey"],
            resolver_hint=row["resolverHint"],
            traceparent=row["instrumentation"]["traceparent"],
            wait_told=bool(row["instrumentation"].get("waitTold")),
            replay_of=row["replayOf"],
            waited_s=row["waitedSeconds"],
        )


def _renewal(row: Body) -> RemoteRenewal:
    with _known_form():
        until = row["leaseUntil"]
        return RemoteRenewal(row["leaseId"], row["state"], None if until is None else moment(until), row["reason"])


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
