"""An answer that could be kept, from its head until its body is proved.

Knows what is written down of a request and its answer, and how it is published. Most answers are offered and never
looked at again, so nothing is put together before one is confirmed. Promises: nobody sees it earlier.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import replace

import httpx2

from DocsToKG.ContentDownload.net.entries import EntryStore, HeaderLists, StoredAnswer
from DocsToKG.ContentDownload.net.pending import Copied, PendingBody


class PendingEntry:
    """An answer that could be stored. It is visible to nobody until it is confirmed."""

    __slots__ = ("_body", "_done", "_entries", "_key", "_nothing_at", "_published", "_tell")

    def __init__(
        self,
        entries: EntryStore,
        key: str,
        tell: Callable[[], StoredAnswer],
        body: PendingBody | None,
        nothing_at: float,
    ) -> None:
        self._entries = entries
        self._key = key
        self._tell = tell
        self._body = body
        self._nothing_at = nothing_at  # when nothing was stored under the key
        self._done = False
        self._published = ""  # the id of the entry

    @property
    def holds_body(self) -> bool:
        return self._body is not None

    def without_body(self) -> None:
        """What comes is a file for the CAS."""
        if self._body is not None:
            self._body.discard()
            self._body = None

    def copying(self, stream: AsyncIterable[bytes]) -> Copied | None:
        """The body to be read in place of `stream`, where a copy of it is kept."""
        return None if self._body is None else self._body.copying(aiter(stream))

    def confirm(self, sha256: str | None = None) -> None:
        """Publish: an artifact under the digest of its proved file, anything else with the body just read whole."""
        if self._done:
            return
        self._done = True
        if self._body is not None:
            if self._body.complete:
                self._publish(replace(self._tell(), sha256=self._body.sha256, size=self._body.size))
            else:
                self._body.discard()
        elif sha256:
            answer = self._tell()
            answer.sha256, answer.in_cas = sha256, True
            # The CAS holds the decoded bytes, which the announced length does not count.
            if answer.headers.pop("content-encoding", None):
                answer.headers.pop("content-length", None)
            self._publish(answer)

    def discard(self) -> None:
        """Forget it. Safe to call after `confirm`."""
        if not self._done and self._body is not None:
            self._body.discard()
        self._done = True

    def withdraw(self) -> None:
        """Forget it, even when it has been published."""
        self.discard()
        if self._published:
            self._entries.remove(self._key, self._published)

    def _publish(self, answer: StoredAnswer) -> None:
        self._published = answer.id
        self._entries.publish(self._key, answer, self._body, nothing_at=self._nothing_at)


def offer(
    entries: EntryStore,
    key: str,
    tell: Callable[[], StoredAnswer],
    *,
    in_cas: bool,
    nothing_at: float = float("-inf"),
) -> PendingEntry | None:
    """Have an answer pending. `tell` says what is kept of it, besides a body that will not be in the CAS; None where
    there is no room for that."""
    body = None if in_cas else entries.new_body()
    return PendingEntry(entries, key, tell, body, nothing_at) if in_cas or body is not None else None


def stored_answer(
    url: str, method: str, status: int, headers: HeaderLists, sent: httpx2.Headers, key: str
) -> StoredAnswer:
    """What is kept of an answer; `sent` are the headers it was given to."""
    depends_on = varying(headers["vary"], sent, key) if "vary" in headers else {}
    return StoredAnswer(url, method, depends_on, status, headers)


def varying(vary: Iterable[str], sent: httpx2.Headers, key: str) -> HeaderLists:
    """The request headers that an answer depends on, as digests: they may hold an address or a key."""
    names = {name.strip().lower() for line in vary for name in line.split(",")} - {"", "*"}
    return {name: [_digest(key, name, *sent.get_list(name))] for name in sorted(names)}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
