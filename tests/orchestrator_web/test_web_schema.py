"""What is published is true: every route answers as its description says, and every event fits its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.orchestrator_web.conftest import app_over
from tests.orchestrator_web.describing import OTHERS, ROUTES, keeps_to_its_description

from DocsToKG.Orchestrator.api.openapi import SPEC
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

ENVELOPE = Path(__file__).parents[2] / "docs" / "modules" / "orchestrator" / "event-envelope.schema.json"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import schemathesis

    with SqliteLedger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as ledger:
        yield schemathesis.openapi.from_asgi(SPEC, app_over(ledger))


every_route = pytest.mark.parametrize(("path", "method"), ROUTES + OTHERS, ids=[f"{m} {p}" for p, m in ROUTES + OTHERS])


@pytest.mark.slow
@every_route
def test_every_route_keeps_to_its_description(api: Any, path: str, method: str) -> None:
    """API-31."""
    keeps_to_its_description(api, path, method, examples=8)


@pytest.mark.long
@every_route
def test_every_route_keeps_to_its_description_whatever_it_is_sent(api: Any, path: str, method: str) -> None:
    keeps_to_its_description(api, path, method, examples=100)


def test_every_event_fits_the_published_schema(admin: Any) -> None:
    """DOC-06, DOC-07."""
    job = admin.post("/jobs", {"payload": {}, "correlationId": "c"}).json()["id"]
    [lease] = admin.post("/leases", {"workerId": "w"}).json()["leases"]
    admin.post(f"/leases/{lease['leaseId']}/complete", {"status": "failed", "reason": "x", "retryable": False})
    admin.post(f"/jobs/{job}/replay")
    admin.post("/pack-runs", {"project": "p"})
    admin.post("/sources/arxiv/pause")
    events = admin.get("/history?page_size=500").json()["events"]
    schema = json.loads(ENVELOPE.read_text(encoding="utf-8"))
    for event in events:
        jsonschema.validate(event, schema)
    kinds = {event["eventType"] for event in events}
    assert {"job.enqueued", "job.leased", "job.failed", "pack_run.registered", "control.throttle_applied"} <= kinds
    assert len({event["eventId"] for event in events}) == len({event["idempotencyKey"] for event in events})
    assert len({event["eventId"] for event in events}) == len(events)
