"""The answers that the HTTP cache holds, by their address, for those who only look.

Promises: nothing is asked for over the network, and an answer whose body is a file of the store is left alone.
"""

from __future__ import annotations

from typing import BinaryIO

from DocsToKG.ContentDownload.net.cache import entry_key
from DocsToKG.ContentDownload.net.entries import EntryStore, StoredAnswer


class CachedAnswers:
    """Looks into one cache; None is one that holds nothing."""

    def __init__(self, entries: EntryStore | None) -> None:
        self._entries = entries

    def __enter__(self) -> CachedAnswers:
        return self

    def __exit__(self, *trouble: object) -> None:
        if self._entries is not None:
            self._entries.close()

    def find(self, url: str) -> StoredAnswer | None:
        """The newest answer of an address, without its body."""
        found = [] if self._entries is None else self._entries.find(entry_key(url))
        return max(found, key=lambda answer: answer.stored_at, default=None)

    def body(self, url: str, answer: StoredAnswer) -> BinaryIO | None:
        """The body of an answer that is not a file of the store."""
        if self._entries is None or answer.in_cas:
            return None
        return self._entries.open_body(entry_key(url), answer)
