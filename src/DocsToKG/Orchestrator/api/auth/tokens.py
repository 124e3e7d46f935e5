"""Tokens made here: random strings, of which only the digest is stored, in a file that its owner alone may read.

Knows the file. Does not know signed tokens. Promises: a token is shown once, when it is made; a revoked token stops
working within a second, without a restart; the file is never half written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from DocsToKG.core.clock import Clock, SystemClock

PREFIX = "dtk_"
_LOOK_AGAIN_S = 1.0
_MAX_FILE_BYTES = 4 * 1_048_576


class BadTokenFile(ValueError):
    """The file of tokens cannot be read."""


@dataclass(frozen=True, slots=True)
class StoredToken:
    """The record of a token. `tenant` is the default tenant of its holder; `tenants` the others ('*': every one)."""

    token_id: str
    digest: str
    name: str
    scopes: tuple[str, ...]
    tenant: str | None
    tenants: tuple[str, ...]
    created_at: float
    expires_at: float | None = None


class TokenFile:
    """The tokens at `path`; a file that is not there holds none."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._known: Mapping[str, StoredToken] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked_at = float("-inf")

    def find(self, token: str) -> StoredToken | None:
        """The token's record while it is valid."""
        self._refresh()
        digest = _digest(token)
        if digest not in self._known:
            self._refresh(at_once=True)  # it may have been made a moment ago
        found = self._known.get(digest)
        if found is None or (found.expires_at is not None and found.expires_at <= self._clock.now()):
            return None
        return found

    def list(self) -> list[StoredToken]:
        return _read(self.path)

    def make(
        self,
        name: str,
        *,
        scopes: Sequence[str],
        tenant: str | None,
        tenants: Sequence[str] = (),
        ttl_s: float | None = None,
    ) -> tuple[str, StoredToken]:
        """A new token and its record. The token itself is stored nowhere."""
        token, now = PREFIX + secrets.token_urlsafe(32), self._clock.now()
        record = StoredToken(
            token_id=secrets.token_hex(4),
            digest=_digest(token),
            name=name,
            scopes=tuple(scopes),
            tenant=tenant,
            tenants=tuple(tenants),
            created_at=now,
            expires_at=None if ttl_s is None else now + ttl_s,
        )
        with self._locked():
            _write(self.path, [*_read(self.path), record])
        return token, record

    def revoke(self, token_id: str) -> bool:
        with self._locked():
            known = _read(self.path)
            left = [record for record in known if record.token_id != token_id]
            if len(left) == len(known):
                return False
            _write(self.path, left)
            return True

    def _refresh(self, *, at_once: bool = False) -> None:
        now = self._clock.monotonic()
        if not at_once and now - self._looked_at < _LOOK_AGAIN_S:
            return
        with self._lock:
            self._looked_at = now
            stamp = _stamp(self.path)
            if stamp != self._stamp:
                self._known = {record.digest: record for record in _read(self.path)}
                self._stamp = stamp

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file, so that two commands at once do not lose each other's token."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _digest(token: str) -> str:
    # The token is 256 random bits, so a plain digest cannot be reversed by guessing.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def _read(path: Path) -> list[StoredToken]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadTokenFile(f"cannot read the tokens at {path}: {error.strerror}") from None
    try:
        return [_record(row) for row in json.loads(content)["tokens"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadTokenFile(f"{path} does not hold tokens; move it away to begin anew") from None


def _record(row: Mapping[str, Any]) -> StoredToken:
    record = StoredToken(**{**row, "scopes": tuple(row["scopes"]), "tenants": tuple(row["tenants"])})
    if not isinstance(record.digest, str) or not isinstance(record.expires_at, int | float | None):
        raise TypeError("a digest is a word, and an end is a time")
    return record


def _write(path: Path, records: Sequence[StoredToken]) -> None:
    text = json.dumps({"tokens": [asdict(record) for record in records]}, indent=1)
    spare = path.with_name(f"{path.name}.{os.getpid()}.new")
    file = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    spare.replace(path)
