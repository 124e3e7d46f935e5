"""One call to the service: its request, its answer, and what went wrong in our own words.

Knows HTTP and the error envelope. Promises: a token is never in an error; a call that may be made twice is made again
when no answer came; nothing larger than the cap is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.errors import (
    BadJob,
    BadPage,
    Conflict,
    LeaseLost,
    LedgerBusy,
    LedgerError,
    NotFound,
    Refused,
)
from DocsToKG.transport.adapters import guarded_transport
from DocsToKG.transport.client import BaseTransport, TransportFailed, build_client

PREFIX = "/api/v1/orchestrator"
_MAX_BYTES = 64 * 1024 * 1024
_CONNECT_S = 10.0
_TRIES = 4
_PAUSE_S = 0.25
_UNAVAILABLE = frozenset({429, 502, 503, 504})


class NotAdmitted(LedgerError):
    """The service does not let this token do that: see its scopes and tenants, or get a new one."""


class ServiceUnavailable(LedgerBusy):
    """The service gave no answer, or said that it cannot: try again later."""


class Calls:
    """The service at `url`, spoken to with one token. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        tenant: str | None = None,
        timeout_s: float = 30.0,
        tries: int = _TRIES,
        pause: Callable[[float], None] = time.sleep,
        clock: Clock | None = None,
        transport: BaseTransport | None = None,
    ) -> None:
        host = _host(url)
        self._base = url.rstrip("/").removesuffix(PREFIX) + PREFIX
        self._timeout_s, self._tries, self._pause = timeout_s, tries, pause
        self._clock = clock or SystemClock()
        headers = {"Authorization": f"Bearer {token.strip()}", "Accept": "application/json"}
        if tenant is not None:
            headers["X-Tenant"] = tenant
        self._client = build_client(
            # Whoever runs a worker has named this host, so that it may be a private one.
            transport or guarded_transport(allow_hosts=[host]),
            user_agent="docstokg-client",
            timeout_connect_s=_CONNECT_S,
            timeout_read_s=timeout_s + 35,
            headers=headers,
        )

    def __enter__(self) -> Calls:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        return self._call("GET", path, None, {}, query, again=True)

    def post(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        again: bool = False,
        wait_s: float = 0.0,
    ) -> Any:
        """`again` says that the service takes the same words twice without harm; a `key` makes it so."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._call("POST", path, body, headers, {}, again=again or key is not None, wait_s=wait_s)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Anything of the API, by its words; what stands behind a `?` is its query."""
        place, _, words = path.partition("?")
        query = parse_qs(words, keep_blank_values=True)
        return self._call(method, place, body, {}, query, again=method in ("GET", "PUT"))

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        query: Mapping[str, Any],
        *,
        again: bool,
        wait_s: float = 0.0,
    ) -> Any:
        number = 0
        while True:
            number += 1
            last = number >= self._tries
            try:
                status, retry_s, content = self._once(method, path, body, headers, query, wait_s)
            except TransportFailed as error:
                if last or not again:
                    where, why = self._base.removesuffix(PREFIX), type(error).__name__
                    raise ServiceUnavailable(
                        f"no answer from the service at {where} ({why}): see that it runs, and check the address"
                    ) from None
                retry_s = None
            else:
                # 429 and 503 are said before anything is done.
                if status not in _UNAVAILABLE or last or (status not in (429, 503) and not again):
                    return _read(status, content, path)
            self._pause(min(30.0, retry_s if retry_s is not None else _PAUSE_S * 2**number))

    def _once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        query: Mapping[str, Any],
        wait_s: float,
    ) -> tuple[int, float | None, bytes]:
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent = {**headers, "Content-Type": "application/json"} if content is not None else dict(headers)
        asked = {name: value for name, value in query.items() if value is not None}
        extensions = {"deadline": self._clock.monotonic() + self._timeout_s + wait_s}
        with self._client.stream(
            method, self._base + path, content=content, headers=sent, params=asked, extensions=extensions
        ) as response:
            received = bytearray()
            for block in response.iter_bytes():
                received += block
                if len(received) > _MAX_BYTES:
                    raise LedgerError("the service's answer is too large")
            return response.status_code, _seconds(response.headers.get("retry-after")), bytes(received)


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.query):
            parts.port  # noqa: B018 - raises ValueError where it is no number of a port
            return parts.hostname
    except ValueError:
        pass
    raise BadJob("the address of a service is written like https://orchestrator.example.org")


def _read(status: int, content: bytes, path: str) -> Any:
    try:
        body = json.loads(content) if content else None
    except (ValueError, RecursionError):
        raise LedgerError(f"the service answered {status} with something that is not JSON") from None
    if 200 <= status < 300:
        return body
    told = body.get("error") if isinstance(body, dict) else None
    error = told if isinstance(told, dict) else {}
    raise _error(status, str(error.get("code", "")), str(error.get("message", f"status {status}")), path)


def _error(status: int, code: str, words: str, path: str) -> LedgerError:
    if code == "LEASE_LOST":
        return LeaseLost(_job_of(path))
    if status in (401, 403):
        return NotAdmitted(words)
    if status in _UNAVAILABLE:
        return ServiceUnavailable(words)
    if code == "REFUSED":
        return Refused(words, "refused")
    kinds: dict[int, type[LedgerError]] = {404: NotFound, 409: Conflict, 412: Conflict, 422: BadJob}
    return BadPage(words) if code == "BAD_PAGE_TOKEN" else kinds.get(status, LedgerError)(words)


def _job_of(path: str) -> int:
    """The number that ends a lease's id is that of its job."""
    lease_id = next((part for part in path.split("/") if part.startswith("lease_")), "")
    number = lease_id.rpartition("_")[2]
    return int(number) if number.isdecimal() and len(number) < 19 else 0


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 6 else None
