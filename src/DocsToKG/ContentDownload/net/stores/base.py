"""What every place for cache entries can do; entries are opaque bytes to it.

Knows keys (64 hex digits), entry ids (32), head bytes and bodies. Does not know HTTP, freshness or what a head says.
Promises of every backend: an entry is visible whole or not at all, and each failure is a `StoreFailed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol

from DocsToKG.ContentDownload.net.pending import PendingBody
from DocsToKG.core.values import lean_dataclass

SHARDS = 256


class StoreFailed(OSError):
    """The place of the cache did not do what it was asked. Counts as a miss and never fails a request."""


@lean_dataclass(frozen=True, slots=True)
class Entry:
    """A head to be kept, with what a backend must know to keep it."""

    key: str
    id: str
    head: bytes
    stored_at: float


class Backend(Protocol):
    """One place for entries; safe for many threads, and for many processes at once."""

    # Whether other machines see the same entries.
    shared: bool
    # Whether a call may take long: a server, or a file that others keep locked. An event loop leaves it to a thread.
    slow: bool
    # How long it is left alone after a failure, so that a server that is away does not slow down every request.
    rest_s: float

    def new_body(self) -> PendingBody | None:
        """Where a body waits until its entry is confirmed; None when there is no room."""

    def heads(self, key: str) -> list[tuple[str, bytes]]: ...

    def body(self, key: str, entry_id: str) -> BinaryIO | None:
        """The stored body at its start; None when there is none."""

    def put(self, entry: Entry, body: PendingBody | None, *, replaced: Iterable[str]) -> None:
        """Make an entry visible instead of those it replaces."""

    def rewrite(self, entry: Entry) -> None:
        """Give an entry that is still there a new head."""

    def delete(self, key: str, entry_ids: Iterable[str]) -> None: ...

    def flush(self) -> None:
        """What was put is kept afterwards though the process should die."""

    def sweep(self, shard: int, *, now: float, ttl_s: float) -> None:
        """Drop what is older than `ttl_s` in one of `SHARDS` parts, and what crashes left there."""

    def walk(self) -> Iterator[bytes]:
        """Every head, in no order."""

    def clear(self) -> int:
        """Drop every entry; how many there were."""

    def close(self) -> None: ...
