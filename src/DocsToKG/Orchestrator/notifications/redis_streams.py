"""Wake-ups between machines by one bounded stream on a Redis or Valkey server.

A notice is XADD with MAXLEN; whoever waits reads on from the last entry it saw (XREAD BLOCK), without a consumer group,
because everyone is to hear everything and nobody has to acknowledge. The newest entry is looked at now and then: a
stream that was flushed, or whose server came back with an older clock, would otherwise leave us waiting for entries
beyond those that come. What the stream holds need not outlive the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from DocsToKG.Orchestrator.notifications.broker import PAUSE_S, RelayedSignal

_MOST_ENTRIES = 1000
_BLOCK_S = 0.25  # so long may closing take
_CHECK_S = 5.0
_CONNECT_S = 2.0
_ANSWER_S = 3.0
_START = (0, 0)


class RedisSignal(RelayedSignal):
    """A `Signal` on the stream `channel` of the server at `url` (redis://, rediss:// or unix://)."""

    def __init__(self, url: str, *, channel: str = "docstokg:signal", check_s: float = _CHECK_S) -> None:
        super().__init__()
        self._url = url
        self._stream = channel
        self._check_s = check_s
        try:
            self._client().close()
        except (ValueError, TypeError):
            raise ValueError("should look like redis://host:6379/0") from None  # the driver's words may hold more

    def _senders(self) -> dict[str, Callable[[], None]]:
        return {"redis-notify": self._send}

    def _listeners(self) -> dict[str, Callable[[], None]]:
        return {"redis-listen": self._listen}

    def _send(self) -> None:
        with self._connected() as server:
            while True:
                self._something.wait()
                is_last = self._closed.is_set()  # asked first, so that what was given before the end is sent
                with self._sending() as lanes:
                    for lane in lanes:
                        entry = {"lane": lane, "from": self._name}
                        server.xadd(self._stream, entry, maxlen=_MOST_ENTRIES, approximate=True)
                if is_last:
                    return
                self._closed.wait(PAUSE_S)

    def _listen(self) -> None:
        with self._connected() as server:
            seen = self._newest(server)
            self._begin_listening()
            try:
                checked = time.monotonic()
                while not self._closed.is_set():
                    seen = self._read_on(server, seen)
                    if time.monotonic() - checked > self._check_s:
                        seen, checked = self._still_there(server, seen), time.monotonic()
            finally:
                self.is_listening = False

    def _read_on(self, server: Any, seen: tuple[int, int]) -> tuple[int, int]:
        after = f"{seen[0]}-{seen[1]}"
        for _, entries in server.xread({self._stream: after}, block=int(_BLOCK_S * 1000)) or ():
            for entry_id, fields in entries:
                seen = _number(entry_id)
                self._hear(_text(fields, b"from"), _text(fields, b"lane"))
        return seen

    def _still_there(self, server: Any, seen: tuple[int, int]) -> tuple[int, int]:
        """Where to read on. Behind what we saw there is only another stream than the one we read."""
        newest = self._newest(server)
        if newest >= seen:
            return seen
        self._count_trouble()
        self._local.notify("")
        return newest

    def _newest(self, server: Any) -> tuple[int, int]:
        entries = server.xrevrange(self._stream, count=1)
        return _number(entries[0][0]) if entries else _START

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        client = self._client()
        try:
            yield client
        finally:
            client.close()

    def _client(self) -> Any:
        return redis.Redis.from_url(
            self._url,
            protocol=2,  # both servers know it, and it names what it answers in one way
            decode_responses=False,
            socket_timeout=_ANSWER_S,
            socket_connect_timeout=_CONNECT_S,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),  # we come back by ourselves, and count it
            client_name="docstokg-signal",
        )


def _number(entry_id: bytes) -> tuple[int, int]:
    moment, _, place = entry_id.partition(b"-")
    return int(moment), int(place or 0)


def _text(fields: dict[bytes, bytes], name: bytes) -> str:
    return (fields or {}).get(name, b"")[:400].decode(errors="replace")
