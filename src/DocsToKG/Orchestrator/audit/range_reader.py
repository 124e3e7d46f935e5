"""Reads a range of time from a ledger, row by row, from one snapshot.

Knows where a range begins and ends in every chain, on either database. Promises: pages of a fixed size, whatever the
range holds; rows that retention removed are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from typing import Any

from DocsToKG.Orchestrator.audit.layout import moment
from DocsToKG.Orchestrator.control.history.chains import COLUMNS, Row
from DocsToKG.Orchestrator.errors import BadRange
from DocsToKG.Orchestrator.ledger.chain import NO_HASH
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx

_PAGE = 1000
Chain = tuple[str, int]
Place = tuple[int, bytes]  # the last link before a moment, and its hash


@dataclass(frozen=True, slots=True)
class Range:
    """From (included) to (not included), in milliseconds of ledger time; of one tenant or, with None, of all."""

    start: int
    end: int
    tenant: str | None


class OneWriter:
    """A ledger in a file: the rows lie in the order of their moments, and are read in the order of their numbers."""

    def __init__(self, tx: ControlTx, asked: Range) -> None:
        self._tx = tx
        self._asked = asked
        self._first, self._behind = self._row_at(asked.start), self._row_at(asked.end)

    def rows(self) -> Iterator[Row]:
        one = "" if self._asked.tenant is None else "tenant = :tenant AND "
        words = f"SELECT {COLUMNS} FROM job_history WHERE {one}seq >= :first AND seq < :behind ORDER BY seq"
        values = {"tenant": self._asked.tenant, "first": self._first, "behind": self._behind}
        while page := self._tx.execute(f"{words} LIMIT {_PAGE}", values):
            yield from page
            values["first"] = page[-1][0] + 1

    def chains(self) -> list[Chain]:
        heads = self._tx.execute("SELECT tenant, shard FROM history_heads")
        return sorted((tenant, shard) for tenant, shard in heads if self._asked.tenant in (None, tenant))

    def standing(self, chain: Chain) -> Place:
        """Where a chain that has no row in the range stood all the while."""
        return _place(
            self._tx, chain, "tenant = :tenant AND shard = :shard AND seq >= :from ORDER BY seq", self._behind
        )

    def _row_at(self, at: int) -> int:
        """The number of the first row at that moment or later: the moments only grow with the numbers."""
        low, high = 1, int(self._tx.execute("SELECT coalesce(max(seq), 0) + 1 FROM job_history")[0][0])
        while low < high:
            middle = (low + high) // 2
            [(seen,)] = self._tx.execute(
                "SELECT at FROM job_history WHERE seq >= :n ORDER BY seq LIMIT 1", {"n": middle}
            )
            low, high = (low, middle) if seen >= at else (middle + 1, high)
        return low


class ManyWriters:
    """A ledger on a server: tenant by tenant, the chains of each merged by their numbers."""

    def __init__(self, tx: ControlTx, asked: Range) -> None:
        self._tx = tx
        self._asked = asked
        _refuse_removed(tx, asked.start)

    def rows(self) -> Iterator[Row]:
        tenants: dict[str, list[int]] = {}
        for tenant, shard in self.chains():
            tenants.setdefault(tenant, []).append(shard)
        for tenant, shards in sorted(tenants.items()):
            yield from merge(*(self._chain((tenant, shard)) for shard in shards), key=lambda row: row[0])

    def chains(self) -> list[Chain]:
        one = "" if self._asked.tenant is None else " WHERE tenant = :tenant"
        heads = self._tx.execute(f"SELECT tenant, shard FROM history_heads{one}", {"tenant": self._asked.tenant})
        return sorted((tenant, shard) for tenant, shard in heads)

    def standing(self, chain: Chain) -> Place:
        return _place(
            self._tx, chain, "tenant = :tenant AND shard = :shard AND at >= :from ORDER BY link", self._asked.end
        )

    def _chain(self, chain: Chain) -> Iterator[Row]:
        link, _ = _place(
            self._tx, chain, "tenant = :tenant AND shard = :shard AND at >= :from ORDER BY link", self._asked.start
        )
        words = (
            f"SELECT {COLUMNS} FROM job_history WHERE tenant = :tenant AND shard = :shard AND link > :link"
            f" AND at >= :start AND at < :end ORDER BY link LIMIT {_PAGE}"
        )
        values = {
            "tenant": chain[0],
            "shard": chain[1],
            "link": link,
            "start": self._asked.start,
            "end": self._asked.end,
        }
        while page := self._tx.execute(words, values):
            yield from page
            values["link"] = page[-1][3]


def jobs(tx: ControlTx, job_ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """What never changes of some jobs, and the state they are in now."""
    columns = "id, tenant, project, job_type, artifact_id, payload_digest, replay_of, correlation_id, created_at, state"
    wanted = ", ".join(f"{job_id:d}" for job_id in job_ids)
    return {row[0]: _job(row) for row in tx.execute(f"SELECT {columns} FROM jobs WHERE id IN ({wanted})")}


def _job(row: Row) -> Mapping[str, Any]:
    names = ("jobId", "tenant", "project", "jobType", "artifactId", "payloadDigest", "replayOf", "correlationId")
    digest = f"sha256:{row[5].removeprefix('sha256:')}"
    return {**dict(zip(names, row, strict=False)), "payloadDigest": digest, "createdAt": moment(row[8]), "now": row[9]}


def state_before(tx: ControlTx, job_id: int, at: int) -> tuple[str | None, int | None, int | None]:
    """State, fence and attempts of a job at a moment, as its history says."""
    words = (
        "SELECT to_state, fence, attempts FROM job_history WHERE job_id = :job_id AND to_state IS NOT NULL AND at < :at"
        " ORDER BY seq DESC LIMIT 1"
    )
    found = tx.execute(words, {"job_id": job_id, "at": at})
    return found[0] if found else (None, None, None)


def changed_later(tx: ControlTx, job_id: int, at: int) -> bool:
    words = "SELECT 1 FROM job_history WHERE job_id = :job_id AND to_state IS NOT NULL AND at >= :at LIMIT 1"
    return bool(tx.execute(words, {"job_id": job_id, "at": at}))


def throttles(tx: ControlTx, asked: Range) -> Iterator[dict[str, Any]]:
    """The throttles that held at some time of the range, as they were at its end."""
    columns = (
        "throttle_id, tenant, job_type, source, mode, max_active, origin, actor, reason, ticket, created_at,"
        " expires_at, lifted_at, lifted_by"
    )
    # When the throttle of a breaker ends is written anew each time it opens: it is not told, the actions tell it.
    words = (
        f"SELECT {columns} FROM throttles WHERE created_at < :end AND (lifted_at IS NULL OR lifted_at >= :start)"
        " AND (origin = 'breaker' OR expires_at IS NULL OR expires_at >= :start)"
        f" AND (:tenant IS NULL OR tenant = :tenant OR tenant = '{EVERY}') AND throttle_id > :after"
        f" ORDER BY throttle_id LIMIT {_PAGE}"
    )
    values = {"start": asked.start, "end": asked.end, "tenant": asked.tenant, "after": ""}
    while page := tx.execute(words, values):
        yield from (_throttle(row, asked.end) for row in page)
        values["after"] = page[-1][0]


def _throttle(row: Row, end: int) -> dict[str, Any]:
    of_breaker, lifted = row[6] == "breaker", row[12] is not None and row[12] < end
    return {
        "throttleId": row[0], "tenant": row[1], "jobType": row[2], "source": row[3], "mode": row[4],
        "maxActive": row[5], "origin": row[6], "actor": row[7], "reason": None if of_breaker else row[8],
        "ticket": row[9], "createdAt": moment(row[10]),
        "expiresAt": None if of_breaker or row[11] is None else moment(row[11]),
        "liftedAt": moment(row[12]) if lifted else None, "liftedBy": row[13] if lifted else None,
    }  # fmt: skip


def _place(tx: ControlTx, chain: Chain, words: str, start: int) -> Place:
    """The link before the first row that fits; the last one of the chain where none does."""
    values = {"tenant": chain[0], "shard": chain[1], "from": start}
    found = tx.execute(f"SELECT link, prev_hash FROM job_history WHERE {words} LIMIT 1", values)
    if found:
        return int(found[0][0]) - 1, bytes(found[0][1])
    head = tx.execute("SELECT link, hash FROM history_heads WHERE tenant = :tenant AND shard = :shard", values)
    return (int(head[0][0]), bytes(head[0][1])) if head else (0, NO_HASH)


def _refuse_removed(tx: ControlTx, start: int) -> None:
    """Whole months are removed by retention; a range must not begin before the first month that is kept."""
    if not tx.execute("SELECT 1 FROM history_anchors LIMIT 1"):
        return
    [(oldest, newest)] = tx.execute("SELECT min(at), (SELECT max(at) FROM history_heads) FROM job_history")
    if oldest is None:
        if start <= newest:
            raise BadRange(f"the history up to {moment(newest)} is no longer kept here; export from later on")
        return
    day = datetime.fromtimestamp(oldest / 1000, UTC)
    kept = datetime(day.year, day.month, 1, tzinfo=UTC)
    if start < kept.timestamp() * 1000:
        raise BadRange(f"the history before {kept:%Y-%m-%d} is no longer kept here; export from {kept:%Y-%m-%d} on")
