"""Admission of a request: who calls, for which tenant, how often, with which body and which reason.

Knows permissions, tokens and headers. Promises: no body is read before the caller is known and allowed; a request
without a required reason is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import Response

from DocsToKG.Orchestrator.api.auth.bearer import ANY, TENANT, Authority, Principal, bearer
from DocsToKG.Orchestrator.api.auth.permissions import Permission
from DocsToKG.Orchestrator.api.auth.rate_limit import RateLimiter
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.threads import in_thread

_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_MAX_BRACKETS = 100_000
REASON_CHARS, TICKET_CHARS = 256, 128


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, for which tenant and why."""

    principal: Principal
    tenant: str
    reason: str | None = None
    ticket: str | None = None
    operator_reason: str | None = None  # a backfill has a reason of its own beside the operator's
    operator_ticket: str | None = None

    @property
    def actor(self) -> str:
        return self.principal.subject


class CheckedRequest(Request):
    """A request whose body was read and checked; the framework takes the parsed value instead of parsing again."""

    parsed: Any = None

    async def json(self) -> Any:
        return self.parsed


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits requests."""

    authority: Authority
    rate_limiter: RateLimiter
    json_depth: int
    body_seconds: float
    request_seconds: float
    threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(24))

    async def principal(self, header: str | None) -> Principal:
        token = bearer(header)
        if token is None:
            raise _unknown("a bearer token is needed")
        if self.authority.needs_fetch(token):
            await in_thread(self.authority.fetch, self.threads)
        found = self.authority.principal(token)
        if found is None:
            raise _unknown("the token is not valid")
        return found

    async def caller(self, headers: Mapping[str, str], permission: Permission) -> Caller:
        """Who calls and for which tenant; refuses what the token does not allow."""
        principal = await self.principal(headers.get("authorization"))
        missing = permission.scopes - principal.scopes
        if not principal.scopes:
            raise Problem(403, "SCOPE_REQUIRED", "the token has no scope of this service")
        if missing:
            raise Problem(403, "SCOPE_REQUIRED", f"this needs the scope {' and '.join(sorted(missing))}")
        tenant = tenant_for(principal, headers.get("x-tenant"), permission)
        return Caller(principal, tenant)

    async def body(self, request: CheckedRequest) -> None:
        """Read the body within the time limit and parse it as bounded JSON."""
        try:
            async with asyncio.timeout(self.body_seconds):
                content = await request.body()
        except TimeoutError:
            raise Problem(408, "TOO_SLOW", "the body did not arrive in time", headers={"Connection": "close"}) from None
        if content:
            _refuse_other_media(request.headers.get("content-type"))
            request.parsed = parsed(content, self.json_depth)

    async def in_time(self, permission: Permission, work: Callable[[], Awaitable[Response]]) -> Response:
        if permission.waits:
            return await work()
        try:
            async with asyncio.timeout(self.request_seconds):
                return await work()
        except TimeoutError:
            raise Problem(504, "TIMED_OUT", "the ledger did not answer in time", headers={"Retry-After": "1"}) from None


def tenant_for(principal: Principal, wanted: str | None, permission: Permission) -> str:
    if permission.everyone:
        if ANY not in principal.tenants:
            raise Problem(403, "TENANT_FORBIDDEN", "this concerns every tenant; the token is for some only")
        return principal.home or ANY
    tenant = principal.home if wanted is None else wanted
    if tenant is None and permission.own:
        return ""
    if tenant is None:
        raise Problem(403, "TENANT_REQUIRED", "name the tenant in the header X-Tenant")
    if not TENANT.fullmatch(tenant) or not principal.may_act_for(tenant):
        raise Problem(403, "TENANT_FORBIDDEN", "the token is not for this tenant")
    return tenant


def _refuse_other_media(content_type: str | None) -> None:
    media = (content_type or "").partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "say Content-Type: application/json, and send JSON")


def parsed(content: bytes, depth: int) -> Any:
    if _depth(content) > depth:
        raise Problem(400, "BAD_JSON", f"the body is nested more than {depth} deep")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise Problem(400, "BAD_JSON", "the body is not JSON") from None
    if b"\\u0000" in content and _has_zero(value):
        raise Problem(400, "BAD_JSON", "a text must not hold a zero byte")
    return value


def _depth(content: bytes) -> int:
    """How deep the body nests; a body of brackets alone counts as too deep."""
    brackets = _TEXTS.sub(b"", content).translate(None, _NOT_BRACKETS)
    if len(brackets) > _MAX_BRACKETS:
        return len(brackets)
    deepest = now = 0
    for byte in brackets:
        now += 1 if byte in b"[{" else -1
        deepest = max(deepest, now)
    return deepest


def _has_zero(value: Any) -> bool:
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if "\x00" in item:
                return True
        elif isinstance(item, dict):
            left.extend(item)
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
    return False


def with_reason(caller: Caller, permission: Permission, headers: Mapping[str, str], body: Any) -> Caller:
    """The caller with the reason and ticket of the request; refuses a request without a required one."""
    if permission.demand == "nothing":
        return caller
    find = partial(_given, body if isinstance(body, dict) else {})
    reason = find(("reason", "operator_reason", "operatorReason")) or _text(headers.get("x-reason"))
    ticket = find(("ticket", "operator_ticket", "operatorTicket")) or _text(headers.get("x-ticket"))
    changes = {"reason": reason, "ticket": ticket, "operator_reason": reason, "operator_ticket": ticket}
    if permission.demand == "quota":
        changes["reason"] = find(("quota_reason", "quotaReason")) or reason
        changes["ticket"] = find(("quota_ticket", "quotaTicket")) or ticket
        _demand(changes, quota_reason="reason")
    elif permission.demand == "backfill":
        changes["reason"] = find(("backfill_reason", "backfillReason"))
        changes["ticket"] = find(("backfill_ticket", "backfillTicket"))
        _demand(
            changes, backfill_reason="reason", backfill_ticket="ticket", reason="operator_reason",
            ticket="operator_ticket",
        )  # fmt: skip
    else:
        _demand(changes, reason="reason")
    return Caller(caller.principal, caller.tenant, **changes)


def _demand(given: Mapping[str, str | None], **needed: str) -> None:
    missing = [name for name, key in needed.items() if given[key] is None]
    if missing:
        raise Problem(400, "REASON_REQUIRED", f"say why: {', '.join(missing)} must be given")
    for key, value in given.items():
        cap = TICKET_CHARS if key.endswith("ticket") else REASON_CHARS
        if value is not None and len(value) > cap:
            raise Problem(422, "VALIDATION_FAILED", f"a {key.removeprefix('operator_')} has at most {cap} characters")


def _given(body: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if (text := _text(body.get(name))) is not None), None)


def _text(value: Any) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return text or None


def _unknown(words: str) -> Problem:
    return Problem(401, "UNAUTHENTICATED", words, headers={"WWW-Authenticate": "Bearer"})
