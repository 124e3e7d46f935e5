"""The format of a bundle: its files, their rows, and the one way each is written.

docs/reference/audit-bundle.md describes it. A line is JSON with sorted keys, without spaces, in UTF-8. Every row
outside the history carries the digest of its other fields, so that a changed one can be named; a row of the history
carries its hash, which covers the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from DocsToKG.core.clock import utc_iso
from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.ledger.chain import Entry

SCHEMA = "docstokg.audit-bundle.v1"
MANIFEST_TYPE = "application/vnd.docstokg.audit-bundle+json"
MANIFEST, SIGNATURE = "manifest.json", "signatures/manifest.dsse.json"
CHAINS, HISTORY, JOBS, THROTTLES = "chains.jsonl", "history.jsonl", "jobs.jsonl", "throttles.jsonl"
QUOTAS, INCIDENTS, ACTIONS = "quotas.jsonl", "incidents.jsonl", "actions.jsonl"
CONTENT = (CHAINS, HISTORY, JOBS, THROTTLES, QUOTAS, INCIDENTS, ACTIONS)
ORDER = (MANIFEST, SIGNATURE, *CONTENT)  # as an archive holds them, and as they are read

Row = Mapping[str, Any]
_FIELDS = (
    "seq", "tenant", "shard", "link", "jobId", "at", "event", "fromState", "toState", "fence", "attempts", "actor",
    "reason", "ticket", "detail",
)  # fmt: skip
HISTORY_FIELDS = frozenset((*_FIELDS, "prevHash", "hash"))


def line(row: Row) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def digested(row: Row) -> dict[str, Any]:
    """The row with the digest of its fields."""
    return {**row, "digest": sha256_hex(orjson.dumps(row, option=orjson.OPT_SORT_KEYS))}


def has_its_digest(row: Row) -> bool:
    return row == digested({name: value for name, value in row.items() if name != "digest"})


LAST_MOMENT = 253_402_300_799_999  # the end of the year 9999, which is the last that a text of `moment` can name


def moment(ms: int) -> str:
    return utc_iso(ms / 1000)


def milliseconds(text: str) -> int:
    """The moment that a text of `moment` names; raises ValueError for anything else."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or len(text) != 24:
        raise ValueError(f"{text[:40]!r} is no moment")
    return round(found.timestamp() * 1000)


def history_row(stored: tuple[Any, ...]) -> dict[str, Any]:
    """A row of the history as a bundle writes it."""
    row = dict(zip(_FIELDS, stored, strict=False))
    row["at"] = moment(stored[5])
    row["prevHash"], row["hash"] = bytes(stored[15]).hex(), bytes(stored[16]).hex()
    return row


def entry_of(row: Row) -> Entry:
    """The words that the hash of a history row covers."""
    return (
        row["tenant"], row["shard"], row["link"], row["jobId"], milliseconds(row["at"]), row["event"],
        row["fromState"], row["toState"], row["fence"], row["attempts"], row["actor"], row["reason"], row["ticket"],
        row["detail"],
    )  # fmt: skip


def projections(row: Row) -> list[tuple[str, dict[str, Any]]]:
    """Which other files tell of a row of the history, and how: nothing is in them that the history does not say."""
    event: str = row["event"]
    if (row["toState"] is not None or event == "renewed") and row["ticket"] is None and event != "canceled":
        return []
    told = {name: row[name] for name in ("seq", "tenant", "jobId", "at", "event", "actor", "detail", "hash")}
    action = {**told, "reason": row["reason"], "ticket": row["ticket"]}
    found = []
    if event.startswith(("quota_", "policy_")):
        action = {**action, "quota_reason": row["reason"], "quota_ticket": row["ticket"]}
        found.append((QUOTAS, action))
    elif event.startswith("backfill_"):
        action = {**action, "backfill_reason": row["reason"], "backfill_ticket": row["ticket"]}
    elif event.startswith("incident_"):
        found.append((INCIDENTS, action))
    return [(name, digested(told)) for name, told in [*found, (ACTIONS, action)]]
