"""A worker with no database: it takes its work from a service, and a reader follows it live."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contentdownload.conftest import client_settings
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import EventStream, served

from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.web.door import HOME
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORKS = 12


def test_a_worker_behind_a_service_obtains_every_work_once(ledger: SqliteLedger, tmp_path: Path) -> None:
    """JOB-19, STREAM-01: a live run of the sandbox web, seen from outside."""
    program = str(Path(sys.executable).parent / "contentdownload")
    token = tmp_path / "worker.token"
    token.write_text(token_for("orch:operate", "orch:read"))
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as sandbox, served(app_over(ledger)) as port:
        settings = client_settings(sandbox, tmp_path / "node")
        (tmp_path / "node.json").write_text(json.dumps(settings))
        dois = {work.doi for number in range(WORKS) if (work := sandbox.world.by_index(number)) is not None}
        with EventStream(port, f"{HOME}/streams/jobs", token_for()) as stream:
            assert next(stream.blocks())[""] == "connected"
            ledger.enqueue_many([NewJob(f"doi:{doi}", {"doi": doi}) for doi in sorted(dois)])
            words = ["--orchestrator", f"http://127.0.0.1:{port}", "--token-file", str(token)]
            done = subprocess.run(
                [program, "queue", "run", "--drain", *words, "-c", str(tmp_path / "node.json")],
                capture_output=True, text=True, timeout=400, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            ended: set[int] = set()
            while len(ended) < len(dois):
                name, _, event = stream.next_event()
                if name in ("job.completed", "job.failed"):
                    assert event["job"]["id"] not in ended
                    ended.add(event["job"]["id"])
    stats = ledger.stats()
    assert stats["queued"] == stats["in_progress"] == 0
    assert stats["done"] > WORKS // 2
    finished = [row for job in ledger.list_jobs() for row in ledger.history(job.job_id) if row.event == "finished"]
    assert len(finished) == stats["total"] == len(dois)
    queue = Path(json.loads((tmp_path / "node.json").read_text())["queue"]["path"])
    assert not queue.exists()
    good = next(job for job in ledger.list_jobs() if job.state == "done")
    assert good.result_json is not None
