"""The client of the service: a method per request. Bodies are plain mappings, as the API has them; leases are typed.

Promises: what is submitted or leased is so once, also when a response was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, Unpack
from uuid import uuid4

from DocsToKG.Orchestrator.client.calls import Calls
from DocsToKG.Orchestrator.control.workers.hosts import Orders
from DocsToKG.Orchestrator.control.workers.lease_rows import JobLease, Renewal
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.views import V, json_name, parse_view

Body = Mapping[str, Any]
End = Literal["succeeded", "failed", "canceled", "timed_out"]


class EndOptions(TypedDict, total=False):
    """How a job ended, beside its status."""

    reason: str | None
    retryable: bool | None
    retry_after_s: float | None
    result: Body | None
    outcome: str | None


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
        """Submit one job; `fields` are those of a job request: `jobType`, `artifactId`, `priority`..."""
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
    ) -> list[JobLease]:
        """Up to `limit` jobs; where there are none, wait for some for up to `wait_s` (at most 30)."""
        body = {
            "workerId": worker_id, "jobTypes": list(job_types), "limit": limit, "leaseSeconds": lease_s,
            "waitSeconds": wait_s,
        }  # fmt: skip
        return _leases(self._calls.post("/leases", body, key=_key(), wait_s=wait_s))

    def renew(self, lease_ids: Sequence[str], *, lease_s: float = 600.0) -> list[Renewal]:
        body = {"leaseIds": list(lease_ids), "leaseSeconds": lease_s}
        return _views(Renewal, self._calls.post("/leases/renew", body, again=True), "renewals")

    def progress(self, lease_id: str, stage: str, result: Body | None = None) -> None:
        self._calls.post(f"/leases/{lease_id}/progress", {"stage": stage, "result": result}, again=True)

    def complete(self, lease_id: str, status: End, **how: Unpack[EndOptions]) -> Body:
        return self._complete(lease_id, status, how)

    def complete_and_lease(
        self,
        lease_id: str,
        status: End,
        worker_id: str,
        *,
        job_types: Sequence[str] = (),
        limit: int = 1,
        lease_s: float = 600.0,
        **how: Unpack[EndOptions],
    ) -> list[JobLease]:
        """Complete a job and lease the next ones, in one request: for a worker with one job at a time.

        Raises `LeaseLost` where the job was not its own any more; then nothing was leased.
        """
        wanted = {"workerId": worker_id, "jobTypes": list(job_types), "limit": limit, "leaseSeconds": lease_s}
        return _leases(self._complete(lease_id, status, how, next=wanted))

    def _complete(self, lease_id: str, status: End, how: EndOptions, **more: Any) -> Body:
        body = {"status": status, **{json_name(name): value for name, value in how.items()}, **more}
        key = _key() if more else None  # a repeated request must not lease the next jobs twice
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

    def report_hosts(self, worker_id: str, hosts: Sequence[Body], steps: Sequence[Body] = ()) -> Orders:
        """Report what a worker counted of hosts, and how its breakers changed; returns what operators want of it."""
        body = {"workerId": worker_id, "hosts": list(hosts)} | ({"breakerSteps": list(steps)} if steps else {})
        with _known_form():
            return parse_view(Orders, self._calls.post("/source-hosts", body))


def _key() -> str:
    return uuid4().hex


@contextmanager
def _known_form() -> Iterator[None]:
    """A response in an unknown form is a `LedgerError`, too, so that callers have one family of errors to catch."""
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


def _leases(value: Any) -> list[JobLease]:
    return _views(JobLease, value, "leases")


def _views(kind: type[V], value: Any, name: str) -> list[V]:
    with _known_form():
        return [parse_view(kind, row) for row in value[name]]
