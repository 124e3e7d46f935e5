"""Is the description of the API true? Every route, sent what its description allows and what it does not."""

from __future__ import annotations

import re
from typing import Any

from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from tests.orchestrator_web.conftest import token_for

from DocsToKG.Orchestrator.api.app import RESOURCES
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.openapi import SPEC

# A stream has no end to wait for; its form is tested where streams are.
_STREAMS = re.compile(r"/streams/|/follow$|/stream$")
# Some words that fit the form are refused by the ledger (a job that is not there, a digest that does not fit).
_LEFT_OUT = {"positive_data_acceptance", "missing_required_header", "ensure_resource_availability"}

ROUTES = [
    (HOME + route.path, method)
    for resource in RESOURCES
    for route in resource.router.routes
    if isinstance(route, APIRoute) and not _STREAMS.search(route.path)
    for method in sorted(route.methods)
]
OTHERS = [("/api/jobs", "GET"), ("/api/jobs/{job_id}/cancel", "POST"), ("/.well-known/openapi", "GET"), (SPEC, "GET")]


def keeps_to_its_description(api: Any, path: str, method: str, examples: int) -> None:
    """No answer that is not described, and never a 500."""
    from schemathesis.checks import CHECKS, load_all_checks  # which takes long, and quick runs do without

    load_all_checks()
    headers = {"Authorization": f"Bearer {token_for(tenants=('*',))}", "X-Reason": "a test", "X-Ticket": "T-1"}
    checks = [check for check in CHECKS.get_all() if check.__name__ not in _LEFT_OUT]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=api[path][method].as_strategy())
    def holds(case: Any) -> None:
        for name in ("X-Tenant", "X-Reason", "X-Ticket", "Idempotency-Key"):
            case.headers.pop(name, None)
        if isinstance(case.body, dict) and isinstance(case.body.get("waitSeconds"), int | float):
            case.body["waitSeconds"] = min(case.body["waitSeconds"], 0.01)  # nothing comes that it could wait for
        case.call_and_validate(headers=headers, checks=checks, timeout=100)

    holds()
