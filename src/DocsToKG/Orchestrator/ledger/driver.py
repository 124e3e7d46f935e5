"""What a database must be able to do to hold the ledger. Behaviour is written once, above; here is what may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from DocsToKG.Orchestrator.ledger.base import LeasedJob
from DocsToKG.Orchestrator.ledger.complete import Answer, Order
from DocsToKG.Orchestrator.ledger.group_commit import Change
from DocsToKG.Orchestrator.ledger.leasing import Chooser, LeaseRequest
from DocsToKG.Orchestrator.ledger.reads import Readable
from DocsToKG.Orchestrator.ledger.transaction import Transaction

T = TypeVar("T")


@dataclass(slots=True)
class Write(Change):
    """Orders of a worker, a request for leases, both at once, or anything else.

    A `single` order has an answer in place of a list. A durable write survives power loss.
    """

    orders: Sequence[Order] | None = None
    request: LeaseRequest | None = None
    make: Callable[[Transaction], Any] | None = None
    single: bool = False
    durable: bool = False


class Done(NamedTuple):
    """An answer for each order and each request, the job types that have work again, and whether others wait."""

    ended: Sequence[Answer]
    leased: Sequence[list[LeasedJob]]
    lanes: set[str]
    unsettled: bool


class Driver(Readable, Protocol):
    """A database. Reading is safe to share between threads; writing is for one thread at a time."""

    name: str  # where it is, without what is secret
    dialect: str  # the folder of its statements in `sql/`
    one_writer: bool  # whether writers take turns, so that the rows of the history are in the order of their commits
    direct: bool  # whether one who waits may write by itself while nobody else does
    chooser: Chooser

    def begin(self) -> None:
        """Whatever must be had before the first write. A `LedgerError` refuses every change."""
        ...

    def end(self) -> None:
        """Nothing more will be written. Safe to call twice."""
        ...

    def transaction(self, *, durable: bool = True, follows: bool = False) -> AbstractContextManager[Transaction]:
        """Commits at the end, with the history and the counts, and says in `unsettled` whether jobs wait to be moved
        on. One that `follows` moves them on; no two of these run at once."""
        ...

    def with_patience(self, deed: Callable[[], T], *, undone: Callable[[], None]) -> T:
        """Run a transaction, again where nothing of it was committed and another try may do. `undone` is told however
        it failed: what was learned in a transaction that came to nothing is not so."""
        ...

    def work(self, batch: Sequence[Write], free_rules: int | None) -> Done | None:
        """Ends and leases by one call of the database; None where they need more. `free_rules` is the number of rules
        that are known to limit nothing."""
        ...

    def committed(self, lanes: set[str]) -> None:
        """Jobs of these types became due in this process."""
        ...

    def maintain(self) -> None:
        """After a commit, now and then: what someone must do, whoever it is."""
        ...

    def is_away(self, error: Exception) -> bool:
        """Whether the database cannot be had, so that every change would fail alike."""
        ...

    def translated(self, error: Exception) -> Exception:
        """The database's error in our words."""
        ...

    def close(self) -> None: ...
