"""The runbook works as printed: every command of it, in its order, on a ledger that stands as it says. OPS-04, OPS-07.

The queue's commands and the service are of one ledger, as they are for an operator.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.docs.conftest import Reader, wrong
from tests.docs.reading import ROOT, lines_of
from tests.orchestrator_web.conftest import app_over
from tests.orchestrator_web.serving import served

from DocsToKG.Orchestrator.api.auth.tokens import TokenFile
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, Release
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

PAGE = ROOT / "docs" / "howto" / "runbook.md"
DRAIN = "queue run --drain"


def prepared(ledger: SqliteLedger) -> None:
    """Number 18 is with a worker that hangs, 19 and 20 have failed."""
    held = {job.job_id: job for job in ledger.lease("w-9", 20, 600)}
    for number, job in held.items():
        if number in (19, 20):
            ledger.finish(Finish(number, job.fence, job.lease_id, JobState.ERROR, "timeout: no answer in 30 s"))
        elif number != 18:
            ledger.release(Release(number, job.fence, job.lease_id))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_command_of_the_runbook_does_what_it_says(reader: Reader) -> None:
    lines, file = lines_of(PAGE), reader.folder / "state" / "workqueue.sqlite"
    until_drained = next(number for number, line in enumerate(lines) if DRAIN in line)
    exports = [line for line in lines if line.startswith("export ")]
    tokens = TokenFile(file.with_name(f"{file.name}.tokens.json"))
    with SqliteLedger(file) as ledger, served(app_over(ledger, tokens)) as port:
        prepared(ledger)
        reader = replace(reader, instead={"127.0.0.1:8470": f"127.0.0.1:{port}"})
        ended = reader.types(lines[:until_drained])
        assert wrong(ended, {}) == []
        told = answers(ended)
        assert told["POST /jobs/18/clear-lease"]["status"] == "queued"
        assert ledger.job(18).state is JobState.QUEUED
        assert told["POST /jobs/19/retry"]["status"] == "queued"
        assert told["POST /bulk-actions/preview"]["count"] == told["POST /bulk-actions/retry"]["changed"] == 1
        assert ledger.stats()["error"] == 0
        assert {"lease_cleared", "retry_requested"} <= {r.event for job in (18, 19) for r in ledger.history(job)}
        ended = reader.types([*exports, *lines[until_drained:]])
        assert wrong(ended, {}) == []
        told = answers(ended)
        copy = told["POST /jobs/17/replay"]
        assert (copy["replayOf"], copy["status"]) == (17, "queued")
        assert ledger.job(17).state in (JobState.DONE, JobState.ERROR)
        assert told["PUT /quotas/content.download"]["maxActive"] == 200
        assert told["POST /tenants/noisy/block"]["blocked"] is True
        assert told["POST /tenants/noisy/unblock"]["blocked"] is False
        assert told["POST /circuit-breakers/unpaywall/force-open"]["forced"] is True
        assert told["PUT /circuit-breakers/unpaywall/settings"]["settings"]["minimumSamples"] == 20
        stats = ledger.stats()
        assert stats["done"] > 20  # of 26: maintenance and pauses are over
        assert stats["queued"] == stats["in_progress"] == 0
    assert taken_down(reader.folder)


def answers(ended: list[tuple[str, int, str]]) -> dict[str, Any]:
    """What the service said, by method and path; what is asked twice, by its last answer."""
    asked = [(line, output) for line, _, output in ended if " call " in line]
    return {" ".join(line.split(" call ")[1].split()[:2]).strip("'"): json.loads(output) for line, output in asked}


def taken_down(folder: Path) -> list[Any]:
    return list(json.loads((folder / "papers" / "takedowns.json").read_text()))
