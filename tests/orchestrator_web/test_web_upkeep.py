"""What one of all instances does every few seconds."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.services.packruns import Hints
from DocsToKG.Orchestrator.web.rooms import rooms_of
from DocsToKG.Orchestrator.web.upkeep import Upkeep

SCHEMA = Path(__file__).parents[2] / "docs" / "modules" / "orchestrator" / "event-envelope.schema.json"


@pytest.fixture
def timed(tmp_path):
    clock = ManualClock()
    with SqliteLedger(tmp_path / "l.sqlite", clock=clock) as ledger:
        yield rooms_of(ledger), clock


def test_one_instance_does_it_and_another_takes_over(timed):
    """OPS-01."""
    rooms, clock = timed
    first, second = Upkeep(rooms), Upkeep(rooms)
    assert (first.once(), second.once()) == (True, False)
    clock.advance(16)
    assert (second.once(), first.once()) == (True, False)


def test_a_silent_pack_run_is_timed_out(timed):
    """PACK-05."""
    rooms, clock = timed
    run = rooms.pack_runs.register("default", payload={}, hints=Hints(heartbeat_s=5), actor="t").pack_run_id
    rooms.pack_runs.heartbeat("default", run)
    upkeep = Upkeep(rooms)
    clock.advance(14)
    upkeep.once()
    assert rooms.pack_runs.get("default", run).state == "running"
    clock.advance(2)
    upkeep.once()
    assert rooms.pack_runs.get("default", run).state == "timed_out"


def test_the_thread_ends_with_the_service(timed):
    rooms, _ = timed
    upkeep = Upkeep(rooms, every_s=0.05)
    with upkeep.running():
        pass
    assert not upkeep._thread.is_alive()


def test_every_event_fits_the_published_schema(admin, ledger):
    """DOC-06, DOC-07."""
    job = admin.post("/jobs", {"payload": {}, "correlationId": "c"}).json()["id"]
    [lease] = admin.post("/leases", {"workerId": "w"}).json()["leases"]
    admin.post(f"/leases/{lease['leaseId']}/complete", {"status": "failed", "reason": "x", "retryable": False})
    admin.post(f"/jobs/{job}/replay")
    admin.post("/pack-runs", {"project": "p"})
    admin.post("/sources/arxiv/pause")
    events = admin.get("/history?page_size=500").json()["events"]
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for event in events:
        jsonschema.validate(event, schema)
    kinds = {event["eventType"] for event in events}
    assert {"job.enqueued", "job.leased", "job.failed", "pack_run.registered", "control.throttle_applied"} <= kinds
    assert len({event["eventId"] for event in events}) == len({event["idempotencyKey"] for event in events})
    assert len({event["eventId"] for event in events}) == len(events)
