"""The hash chain of the history: each link's hash covers its words and the hash before it.

Pure. Knows the fields of a history row, not where they are kept.
"""

from __future__ import annotations

import hashlib
from json.encoder import encode_basestring_ascii as _quoted
from typing import NamedTuple

NO_HASH = bytes(32)


class Entry(NamedTuple):
    """The words of one link, in the order they are hashed and stored. `at` is milliseconds of ledger time."""

    tenant: str
    shard: int
    link: int
    job_id: int | None
    at: int
    event: str
    from_state: str | None
    to_state: str | None
    fence: int | None
    attempts: int | None
    actor: str
    reason: str | None
    ticket: str | None
    detail_json: str | None


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
    return hashlib.sha256(prev_hash + words.encode("ascii")).digest()
