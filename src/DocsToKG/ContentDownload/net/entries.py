"""Cache entries: what is kept of an answer, when it may be seen, and what is never written down.

Knows heads, bodies, age and secrets; where entries lie is a backend's matter. Does not know freshness or HTTP rules.
Promises: nothing is visible before it is published whole; a damaged entry is a miss; a backend that fails is a miss
and a counted trouble, never a failed download.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import BytesIO
from typing import BinaryIO, ParamSpec, TypeAlias, TypeVar

from DocsToKG.ContentDownload.net.pending import PendingBody
from DocsToKG.ContentDownload.net.stores.base import SHARDS, Backend, Entry
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import mask_text

log = logging.getLogger(__name__)

HeaderLists: TypeAlias = dict[str, list[str]]
T = TypeVar("T")
P = ParamSpec("P")

_BLOCK = 256 * 1024
_WRITER = "cache-entries"
_NO_ID = "0" * 32
_as_json = json.JSONEncoder().encode
_LARGEST_HEAD = 256 * 1024
_MOST_VARIANTS = 4
_SAY_EVERY_S = 60.0
# Where nothing was stored a moment ago, nothing is.
STILL_NOTHING_S = 1.0
# Answers may set cookies and carry session data; they are passed on but never written down.
_NEVER_WRITTEN = frozenset({"set-cookie", "set-cookie2", "www-authenticate", "authentication-info"})
# What freshness, validation and the proof of a file rest on; these are no addresses.
_ALWAYS_WRITTEN = frozenset({"etag", "last-modified", "date", "expires", "cache-control", "vary", "content-type"})


class EntryDamaged(OSError):
    """The stored body is not what was stored. The entry is gone now; asking again is a miss."""


def new_id() -> str:
    return os.urandom(16).hex()


@dataclass(slots=True)
class StoredAnswer:
    """One stored answer without its body. `varying` holds digests of the request headers its Vary names."""

    url: str
    method: str
    varying: HeaderLists
    status: int
    headers: HeaderLists
    stored_at: float = 0.0
    sha256: str = ""
    size: int | None = None
    in_cas: bool = False
    id: str = field(default_factory=new_id)

    def to_json(self, stored_at: float) -> bytes:
        written = {
            "url": self.url,
            "method": self.method,
            "varying": self.varying,
            "status": self.status,
            "headers": {name: values for name, values in self.headers.items() if _may_be_written(name, tuple(values))},
            "stored_at": stored_at,
            "sha256": self.sha256,
            "size": self.size,
            "in_cas": self.in_cas,
        }
        return _as_json(written).encode()

    @classmethod
    def from_json(cls, raw: bytes, entry_id: str) -> StoredAnswer:
        answer = cls(**json.loads(raw), id=entry_id)
        whole = isinstance(answer.stored_at, float) and isinstance(answer.url, str) and isinstance(answer.status, int)
        if not (whole and isinstance(answer.headers, dict) and isinstance(answer.varying, dict)):
            raise ValueError("not a cache entry")
        return answer


class EntryStore:
    """The entries of one backend, as the cache sees them; safe for many threads and processes."""

    def __init__(
        self,
        backend: Backend,
        *,
        ttl_s: float,
        check_ttl_every_s: float,
        open_cas: Callable[[str], BinaryIO | None],
        clock: Clock,
    ) -> None:
        self.troubles: Counter[str] = Counter()
        self.backend = backend
        self._ttl_s = ttl_s
        self._open_cas = open_cas
        self._clock = clock
        # One shard is looked at each time, so that a full round takes `check_ttl_every_s`.
        self._shard_every_s = check_ttl_every_s / SHARDS
        self._next_check = clock.monotonic() + self._shard_every_s
        self._next_shard = 0
        self._rests_until = self._silent_until = clock.monotonic()
        self._lock = threading.Lock()
        # One thread, so that changes are made in their order.
        self._writer = ThreadPoolExecutor(1, _WRITER) if backend.slow else None
        self._last_change: Future[object] | None = None

    def find(self, key: str) -> list[StoredAnswer]:
        """The visible, unexpired entries under `key`."""
        self.settle()
        nothing: list[tuple[str, bytes]] = []
        heads = self._try("find", nothing, self.backend.heads, key)
        if not heads:
            return []
        answers = (self._answer(entry_id, head) for entry_id, head in heads)
        return [answer for answer in answers if answer is not None and not self._is_old(answer)]

    def open_body(self, key: str, answer: StoredAnswer) -> BinaryIO | None:
        """The body, positioned at its start; None (and the entry removed) when it is gone or not the one stored."""
        if answer.in_cas:
            opened = self._open_cas(answer.sha256)
        else:
            opened = self._try("read", None, self.backend.body, key, answer.id)
        if opened is not None and not _is_the_body(opened, answer):
            opened.close()
            opened = None
        # Another machine may well hold the file whose object is not in the CAS of this one.
        if opened is None and not (answer.in_cas and self.backend.shared):
            self.remove(key, answer.id)
        return opened

    def read_body(self, key: str, answer: StoredAnswer, opened: BinaryIO) -> Iterator[bytes]:
        """The body in blocks; raises `EntryDamaged` at the end when it is not the one that was stored."""
        digest = hashlib.sha256()
        while block := opened.read(_BLOCK):
            digest.update(block)
            yield block
        if digest.hexdigest() != answer.sha256:
            self.remove(key, answer.id)
            raise EntryDamaged("a cached body is damaged")

    def new_body(self) -> PendingBody | None:
        """A place for a body whose entry is not visible yet; None when there is no room."""
        return self._try("write", None, self.backend.new_body)

    def publish(
        self, key: str, answer: StoredAnswer, body: PendingBody | None, *, nothing_at: float = float("-inf")
    ) -> None:
        """Make an entry visible, instead of those it replaces; takes `body` over. `nothing_at`: when there was none
        under `key`."""
        self._change(self._publish, key, answer, body, nothing_at)

    def refresh(self, key: str, entry_id: str, headers: HeaderLists) -> None:
        """The origin said the entry is still good, under these headers."""
        self._change(self._refresh, key, entry_id, headers)

    def remove(self, key: str, entry_id: str) -> None:
        self._change(self._try, "remove", None, self.backend.delete, key, [entry_id])

    async def ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`question`, one of those above, for the tasks of an event loop, which a slow place must not hold up."""
        if not self.backend.slow:
            return question(*args, **kwargs)
        return await asyncio.to_thread(question, *args, **kwargs)

    def _change(self, deed: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Done when it returns; at a slow place it is done by a thread, which nobody waits for but who asks next."""
        if self._writer is None:
            deed(*args, **kwargs)
            return
        self._last_change = self._writer.submit(deed, *args, **kwargs)

    def settle(self) -> None:
        """What was changed before is done when this returns; whoever asks sees it."""
        if self._last_change is not None and not threading.current_thread().name.startswith(_WRITER):
            wait((self._last_change,))

    def _publish(self, key: str, answer: StoredAnswer, body: PendingBody | None, nothing_at: float) -> None:
        try:
            self._put(key, answer, body, nothing_at)
        finally:
            if body is not None:
                body.discard()

    def _put(self, key: str, answer: StoredAnswer, body: PendingBody | None, nothing_at: float) -> None:
        stored_at = self._clock.now()
        head = answer.to_json(stored_at)
        if len(head) > _LARGEST_HEAD:
            return
        # Two who ask for the same at the same time leave two entries, until the next one replaces both.
        is_first = self._clock.monotonic() - nothing_at < STILL_NOTHING_S
        replaced = [] if is_first else self._replaced_by(answer, key)
        entry = Entry(key, answer.id, head, stored_at)
        self._try("write", None, self.backend.put, entry, body, replaced=replaced)
        self._sweep_a_shard()

    def _refresh(self, key: str, entry_id: str, headers: HeaderLists) -> None:
        answer = next((found for found in self.find(key) if found.id == entry_id), None)
        if answer is None:
            return
        refreshed = replace(answer, headers=headers).to_json(answer.stored_at)
        if len(refreshed) <= _LARGEST_HEAD:
            entry = Entry(key, entry_id, refreshed, answer.stored_at)
            self._try("write", None, self.backend.rewrite, entry)

    def walk(self) -> Iterator[StoredAnswer | None]:
        """Every entry, also those too old to be served; None for one that cannot be read. Raises `StoreFailed`."""
        self.settle()
        for head in self.backend.walk():
            yield self._answer(_NO_ID, head)

    def clear(self) -> int:
        """Drop every entry; how many there were. Raises `StoreFailed`."""
        self.settle()
        return self.backend.clear()

    def flush(self) -> None:
        """What was published is found again though the process should die. From any thread."""
        if not self.backend.slow:
            self._try("write", None, self.backend.flush)

    def close(self) -> None:
        """Write what is to be written."""
        if self._writer is not None:
            self._writer.shutdown()
        self.backend.close()

    def _is_old(self, answer: StoredAnswer) -> bool:
        return self._clock.now() >= answer.stored_at + self._ttl_s

    def _replaced_by(self, answer: StoredAnswer, key: str) -> list[str]:
        known = sorted(self.find(key), key=lambda other: other.stored_at, reverse=True)
        same = [old.id for old in known if (old.method, old.varying) == (answer.method, answer.varying)]
        return same + [old.id for old in known if old.id not in same][_MOST_VARIANTS - 1 :]

    def _answer(self, entry_id: str, head: bytes) -> StoredAnswer | None:
        try:
            return StoredAnswer.from_json(head, entry_id)
        except (ValueError, TypeError, RecursionError):
            log.warning("a cache entry cannot be read and counts as a miss: %s", entry_id)
            return None

    def _sweep_a_shard(self) -> None:
        with self._lock:
            now = self._clock.monotonic()
            if now < self._next_check:
                return
            self._next_check = now + self._shard_every_s
            shard, self._next_shard = self._next_shard, (self._next_shard + 1) % SHARDS
        self._try("sweep", None, self.backend.sweep, shard, now=self._clock.now(), ttl_s=self._ttl_s)

    def _try(self, what: str, otherwise: T, deed: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._clock.monotonic() < self._rests_until:
            return otherwise
        try:
            return deed(*args, **kwargs)
        except (OSError, ValueError) as error:  # what others wrote there may be anything
            self._trouble(what, error)
            return otherwise

    def _trouble(self, what: str, error: Exception) -> None:
        with self._lock:
            self.troubles[what] += 1
            now = self._clock.monotonic()
            self._rests_until = now + self.backend.rest_s
            silent = now < self._silent_until
            if not silent:
                self._silent_until = now + _SAY_EVERY_S
        if not silent:
            log.warning(
                "the cache did not %s; going on without (%s)",
                what,
                type(error).__name__ if isinstance(error, ValueError) else error,
            )


@lru_cache(maxsize=1024)  # most answers of a host say the same
def _may_be_written(name: str, values: tuple[str, ...]) -> bool:
    """Whether no secret is in a header. Servers echo the URL they were asked for, key and all, in many of them."""
    if name in _ALWAYS_WRITTEN:
        return True
    return name not in _NEVER_WRITTEN and all(mask_text(value) == value for value in values)


def _is_the_body(opened: BinaryIO, answer: StoredAnswer) -> bool:
    """By its size; where it lies in memory already, by its digest."""
    try:
        size = opened.seek(0, 2)
        opened.seek(0)
    except (OSError, ValueError):
        return False
    if answer.size not in (None, size):
        return False
    if answer.in_cas or not isinstance(opened, BytesIO):
        return True
    return hashlib.sha256(opened.getbuffer()).hexdigest() == answer.sha256
