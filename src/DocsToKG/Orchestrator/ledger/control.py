"""What governs the queue, kept beside the jobs: one way to read and change it, whatever database holds the ledger.

Knows the portable kind of SQL that both databases speak, and the number by which processes notice that rules have
changed. Does not know the rules. Promises: a change is one transaction, undone as a whole when it is refused; its audit
rows are links of the hash-chained history; a ledger on which no rule was ever written has no number and pays nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger.checks import storable

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.transaction import Transaction

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
VERSION = "control_version"
EVERY = "*"
# The scope by whose right whatever is asked for in this context is done; its rows of the history say so.
SCOPE: ContextVar[str | None] = ContextVar("docstokg_scope", default=None)


class Note(NamedTuple):
    """An audit row of the history: what happened that changes no job's state."""

    tenant: str
    event: str
    actor: str
    reason: str | None = None
    ticket: str | None = None
    detail: Mapping[str, Any] | None = None
    job_id: int | None = None


class ControlTx:
    """One open transaction: portable SQL with `:name` values and plain names of tables, and audit rows.

    A SELECT that ends in `/* lock */` locks its rows where writers run beside each other. Audit rows wait until it is
    known that the change stands.
    """

    def __init__(self, now_ms: int, ask: Callable[[str, Mapping[str, Any] | None], Rows]) -> None:
        self.now_ms = now_ms  # ledger time
        self.notes: list[Note] = []
        self.moved = False
        self._ask = ask

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Rows:
        asked = {name: storable(value) if isinstance(value, str) else value for name, value in (values or {}).items()}
        return [tuple(map(_plain, row)) for row in self._ask(statement, asked)]

    def note(
        self,
        tenant: str,
        *,
        event: str,
        actor: str,
        reason: str | None = None,
        ticket: str | None = None,
        detail: Mapping[str, Any] | None = None,
        job_id: int | None = None,
    ) -> None:
        """Add an audit row to the history."""
        self.notes.append(Note(tenant, event, actor, reason, ticket, detail, job_id))

    def rules_changed(self) -> None:
        """Say that leasing has to look at the rules anew, everywhere, from its next lease on."""
        if not self.moved:
            bump(self)
        self.moved = True


class ControlLedger(Protocol):
    """The part of a ledger that services of the control plane stand on."""

    @property
    def dialect(self) -> str:
        """Which SQL it speaks, as the folders of `sql/` are called."""
        ...

    @property
    def one_writer(self) -> bool:
        """Whether writers take turns, so that the rows of the history are in the order of their commits."""
        ...

    def write(self, make: Callable[[ControlTx], T]) -> T:
        """Run `make` in one durable transaction. It may run again when nothing of it was committed."""
        ...

    def read(self, make: Callable[[ControlTx], T]) -> T:
        """Run `make`, which only reads, on one snapshot."""
        ...


def bump(tx: ControlTx) -> None:
    """The next number of the rules. What lanes wait for is forgotten: the next lease finds it out again."""
    tx.execute(
        "INSERT INTO settings (name, value, updated_at) VALUES (:name, '1', :now) ON CONFLICT (name) DO UPDATE SET"
        " value = CAST(CAST(settings.value AS BIGINT) + 1 AS TEXT), updated_at = excluded.updated_at",
        {"name": VERSION, "now": tx.now_ms},
    )
    tx.execute("UPDATE lanes SET blocked_until = NULL, blocked_by = NULL WHERE blocked_by IS NOT NULL")


def version_of(tx: ControlTx) -> int:
    """The number of the rules; 0 where none was ever written."""
    found = tx.execute("SELECT value FROM settings WHERE name = :name", {"name": VERSION})
    return int(found[0][0]) if found else 0


def make_change(tx: Transaction, make: Callable[[ControlTx], T]) -> T:
    """Run a change inside a transaction; a refusal undoes it and leaves its neighbours alone."""
    control = ControlTx(tx.now_ms, tx.execute)
    tx.execute("SAVEPOINT control")
    try:
        answer = make(control)
    except LedgerError:
        tx.execute("ROLLBACK TO SAVEPOINT control")
        raise
    tx.execute("RELEASE SAVEPOINT control")
    settle(tx, control)
    return answer


def in_scope(make: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """`make`, which another thread may run, by right of the scope that holds here and now."""
    scope = SCOPE.get()
    if scope is None:
        return make

    def made(tx: Transaction) -> T:
        tx.scope = scope
        try:
            return make(tx)
        finally:
            tx.scope = None

    return made


def by_scope(detail: Mapping[str, Any] | None, scope: str | None) -> str | None:
    """The detail of a row as it is stored, with the scope where there is one."""
    told = dict(detail or {}) if scope is None else {**(detail or {}), "scope": scope}
    return json.dumps(told, sort_keys=True) if told or detail is not None else None


def settle(tx: Transaction, control: ControlTx) -> None:
    """Write what goes along with a change that stands, and wake those who wait for work."""
    for note in control.notes:
        tx.note(note)
    if control.moved:
        tx.lanes.add("")


def _plain(value: Any) -> Any:
    """PostgreSQL sums whole numbers into decimals."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
