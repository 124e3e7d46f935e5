"""OpenTelemetry spans of jobs in the service: `enqueue`, `schedule`, `lease` and `complete`.

`worker_execute` is the worker's own: it continues the `traceparent` that comes with its lease. Knows leases and
requests, no exporter. Promises: one trace from the request that enqueued a job to its end, whoever works on it; no
request waits for a span, and without a tracer nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from time import time_ns
from typing import Any

from DocsToKG.Orchestrator.api.observability.trace_context import given_context, go_on_as, trace_context_of
from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.control.workers.lease_rows import Completion, JobLease
from DocsToKG.Orchestrator.tracing import Tracing

INSTRUMENTATION = "docstokg.orchestrator"
Scope = MutableMapping[str, Any]


class JobSpans:
    """The spans of one service; without a tracer it has none."""

    def __init__(self, tracer: Any | None = None) -> None:
        self._tracing = None if tracer is None else Tracing(tracer)

    @property
    def are_wanted(self) -> bool:
        return self._tracing is not None

    @contextmanager
    def enqueue(self, scope: Scope, **about: Any) -> Iterator[str]:
        """Around the putting of jobs on the ledger: the words by which their workers go on with the trace."""
        if self._tracing is None:
            yield trace_context_of(scope)
            return
        span = self._tracing.start("enqueue", self._tracing.remote(given_context(scope)), about)
        words = self._tracing.traceparent(span)
        go_on_as(scope, words)
        try:
            yield words or trace_context_of(scope)
        except Exception as error:
            span.record_exception(error)
            raise
        finally:
            span.end()

    def lease(self, lease: JobLease, asked_ns: int) -> str | None:
        """A job was leased by a call that came at `asked_ns`: the words for its worker."""
        if self._tracing is None:
            return lease.instrumentation.traceparent
        now, about = time_ns(), {"job.id": lease.job_id, "job.type": lease.job_type, "tenant": lease.provenance.tenant}
        producer = self._tracing.remote(lease.instrumentation.traceparent)
        waiting = self._tracing.start("schedule", producer, about, now - round(lease.waited_s * 1e9))
        waiting.end(now)
        parent = waiting if producer is None else producer
        span = self._tracing.start("lease", parent, {**about, "worker.id": lease.provenance.task_runner_id}, asked_ns)
        words = self._tracing.traceparent(span)
        span.end()
        return words or lease.instrumentation.traceparent

    def complete(self, scope: Scope, ledger: ServedLedger, done: Completion, began_ns: int) -> None:
        """A worker's word that its work is over was taken; the call itself came at `began_ns`."""
        if self._tracing is None:
            return
        words = given_context(scope) or ledger.job(done.job_id).trace_context
        about = {"job.id": done.job_id, "job.outcome": "retried" if done.retried else done.state.value}
        self._tracing.start("complete", self._tracing.remote(words), about, began_ns).end()
