"""The service over a ledger on a real PostgreSQL server: what it says of itself holds there too."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient
from tests.orchestrator_web.conftest import app_over, caller_of, token_for
from tests.orchestrator_web.describing import ROUTES, keeps_to_its_description
from tests.orchestrator_web.serving import EventStream, served

from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.openapi import SPEC
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.slow  # a server is started; part of `make test`


@pytest.fixture(scope="module")
def ledgers(postgres_url: str) -> Iterator[tuple[PostgresLedger, PostgresLedger]]:
    """Two instances on one schema."""
    name = f"web_{uuid.uuid4().hex[:12]}"
    with PostgresLedger(postgres_url, schema_name=name) as one, PostgresLedger(postgres_url, schema_name=name) as two:
        yield one, two
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{name}" CASCADE')


@pytest.mark.timeout(900)  # a hundred routes
def test_every_route_keeps_to_its_description_there_too(ledgers: tuple[PostgresLedger, PostgresLedger]) -> None:
    """API-31: the same answers, and never a 500, from the other database."""
    import schemathesis

    api: Any = schemathesis.openapi.from_asgi(SPEC, app_over(ledgers[0]))
    for path, method in ROUTES:
        keeps_to_its_description(api, path, method, examples=4)


def test_two_instances_share_one_ledger(ledgers: tuple[PostgresLedger, PostgresLedger]) -> None:
    """OPS-01: what one is told the other knows: jobs, leases, quotas, keys and events."""
    with served(app_over(ledgers[1])) as port, TestClient(app_over(ledgers[0])) as client:
        here = caller_of(client)(tenant="shared", tenants=("*",), X_Reason="a test")
        token = token_for(tenant="shared")
        with EventStream(port, f"{HOME}/streams/jobs", token) as stream:
            assert next(stream.blocks())[""] == "connected"
            first = here.post("/jobs", {"payload": {"n": 1}}, Idempotency_Key="k")
            assert stream.next_event()[2]["job"]["id"] == first.json()["id"]
        body = json.dumps({"payload": {"n": 1}})
        with EventStream(port, f"{HOME}/jobs", token, method="POST", content=body, Idempotency_Key="k") as again:
            other = again.body()
            assert other["error"]["code"] == "CONFLICT" if again.status == 409 else other == first.json()
        here.post("/jobs", {"payload": {"n": 2}})
        here("PUT", "/quotas/content.download", {"maxActive": 1})
        leased = json.dumps({"workerId": "w", "limit": 5})
        with EventStream(port, f"{HOME}/leases", token, method="POST", content=leased) as there:
            [lease] = there.body()["leases"]
        done = here.post(f"/leases/{lease['leaseId']}/complete", {"status": "succeeded", "result": {"n": 1}})
        assert done.json()["status"] == "succeeded"
        with EventStream(port, f"{HOME}/jobs/{lease['jobId']}", token) as there:
            assert there.body()["result"] == {"n": 1}
