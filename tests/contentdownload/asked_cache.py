"""An origin's answers, and questions that go through a cache to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from DocsToKG.ContentDownload.net.build import HttpStack
from DocsToKG.ContentDownload.net.cache import PENDING

URL = "https://a.org/w?x=1"
FRESH = {"cache-control": "max-age=600"}


class Blocks(httpx2.AsyncByteStream):
    def __init__(self, blocks: list[bytes], error: Exception | None = None) -> None:
        self.blocks, self.error = blocks, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self.blocks:
            yield block
        if self.error is not None:
            raise self.error


def body(data: bytes, headers: dict[str, str] | None = None, status: int = 200) -> httpx2.Response:
    return httpx2.Response(status, headers=FRESH if headers is None else headers, stream=Blocks([data]))


def ask(stack: HttpStack, url: str = URL, **kwargs: Any) -> httpx2.Response:
    """One question in an event loop of its own; when this returns, the answer is stored or it is not."""
    response = asyncio.run(asking(stack, url, **kwargs))
    if stack.cache is not None:
        stack.cache.entries.settle()
    return response


async def asking(
    stack: HttpStack, url: str = URL, *, confirm: bool = True, method: str = "GET", **kwargs: Any
) -> httpx2.Response:
    request = httpx2.Request(method, url, headers=kwargs.pop("headers", None), extensions=kwargs)
    response = await stack.http.exchange(request)
    try:
        await response.aread()
        if confirm and response.extensions.get(PENDING) is not None:
            response.extensions[PENDING].confirm()
    finally:
        pending = response.extensions.get(PENDING)
        if pending is not None and pending.holds_body:
            pending.discard()
        await response.aclose()
    return response


def close(stack: HttpStack) -> None:
    asyncio.run(stack.aclose())


def flags(response: httpx2.Response) -> tuple[bool, bool]:
    return response.extensions["from_cache"], response.extensions["revalidated"]
