"""The hash chain of the history: each link's hash covers its words and the hash before it.

Pure. Knows the fields of a history row, not where they are kept.
"""

from __future__ import annotations

from hashlib import sha256
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

NO_HASH = bytes(32)
_FRESH = sha256()


# The words of one link, in the order they are hashed and stored: tenant, shard, link, job id, moment (milliseconds of
# ledger time), event, state before, state after, fence, attempts, actor, reason, ticket, detail. A plain tuple, since
# one is made for every change of every job.
Entry = tuple[
    str, int, int, int | None, int, str, str | None, str | None, int | None, int | None, str, str | None, str | None,
    str | None,
]  # fmt: skip


def link_hash(entry: Entry, prev_hash: bytes) -> bytes:
    """SHA-256 over the previous hash and the entry as a compact JSON array in ASCII.

    Written out by hand, because a general encoder takes twice as long and this runs for every change of every job.
    """
    tenant, shard, link, job_id, at, event, before, after, fence, attempts, actor, reason, ticket, detail = entry
    words = (
        f"[{_quoted(tenant)},{shard},{link},{'null' if job_id is None else job_id},{at},{_quoted(event)},"
        f"{'null' if before is None else _quoted(before)},{'null' if after is None else _quoted(after)},"
        f"{'null' if fence is None else fence},{'null' if attempts is None else attempts},{_quoted(actor)},"
        f"{'null' if reason is None else _quoted(reason)},{'null' if ticket is None else _quoted(ticket)},"
        f"{'null' if detail is None else _quoted(detail)}]"
    )
    fresh = _FRESH.copy()  # takes two thirds of the time that making one does
    fresh.update(prev_hash + words.encode("ascii"))
    return fresh.digest()


class Links:
    """Makes the links of changes that are alike: same tenant, event, moment and states.

    What they share is written out once; the hashes are those of `link_hash`, which a test compares.
    """

    __slots__ = ("_head", "_middle", "_shared", "_tail")

    def __init__(
        self,
        tenant: str,
        shard: int,
        at: int,
        event: str,
        before: str | None,
        after: str | None,
        ticket: str | None,
    ) -> None:
        self._shared = (tenant, shard, at, event, before, after, ticket)
        self._head = f"[{_quoted(tenant)},{shard},"
        self._middle = f",{at},{_quoted(event)},{_word(before)},{_word(after)},"
        self._tail = f",{_word(ticket)},null]"

    def make(
        self, link: int, job_id: int, fence: int, attempts: int, actor: str, reason: str | None, prev_hash: bytes
    ) -> tuple[Any, ...]:
        """The row of one change: its entry, the hash before it and its own."""
        tenant, shard, at, event, before, after, ticket = self._shared
        said = "null" if reason is None else _quoted(reason)
        words = f"{self._head}{link},{job_id}{self._middle}{fence},{attempts},{_quoted(actor)},{said}{self._tail}"
        fresh = _FRESH.copy()
        fresh.update(prev_hash + words.encode("ascii"))
        return (
            tenant, shard, link, job_id, at, event, before, after, fence, attempts, actor, reason, ticket, None,
            prev_hash, fresh.digest(),
        )  # fmt: skip


def _word(text: str | None) -> str:
    return "null" if text is None else _quoted(text)
