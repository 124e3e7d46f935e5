"""One write transaction as the changes see it: statements, the time, and what must be written along.

Collects history rows and count deltas while the changes run. The driver writes them before the commit, so that a state
change, its history row and its count are one transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from DocsToKG.Orchestrator.jobs.states import TERMINAL, UNAVAILABLE
from DocsToKG.Orchestrator.ledger.chain import Entry, Links, Move, Own, Shared, link_hash
from DocsToKG.Orchestrator.ledger.checks import End
from DocsToKG.Orchestrator.ledger.control import Note, by_scope

Rows = list[tuple[Any, ...]]
Values = Mapping[str, Any]
Verdict = tuple[str, str, int, bool | None]  # tenant, job type, job id, whether it went well (None says nothing)
_ENDS = frozenset(state.value for state in TERMINAL)
_GOOD = {"done": True, "skipped": True, "error": False, "timed_out": False}
_JUDGED = frozenset({"finished", "failed", "released"})
_KIND = itemgetter(1, 2, 3, 4)  # of a move: tenant, job type, state before, state after


class Head:
    """The end of a chain of the history that nobody else writes to during this transaction."""

    __slots__ = ("at", "hash", "link", "moved", "shard")

    def __init__(self, shard: int, link: int, digest: bytes, at: int) -> None:
        self.shard = shard
        self.link = link
        self.hash = digest
        self.at = at  # time within a chain never steps back, whatever the order of its writers
        self.moved = False


class Session(Protocol):
    """A database within an open transaction. Lists among the values are bound as lists of the dialect."""

    def rows(self, query: str, values: Values | None = None) -> Rows:
        """Run a named query and give all its rows."""
        ...

    def select(self, query: str, wanted: str, values: Values) -> Rows:
        """Run a named query with a condition that `filters` has made."""
        ...

    def write_rows(self, query: str, rows: Sequence[Sequence[Any]], now_ms: int) -> Rows:
        """Run a named query for many rows at once; what it returns."""
        ...

    def write_jobs(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add new jobs, by their columns in the order of `enqueue`."""
        ...

    def new_ids(self, most: int) -> Iterable[int]:
        """Ids for up to so many new jobs."""
        ...

    def execute(self, statement: str, values: Values | None = None) -> Rows:
        """The rows of a portable statement of the control plane."""
        ...

    def head(self, tenant: str, now_ms: int) -> Head:
        """The end of a chain of this tenant."""
        ...


class Transaction:
    """Lives from BEGIN to COMMIT.

    `lanes` gathers the job types that may have work afterwards, and `turned` the jobs that ended or came back.
    `unsettled` says that jobs which depend on others are left for a transaction of their own. `control_version` is the
    number of the rules, 0 where there are none; only with rules are ends gathered as `verdicts`. `is_paused` says
    whether leasing is halted.
    """

    def __init__(
        self,
        session: Session,
        now_ms: int,
        *,
        heads: dict[str, Head] | None = None,
        control_version: int = 0,
        is_paused: bool = False,
        unsettled: bool = False,
    ) -> None:
        self.session = session
        self.now_ms = now_ms
        self.control_version = control_version
        self.is_paused = is_paused
        self.unsettled = unsettled
        self.verdicts: list[Verdict] = []
        self.lanes: set[str] = set()
        self.turned: list[int] = []
        self.scope: str | None = None  # by whose right this part of it is done
        self.heads = {} if heads is None else heads
        self.links: list[tuple[Shared, list[Own]]] = []
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def rows(self, query: str, values: Values | None = None) -> Rows:
        return self.session.rows(query, values)

    def row(self, query: str, values: Values | None = None) -> tuple[Any, ...] | None:
        found = self.session.rows(query, values)
        return found[0] if found else None

    def write_rows(self, query: str, rows: Sequence[Sequence[Any]]) -> Rows:
        """Run a named query for many rows at once; what it returns."""
        return self.session.write_rows(query, rows, self.now_ms) if rows else []

    def execute(self, statement: str, values: Values | None = None) -> Rows:
        return self.session.execute(statement, values)

    def moved(self, event: str, move: Move, *, ticket: str | None = None) -> None:
        """A job changed its state: count it and write it down."""
        self.moved_all(event, [move], ticket=ticket)

    def moved_all(
        self, event: str, moves: Sequence[Move], *, ticket: str | None = None, answered: Collection[int] = ()
    ) -> None:
        """Many jobs did the same. Every change of every job passes here: what neighbours share is done once."""
        for kind, group in groupby(moves, _KIND):
            alike = list(group)
            tenant, _, before, after = kind
            head = self._head(tenant)
            links = Links(tenant, head.shard, head.at, event, before, after, ticket, by_scope(None, self.scope))
            self._append(head, links.shared, links.make(head.link, head.hash, alike))
            self._count(kind, alike)
        if self.control_version:
            self.verdicts += judged(event, moves, answered)

    def taken_back(self, event: str, rows: Iterable[Sequence[Any]]) -> int:
        """Jobs that lost their lease: id, tenant, job type, state, fence, attempts, last error. How many there were."""
        moves: list[Move] = [
            (job_id, tenant, job_type, "in_progress", state, fence, attempts, "ledger", last_error)
            for job_id, tenant, job_type, state, fence, attempts, last_error in rows
        ]
        self.moved_all(event, moves)
        return len(moves)

    def _count(self, kind: tuple[str, str, str | None, str], moves: Sequence[Move]) -> None:
        """These jobs went from one state to another."""
        tenant, job_type, before, after = kind
        if before is not None:
            self._counts[tenant, job_type, before] -= len(moves)
        self._counts[tenant, job_type, after] += len(moves)
        if after == "queued":
            self.lanes.add(job_type)
        if after in _ENDS or before in _ENDS:
            self.turned += [move[0] for move in moves]

    def note(self, note: Note) -> None:
        """Add a link that tells of no change of state."""
        tenant, event, actor, reason, ticket, detail, job_id = note
        text, head = by_scope(detail, self.scope), self._head(tenant)
        shared = (tenant, head.shard, head.at, event, None, None, ticket, text)
        entry: Entry = (
            tenant, head.shard, head.link + 1, job_id, head.at, event, None, None, None, None, actor, reason, ticket,
            text,
        )  # fmt: skip
        digest = link_hash(entry, head.hash)
        self._append(head, shared, [(head.link + 1, job_id, None, None, actor, reason, head.hash, digest)])

    @property
    def counts(self) -> list[tuple[str, str, str, int]]:
        """By how much the number of jobs has changed, by tenant, job type and state."""
        return [(*key, change) for key, change in sorted(self._counts.items()) if change]

    @property
    def moved_heads(self) -> list[tuple[str, Head]]:
        return [(tenant, head) for tenant, head in self.heads.items() if head.moved]

    def _append(self, head: Head, shared: Shared, rows: list[Own]) -> None:
        """Add links to the end of their chain, to be written with those before them where they share as much."""
        head.link, head.hash, head.moved = rows[-1][0], rows[-1][-1], True
        if self.links and self.links[-1][0] == shared:
            self.links[-1][1].extend(rows)
        else:
            self.links.append((shared, rows))

    def _head(self, tenant: str) -> Head:
        """The last link of a chain of the tenant and its hash."""
        if tenant not in self.heads:
            self.heads[tenant] = self.session.head(tenant, self.now_ms)
        return self.heads[tenant]


def judged(event: str, moves: Iterable[Move], answered: Collection[int] = ()) -> list[Verdict]:
    """What an end says of its job type. `answered` are the jobs that failed with an answer: what they asked for is not
    to be had."""
    if event not in _JUDGED:
        return []
    return [
        (move[1], move[2], move[0], move[0] in answered or (event != "failed" and _GOOD.get(move[4]))) for move in moves
    ]


def answered(ends: Iterable[End]) -> set[int]:
    return {end.job_id for end in ends if end.outcome == UNAVAILABLE}
