"""The httpx2 client over a transport of ours, with everything switched off that would act behind our back.

No redirects, no environment, no cookies: each hop is asked for by whoever counts and gates requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from http.cookiejar import CookieJar
from typing import Any, Protocol, TypeAlias

import httpx2

from DocsToKG.transport.wire import Awaited

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
    timeout = httpx2.Timeout(
        connect=timeout_connect_s,
        read=timeout_read_s,
        write=timeout_read_s if timeout_write_s is None else timeout_write_s,
        pool=None,
    )
    return _PlainClient(
        transport=transport,
        timeout=timeout,
        headers={"User-Agent": user_agent, **(headers or {})},
        # One client serves many works: a shared jar would carry one work's session into another's requests.
        cookies=_NoJar(),
        follow_redirects=False,
        trust_env=False,
    )


class _NoJar(CookieJar):
    """Takes no cookie and does not even look: the standard jar warns about unreadable ones, with a traceback."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        return None


def exchange_of(client: httpx2.Client) -> Callable[[httpx2.Request], httpx2.Response]:
    """One exchange, its body unread. What a client would add of its own (auth, redirects, cookies, timeouts) a client
    of ours has switched off, so that the request goes to its transport as it is."""
    if isinstance(client, _PlainClient):
        return client.exchange
    return partial(client.send, stream=True, follow_redirects=False)


class SentRequest(Protocol):
    """A request on its way. One of `response` and `close` is to be called, once."""

    def awaited(self) -> Awaited: ...

    def response(self) -> httpx2.Response: ...

    def close(self) -> None: ...


Begin: TypeAlias = Callable[[httpx2.Request], SentRequest | None]


def begin_of(transport: httpx2.BaseTransport) -> Begin | None:
    """Sends a request and leaves its answer for later. None where the transport does exchanges in one."""
    begin: Begin | None = getattr(transport, "begin", None)
    return begin


def sender_of(client: httpx2.Client) -> Begin:
    """The first half of an exchange; answers None for those that are done in one."""
    begin = begin_of(client._transport) if isinstance(client, _PlainClient) else None
    return begin or (lambda request: None)


class _PlainClient(httpx2.Client):
    """Does not look at redirects. httpx2 builds the next request also for those it is told not to follow, and fails on
    addresses that it reads differently from us."""

    def _build_redirect_request(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        return request

    def exchange(self, request: httpx2.Request) -> httpx2.Response:
        response = self._transport.handle_request(request)
        response.request = request
        return response


def silence_request_log() -> None:
    """httpx2 logs every URL at INFO, keys in the query included: call this once, where logs are set up."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)
