"""The application over a ledger in a file, and callers with tokens of every kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import copyfile
from typing import Any

import anyio
import pytest
from fastapi import FastAPI, routing
from joserfc import jwt
from joserfc.jwk import OctKey
from starlette.testclient import TestClient

from DocsToKG.Orchestrator.api.app import build_app
from DocsToKG.Orchestrator.api.auth.admission import Admission
from DocsToKG.Orchestrator.api.auth.bearer import Authority
from DocsToKG.Orchestrator.api.auth.keys import KeyRing, TrustedKey
from DocsToKG.Orchestrator.api.auth.permissions import SCOPES
from DocsToKG.Orchestrator.api.auth.rate_limit import RateLimiter
from DocsToKG.Orchestrator.api.auth.tokens import TokenFile
from DocsToKG.Orchestrator.api.context import AppState
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.api.sse import EventStreams
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

KEY = OctKey.import_key("a secret of the tests, and of nobody else")


@pytest.fixture(autouse=True, scope="session")
def routes_built_once() -> Iterator[None]:
    """Every application reads the signatures of its hundred routes when it is first asked for one; they are the same
    routes in each, and told apart by the request alone whose application it is."""
    build = routing._IncludedRouter._build_effective_context
    built: dict[tuple[int, str], Any] = {}

    def build_once(included: routing._IncludedRouter, route: Any) -> Any:
        place = id(route), included.include_context.prefix
        if place not in built:
            built[place] = build(included, route)
        return built[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routing._IncludedRouter, "_build_effective_context", build_once)
        yield


@pytest.fixture
def ledger(tmp_path: Path, blank_ledger: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(copyfile(blank_ledger, tmp_path / "ledger.sqlite")) as opened:
        yield opened


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


def app_over(ledger: SqliteLedger, tokens: TokenFile | None = None, **parts: Any) -> FastAPI:
    """The application over a ledger; admission takes what is given of its parts."""
    settings = {
        "authority": Authority(tokens=tokens, keys=KeyRing([TrustedKey(KEY, "HS256", None)])),
        "rate_limiter": RateLimiter(per_second=10_000, burst=100_000),
        "json_depth": 32,
        "body_seconds": 30.0,
        "request_seconds": 60.0,
        "threads": anyio.CapacityLimiter(24),
    }
    chosen = {name: parts.pop(name, value) for name, value in settings.items()}
    services = Services(ledger)
    streams = EventStreams(services.feed, ledger, poll_s=0.05, **parts.pop("streams", {}))
    limits = {name: parts.pop(name) for name in ("body_bytes",) if name in parts}
    return build_app(AppState(services=services, admission=Admission(**chosen), streams=streams, **parts), **limits)


def token_for(*scopes: str, tenant: str | None = "default", tenants: tuple[str, ...] = ()) -> str:
    claims = {"sub": "someone", "exp": time.time() + 3600, "scope": " ".join(scopes or SCOPES), "tenant": tenant}
    return jwt.encode({"alg": "HS256"}, {**claims, "tenants": list(tenants)}, KEY)


@pytest.fixture
def make_app(ledger: SqliteLedger, tokens: TokenFile) -> Callable[..., FastAPI]:
    return partial(app_over, ledger, tokens)


@pytest.fixture
def app(make_app: Callable[..., FastAPI]) -> FastAPI:
    return make_app()


@dataclass
class Caller:
    """A client that speaks with one token, under the home prefix unless told otherwise."""

    client: TestClient
    token: str
    headers: dict[str, str]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent = {"Authorization": f"Bearer {self.token}", **self.headers}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        path = path if path.startswith(("/api/", "/healthz", "/.well", "/openapi", "/readyz")) else HOME + path
        return self.client.request(method, path, json=body, headers=sent)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, body, **headers)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened


def caller_of(client: TestClient) -> Callable[..., Caller]:
    def make(*scopes: str, tenant: str | None = "default", tenants: tuple[str, ...] = (), **headers: str) -> Caller:
        token = token_for(*scopes, tenant=tenant, tenants=tenants)
        return Caller(client, token, {name.replace("_", "-"): value for name, value in headers.items()})

    return make


@pytest.fixture
def caller(client: TestClient) -> Callable[..., Caller]:
    return caller_of(client)


@pytest.fixture
def admin(caller: Callable[..., Caller]) -> Caller:
    return caller(tenants=("*",), X_Reason="a test", X_Ticket="T-1")
