"""The hash chain of the history: each link's hash covers its words and the hash before it.

Pure. Knows the fields of a history row, not where they are kept.
"""

from __future__ import annotations

import hashlib
import json
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
    """SHA-256 over the previous hash and the entry as compact JSON."""
    words = json.dumps(entry, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(prev_hash + words.encode("ascii")).digest()
