"""What the tests of the engine have in common: engines that reach a loopback server under public host names."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from DocsToKG.core.cancel import CancelToken
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl import CurlEngine
from DocsToKG.transport.engine import Limits, Request
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames


class CountingToken(CancelToken):
    """Knows how many callbacks it holds."""

    held = 0

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], object]:
        self.held += 1
        forget = super().on_cancel(callback)

        def take_back() -> None:
            self.held -= 1
            forget()

        return take_back


PUBLIC = "93.184.216.34"
URL = "http://papers.example.org/a.pdf?x=1"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
HEADERS = (("User-Agent", "test/1"), ("Accept", "*/*"))


@contextlib.asynccontextmanager
async def open_engine(server: Any = None, *, tls: bool = False, **options: Any) -> AsyncIterator[CurlEngine]:
    """Every host name is public and leads to `server`."""
    if server is not None:
        options.setdefault("connect_to", ConnectTo({"*": f"{'tls' if tls else 'plain'}://127.0.0.1:{server.port}"}))
    options.setdefault("guard", AddressGuard())
    options.setdefault("names", StaticNames({"*": [PUBLIC]}))
    engine = CurlEngine(**options)
    try:
        yield engine
    finally:
        await engine.aclose()


def ask(url: str = URL, method: str = "GET", **given: Any) -> Request:
    limits = {name: given.pop(name) for name in Limits.__slots__ if name in given}
    given.setdefault("headers", HEADERS)
    return Request(method, url, limits=Limits(**limits), **given)


async def get(engine: CurlEngine, url: str = URL, method: str = "GET", **given: Any) -> bytes:
    return await (await engine.fetch(ask(url, method, **given))).read()


def run(main: Any, seconds: float = 20.0) -> Any:
    """One event loop for one test, bounded."""

    async def bounded() -> Any:
        async with asyncio.timeout(seconds):
            return await main

    return asyncio.run(bounded())
