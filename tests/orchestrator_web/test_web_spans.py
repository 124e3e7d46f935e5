"""The spans that the service makes of jobs, and what it hands to workers for theirs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.orchestrator_web.conftest import Caller

from DocsToKG.Orchestrator.api.observability.spans import JobSpans
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{CALLER}-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def app(make_app: Any, exporter: InMemorySpanExporter) -> Iterator[FastAPI]:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    yield make_app(spans=JobSpans(tracers.get_tracer("test")))
    tracers.shutdown()


def words_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"


def parent_of(span: ReadableSpan) -> str:
    return "" if span.parent is None else f"{span.parent.span_id:016x}"


def test_a_job_has_one_trace_from_the_call_that_enqueued_it(
    admin: Caller, ledger: SqliteLedger, exporter: InMemorySpanExporter
) -> None:
    """TRC-07, TRC-08, JOB-07."""
    assert admin.post("/jobs", {"payload": {}}, traceparent=GIVEN).headers["x-trace-id"] == TRACE
    [lease] = admin.post("/leases", {"workerId": "w"}).json()["leases"]
    assert lease["instrumentation"]["waitTold"]
    admin.post(f"/leases/{lease['leaseId']}/complete", {"status": "succeeded"})
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert spans.keys() == {"enqueue", "schedule", "lease", "complete"}
    assert {f"{span.context.trace_id:032x}" for span in spans.values() if span.context} == {TRACE}
    enqueued = words_of(spans["enqueue"])
    assert ledger.job(1).trace_context == enqueued
    assert parent_of(spans["enqueue"]) == CALLER
    assert {parent_of(spans[name]) for name in ("schedule", "lease", "complete")} == {enqueued[36:52]}
    assert lease["instrumentation"]["traceparent"] == words_of(spans["lease"])
    assert spans["lease"].attributes == {
        "job.id": 1,
        "job.type": "content.download",
        "tenant": "default",
        "worker.id": "w",
    }
    assert spans["complete"].attributes == {"job.id": 1, "job.outcome": "done"}
    assert all((span.end_time or 0) >= (span.start_time or 0) > 0 for span in spans.values())


def test_a_call_without_a_trace_begins_one_and_is_known_by_it(admin: Caller, exporter: InMemorySpanExporter) -> None:
    answer = admin.post("/jobs/bulk", {"jobs": [{"payload": {}}, {"payload": {}, "traceparent": GIVEN}]})
    [span] = exporter.get_finished_spans()
    assert span.parent is None
    assert answer.headers["x-trace-id"] == words_of(span)[3:35]
    leases = admin.post("/leases", {"workerId": "w", "limit": 2}).json()["leases"]
    traces = {lease["jobId"]: lease["instrumentation"]["traceparent"][3:35] for lease in leases}
    assert traces == {1: words_of(span)[3:35], 2: TRACE}  # a job may bring its own


def test_a_retry_and_a_replay_go_on_in_a_trace(admin: Caller, exporter: InMemorySpanExporter) -> None:
    admin.post("/jobs", {"payload": {}}, traceparent=GIVEN)
    [lease] = admin.post("/leases", {"workerId": "w"}).json()["leases"]
    end = {"status": "failed", "reason": "no", "retryable": False}
    theirs = f"00-{TRACE}-{'1' * 16}-01"
    admin.post(f"/leases/{lease['leaseId']}/complete", end, traceparent=theirs)
    assert admin.post("/jobs/1/replay", {}).status_code == 201
    *_, completed, replayed = exporter.get_finished_spans()
    assert (completed.name, parent_of(completed)) == ("complete", "1" * 16)  # what the worker named, as its parent
    assert replayed.name == "enqueue"
    assert replayed.attributes == {"replay.of": 1, "tenant": "default"}


def test_what_is_refused_leaves_a_span_that_says_so(admin: Caller, exporter: InMemorySpanExporter) -> None:
    assert admin.post("/jobs", {"payload": {}, "dependencies": [99]}).status_code >= 400
    [span] = exporter.get_finished_spans()
    assert [event.name for event in span.events] == ["exception"]
    assert admin.post("/leases/lease_" + "0" * 32 + "_1/complete", {"status": "succeeded"}).status_code == 409
    assert len(exporter.get_finished_spans()) == 1


@pytest.mark.slow
def test_without_a_tracer_the_library_is_not_loaded_and_the_callers_words_pass(
    make_app: Any, ledger: SqliteLedger
) -> None:
    """TRC-09."""
    from starlette.testclient import TestClient
    from tests.orchestrator_web.conftest import caller_of

    with TestClient(make_app()) as client:
        admin = caller_of(client)()
        admin.post("/jobs", {"payload": {}}, traceparent=GIVEN)
        [lease] = admin.post("/leases", {"workerId": "w"}).json()["leases"]
    assert lease["instrumentation"] == {"traceparent": GIVEN, "waitTold": False}
    loaded = "import sys, DocsToKG.Orchestrator.bootstrap, DocsToKG.Orchestrator.api.app"
    words = f"{loaded}; print('opentelemetry.sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "False"
