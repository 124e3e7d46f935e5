"""The description of the API is true: every route answers as it says, whatever it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.orchestrator_web.conftest import app_over
from tests.orchestrator_web.describing import OTHERS, ROUTES, keeps_to_its_description

from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.web.discovery import SPEC


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
