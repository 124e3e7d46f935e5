"""One connection to the Redis or Valkey server that machines share: several records compared and set in one round trip.

Knows redis-py and its errors, the server's time, the epoch of its memory and whether owners are alive. Does not know
what is in a record. Promises: records change together or not at all, and only if they are as the caller saw them;
where the server's memory was lost, set back or brought over from another, everybody learns it before changing
anything; no call takes longer than `patience_s`; an address is never repeated with its password.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.limits.stores.redis_times import ServerTime
from DocsToKG.core.clock import Clock

__all__ = ["Epoch", "RedisConnection", "Reply", "ServerUnavailable", "opened", "redis"]

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError:
    raise ConfigError(
        "rate_limit.backend: 'redis' needs a package that is not installed; get it with: pip install 'docstokg[redis]'"
    ) from None

# The braces keep all keys on one node of a cluster, as a script that changes several of them wants it.
_PREFIX = "{docstokg:limits}:1:"
_EXCHANGE = """
local t = redis.call('TIME')
local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[1] then return {'epoch', t[1], t[2]} end
local fresh = redis.call('SET', KEYS[2], '1', 'PX', ARGV[2], 'GET')
if not fresh then return {'lost', t[1], t[2]} end
local count = #KEYS - 2
local found = {'stale', t[1], t[2]}
local same = true
for i = 1, count do
  local value = redis.call('GET', KEYS[i + 2]) or ''
  local token = string.match(value, '^[^ ]*')
  found[i + 3] = value
  same = same and token == ARGV[3 + i]
end
if not same then return found end
for i = 1, count do
  if ARGV[3 + count + i] ~= '' then redis.call('SET', KEYS[i + 2], ARGV[3 + count + i], 'PX', ARGV[3]) end
end
return {'ok', t[1], t[2]}
"""
_BEGIN = """
local epoch = redis.call('GET', KEYS[1]) or ''
if epoch == ARGV[1] then
  local t = redis.call('TIME')
  epoch = ARGV[2] .. ' ' .. t[1] .. string.format('%06d', t[2])
  redis.call('SET', KEYS[1], epoch)
end
return epoch
"""


def opened(url: str, *, patience_s: float, **more: Any) -> Any:
    """A client that connects when it is first used, and waits for nothing longer than `patience_s`."""
    try:
        return redis.Redis.from_url(
            url, socket_timeout=patience_s, socket_connect_timeout=patience_s, retry=Retry(NoBackoff(), 0), **more
        )
    except ValueError:
        raise ConfigError("rate_limit.redis_url: should look like redis://host:6379/0") from None


class ServerUnavailable(Exception):
    """The server did not answer, or not as it should; what was sent may have been done or not."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One uninterrupted life of the server's memory, and the base its times are counted from."""

    text: str

    @property
    def id(self) -> str:
        return self.text.split(" ")[0]

    @property
    def base(self) -> str:
        return self.text.split(" ")[1]

    @property
    def run_id(self) -> str:
        return self.text.split(" ")[2]

    @property
    def began_s(self) -> float:
        """In the server's time."""
        return int(self.text.split(" ")[3]) / 1e6


@dataclass(frozen=True, slots=True)
class Reply:
    """`stale` brings the records as they are; `epoch` and `lost`: nothing was done, tell first what you know."""

    kind: Literal["ok", "stale", "epoch", "lost"]
    values: Sequence[str] = ()


class RedisConnection:
    """The connection of one owner. The caller sees to it that one thread at a time is inside."""

    def __init__(
        self,
        url: str,
        *,
        owner: str,
        clock: Clock,
        space: str = "",
        patience_s: float = 1.0,
        lease_s: float = 15.0,
        keep_s: float = 2 * 86400.0,
        times: ServerTime | None = None,
    ) -> None:
        self.times = times or ServerTime()
        self.epoch: Epoch | None = None
        self._owner = owner
        self._clock = clock
        self._space = f"{_PREFIX}{space}:"
        self._lease_ms, self._keep_ms = int(lease_s * 1000), int(keep_s * 1000)
        self.renewed_at = -math.inf  # when the server was asked that heard last that we live
        self.lapses = 0  # how often it had not heard of us for too long
        self._run_id: str | None = None
        # One that never connects again by itself, since behind a new connection may be another server.
        self._redis: Any = None
        self._server: Any = opened(url, patience_s=patience_s, decode_responses=True)
        self._exchange = self._server.register_script(_EXCHANGE)
        self._begin = self._server.register_script(_BEGIN)

    @property
    def is_up(self) -> bool:
        return self._run_id is not None

    def exchange(self, keys: Sequence[str], tokens: Sequence[str], values: Sequence[str]) -> Reply:
        """Write `values` ("" leaves one as it is) if each record still begins with its token ("" = there is none)."""
        try:
            self._connect()
            assert self.epoch is not None
            names = [self._epoch_key, self._alive_key(self._owner), *map(self._record_key, keys)]
            words: list[str | int] = [self.epoch.text, self._lease_ms, self._keep_ms, *tokens, *values]
            asked_at, began = self._clock.monotonic(), time.monotonic()
            kind, seconds, micros, *found = self._exchange(keys=names, args=words, client=self._redis)
            if kind != "epoch":
                # Words of ours that were long under way may have renewed the lease after it was over.
                self.lapses += kind == "lost" or time.monotonic() - self.renewed_at >= self._lease_ms / 1000
                self.renewed_at = began
            return self._answered(kind, int(seconds) + int(micros) / 1e6, asked_at, found)
        except (redis.RedisError, OSError, ValueError, TypeError) as error:
            self.drop()
            raise ServerUnavailable(type(error).__name__) from None

    def is_alive(self, owner: str) -> bool:
        try:
            self._connect()
            return bool(self._redis.exists(self._alive_key(owner)))
        except (redis.RedisError, OSError) as error:
            self.drop()
            raise ServerUnavailable(type(error).__name__) from None

    def leave(self) -> None:
        """Nothing of this owner runs any more."""
        if self._redis is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                self._redis.delete(self._alive_key(self._owner))

    def drop(self) -> None:
        """Forget the connection: the next one may lead to another server, or to one that was set back."""
        self._run_id = None
        if self._redis is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                self._redis.connection.disconnect()
                self._redis.close()
            self._redis = None

    def close(self) -> None:
        self.drop()
        self._server.close()

    def _answered(self, kind: Any, server_s: float, asked_at: float, found: list[str]) -> Reply:
        if not self.times.heard(server_s, asked_at, self._clock.monotonic()):
            # Times that were written by another clock mean nothing any more.
            self._start(base=secrets.token_hex(4))
            return Reply("epoch")
        if kind == "epoch":
            self._start()
        return Reply(kind, found)

    def _connect(self) -> None:
        """On a new connection, see whether this is the server, and the memory, that we know."""
        if self._run_id is not None and self.epoch is not None:
            return
        self.drop()
        self._redis = self._server.client()
        self._run_id = str(self._redis.info("server")["run_id"])
        self._start()

    def _start(self, base: str | None = None) -> None:
        """Take up the epoch that holds; begin a new one when there is none for this life of the server."""
        text = str(self._redis.get(self._epoch_key) or "")
        found = Epoch(text) if text else None
        same_base = base is None or (found is not None and self.epoch is not None and found.base != self.epoch.base)
        if found is None or found.run_id != self._run_id or not same_base:
            kept = found.base if found is not None and same_base else base or secrets.token_hex(4)
            words = [text, f"{secrets.token_hex(4)} {kept} {self._run_id}"]
            found = Epoch(str(self._begin(keys=[self._epoch_key], args=words, client=self._redis)))
        self.epoch = found

    @property
    def _epoch_key(self) -> str:
        return f"{self._space}epoch"

    def _alive_key(self, owner: str) -> str:
        return f"{self._space}alive:{owner}"

    def _record_key(self, key: str) -> str:
        assert self.epoch is not None
        return f"{self._space}{self.epoch.base}:{key}"
