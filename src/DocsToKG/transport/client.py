"""The httpx2 clients over a transport of ours, with everything switched off that would act behind our back.

No redirects, no environment, no cookies: each hop is asked for by whoever counts and gates requests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http.cookiejar import CookieJar
from typing import Any, TypeAlias

import httpx2

BaseTransport: TypeAlias = httpx2.BaseTransport
TransportFailed = httpx2.TransportError  # no answer came: for those who speak through a client of ours


def build_client(
    transport: httpx2.BaseTransport,
    *,
    user_agent: str,
    timeout_connect_s: float,
    timeout_read_s: float,
    timeout_write_s: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx2.Client:
    """A client that does one request at a time and nothing else. Closing it closes the transport."""
    write_s = timeout_read_s if timeout_write_s is None else timeout_write_s
    return _PlainClient(
        transport=transport,
        timeout=httpx2.Timeout(connect=timeout_connect_s, read=timeout_read_s, write=write_s, pool=None),
        headers={"User-Agent": user_agent, **(headers or {})},
        # One client serves many works: a shared jar would carry one work's session into another's requests.
        cookies=_NoJar(),
        follow_redirects=False,
        trust_env=False,
    )


def build_async_client(
    transport: httpx2.AsyncBaseTransport, *, user_agent: str, timeout_connect_s: float, timeout_read_s: float
) -> PlainAsyncClient:
    """The same for the tasks of one event loop."""
    return PlainAsyncClient(
        transport=transport,
        timeout=httpx2.Timeout(connect=timeout_connect_s, read=timeout_read_s, write=timeout_read_s, pool=None),
        headers={"User-Agent": user_agent},
        cookies=_NoJar(),
        follow_redirects=False,
        trust_env=False,
    )


class _NoJar(CookieJar):
    """Takes no cookie and does not even look: the standard jar warns about unreadable ones, with a traceback."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        return None


class _PlainClient(httpx2.Client):
    """Does not look at redirects. httpx2 builds the next request also for those it is told not to follow, and fails on
    addresses that it reads differently from us."""

    def _build_redirect_request(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        return request


class PlainAsyncClient(httpx2.AsyncClient):
    """The same, and it gives its transport a request as it is."""

    def _build_redirect_request(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        return request

    async def exchange(self, request: httpx2.Request) -> httpx2.Response:
        """One exchange, its body unread, without what a client would add of its own (auth, cookies, timeouts)."""
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response


def silence_request_log() -> None:
    """httpx2 logs every URL at INFO, keys in the query included: call this once, where logs are set up."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)
