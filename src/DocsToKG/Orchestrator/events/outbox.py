"""The outbox: subscriptions of targets, the events that they have not got yet, and those that they refuse.

Knows the tables and who holds a claim. Does not know how an event is sent. Promises: an event is in the outbox if, and
only if, the transaction that made it was committed; the events of one job are handed out in their order, and none
before the one ahead of it is delivered or dead; what was claimed by someone who is gone is handed out again. While
there is no target, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.errors import NotFound
from DocsToKG.Orchestrator.ledger import sql_files
from DocsToKG.Orchestrator.ledger.base import HistoryRow
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlLedger, ControlTx

_ROW = (
    "tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket, detail_json,"
    " hash"
)
_COLUMNS = f"id, target, event_type, tries, next_at, dead_at, last_error, {_ROW}"
_FREE = "(next_at <= :now OR (claimed_by IS NOT NULL AND claimed_by <> :holder))"
_MAX_ERROR = 500
_ASKED_AT_ONCE = 500
COUNTED = 1_000_000  # beyond this, how many wait is not counted: it is many


@dataclass(frozen=True, slots=True)
class Subscription:
    """The events that a target gets: of one tenant or of all, of some types or of all."""

    name: str
    kind: str
    tenant: str = EVERY
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event in the outbox. Times are milliseconds of ledger time."""

    outbox_id: int
    target: str
    event_type: str
    tries: int
    next_at: int
    dead_at: int | None
    last_error: str | None
    row: HistoryRow

    @property
    def order_key(self) -> tuple[str, int]:
        """Events with the same key keep their order: those of a job, and those of a tenant that are of no job."""
        return self.row.tenant, self.row.job_id or 0


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """What a target has got and what waits for it."""

    name: str
    kind: str
    tenant: str
    types: str | None
    waiting: int
    oldest_at: int | None
    dead: int
    sent: int
    failures: int
    next_at: int
    last_sent_at: int | None
    last_error: str | None


class Backlog(NamedTuple):
    """The backlog of a target: events that wait and dead ones, and the age of the first that waits."""

    target: str
    waiting: int
    dead: int
    oldest_s: float


class Failed(NamedTuple):
    """A delivery that failed, and when to try it again (None: never); `retry_after_s` is what the target asked for."""

    outbox_id: int
    error: str
    retry_in_s: float | None
    retry_after_s: float = 0.0


class Settled(NamedTuple):
    """What became of a claim: delivered, refused, or not tried because one ahead of it failed."""

    sent: Sequence[int]
    failed: Sequence[Failed]
    unsent: Sequence[int]


class Outbox:
    """The outbox of one ledger. `holder` is whose claims these are. Safe to share between threads."""

    def __init__(self, ledger: ControlLedger, *, holder: str = "outbox") -> None:
        self._ledger = ledger
        self._holder = holder
        self._on, self._off = _switch(ledger)

    def register(self, subscriptions: Sequence[Subscription]) -> None:
        """Write events for these targets from now on; a known target keeps what waits for it."""

        def make(tx: ControlTx) -> None:
            for subscription in subscriptions:
                types = f",{','.join(subscription.types)}," if subscription.types else None
                values = {
                    "name": plain_name("target", subscription.name),
                    "kind": subscription.kind,
                    "tenant": subscription.tenant,
                }
                tx.execute(
                    "INSERT INTO event_targets (name, kind, tenant, types, registered_at)"
                    " VALUES (:name, :kind, :tenant, :types, :now) ON CONFLICT (name) DO UPDATE SET"
                    " kind = excluded.kind, tenant = excluded.tenant, types = excluded.types",
                    {**values, "types": types, "now": tx.now_ms},
                )
            if subscriptions:
                tx.execute(self._on)

        self._ledger.write(make)

    def forget(self, name: str) -> int:
        """Write no more events for a target and drop what waits for it; returns how many events were dropped."""

        def make(tx: ControlTx) -> int:
            values = {"name": name}
            _refuse_unknown(tx, name)
            tx.execute("DELETE FROM event_targets WHERE name = :name", values)
            if not tx.execute("SELECT 1 FROM event_targets LIMIT 1"):
                tx.execute(self._off)
            return len(tx.execute("DELETE FROM events_outbox WHERE target = :name RETURNING id", values))

        return self._ledger.write(make)

    def due(self, target: str) -> bool:
        """Whether a claim would find something, without writing."""
        statement = (
            "SELECT 1 FROM event_targets AS t WHERE t.name = :target AND t.next_at <= :now AND EXISTS ("
            f"SELECT 1 FROM events_outbox WHERE target = :target AND dead_at IS NULL AND {_FREE})"
        )
        return bool(self._ledger.read(lambda tx: tx.execute(statement, self._values(tx, target))))

    def claim(self, target: str, *, limit: int, hold_s: float) -> list[Waiting]:
        """The next events of a target, in order, claimed for `hold_s`; none while the target is in backoff.

        After a failure only one is handed out, to see whether the target is back.
        """

        def make(tx: ControlTx) -> list[Waiting]:
            values = {**self._values(tx, target), "until": tx.now_ms + int(hold_s * 1000)}
            rest = tx.execute("SELECT failures FROM event_targets WHERE name = :target AND next_at <= :now", values)
            if not rest:
                return []
            values["limit"] = 1 if rest[0][0] else limit
            blocked = (
                "SELECT 1 FROM events_outbox AS b WHERE b.target = o.target AND b.tenant = o.tenant AND"
                " b.lane = o.lane AND b.dead_at IS NULL AND b.tries > 0 AND b.id < o.id AND b.next_at > :now AND"
                " (b.claimed_by IS NULL OR b.claimed_by = :holder)"
            )
            chosen = (
                f"SELECT o.id FROM events_outbox AS o WHERE o.target = :target AND o.dead_at IS NULL AND {_FREE}"
                f" AND NOT EXISTS ({blocked}) ORDER BY o.id LIMIT :limit"
            )
            rows = tx.execute(
                "UPDATE events_outbox SET tries = tries + 1, claimed_by = :holder, next_at = :until"
                f" WHERE id IN ({chosen}) RETURNING {_COLUMNS}",
                values,
            )
            return sorted(map(_waiting, rows), key=lambda waiting: waiting.outbox_id)

        return self._ledger.write(make)

    def settle(self, target: str, end: Settled, rest: Callable[[int], float]) -> None:
        """What became of a claim. `rest` is the backoff of the target after so many failures in a row."""

        def make(tx: ControlTx) -> None:
            values = self._values(tx, target)
            # Delivered is delivered, whoever has the claim by now; the rest is said only of claims that are ours.
            for names, ids in _parts(end.sent):
                tx.execute(f"DELETE FROM events_outbox WHERE id IN ({names})", ids)
            for names, ids in _parts(end.unsent):
                tx.execute(
                    "UPDATE events_outbox SET tries = tries - 1, claimed_by = NULL, next_at = 0"
                    f" WHERE id IN ({names}) AND claimed_by = :holder",
                    {**ids, **values},
                )
            for failure in end.failed:
                self._fail(tx, failure)
            if end.sent or end.failed:
                self._note(tx, values, end, rest)

        self._ledger.write(make)

    def _fail(self, tx: ControlTx, failure: Failed) -> None:
        again = failure.retry_in_s
        tx.execute(
            "UPDATE events_outbox SET claimed_by = NULL, last_error = :error, next_at = :next, dead_at = :dead"
            " WHERE id = :id AND claimed_by = :holder",
            {
                "id": failure.outbox_id,
                "holder": self._holder,
                "error": failure.error[:_MAX_ERROR],
                "next": tx.now_ms + int((again or 0) * 1000),
                "dead": tx.now_ms if again is None else None,
            },
        )

    def _note(self, tx: ControlTx, values: dict[str, Any], end: Settled, rest: Callable[[int], float]) -> None:
        """Update the counters of the target, and its backoff when it fails."""
        known = tx.execute("SELECT failures FROM event_targets WHERE name = :target", values)
        before = 0 if end.sent or not known else known[0][0]
        failures = before + 1 if end.failed else 0
        tx.execute(
            "UPDATE event_targets SET sent = sent + :sent, failures = :failures, next_at = :next, last_error = :error,"
            " last_sent_at = CASE WHEN :sent > 0 THEN :now ELSE last_sent_at END WHERE name = :target",
            {
                **values,
                "sent": len(end.sent),
                "failures": failures,
                "next": tx.now_ms + int(rest(failures) * 1000) if failures else 0,
                "error": end.failed[0].error[:_MAX_ERROR] if end.failed else None,
            },
        )

    def statuses(self) -> list[TargetStatus]:
        """Every target with what waits for it."""
        statement = (
            "SELECT t.name, t.kind, t.tenant, t.types,"
            " (SELECT count(*) FROM events_outbox AS o WHERE o.target = t.name AND o.dead_at IS NULL),"
            " (SELECT min(o.at) FROM events_outbox AS o WHERE o.target = t.name AND o.dead_at IS NULL),"
            " (SELECT count(*) FROM events_outbox AS o WHERE o.target = t.name AND o.dead_at IS NOT NULL),"
            " t.sent, t.failures, t.next_at, t.last_sent_at, t.last_error FROM event_targets AS t ORDER BY t.name"
        )
        rows = self._ledger.read(lambda tx: tx.execute(statement))
        return [TargetStatus(*row) for row in rows]

    def backlogs(self) -> list[Backlog]:
        """The backlog of every target, for metrics: counted up to a cap, and by index."""
        some = "SELECT 1 AS one FROM events_outbox AS o WHERE o.target = t.name AND o.dead_at"
        statement = (
            "SELECT t.name,"
            f" (SELECT count(*) FROM ({some} IS NULL LIMIT {COUNTED}) AS w),"
            f" (SELECT count(*) FROM ({some} IS NOT NULL LIMIT {COUNTED}) AS d),"
            " (SELECT o.at FROM events_outbox AS o WHERE o.target = t.name AND o.dead_at IS NULL ORDER BY o.id LIMIT 1)"
            " FROM event_targets AS t ORDER BY t.name"
        )

        def look(tx: ControlTx) -> list[Backlog]:
            return [
                Backlog(name, int(waiting), int(dead), 0.0 if at is None else max(0.0, (tx.now_ms - at) / 1000))
                for name, waiting, dead, at in tx.execute(statement)
            ]

        return self._ledger.read(look)

    def list(self, target: str | None = None, *, dead: bool = False, limit: int = 100, after: int = 0) -> list[Waiting]:
        """Events that wait, or dead ones, oldest first."""
        state = "IS NOT NULL" if dead else "IS NULL"
        only = "" if target is None else " AND target = :target"
        where = f"id > :after AND dead_at {state}{only}"
        statement = f"SELECT {_COLUMNS} FROM events_outbox WHERE {where} ORDER BY id LIMIT :limit"
        values = {"after": after, "limit": limit, "target": target}

        def look(tx: ControlTx) -> list[Waiting]:
            _refuse_unknown(tx, target)
            return [_waiting(row) for row in tx.execute(statement, values)]

        return self._ledger.read(look)

    def retry(self, target: str | None = None, ids: Iterable[int] = ()) -> int:
        """Queue dead events again, as if new, to be sent at once; returns how many."""
        chosen = list(ids)

        def make(tx: ControlTx) -> int:
            _refuse_unknown(tx, target)
            only = "" if target is None else " AND target = :target"
            start = "UPDATE events_outbox SET dead_at = NULL, tries = 0, next_at = 0 WHERE dead_at IS NOT NULL"
            values = {"target": target}
            if chosen:
                parts = [(f" AND id IN ({names})", {**values, **found}) for names, found in _parts(chosen)]
            else:
                parts = [("", values)]
            count = sum(len(tx.execute(f"{start}{only}{more} RETURNING id", found)) for more, found in parts)
            where = "" if target is None else " WHERE name = :target"
            tx.execute(f"UPDATE event_targets SET next_at = 0, failures = 0{where}", values)
            return count

        return self._ledger.write(make)

    def _values(self, tx: ControlTx, target: str) -> dict[str, Any]:
        return {"target": target, "now": tx.now_ms, "holder": self._holder}


def _refuse_unknown(tx: ControlTx, target: str | None) -> None:
    if target is not None and not tx.execute("SELECT 1 FROM event_targets WHERE name = :name", {"name": target}):
        raise NotFound(f"no target {target[:64]!r} on this ledger")


def _switch(ledger: ControlLedger) -> tuple[str, str]:
    """The statements that have the outbox filled from now on, and no more."""
    return sql_files.script(ledger.dialect, "outbox_on"), sql_files.script(ledger.dialect, "outbox_off")


def _parts(ids: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Numbers as names and values of a statement, not too many at once."""
    for start in range(0, len(ids), _ASKED_AT_ONCE):
        some = {f"i{place}": number for place, number in enumerate(ids[start : start + _ASKED_AT_ONCE])}
        yield ", ".join(f":{name}" for name in some), some


def _waiting(row: Sequence[Any]) -> Waiting:
    fields: list[Any] = [
        0,
        *row[7:-1],
        "",
        bytes(row[-1]).hex(),
    ]  # the number and the hash before it are not asked for
    fields[5] /= 1000
    outbox_id, target, event_type, tries, next_at, dead_at, last_error = row[:7]
    return Waiting(outbox_id, target, event_type, tries, next_at, dead_at, last_error, HistoryRow(*fields))
