"""A Redis or Valkey server: reached, new enough, and able to do what limits, cache or wake-ups ask of it.

What it writes lies under one key of its own, which ends by itself after a minute and is removed at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

from DocsToKG.core.checks import Finding, ask_time, clock, encryption, failed, missing_extra, ok, warning

Purpose = Literal["limits", "cache", "wake-ups"]

_ANSWER_S = 4.0
_OLDEST = (6, 2)  # SET with PX and GET together
_PROBE_MS = 60_000
# What a user of the server must be allowed, in the words of its ACL; this check needs no more than the work does.
_CHANGES = "~{docstokg:* ~docstokg:* +@read +@write +@scripting +@transaction +@connection +info +time"
RIGHTS: dict[Purpose, str] = {
    "limits": _CHANGES,
    "cache": _CHANGES,
    "wake-ups": "~{docstokg:* ~docstokg:* +@stream +@connection +pexpire +del +info +time",
}
_SCRIPT = "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]); return redis.call('GET', KEYS[1])"


def check_redis(url: str, setting: str, purpose: Purpose) -> Iterator[Finding]:
    """The server at `url`, which `setting` names, for one purpose."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        yield missing_extra("redis")
        return
    try:
        parts = urlsplit(url)
        server = redis.Redis.from_url(
            url,
            socket_timeout=_ANSWER_S,
            socket_connect_timeout=_ANSWER_S,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
    except (ValueError, TypeError):
        yield failed("address", "it cannot be read", f"write {setting} as redis://host:6379/0")
        return
    rights = f"see to user and password in {setting}, and to the server's ACL: {RIGHTS[purpose]}"
    step, where = "reachable", f"redis {parts.hostname or parts.path}:{parts.port or 6379}"
    try:
        server.ping()
        yield ok("reachable", where)
        step = "permissions"
        yield from _look(server, setting, purpose, parts.hostname, parts.scheme == "rediss")
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        yield failed(step, f"{where} refuses us ({type(error).__name__})", rights)
    except (redis.RedisError, OSError) as error:
        yield failed(step, f"{where}: {type(error).__name__}", f"see to the server, its firewall and {setting}")
    finally:
        server.close()


def _look(server: Any, setting: str, purpose: Purpose, host: str | None, encrypted: bool) -> Iterator[Finding]:
    about = server.info()
    yield _version(about)
    yield encryption(host, encrypted, f"use rediss:// in {setting}")
    yield clock(*ask_time(lambda: _server_time(server)))
    yield from _memory(about, purpose)
    yield _try(server, purpose)


def _try(server: Any, purpose: Purpose) -> Finding:
    # The braces keep it on the node of a cluster where the real ones are.
    key, word = f"{{docstokg:doctor}}:{secrets.token_hex(8)}", secrets.token_hex(8)
    try:
        if purpose == "wake-ups":
            server.xadd(key, {"lane": word}, maxlen=10, approximate=True)
            server.pexpire(key, _PROBE_MS)
            found = [fields.get("lane") for _, entries in server.xread({key: "0-0"}) for _, fields in entries]
            done = found == [word]
        else:
            with server.pipeline(transaction=True) as change:
                done = change.set(key, word, px=_PROBE_MS).get(key).execute()[1] == word
            other = secrets.token_hex(8)
            done = done and server.eval(_SCRIPT, 1, key, other, _PROBE_MS) == other
    finally:
        server.delete(key)
    if done:
        return ok("permissions", f"a probe for {purpose} was written, read and removed")
    return failed("permissions", "what was written did not come back", "see whether this is the primary server")


def _version(about: dict[str, Any]) -> Finding:
    kind = "Valkey" if about.get("valkey_version") else "Redis"
    text = str(about.get("valkey_version") or about.get("redis_version") or "")
    # Valkey also tells the version of Redis that it can stand for.
    number = tuple(int(part) for part in str(about.get("redis_version") or "0").split(".")[:2] if part.isdigit())
    if number >= _OLDEST:
        return ok("server", f"{kind} {text}, {about.get('role', 'alone')}")
    return failed("server", f"{kind} {text} is too old", "upgrade the server to Valkey, or to Redis 6.2 or newer")


def _server_time(server: Any) -> float:
    seconds, micros = server.time()
    return float(seconds) + float(micros) / 1e6


def _memory(about: dict[str, Any], purpose: Purpose) -> Iterator[Finding]:
    """A server that throws keys away when it is full forgets limits, and hosts are asked too often."""
    policy = str(about.get("maxmemory_policy") or "noeviction")
    if purpose == "limits" and int(about.get("maxmemory") or 0) and policy != "noeviction":
        yield warning(
            "memory",
            f"drops keys when it is full ({policy}), limits of hosts among them",
            "set maxmemory-policy noeviction, or give the cache a server of its own",
        )
    if about.get("role") in ("slave", "replica"):
        yield failed("role", "a replica, which cannot be written to", "name the primary")
