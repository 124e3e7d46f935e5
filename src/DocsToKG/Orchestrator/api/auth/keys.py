"""Keys that signed tokens are checked with: from files, from a JWK set, or fetched from a URL.

Knows key formats and freshness. Promises: a key is valid for one algorithm only; when a key set cannot be fetched, the
last one stays in use; an unknown key causes one fetch, not one per request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from DocsToKG.core.clock import Clock, SystemClock

MIN_SECRET_BYTES = 32
_MIN_RSA_BITS = 2048
_MAX_SET_BYTES = 1_048_576
_ASK_AGAIN_S = 10.0
_KINDS: Mapping[str, tuple[type[OctKey] | type[RSAKey] | type[ECKey] | type[OKPKey], str]] = {
    "HS256": (OctKey, "oct"),
    "RS256": (RSAKey, "RSA"),
    "ES256": (ECKey, "EC"),
    "EdDSA": (OKPKey, "OKP"),
}


class BadKey(ValueError):
    """A key cannot be used; the message names the file and never shows the key."""


class TrustedKey:
    """A key with its one algorithm."""

    __slots__ = ("algorithm", "key", "kid")

    def __init__(self, key: Key, algorithm: str, kid: str | None) -> None:
        self.key, self.algorithm, self.kid = key, algorithm, kid


class KeyRing:
    """The keys of this service. `fetch` gets the published set as bytes; None where nothing is published."""

    def __init__(
        self,
        fixed: Sequence[TrustedKey] = (),
        *,
        fetch: Callable[[], bytes] | None = None,
        fresh_s: float = 300.0,
        clock: Clock | None = None,
    ) -> None:
        self._fixed = tuple(fixed)
        self._fetch = fetch
        self._fresh_s = fresh_s
        self._clock = clock or SystemClock()
        self._fetched: tuple[TrustedKey, ...] = ()
        self._fetched_at = self._asked_at = float("-inf")
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._fixed) or self._fetch is not None

    def find(self, algorithm: str, kid: str | None) -> TrustedKey | None:
        """The key for a token's head, of what is at hand: a token that names no key may fit one key at most.

        A key that is kept in a file and published as well is one key."""
        fitting = [key for key in (*self._fixed, *self._fetched) if key.algorithm == algorithm]
        if kid is not None:
            named = [key for key in fitting if key.kid == kid]
            fitting = named or [key for key in fitting if key.kid is None]
        alone = len(fitting) == 1 or len({key.key.thumbprint() for key in fitting}) == 1
        return fitting[0] if alone else None

    def is_stale(self, algorithm: str, kid: str | None) -> bool:
        """Whether `refresh` might bring a better answer."""
        if self._fetch is None or self._clock.monotonic() - self._asked_at < _ASK_AGAIN_S:
            return False
        old = self._clock.monotonic() - self._fetched_at > self._fresh_s
        return old or self.find(algorithm, kid) is None

    def refresh(self) -> None:
        """Fetch the published set; blocks. What goes wrong leaves the keys as they are."""
        with self._lock:
            now = self._clock.monotonic()
            if self._fetch is None or now - self._asked_at < _ASK_AGAIN_S:
                return
            self._asked_at = now
            try:
                found = tuple(keys_of_set(self._fetch(), public_only=True))
            except Exception:
                # A server that is away, or answers nonsense, must not lock out those whose keys we have.
                return
            self._fetched, self._fetched_at = found, now


def key_from_file(path: Path, algorithm: str, kid: str | None) -> TrustedKey:
    content = _read(path)
    kind, _ = _KINDS[algorithm]
    if kind is OctKey and not content.lstrip().startswith(b"{"):
        content = content.strip()
        if len(content) < MIN_SECRET_BYTES:
            raise BadKey(f"{path}: a secret needs at least {MIN_SECRET_BYTES} bytes")
    try:
        given: Any = orjson.loads(content) if content.lstrip().startswith(b"{") else content
        key = kind.import_key(given)
    except Exception:
        raise BadKey(f"{path} holds no {algorithm} key in PEM or as JWK") from None
    return TrustedKey(_strong(key, str(path)), algorithm, kid or _kid(given))


def keys_from_set(path: Path) -> list[TrustedKey]:
    try:
        found = keys_of_set(_read(path))
    except ValueError:
        raise BadKey(f"{path} is not a JWK set") from None
    if not found:
        raise BadKey(f"{path} holds no key for {', '.join(_KINDS)}")
    return found


def keys_of_set(content: bytes, *, public_only: bool = False) -> list[TrustedKey]:
    """The keys of a set that we can use; what is for encryption, or of another kind, is left out."""
    rows = orjson.loads(content[: _MAX_SET_BYTES + 1])
    if not isinstance(rows, dict) or not isinstance(rows.get("keys"), list):
        raise ValueError("not a JWK set")
    return [key for row in rows["keys"][:100] if (key := _usable(row, public_only)) is not None]


def _usable(row: Any, public_only: bool) -> TrustedKey | None:
    if not isinstance(row, dict) or row.get("use", "sig") != "sig":
        return None
    for algorithm, (kind, kty) in _KINDS.items():
        if row.get("kty") != kty or row.get("alg", algorithm) != algorithm or (public_only and kind is OctKey):
            continue
        try:
            return TrustedKey(_strong(kind.import_key(row), "the set"), algorithm, _kid(row))
        except Exception:
            return None
    return None


def _strong(key: Key, where: str) -> Key:
    if isinstance(key, RSAKey) and key.raw_value.key_size < _MIN_RSA_BITS:
        raise BadKey(f"{where}: an RSA key needs at least {_MIN_RSA_BITS} bits")
    if isinstance(key, OctKey) and len(key.raw_value) < MIN_SECRET_BYTES:
        raise BadKey(f"{where}: a secret needs at least {MIN_SECRET_BYTES} bytes")
    return key


def _kid(row: Any) -> str | None:
    kid = row.get("kid") if isinstance(row, dict) else None
    return kid if isinstance(kid, str) else None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_SET_BYTES)
    except OSError as error:
        raise BadKey(f"cannot read the key at {path}: {error.strerror}") from None
