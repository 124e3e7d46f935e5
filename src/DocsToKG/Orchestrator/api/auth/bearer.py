"""Bearer tokens: one made here, or a JWT signed with a trusted key, becomes a `Principal`.

Knows tokens, claims and scopes. Does not know routes. Promises: the response to an invalid token does not say why; the
settings choose the algorithm, never the token; a caller acts for one tenant, which the token allows.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jws import JWSRegistry

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.api.auth.keys import KeyRing
from DocsToKG.Orchestrator.api.auth.permissions import granted
from DocsToKG.Orchestrator.api.auth.tokens import PREFIX, StoredToken, TokenFile

ANY = "*"
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MAX_TOKEN = 8192
_ALGORITHMS = frozenset({"HS256", "RS256", "ES256", "EdDSA", "Ed25519"})
_MAX_WORDS = 200


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. `token_id` is the key of its rate limit; `home` its tenant when it names none."""

    subject: str
    token_id: str
    scopes: frozenset[str]
    home: str | None
    tenants: frozenset[str]

    def may_act_for(self, tenant: str) -> bool:
        return tenant in self.tenants or (ANY in self.tenants)


class Authority:
    """Checks tokens. `keys` may be empty: then only tokens made here are valid."""

    def __init__(
        self,
        *,
        tokens: TokenFile | None = None,
        keys: KeyRing | None = None,
        issuer: str | None = None,
        audience: str | None = None,
        leeway_s: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        self._tokens = tokens
        self._keys = keys or KeyRing()
        self._issuer = issuer
        self._audience = audience
        self._leeway_s = leeway_s
        self._clock = clock or SystemClock()

    def principal(self, token: str) -> Principal | None:
        """Whom the token stands for; None when it is not valid."""
        if len(token) > _MAX_TOKEN or not token.isascii():
            return None
        if token.startswith(PREFIX):
            found = None if self._tokens is None else self._tokens.find(token)
            return None if found is None else _of_stored(found)
        return self._of_signed(token)

    def needs_fetch(self, token: str) -> bool:
        """Whether the published keys should be fetched before this token is checked; `fetch` does it and blocks."""
        if len(token) > _MAX_TOKEN or token.startswith(PREFIX) or not self._keys:
            return False
        head = _head(token)
        return head is not None and self._keys.is_stale(_family(head[0]), head[1])

    def fetch(self) -> None:
        self._keys.refresh()

    def _of_signed(self, token: str) -> Principal | None:
        head = _head(token)
        trusted = None if head is None else self._keys.find(_family(head[0]), head[1])
        if head is None or trusted is None:
            return None
        try:
            signed = jws.deserialize_compact(token, trusted.key, registry=_Registry(algorithms=[head[0]]))
            claims = orjson.loads(signed.payload)
        except (JoseError, ValueError, TypeError, binascii.Error):
            return None
        return _of_claims(claims) if isinstance(claims, dict) and self._holds(claims) else None

    def _holds(self, claims: Mapping[str, Any]) -> bool:
        now = self._clock.now()
        expires, begins = _time(claims.get("exp")), _time(claims.get("nbf", claims.get("iat", 0)))
        if expires is None or begins is None:
            return False
        if now >= expires + self._leeway_s or now < begins - self._leeway_s:
            return False
        if self._issuer is not None and claims.get("iss") != self._issuer:
            return False
        meant = claims.get("aud")
        return (
            self._audience is None or meant == self._audience or (isinstance(meant, list) and self._audience in meant)
        )


class _Registry(JWSRegistry):
    """Allows the one algorithm that it is made with. `EdDSA` is an old name (RFC 9864) that many still sign with."""

    def get_alg(self, name: str) -> Any:
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError("the algorithm is not allowed")
        return self.algorithms[name]


def _family(algorithm: str) -> str:
    return "EdDSA" if algorithm == "Ed25519" else algorithm


def bearer(header: str | None) -> str | None:
    """The token of an Authorization header."""
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None


def _head(token: str) -> tuple[str, str | None] | None:
    """Algorithm and key name of a token, before anything is believed."""
    first, dot, _ = token.partition(".")
    if not dot or token.count(".") != 2:
        return None
    try:
        head = orjson.loads(binascii.a2b_base64(_padded(first)))
    except (ValueError, binascii.Error):
        return None
    if not isinstance(head, dict) or "crit" in head:
        return None
    algorithm, kid = head.get("alg"), head.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        return None
    return (algorithm, kid) if kid is None or isinstance(kid, str) else None


def _padded(text: str) -> bytes:
    return text.translate({45: 43, 95: 47}).encode("ascii") + b"=" * (-len(text) % 4)


def _of_stored(found: StoredToken) -> Principal:
    return Principal(
        subject=f"token:{found.name}",
        token_id=f"t:{found.token_id}",
        scopes=granted(found.scopes, ()),
        home=found.tenant,
        tenants=_tenants(found.tenant, found.tenants),
    )


def _of_claims(claims: Mapping[str, Any]) -> Principal | None:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject or len(subject) > 256 or not subject.isprintable():
        return None
    tenant = claims.get("tenant")
    tenants = _tenants(tenant if isinstance(tenant, str) else None, _words(claims.get("tenants")))
    named = tenants - {ANY}
    home = tenant if isinstance(tenant, str) and tenant in named else (next(iter(named)) if len(named) == 1 else None)
    scopes = [*_words(claims.get("scope")), *_words(claims.get("scp"))]
    return Principal(
        subject=subject,
        token_id=f"j:{claims.get('iss', '')}:{subject}"[:600],
        scopes=granted(scopes, _words(claims.get("roles"))),
        home=home,
        tenants=tenants,
    )


def _tenants(home: str | None, others: Iterable[str]) -> frozenset[str]:
    named = [home, *others] if home is not None else list(others)
    return frozenset(name for name in named if name == ANY or TENANT.fullmatch(name))


def _words(value: Any) -> list[str]:
    """A claim that may be a list or words with blanks between."""
    if isinstance(value, str):
        return value.split()[:_MAX_WORDS]
    return [word for word in value[:_MAX_WORDS] if isinstance(word, str)] if isinstance(value, list) else []


def _time(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None
