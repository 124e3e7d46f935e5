"""Group commit of a ledger: what becomes one transaction, and what is done after it.

Promises those of `group_commit`, and: a change that is refused or breaks does not undo its neighbours; who is told that
something was committed is not told otherwise because of what follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger import control
from DocsToKG.Orchestrator.ledger.base import Callback, LeasedJob
from DocsToKG.Orchestrator.ledger.complete import Order, complete
from DocsToKG.Orchestrator.ledger.dependencies import follow
from DocsToKG.Orchestrator.ledger.driver import Driver, Write
from DocsToKG.Orchestrator.ledger.group_commit import GroupCommit, Refused, settle
from DocsToKG.Orchestrator.ledger.leasing import LeaseRequest, Leasing
from DocsToKG.Orchestrator.ledger.policy_leasing import Governor
from DocsToKG.Orchestrator.ledger.transaction import Transaction
from DocsToKG.Orchestrator.notifications.base import Signal

T = TypeVar("T")


class GroupWriter(GroupCommit[Write]):
    """Makes the changes of one process."""

    def __init__(
        self,
        driver: Driver,
        *,
        signal: Signal,
        governor: Governor,
        linger_s: float,
        lively_linger_s: float | None = None,
    ) -> None:
        super().__init__(driver.name, linger_s=linger_s, lively_linger_s=lively_linger_s, direct=driver.direct)
        self._driver = driver
        self._signal = signal
        self._leasing = Leasing(driver.chooser, governor)

    def submit(self, orders: Sequence[Order], *, patient: bool = True) -> Future[Any]:
        """Have orders written in the next transaction; a list with an answer for each."""
        return self._promised(Write(patient, orders=orders))

    def submit_one(self, order: Order) -> Future[Any]:
        """The same for one order, whose answer is no list."""
        return self._promised(Write(True, orders=(order,), single=True))

    def tell(self, order: Order, told: Callback) -> None:
        """The same for one who is only told."""
        self._put(Write(True, orders=(order,), single=True, future=None, told=told))

    def wait_for(self, order: Order) -> Any:
        """The same, and wait for the commit."""
        return self._wait(Write(False, orders=(order,), single=True))

    def lease(self, request: LeaseRequest) -> list[LeasedJob]:
        return list(self._wait(Write(False, request=request)))

    def complete_and_lease(
        self, orders: Sequence[Order], request: LeaseRequest | None
    ) -> tuple[list[Any], list[LeasedJob]]:
        """Both in the next transaction: the answers to the orders, and the jobs."""
        answers = self._wait(Write(False, orders=orders, request=request))
        return answers if request is not None else (answers, [])

    def call(self, make: Callable[[Transaction], T], *, durable: bool = False) -> T:
        """Have `make` run in the next transaction, and wait for the commit. It may run more than once."""
        answer: T = self._wait(Write(False, make=control.in_scope(make), durable=durable))
        return answer

    def suspect(self, request: LeaseRequest, make: Callable[[Transaction, LeaseRequest, Any], T]) -> T:
        """Have `make` lease by itself what no other lease gives."""
        return self.call(lambda tx: make(tx, request, self._driver.chooser))

    def _begin(self) -> None:
        self._driver.begin()

    def _end(self) -> None:
        self._driver.end()

    def _commit(self, batch: Sequence[Write]) -> None:
        try:
            answers, lanes = self._driver.with_patience(lambda: self._transact(batch), undone=self._leasing.reset)
        except Exception as error:
            # One change broke the transaction. Alone, each of the others still gets its own.
            if len(batch) > 1 and not self._driver.is_away(error) and not isinstance(error, LedgerError):
                for change in batch:
                    self._commit([change])
                return
            answers, lanes = [Refused(self._driver.translated(error))] * len(batch), set()
        self._driver.committed(lanes)
        for lane in sorted(lanes):
            self._signal.notify(lane)
        settle(batch, answers)
        self._driver.maintain()

    def _transact(self, batch: Sequence[Write]) -> tuple[list[Any], set[str]]:
        done = self._driver.work(batch, self._leasing.free_rules)
        if done is not None:
            answers, lanes, unsettled = _shared_out(batch, done.ended, done.leased, {}), done.lanes, done.unsettled
        else:
            with self._driver.transaction(durable=any(change.durable for change in batch)) as tx:
                answers = self._answers(tx, batch)
            lanes, unsettled = tx.lanes, tx.unsettled
        if unsettled:
            lanes |= self._follow()
        return answers, lanes

    def _answers(self, tx: Transaction, batch: Sequence[Write]) -> list[Any]:
        """What workers said comes first, so that a job given back may be leased in the same transaction."""
        ended = complete(tx, [order for change in batch for order in change.orders or ()])
        made = {place: _made(change.make, tx) for place, change in enumerate(batch) if change.make is not None}
        leased = self._leasing.lease(tx, [change.request for change in batch if change.request is not None])
        return _shared_out(batch, ended, leased, made)

    def _follow(self) -> set[str]:
        """Move on the jobs that waited; what is not done here is done by whoever writes next."""
        lanes: set[str] = set()
        try:
            with self._driver.transaction(follows=True) as tx:
                more = follow(tx)
            lanes = tx.lanes
        except Exception as error:  # what came before is committed, and must not be called refused
            if not isinstance(self._driver.translated(error), LedgerError):
                raise
            more = True
        if more:
            self._put_again(Write(True, make=lambda tx: None))
        return lanes


def _shared_out(
    batch: Sequence[Write], ended: Sequence[Any], leased: Sequence[Any], made: Mapping[int, Any]
) -> list[Any]:
    """To each change what is its own."""
    ends, leases = iter(ended), iter(leased)
    answers: list[Any] = []
    for place, change in enumerate(batch):
        told = None if change.orders is None else [next(ends) for _ in change.orders]
        jobs = None if change.request is None else next(leases)
        if change.single and told is not None:
            answers.append(Refused(told[0]) if isinstance(told[0], LedgerError) else told[0])
        elif told is not None:
            answers.append(told if jobs is None else (told, jobs))
        else:
            answers.append(made.get(place) if jobs is None else jobs)
    return answers


def _made(make: Callable[[Transaction], Any], tx: Transaction) -> Any:
    """The change's result. A refusal comes before any write, so the transaction goes on without it."""
    try:
        return make(tx)
    except LedgerError as error:
        return Refused(error)
