"""Every route needs its scope and its tenant; only health and discovery need neither."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient
from tests.orchestrator_web.conftest import app_over

from DocsToKG.Orchestrator.api.app import RESOURCES
from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS, SCOPES, granted
from DocsToKG.Orchestrator.api.middleware import HOME, home_path
from DocsToKG.Orchestrator.api.openapi import document
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

OPEN = {"/healthz", "/readyz", "/.well-known/openapi", "/openapi/orchestrator.json"}
ROUTES = [
    (method, route.path, route.operation_id)
    for resource in RESOURCES
    for route in resource.router.routes
    if isinstance(route, APIRoute)
    for method in sorted(route.methods)
]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """One application for all of them: what is refused changes nothing."""
    with SqliteLedger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as ledger:
        yield app_over(ledger)


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened


def filled(path: str) -> str:
    return re.sub(r"\{[a-z_]*id\}", "1", re.sub(r"\{[a-z_]+\}", "x", path))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "operation"), ROUTES, ids=[name for _, _, name in ROUTES])
def test_a_route_refuses_every_token_that_lacks_a_scope_and_every_foreign_tenant(
    client, caller, method, path, operation
):
    """AUTH-01, AUTH-09: routes x scopes x wrong tenant, under both prefixes; nothing is looked at before."""
    permission = PERMISSIONS[operation]
    for size in range(len(SCOPES)):
        for scopes in combinations(SCOPES, size):
            if permission.scopes <= set(scopes):
                continue
            asking = caller(*(scopes or ("nothing",)), tenants=("*",))
            answer = asking(method, filled(path))
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "SCOPE_REQUIRED")
    for prefix in (HOME, "/api"):
        assert client.request(method, prefix + filled(path)).status_code == 401
        stranger = caller(*SCOPES, tenant="theirs", X_Tenant="ours")
        refused = stranger(method, prefix + filled(path))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "TENANT_FORBIDDEN")


@pytest.mark.slow
def test_every_permit_belongs_to_a_route_and_every_route_has_one(app):
    paths = document(app)["paths"]
    served = {each["operationId"] for path, item in paths.items() if path.startswith(HOME) for each in item.values()}
    assert {operation for _, _, operation in ROUTES} == served == set(PERMISSIONS)
    assert {path for path in paths if not path.startswith("/api/")} == OPEN


@pytest.mark.slow
def test_only_health_and_discovery_are_open(client):
    for path in OPEN:
        assert client.get(path).status_code == 200


def test_a_token_for_several_tenants_must_name_one(caller):
    """AUTH-08."""
    both = caller(tenant=None, tenants=("a", "b"))
    assert both.get("/jobs").json()["error"]["code"] == "TENANT_REQUIRED"
    assert both.get("/jobs", X_Tenant="a").status_code == 200
    assert both.get("/jobs", X_Tenant="c").json()["error"]["code"] == "TENANT_FORBIDDEN"
    assert both.get("/jobs", X_Tenant="*").status_code == 403


def test_a_star_reaches_every_tenant_by_name(caller):
    everywhere = caller(tenant=None, tenants=("*",))
    assert everywhere.get("/jobs", X_Tenant="any-tenant").status_code == 200
    assert everywhere.get("/jobs").json()["error"]["code"] == "TENANT_REQUIRED"


def test_a_caller_is_told_what_its_token_allows(caller):
    """Whatever its scope, also when it has yet to choose one of its tenants; without a scope it is told nothing."""
    told = caller("orch:read", tenant="a").get("/whoami").json()
    assert set(told.pop("operations")) == {name for name, permission in PERMISSIONS.items() if _reads(permission)}
    assert told == {"subject": "someone", "scopes": ["orch:read"], "tenant": "a", "tenants": ["a"]}
    both = caller("orch:operate", tenant=None, tenants=("a", "b"))
    assert (both.get("/whoami").json()["tenant"], both.get("/whoami").json()["tenants"]) == (None, ["a", "b"])
    assert both.get("/whoami", X_Tenant="b").json()["tenant"] == "b"
    assert caller("nothing").get("/whoami").json()["error"]["code"] == "SCOPE_REQUIRED"


def _reads(permission):
    return permission.scopes <= {"orch:read"} and not permission.everyone


def test_another_tenants_job_is_not_there(caller):
    """LEDG-08: every route that names a job."""
    theirs = caller(tenant="theirs")
    job = theirs.post("/jobs", {"payload": {}}).json()["id"]
    ours = caller(tenant="ours", X_Reason="a test")
    for method, path, operation in ROUTES:
        if "{job_id}" in path:
            answer = ours(method, path.replace("{job_id}", str(job)))
            assert answer.status_code == 404, operation
            assert str(answer.json()["error"]["message"]).startswith("no job")
    assert ours.get("/jobs").json()["jobs"] == []


@pytest.mark.parametrize(
    ("words", "roles", "means"),
    [
        (["orchestrator:*"], [], SCOPES),
        (["orchestrator:read"], [], ["orch:read"]),
        (["orchestrator:write"], [], ["orch:operate"]),
        (["orchestrator:admin"], [], SCOPES),
        ([], ["Orch.Viewer"], ["orch:read"]),
        ([], ["Orch.Operator"], ["orch:read", "orch:operate"]),
        ([], ["Orch.Admin"], SCOPES),
        (["orch:everything", "openid"], ["Admin"], []),
    ],
)
def test_scopes_have_other_names_and_roles(words, roles, means):
    """AUTH-02, AUTH-03."""
    assert granted(words, roles) == frozenset(means)


def test_both_prefixes_lead_to_the_same_handlers():
    assert home_path("/api/jobs/7") == home_path(f"{HOME}/jobs/7") == f"{HOME}/jobs/7"
    assert home_path("/jobs/7/replay") == f"{HOME}/jobs/7/replay"
    assert home_path("/api/v1/other") == "/api/v1/other"
    assert home_path("/apis") == "/apis"
