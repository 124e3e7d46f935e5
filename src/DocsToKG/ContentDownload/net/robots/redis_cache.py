"""robots.txt of every origin that one machine has read, kept on a Redis or Valkey server for all of them.

Knows where answers are kept and who is fetching one, not what is in them. Promises: an origin is fetched by one node
while the others wait; one that dies meanwhile is waited for no longer than its claim lasts; an answer is kept no
longer than its reader said, by the server's time. Without the server each node reads for itself.
"""

from __future__ import annotations

import time
import zlib
from typing import Any

from DocsToKG.ContentDownload.net.limits.stores.redis_connection import opened, redis
from DocsToKG.ContentDownload.net.robots.check import CachedAnswer
from DocsToKG.core.ids import new_worker_id

_CLAIM_S = 60.0
_REST_S = 1.0
_LARGEST_BYTES = 500 * 1024
# A larger one is read by each node for itself, so that strangers cannot fill the server.
_LARGEST_KEPT = 64 * 1024
_DROP = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"
_PREFIX = "{docstokg:robots}:1:"


class RedisRobotsCache:
    """The answers kept on the server at `url`. `space` keeps worlds apart that must not meet."""

    def __init__(self, url: str, *, space: str = "", patience_s: float = 1.0, claim_s: float = _CLAIM_S) -> None:
        self._redis = opened(url, patience_s=patience_s)
        self._space = f"{_PREFIX}{space}:"
        self._claim_ms = int(claim_s * 1000)
        self._me = new_worker_id()
        self._rest_until = float("-inf")

    def find(self, origin: str) -> tuple[CachedAnswer, float] | None:
        """The answer kept, and for how many seconds it is good."""
        name = f"{self._space}{origin}"
        found = self._ask(lambda: self._redis.pipeline().hgetall(name).pttl(name).execute(), None)
        if not found or not found[0] or found[1] <= 0:
            return None
        try:
            return _read(found[0]), found[1] / 1000
        except (ValueError, LookupError, zlib.error):
            return None

    def claim(self, origin: str) -> bool:
        """May this node fetch it? True also where nobody can say."""
        name = f"{self._space}{origin} claim"
        taken = self._ask(lambda: (self._redis.set(name, self._me, nx=True, px=self._claim_ms),), (True,))
        return bool(taken[0])

    def put(self, origin: str, kept: CachedAnswer, keep_s: float) -> None:
        body = zlib.compress(kept.body)
        if len(body) > _LARGEST_KEPT or keep_s <= 0:
            return
        name = f"{self._space}{origin}"
        fields = {"status": "" if kept.status is None else str(kept.status), "state": kept.state, "body": body}
        change = self._redis.pipeline().delete(name).hset(name, mapping={**fields, "cause": kept.cause or ""})
        self._ask(lambda: change.pexpire(name, int(keep_s * 1000) + 1).execute(), None)

    def let_go(self, origin: str) -> None:
        """Whether it was fetched or not: others need not wait any more."""
        self._ask(lambda: self._redis.eval(_DROP, 1, f"{self._space}{origin} claim", self._me), None)

    def close(self) -> None:
        self._redis.close()

    def _ask(self, question: Any, otherwise: Any) -> Any:
        if time.monotonic() < self._rest_until:
            return otherwise
        try:
            return question()
        except (redis.RedisError, OSError):
            self._rest_until = time.monotonic() + _REST_S
            return otherwise


def _read(fields: dict[bytes, bytes]) -> CachedAnswer:
    status, cause = fields[b"status"].decode(), fields[b"cause"].decode()
    body = zlib.decompressobj().decompress(fields[b"body"], _LARGEST_BYTES)
    return CachedAnswer(int(status) if status else None, fields[b"state"].decode(), body, cause or None)
