"""The one HTTP client of a process: transport, credentials, cache and client, put together in the right order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import httpx2

from DocsToKG.ContentDownload.net.cache import CachedTransport, CacheSettings, build_cache_transport
from DocsToKG.ContentDownload.net.policy import CredentialTransport, HostCredentials
from DocsToKG.core.clock import Clock
from DocsToKG.transport.client import PlainAsyncClient, build_async_client


@dataclass(frozen=True, slots=True)
class HttpStack:
    """`cache` is None when caching is off. For the tasks of one event loop, as the transport under it is."""

    http: PlainAsyncClient
    cache: CachedTransport | None

    async def aclose(self) -> None:
        """Close everything, down to the connections."""
        await self.http.aclose()


def build_http_stack(
    transport: httpx2.AsyncBaseTransport,
    *,
    user_agent: str,
    timeout_connect_s: float = 10.0,
    timeout_read_s: float = 60.0,
    credentials: Mapping[str, HostCredentials] | None = None,
    cache: CacheSettings | None = None,
    open_cas: Callable[[str], BinaryIO | None] = lambda sha256: None,
    clock: Clock | None = None,
) -> HttpStack:
    """Credentials sit below the cache, so that no key and no signed URL is ever written into it."""
    stacked: httpx2.AsyncBaseTransport = CredentialTransport(transport, credentials=credentials or {})
    if cache is not None:
        stacked = build_cache_transport(stacked, settings=cache, open_cas=open_cas, clock=clock)
    http = build_async_client(
        stacked, user_agent=user_agent, timeout_connect_s=timeout_connect_s, timeout_read_s=timeout_read_s
    )
    return HttpStack(http, stacked if isinstance(stacked, CachedTransport) else None)
