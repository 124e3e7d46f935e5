"""The hash chain of the history: each link's hash covers its words and the hash before it.

Pure. Knows the fields of a history row, not where they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _quoted

NO_HASH = bytes(32)


# The words of one link, in the order they are hashed and stored: tenant, shard, link, job id, moment (milliseconds of
# ledger time), event, state before, state after, fence, attempts, actor, reason, ticket, detail. A plain tuple, since
# one is made for every change of every job.
Entry = tuple[
    str, int, int, int | None, int, str, str | None, str | None, int | None, int | None, str, str | None, str | None,
    str | None,
]  # fmt: skip
# The same in two parts. Shared by many links: tenant, shard, moment, event, state before, state after, ticket, detail.
# Each link's own: link, job id, fence, attempts, actor, reason, hash before, hash.
Shared = tuple[str, int, int, str, str | None, str | None, str | None, str | None]
Own = tuple[int, int | None, int | None, int | None, str, str | None, bytes, bytes]
# A job's change of state: job id, tenant, job type, state before, state after, fence, attempts, actor, reason.
Move = tuple[int, str, str, str | None, str, int, int, str, str | None]


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
    return sha256(prev_hash + words.encode("ascii")).digest()


class Links:
    """Makes the links of changes that are alike: same tenant, event, moment and states.

    What they share is written out once; the hashes are those of `link_hash`, which a test compares.
    """

    __slots__ = ("_head", "_middle", "_tail", "shared")

    def __init__(
        self,
        tenant: str,
        shard: int,
        at: int,
        event: str,
        before: str | None,
        after: str | None,
        ticket: str | None,
        detail: str | None = None,
    ) -> None:
        self.shared: Shared = (tenant, shard, at, event, before, after, ticket, detail)
        self._head = f"[{_quoted(tenant)},{shard},"
        self._middle = f",{at},{_quoted(event)},{_word(before)},{_word(after)},"
        self._tail = f",{_word(ticket)},{_word(detail)}]"

    def make(self, link: int, prev_hash: bytes, moves: Iterable[Move]) -> list[Own]:
        """What is each change's own; the first follows the link and the hash given."""
        head, middle, tail = self._head, self._middle, self._tail
        made: list[Own] = []
        for job_id, _, _, _, _, fence, attempts, actor, reason in moves:
            link += 1
            said = "null" if reason is None else _quoted(reason)
            words = f"{head}{link},{job_id}{middle}{fence},{attempts},{_quoted(actor)},{said}{tail}"
            digest = sha256(prev_hash + words.encode("ascii")).digest()
            made.append((link, job_id, fence, attempts, actor, reason, prev_hash, digest))
            prev_hash = digest
        return made


def _word(text: str | None) -> str:
    return "null" if text is None else _quoted(text)
