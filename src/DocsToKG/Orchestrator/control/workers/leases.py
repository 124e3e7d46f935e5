"""Leases for workers without a database: lease, renew, progress, complete, release, by the id of a lease alone.

Knows the rules of leasing, and the ledger by its protocol. Promises: a lease of another tenant does not exist; a
request with a lease that is over raises `LeaseLost` and changes nothing; a worker whose job was canceled learns so,
with the reason, at its next renewal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.control.workers import lease_rows
from DocsToKG.Orchestrator.control.workers.lease_rows import RETRY_BASE_S, Completion, JobLease, Renewal
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost
from DocsToKG.Orchestrator.jobs.retry import job_backoff_s
from DocsToKG.Orchestrator.jobs.states import API_STATUS, JobState
from DocsToKG.Orchestrator.jobs.status import ENDS
from DocsToKG.Orchestrator.ledger import checks
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, LeasedJob, Progress, Release

DEFAULT_TTL_S = 600.0
MAX_TTL_S = 24 * 3600.0
MAX_LEASES = 500
MAX_TYPES = 100
RETRY_JITTER_S = 15.0
_NOT_TOLD = "leased along with an end that came too late"


class NextLease(NamedTuple):
    """What a worker that ends a job wants next: up to `limit` jobs of these types, of any where none is named."""

    worker_id: str
    job_types: Sequence[str] = ()
    limit: int = 1
    ttl_s: float = DEFAULT_TTL_S


class LeaseService:
    """The leases of one ledger. Safe to share between threads."""

    def __init__(
        self,
        ledger: ServedLedger,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._ledger = ledger
        self._chance = chance

    def lease(
        self,
        tenant: str,
        worker_id: str,
        *,
        job_types: Sequence[str] = (),
        limit: int = 1,
        ttl_s: float = DEFAULT_TTL_S,
    ) -> Sequence[JobLease]:
        """Up to `limit` jobs of the tenant, of these types where some are named."""
        worker, types = _checked(worker_id, job_types, limit, ttl_s)
        jobs = self._take(tenant, worker, types, limit, ttl_s)
        return [lease_rows.shown(job, worker, ttl_s) for job in jobs]

    def _take(self, tenant: str, worker: str, types: Sequence[str], limit: int, ttl_s: float) -> list[LeasedJob]:
        if not types:
            return self._ledger.lease(worker, limit, ttl_s, begun=True, tenants=(tenant,))
        first = int(self._chance() * len(types))  # so that no type always has to wait for another
        jobs: list[LeasedJob] = []
        for name in (*types[first:], *types[:first]):
            if len(jobs) < limit:
                jobs += self._ledger.lease(
                    worker, limit - len(jobs), ttl_s, job_type=name, begun=True, tenants=(tenant,)
                )
        return jobs

    def renew(
        self, tenant: str, lease_ids: Sequence[str], *, ttl_s: float = DEFAULT_TTL_S, worker_id: str | None = None
    ) -> Sequence[Renewal]:
        """Extend leases; one answer for each, in order. What is not held is to be dropped."""
        if not 1 <= len(lease_ids) <= MAX_LEASES or not 0 < ttl_s <= MAX_TTL_S:
            raise BadJob(f"renew 1 to {MAX_LEASES} leases for up to {MAX_TTL_S:g} s")
        ttl_ms = checks.lease_ms(ttl_s)
        return self._ledger.write(lambda tx: lease_rows.renew(tx, tenant, lease_ids, ttl_ms, worker_id))

    def progress(self, tenant: str, lease_id: str, stage: str, *, result: Mapping[str, Any] | None = None) -> None:
        """Where the job is, and what there is of its result so far."""
        named = self._named(tenant, lease_id)
        if result is None:
            self._ledger.submit_progress(Progress(*named, stage=plain_name("stage", stage, 64))).result()
            return
        values = {
            "id": named[0],
            "lease": lease_id,
            "stage": plain_name("stage", stage, 64),
            "result": checks.result_text(result),
        }
        if not self._ledger.write(lambda tx: lease_rows.write_progress(tx, values)):
            raise LeaseLost(named[0], named[1])

    def complete(
        self,
        tenant: str,
        lease_id: str,
        status: str,
        *,
        reason: str | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        result: Mapping[str, Any] | None = None,
        outcome: str | None = None,
        then: NextLease | None = None,
    ) -> Completion:
        """The work is over: `succeeded`, `failed`, `canceled` or `timed_out`.

        A failure comes again by the retry policy, after `retry_after_s` where the worker knows better, unless it is
        not `retryable`; running out of time does so only if it is said to be. The outcome `skipped` of a success is
        kept as such. The same word again is no harm. `then` asks for the next jobs in the same visit.
        """
        if then is not None:
            worker, types = _checked(then.worker_id, then.job_types, then.limit, then.ttl_s)
            then = then._replace(worker_id=worker, job_types=tuple(types))
        if status not in ENDS:
            raise BadJob(f"a job ends as one of {', '.join(ENDS)}")
        if status in ("failed", "timed_out") and not (reason or "").strip():
            raise BadJob(f"a job that {status} needs a reason")
        named = self._named(tenant, lease_id)
        again = retryable if retryable is not None else status == "failed"
        if again and status in ("failed", "timed_out"):
            self._fail(named, str(reason), retry_after_s, result)
            jobs = [] if then is None else self._take(tenant, *then[:4])
        else:
            state = JobState.SKIPPED if status == "succeeded" and outcome == "skipped" else ENDS[status]
            jobs = self._finish(tenant, Finish(*named, state, reason, result, outcome), then)
        job = self._ledger.job(named[0])
        retried = job.state in (JobState.QUEUED, JobState.PENDING)
        took_s = None if retried or job.finished_at is None else max(0.0, job.finished_at - job.next_eligible_at)
        leases = () if then is None else [lease_rows.shown(each, then.worker_id, then.ttl_s) for each in jobs]
        again_at = job.next_eligible_at if retried else None
        return Completion(job.job_id, job.state, API_STATUS[job.state], retried, again_at, took_s, leases)

    def _finish(self, tenant: str, finish: Finish, then: NextLease | None) -> list[LeasedJob]:
        """End a job, and lease the next ones in the same transaction where some are asked for."""
        if then is None:
            self._ledger.submit_finish(finish).result()
            return []
        types = list(then.job_types)
        [told], jobs = self._ledger.finish_and_lease(
            [finish], then.worker_id, then.limit, then.ttl_s, job_type=types[0] if types else None, begun=True,
            tenants=(tenant,),
        )  # fmt: skip
        if isinstance(told, LeaseLost):
            # The worker hears of the loss and nothing else, so nobody would work on these.
            for job in jobs:
                with suppress(LeaseLost):  # one that was called off meanwhile must not keep the others
                    self._ledger.submit_release(Release(job.job_id, job.fence, job.lease_id, why=_NOT_TOLD)).result()
            raise told
        if len(types) > 1 and len(jobs) < then.limit:
            jobs += self._take(tenant, then.worker_id, types[1:], then.limit - len(jobs), then.ttl_s)
        return jobs

    def release(
        self,
        tenant: str,
        lease_id: str,
        *,
        delay_s: float = 0.0,
        host_key: str | None = None,
        why: str | None = None,
        count_attempt: bool = False,
    ) -> None:
        """Give a job back, to be leased again after `delay_s`."""
        named = self._named(tenant, lease_id)
        back = Release(*named, delay_s=delay_s, host_key=host_key, why=why, count_attempt=count_attempt)
        self._ledger.submit_release(back).result()

    def _fail(
        self, named: tuple[int, int, str], reason: str, retry_after_s: float | None, result: Mapping[str, Any] | None
    ) -> None:
        job = self._ledger.job(named[0])
        delay = job_backoff_s(job.attempts + 1, base_s=RETRY_BASE_S, jitter_s=RETRY_JITTER_S, random=self._chance)
        if retry_after_s is not None:
            delay = min(max(0.0, retry_after_s), MAX_TTL_S)
        self._ledger.submit_fail(Fail(*named, delay, job.max_attempts, reason, result)).result()

    def _named(self, tenant: str, lease_id: str) -> tuple[int, int, str]:
        """The job and the fence of a lease, which may be over already, so that a repeated word is known as such."""
        job_id = lease_rows.job_id_of(lease_id)
        values = {"id": job_id, "lease": lease_id, "tenant": tenant}
        found = self._ledger.read(
            lambda tx: tx.execute(
                "SELECT id, fence FROM jobs WHERE id = :id AND lease_id = :lease AND tenant = :tenant", values
            )
        )
        if not found:
            raise LeaseLost(job_id)
        return int(found[0][0]), int(found[0][1]), lease_id


def _checked(worker_id: str, job_types: Sequence[str], limit: int, ttl_s: float) -> tuple[str, list[str]]:
    """The worker and the types that are asked for, each named once; refuses what is asked for in excess."""
    worker = plain_name("worker id", worker_id)
    if not 1 <= limit <= MAX_LEASES or not 0 < ttl_s <= MAX_TTL_S or len(job_types) > MAX_TYPES:
        raise BadJob(f"lease 1 to {MAX_LEASES} jobs for up to {MAX_TTL_S:g} s, of up to {MAX_TYPES} types")
    return worker, [plain_name("job type", name) for name in dict.fromkeys(job_types)]
