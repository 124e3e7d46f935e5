"""Cache entries on a Redis or Valkey server, shared by every machine that names it.

One hash per key holds the heads, one string per entry its body; each change is one transaction, and the server drops
what is too old by itself. Knows redis-py and its errors; an address is never repeated with its password.
"""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.pending import PendingBody
from DocsToKG.ContentDownload.net.stores.base import Entry, StoreFailed

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError:
    raise ConfigError(
        "hishel.backend: 'redis' needs a package that is not installed; get it with: pip install 'docstokg[redis]'"
    ) from None

PREFIX = "docstokg:cache:"
_LARGEST_BODY = 8 * 1024 * 1024
_AT_ONCE = 500
_REWRITE = "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end"


class RedisBackend:
    """The entries on the server at `url`."""

    shared = slow = True
    rest_s = 5.0

    def __init__(self, url: str, *, ttl_s: float, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        self._ttl_ms = max(1, int(ttl_s * 1000))
        try:
            self._redis: Any = redis.Redis.from_url(
                url,
                socket_timeout=5.0,
                socket_connect_timeout=3.0,
                # A kept connection may have gone stale; one more try tells that from a server that is away.
                retry=Retry(NoBackoff(), 1),
                health_check_interval=30,
            )
        except ValueError:
            raise ConfigError("hishel.redis_url: should look like redis://host:6379/0") from None
        try:
            self._redis.ping()
        except (redis.RedisError, OSError) as error:
            self._redis.close()
            refused = isinstance(error, (redis.AuthenticationError, redis.exceptions.NoPermissionError))
            raise ConfigError(
                f"hishel.redis_url (by default rate_limit.redis_url): no Redis or Valkey to be used at {_address(url)} "
                f"({type(error).__name__}); {'see to user and password' if refused else 'start it'}, "
                "or set hishel.backend to 'file'"
            ) from None

    def new_body(self) -> PendingBody | None:
        return PendingBody.spooled(largest=_LARGEST_BODY)

    def heads(self, key: str) -> list[tuple[str, bytes]]:
        with _failing():
            found: dict[bytes, bytes] = self._redis.hgetall(self._heads(key))
        return [(uuid.UUID(name.decode()).hex, head) for name, head in sorted(found.items())]

    def body(self, key: str, entry_id: str) -> BinaryIO | None:
        with _failing():
            found: bytes | None = self._redis.get(self._body(key, entry_id))
        return None if found is None else io.BytesIO(found)

    def put(self, entry: Entry, body: PendingBody | None, *, replaced: Iterable[str]) -> None:
        with _failing(), self._redis.pipeline(transaction=True) as change:
            self._drop(change, entry.key, replaced)
            if body is not None:
                change.set(self._body(entry.key, entry.id), body.content(), px=self._ttl_ms)
            change.hset(self._heads(entry.key), entry.id, entry.head)
            change.pexpire(self._heads(entry.key), self._ttl_ms)
            change.execute()

    def rewrite(self, entry: Entry) -> None:
        with _failing():
            self._redis.eval(_REWRITE, 1, self._heads(entry.key), entry.id, entry.head)

    def delete(self, key: str, entry_ids: Iterable[str]) -> None:
        with _failing(), self._redis.pipeline(transaction=True) as change:
            self._drop(change, key, entry_ids)
            change.execute()

    def flush(self) -> None:
        """Nothing waits here."""

    def sweep(self, shard: int, *, now: float, ttl_s: float) -> None:
        """Nothing to do: the server does it."""

    def walk(self) -> Iterator[bytes]:
        with _failing():
            for name in self._redis.scan_iter(match=f"{self._prefix}*:heads", count=_AT_ONCE):
                yield from self._redis.hvals(name)

    def clear(self) -> int:
        count = 0
        with _failing():
            for name in self._redis.scan_iter(match=f"{self._prefix}*", count=_AT_ONCE):
                count += self._redis.hlen(name) if name.endswith(b":heads") else 0
                self._redis.unlink(name)
        return count

    def close(self) -> None:
        self._redis.close()

    def _drop(self, change: Any, key: str, entry_ids: Iterable[str]) -> None:
        for entry_id in entry_ids:
            change.hdel(self._heads(key), entry_id)
            change.unlink(self._body(key, entry_id))

    # The braces keep what belongs together on one node of a cluster.
    def _heads(self, key: str) -> str:
        return f"{self._prefix}{{{key}}}:heads"

    def _body(self, key: str, entry_id: str) -> str:
        return f"{self._prefix}{{{key}}}:{entry_id}"


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except (redis.RedisError, OSError, ValueError) as error:
        raise StoreFailed(type(error).__name__) from None


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        place = parts.hostname or ""
        return f"{parts.scheme}://{place}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return "the address given"
