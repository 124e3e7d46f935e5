"""The log of the control plane: every line names the job, its worker and its lease; incidents are flagged."""

from __future__ import annotations

import json
import logging

import pytest

from DocsToKG.Orchestrator.api.housekeeping import Housekeeping
from DocsToKG.Orchestrator.api.observability.job_log import LOGGER, JsonLines
from DocsToKG.Orchestrator.api.services import Services


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def heard():
    handler, logger = Lines(), logging.getLogger(LOGGER)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def test_a_jobs_way_is_told_line_by_line(admin, heard):
    """LOG-05."""
    admin.post("/jobs", {"payload": {"secret": "not to be seen"}})
    [lease] = admin.post("/leases", {"workerId": "w1"}).json()["leases"]
    admin.post(f"/leases/{lease['leaseId']}/complete", {"status": "failed", "reason": "no", "retryable": False})
    admin.post("/jobs/1/retry")
    admin.post("/jobs/1/cancel")
    told = [(line["event"], line["status"]) for line in heard]
    assert told == [
        ("enqueued", "queued"), ("leased", "leased"), ("completed", "failed"), ("retried", "queued"),
        ("canceled", "canceled"),
    ]  # fmt: skip
    assert all((line["jobId"], line["jobType"], line["tenant"]) == (1, "content.download", "default") for line in heard)
    assert (heard[1]["workerId"], heard[1]["leaseId"]) == ("w1", lease["leaseId"])
    assert heard[2]["leaseId"] == lease["leaseId"]
    assert "not to be seen" not in json.dumps(heard)


def test_an_incident_is_flagged_once_each_time_it_happens(admin, ledger, heard):
    """LOG-06, INC-03."""
    upkeep = Housekeeping(Services(ledger))
    assert upkeep.once()
    admin.post("/incidents", {"source": "disk", "severity": "error", "cause": "nearly full"})
    assert upkeep.once()
    assert upkeep.once()
    [line] = [line for line in heard if line["event"] == "incident"]
    assert (line["incident"], line["level"], line["source"]) == (True, "warning", "disk")
