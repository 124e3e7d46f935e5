"""The runbook works as printed: every command of it, in its order, against a service that stands as it says. OPS-04."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import served

from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "look-after-the-service.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def prepared(ledger: SqliteLedger) -> None:
    """Twenty jobs: number 18 is with a worker that hangs, 19 and 20 have failed."""
    ledger.enqueue_many([NewJob(f"job:{n}", {"n": n}, priority=n if n > 17 else 0) for n in range(1, 21)])
    for job in ledger.lease("w-8", 2, 600):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "timeout: no answer in 30 s"))
    [stuck] = ledger.lease("w-9", 1, 600)
    assert stuck.job_id == 18


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_command_of_the_runbook_does_what_it_says(ledger: SqliteLedger) -> None:
    prepared(ledger)
    with served(app_over(ledger)) as port:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DOCSTOKG_ORCHESTRATOR": f"http://127.0.0.1:{port}",
            "DOCSTOKG_TOKEN": token_for(tenants=("*",)),
        }
        answers = [_run(line, environment) for block in BLOCKS for line in block.splitlines()]
    told = dict(answers)
    assert len(told) > 25
    assert _of(told, "clear-lease")["status"] == "queued"
    assert ledger.job(18).state is JobState.QUEUED
    assert _of(told, "/jobs/19/retry")["status"] == "queued"
    assert (_of(told, "bulk-actions/preview")["count"], _of(told, "bulk-actions/retry")["changed"]) == (1, 1)
    assert ledger.stats()["error"] == 0
    assert _of(told, "PUT /quotas")["maxActive"] == 200
    assert _of(told, "noisy/block")["blocked"] is True
    assert _of(told, "noisy/unblock")["blocked"] is False
    assert _of(told, "force-open")["forced"] is True
    assert _of(told, '{"on": true}')["on"] is True
    assert [job.job_id for job in ledger.lease("w-10", 1, 60)]  # maintenance is over
    decided = {row.event for job in (18, 19) for row in ledger.history(job)}
    assert {"lease_cleared", "retry_requested"} <= decided


def _run(line: str, environment: dict[str, str]) -> tuple[str, dict[str, object]]:
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (line, done.stderr)
    return line, dict(json.loads(done.stdout or "{}"))


def _of(told: dict[str, dict[str, object]], words: str) -> dict[str, object]:
    return next(answer for line, answer in told.items() if words in line)
