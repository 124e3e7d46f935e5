"""One sandbox without faults for the whole folder, and a client that speaks to it as to the web."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.Sandbox.works import Copy, Work

POLITE = "tests/1 (mailto:tests@sandbox.invalid)"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def _ask(sandbox: SandboxServer, url: str, *, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
    """One exchange. Header names are written with underscores."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    sent = {"Host": parts.netloc, "User-Agent": POLITE}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=20)
    try:
        connection.request(method, target, body=body, headers=sent)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


@pytest.fixture(scope="session")
def calm() -> Iterator[SandboxServer]:
    """No faults at all."""
    with SandboxServer(works=400, seed=7, faults=Faults.none(), size_bytes=20_000, thread=True) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def ask() -> Callable[..., Answer]:
    """`ask(sandbox, url, method=..., body=..., Header_Name=...)`."""
    return _ask


@pytest.fixture(scope="session")
def get(calm: SandboxServer) -> Callable[..., Answer]:
    return lambda url, **options: _ask(calm, url, **options)


@pytest.fixture(scope="session")
def first_with() -> Callable[..., tuple[Work, Copy]]:
    return _first_with


@pytest.fixture
def troubled() -> Iterator[Callable[..., SandboxServer]]:
    """Sandboxes in which every copy has one fault: `troubled("slow")`."""
    started: list[SandboxServer] = []

    def start(*settings: str, **options: Any) -> SandboxServer:
        faults = Faults.none().with_settings([word if "=" in word else f"{word}=1" for word in settings])
        defaults = {"works": 60, "size_bytes": 20_000, "slow_s": 0.4, "stall_s": 0.4, "thread": True}
        sandbox = SandboxServer(faults=faults, **(defaults | options))
        started.append(sandbox.__enter__())
        return sandbox

    yield start
    for sandbox in started:
        sandbox.__exit__(None, None, None)


def _first_with(
    sandbox: SandboxServer, kind: str, wanted: Callable[[Work, Copy], bool] | None = None
) -> tuple[Work, Copy]:
    """The first work that has such a copy."""
    for index in range(sandbox.world.count):
        work = sandbox.world.work(index)
        copy = work.copy(kind)
        if copy and (wanted is None or wanted(work, copy)):
            return work, copy
    raise AssertionError(f"no work with a {kind} copy as wanted")
