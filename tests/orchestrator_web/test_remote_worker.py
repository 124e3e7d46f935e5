"""A worker with no database: it takes its work from a service, and a reader follows it live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.contentdownload.collector import Collector
from tests.contentdownload.conftest import client_config, client_settings
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import EventStream, served
from tests.waiting import eventually

from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.observability.spans import JobSpans
from DocsToKG.Orchestrator.client import OrchestratorClient
from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORKS = 12
OVER = ("succeeded", "failed")


def test_a_worker_behind_a_service_obtains_every_work_once(ledger: SqliteLedger, tmp_path: Path) -> None:
    """JOB-19, STREAM-01: a live run of the sandbox web, seen from outside."""
    program = str(Path(sys.executable).parent / "contentdownload")
    token = tmp_path / "worker.token"
    token.write_text(token_for("orch:operate", "orch:read"))
    ended: set[int] = set()
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as sandbox, served(app_over(ledger)) as port:
        settings = client_settings(sandbox, tmp_path / "node")
        (tmp_path / "node.json").write_text(json.dumps(settings))
        dois = {work.doi for number in range(WORKS) if (work := sandbox.world.by_index(number)) is not None}
        with EventStream(port, f"{HOME}/streams/jobs", token_for()) as stream:
            assert next(stream.blocks())[""] == "connected"
            other = ledger.enqueue_many([NewJob("pack:1", {}, job_type="pack-run", priority=5)])[0].job_id
            words = ["--orchestrator", f"http://127.0.0.1:{port}", "--token-file", str(token)]
            order = [program, "queue", "run", *words, "-c", str(tmp_path / "node.json")]
            with (tmp_path / "worker.log").open("w") as log, subprocess.Popen(order, stdout=log, stderr=log) as worker:
                try:
                    for half in (sorted(dois)[::2], sorted(dois)[1::2]):
                        ledger.enqueue_many([NewJob(f"doi:{doi}", {"doi": doi}) for doi in half])
                        over = _follow(stream, port, len(half))
                        assert not over & ended
                        ended |= over
                        # Another reader asks while the work goes on, and finds what the first was told.
                        assert worker.poll() is None
                        assert {number for number, status in _statuses(port).items() if status in OVER} == ended
                finally:
                    worker.terminate()
            assert len(ended) == len(dois)
            drained = subprocess.run([*order, "--drain"], capture_output=True, text=True, timeout=200, check=False)
            assert drained.returncode == 0, drained.stderr
    assert [row.event for row in ledger.history(other)] == ["enqueued"], "no download: not the worker's to take"
    stats = ledger.stats("content.download")
    assert stats["queued"] == stats["in_progress"] == 0
    assert stats["done"] > WORKS // 2
    finished = [row for job in ledger.list_jobs() for row in ledger.history(job.job_id) if row.event == "finished"]
    assert len(finished) == stats["total"] == len(dois)
    queue = Path(json.loads((tmp_path / "node.json").read_text())["queue"]["path"])
    assert not queue.exists()
    good = next(job for job in ledger.list_jobs() if job.state == "done")
    result = json.loads(good.result_json or "{}")
    assert {"resolver", "sha256", "path"} <= set(result)


def test_one_trace_goes_from_the_call_that_enqueued_to_the_end_in_another_process(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    """TRC-07, TRC-08: the spans of the service and of a worker without a database are one trace."""
    program = str(Path(sys.executable).parent / "contentdownload")
    audit_exporter, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(audit_exporter))
    app, collector = app_over(ledger, spans=JobSpans(tracers.get_tracer("test"))), Collector()
    with SandboxServer(works=3, seed=7, faults=Faults.none()) as sandbox, served(app) as port:
        telemetry = {"otlp_endpoint": collector.address}
        settings = client_settings(sandbox, tmp_path / "node", telemetry=telemetry)
        (tmp_path / "node.json").write_text(json.dumps(settings))
        (tmp_path / "token").write_text(token_for("orch:operate", "orch:read"))
        work = sandbox.world.by_index(0)
        assert work is not None
        url = f"http://127.0.0.1:{port}"
        with OrchestratorClient(url, token_for()) as client:
            client.enqueue({"doi": work.doi}, artifactId=f"doi:{work.doi}")
        words = ["--orchestrator", url, "--token-file", str(tmp_path / "token"), "-c", str(tmp_path / "node.json")]
        done = subprocess.run(
            [program, "queue", "run", "--drain", *words], capture_output=True, text=True, timeout=400, check=False
        )
        assert done.returncode == 0, done.stderr
    collector.close()
    ours = {span.name: span for span in audit_exporter.get_finished_spans()}
    theirs = {span.name: span for _, span in collector.spans}
    assert ours.keys() == {"enqueue", "schedule", "lease", "complete"}
    assert {"worker_execute", "job", "http.request", "complete"} <= theirs.keys()
    assert not {"enqueue", "schedule", "lease"} & theirs.keys()  # told once
    trace_id = ours["enqueue"].context.trace_id
    assert (ledger.job(1).trace_context or "")[:52] == f"00-{trace_id:032x}-{ours['enqueue'].context.span_id:016x}"
    assert {span.context.trace_id for span in ours.values()} == {trace_id}
    of_the_job = [span for name, span in theirs.items() if name != "orchestrator.dispatch"]
    assert {int.from_bytes(span.trace_id) for span in of_the_job} == {trace_id}
    assert int.from_bytes(theirs["worker_execute"].parent_span_id) == ours["lease"].context.span_id


def test_a_run_tells_the_ledger_who_works_and_how_hosts_stand_and_obeys(ledger: SqliteLedger, tmp_path: Path) -> None:
    """THR-01, BRK-08: seen by the API over the ledger of a run, with nothing set up for it."""
    service = BreakerService(ledger)
    service.force_open("default", "resolver:unpaywall", actor="op", reason="its quota is spent")
    ThrottleService(ledger).pause_source("default", "arxiv", actor="op", reason="they asked us to")
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as sandbox, served(app_over(ledger)) as port:
        queue = {"path": str(ledger.path)}
        budgets = {"orchestrator": {"max_workers": 4, "max_job_attempts": 1}}
        cfg = client_config(sandbox, tmp_path / "run", queue=queue, **budgets)
        dois = sorted({work.doi for number in range(WORKS) if (work := sandbox.world.by_index(number)) is not None})
        with DownloadRun(cfg) as run:
            run.start()
            eventually(lambda: _get(port, "/workers")["workers"])  # it has heard the orders before there is work
            run.enqueue(coerce_works([f"doi:{doi}" for doi in dois]))
            run.wait(patience_s=5.0)
            run.stop()
        sources = {source["name"]: source for source in _get(port, "/sources")["sources"]}
        [worker] = _get(port, "/workers")["workers"]
        assert (worker["kind"], worker["info"]["pid"]) == ("content.download", os.getpid())
        assert sources["arxiv"]["paused"]
        assert sources["arxiv"]["requests"] == 0
        assert sources.get("unpaywall", {"requests": 0})["requests"] == 0
        asked = [host for source in sources.values() for host in source["hosts"] if host["requests"]]
        assert sum(source["works"] for source in sources.values()) == ledger.stats()["done"] > 0
        assert all(host["limits"]["maxSlots"] >= 1 and host["lastStatus"] for host in asked)
        assert _get(port, "/dashboard/metrics")["workers"] == 1


def _statuses(port: int) -> dict[int, str]:
    nodes = _ask(port, f"{{ jobs(first: {WORKS}) {{ nodes {{ id status }} }} }}")["jobs"]["nodes"]
    return {int(node["id"]): node["status"].lower() for node in nodes}


def _follow(stream: EventStream, port: int, count: int) -> set[int]:
    """The jobs that so many events said to be over; by the time of each, GraphQL says the same of its job."""
    over: set[int] = set()
    while len(over) < count:
        name, _, event = stream.next_event()
        if name in ("job.completed", "job.failed"):
            assert event["job"]["id"] not in over
            over.add(event["job"]["id"])
            assert _statuses(port)[event["job"]["id"]] in OVER
    return over


def _get(port: int, path: str) -> Any:
    request = Request(f"http://127.0.0.1:{port}{HOME}{path}", headers={"Authorization": f"Bearer {token_for()}"})
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _ask(port: int, query: str) -> Any:
    headers = {"Authorization": f"Bearer {token_for()}", "Content-Type": "application/json"}
    content = json.dumps({"query": query}).encode()
    with urlopen(Request(f"http://127.0.0.1:{port}{HOME}/graphql", content, headers), timeout=30) as answer:
        return json.load(answer)["data"]
