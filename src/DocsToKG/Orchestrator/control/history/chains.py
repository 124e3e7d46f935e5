"""The order of the history, on either database: the hash chains of a tenant and positions in them.

With concurrent writers, a row with a lower number may be committed after one with a higher; only within a chain there
is no gap, so a position is a link of a chain. With a single writer the numbers themselves have no gap, and all tenants
share one chain of them, without another index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import merge
from typing import Any, Protocol

from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx

COLUMNS = (
    "seq, tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket,"
    " detail_json, prev_hash, hash"
)
WINDOW = 5000
_SEQ, _SHARD, _LINK = 0, 2, 3
Row = tuple[Any, ...]


class Chains(Protocol):
    """Positions are numbers by shard; a shard that is not named stands at its beginning, 0."""

    def ends(self, tx: ControlTx, tenant: str) -> dict[int, int]:
        """The last position of every chain of the tenant."""
        ...

    def begins(self, tx: ControlTx, tenant: str) -> dict[int, int]:
        """The position before the first row that is still kept, where rows were removed."""
        ...

    def rows(
        self, tx: ControlTx, tenant: str, after: Mapping[int, int], ends: Mapping[int, int], limit: int
    ) -> tuple[list[Row], dict[int, int]]:
        """The next rows, each after all that it followed from, and the positions that were read up to."""
        ...

    def position(self, row: Row) -> tuple[int, int]:
        """Where a row lies: its shard and its place there."""
        ...

    def at(self, tx: ControlTx, tenant: str, shard: int, place: int) -> int | None:
        """When the row at a position was written (milliseconds of ledger time); None where there is none."""
        ...

    def span(self, shard: int, after: int, upto: int) -> str:
        """The condition for the rows of one chain between two positions, beside that of the tenant."""
        ...


def chains_of(ledger: ControlLedger) -> Chains:
    """The way that fits the ledger."""
    return OneChain() if ledger.one_writer else ManyChains()


class OneChain:
    """One writer: the numbers of the rows are in the order of their commits."""

    def ends(self, tx: ControlTx, tenant: str) -> dict[int, int]:
        return {0: int(tx.execute("SELECT coalesce(max(seq), 0) FROM job_history")[0][0])}

    def begins(self, tx: ControlTx, tenant: str) -> dict[int, int]:
        return {0: int(tx.execute("SELECT coalesce(min(seq), 1) - 1 FROM job_history")[0][0])}

    def rows(
        self, tx: ControlTx, tenant: str, after: Mapping[int, int], ends: Mapping[int, int], limit: int
    ) -> tuple[list[Row], dict[int, int]]:
        start, end = after.get(0, 0), ends[0]
        upto = min(end, start + max(WINDOW, limit))
        values = {"tenant": tenant, "limit": limit}
        condition = f"tenant = :tenant AND {self.span(0, start, upto)}"
        found = tx.execute(f"SELECT {COLUMNS} FROM job_history WHERE {condition} ORDER BY seq LIMIT :limit", values)
        return found, {0: found[-1][_SEQ] if len(found) == limit else upto}

    def position(self, row: Row) -> tuple[int, int]:
        return 0, int(row[_SEQ])

    def at(self, tx: ControlTx, tenant: str, shard: int, place: int) -> int | None:
        return _moment(tx.execute("SELECT at FROM job_history WHERE seq = :place", {"place": place}))

    def span(self, shard: int, after: int, upto: int) -> str:
        return f"seq > {after:d} AND seq <= {upto:d}"


class ManyChains:
    """Writers beside each other: each chain is in the order of its commits.

    Of two rows of which one followed from the other, the later has the higher number and is never seen without the
    earlier; so the rows of one look, taken by their numbers, are in an order that makes sense.
    """

    def ends(self, tx: ControlTx, tenant: str) -> dict[int, int]:
        rows = tx.execute("SELECT shard, link FROM history_heads WHERE tenant = :tenant", {"tenant": tenant})
        return {int(shard): int(link) for shard, link in rows}

    def begins(self, tx: ControlTx, tenant: str) -> dict[int, int]:
        rows = tx.execute(
            "SELECT shard, max(link) FROM history_anchors WHERE tenant = :tenant GROUP BY shard", {"tenant": tenant}
        )
        return {int(shard): int(link) for shard, link in rows}

    def rows(
        self, tx: ControlTx, tenant: str, after: Mapping[int, int], ends: Mapping[int, int], limit: int
    ) -> tuple[list[Row], dict[int, int]]:
        places = dict(after)
        moved = [shard for shard, end in sorted(ends.items()) if end > after.get(shard, 0)]
        if not moved:
            return [], places
        parts = [
            f"SELECT * FROM (SELECT {COLUMNS} FROM job_history WHERE tenant = :tenant"
            f" AND {self.span(shard, after.get(shard, 0), ends[shard])} ORDER BY link LIMIT :limit) AS c{number}"
            for number, shard in enumerate(moved)
        ]
        by_shard: dict[int, list[Row]] = {shard: [] for shard in moved}
        for row in tx.execute(" UNION ALL ".join(parts), {"tenant": tenant, "limit": limit}):
            by_shard[row[_SHARD]].append(row)
        found = _by_number(list(by_shard.values()))[:limit]
        for row in found:
            places[row[_SHARD]] = row[_LINK]
        return found, places

    def position(self, row: Row) -> tuple[int, int]:
        return int(row[_SHARD]), int(row[_LINK])

    def at(self, tx: ControlTx, tenant: str, shard: int, place: int) -> int | None:
        values = {"tenant": tenant, "shard": shard, "place": place}
        return _moment(
            tx.execute("SELECT at FROM job_history WHERE tenant = :tenant AND shard = :shard AND link = :place", values)
        )

    def span(self, shard: int, after: int, upto: int) -> str:
        return f"shard = {shard:d} AND link > {after:d} AND link <= {upto:d}"


def _moment(rows: Sequence[Row]) -> int | None:
    return int(rows[0][0]) if rows else None


def _by_number(chains: Sequence[list[Row]]) -> list[Row]:
    """The rows of all chains by their numbers; those of one chain stay in the order of its links."""
    return list(merge(*(sorted(chain, key=lambda row: row[_LINK]) for chain in chains), key=lambda row: row[_SEQ]))
