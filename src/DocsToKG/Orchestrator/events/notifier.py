"""Delivers events from the outbox to their targets: claim, send, settle.

Of many instances one is the leader and delivers; another takes over when it dies. Each target has a thread, so that a
slow one holds up no other. Promises: every committed event is sent at least once, always under the same id; events
of one job are sent in their order, one at a time; a target that fails is asked less and less often, and an event that
it refuses too often is dead, which stops nothing behind it; while there is no good key to sign with, all wait.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import NamedTuple

from DocsToKG.Orchestrator.control.leader_election import Leader
from DocsToKG.Orchestrator.errors import LedgerError, SigningError
from DocsToKG.Orchestrator.events.envelope import envelopes
from DocsToKG.Orchestrator.events.outbox import Failed, Outbox, Settled, Subscription, Waiting
from DocsToKG.Orchestrator.events.targets import Delivery, DeliveryFailed, Target, delivery_of
from DocsToKG.Orchestrator.ledger.control import ControlLedger
from DocsToKG.Orchestrator.signing.keys import Signer

_log = logging.getLogger("DocsToKG.Orchestrator.events")
_NAME = "events"
_LEAD_S = 15.0
_HOLD_S = 120.0
BATCH = 100


class RetryPolicy(NamedTuple):
    """Waits after failures: from `base_s`, doubled each time, up to `cap_s`, a little less at random."""

    base_s: float = 1.0
    cap_s: float = 3600.0

    def wait_s(self, failures: int) -> float:
        return min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 40)) * random.uniform(0.75, 1.0)


@dataclass(slots=True)
class _RoundLimit:
    """When a round begins no more deliveries: stopped, out of time, no longer the leader, or the target has failed."""

    stop: threading.Event
    until: float
    leads: Callable[[], bool]
    failed: bool = False

    def is_reached(self) -> bool:
        return self.failed or self.stop.is_set() or time.monotonic() >= self.until or not self.leads()


class Notifier:
    """Delivers in threads while `running`, or once by `run_once`."""

    def __init__(
        self,
        ledger: ControlLedger,
        subscriptions: Sequence[Subscription],
        targets: Sequence[Target],
        *,
        signers: Sequence[Signer] | Callable[[], Sequence[Signer]],
        retry_policy: RetryPolicy | None = None,
        poll_s: float = 0.5,
        lead_s: float = _LEAD_S,
        holder: str | None = None,
    ) -> None:
        self._holder = holder or f"notifier_{token_hex(8)}"
        self.outbox = Outbox(ledger, holder=self._holder)
        self._ledger, self._subscriptions, self.targets = ledger, subscriptions, targets
        self.signers = signers if callable(signers) else lambda: signers
        self._unsigned: str | None = None
        self._retry_policy = retry_policy or RetryPolicy()
        self._poll_s = poll_s
        self._leader = Leader(ledger, _NAME, holder=self._holder, ttl_s=lead_s)
        self._lead_s = lead_s
        self._leads_until = 0.0
        self._stop = threading.Event()

    @property
    def leads(self) -> bool:
        """Whether this instance is the leader, by a clock that is behind the ledger's rather than ahead of it."""
        return time.monotonic() < self._leads_until

    def register(self) -> None:
        self.outbox.register(self._subscriptions)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Deliver in threads until the block ends; deliveries under way then are waited for."""
        self.register()
        threads = [threading.Thread(target=self._keep_lead, name="events-leader", daemon=True)]
        for target in self.targets:
            threads.append(
                threading.Thread(target=self._deliver_loop, args=(target,), name=f"events-{target.name}", daemon=True)
            )
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in reversed(threads):
                thread.join()
            self.close()

    def hold(self) -> bool:
        """Take or keep the lead; whether this instance is the leader."""
        asked = time.monotonic()
        self._leads_until = asked + self._lead_s * 0.9 if self._leader.hold() else 0.0
        return self.leads

    def deliver(self, target: Target) -> int:
        """One round for one target; how many events it took."""
        if not self.outbox.due(target.name):
            return 0
        signers = self._signers_now()
        if not signers:
            return 0
        claimed = self.outbox.claim(target.name, limit=BATCH, hold_s=_HOLD_S)
        if not claimed:
            return 0
        made = envelopes(self._ledger, [waiting.row for waiting in claimed])
        deliveries = {
            waiting.outbox_id: delivery_of(event, signers) for waiting, event in zip(claimed, made, strict=True)
        }
        end = self._send_all(target, claimed, deliveries)
        self.outbox.settle(target.name, end, partial(self._rest_s, end))
        return len(end.sent)

    def run_once(self) -> int:
        """Send what is due, if this instance is the leader; returns how many events were sent."""
        self.register()
        sent = 0
        for target in self.targets:
            while self.hold() and (done := self.deliver(target)):
                sent += done
        self._leader.resign()
        self.close()
        return sent

    def close(self) -> None:
        for target in self.targets:
            target.close()

    def _signers_now(self) -> Sequence[Signer]:
        """The keys to sign with. That there is none is logged once, until there is one again."""
        try:
            signers = self.signers()
        except SigningError as error:
            if self._unsigned != str(error):
                _log.warning("events wait, as they are signed: %s", error, extra={"incident": True})
            self._unsigned = str(error)
            return ()
        self._unsigned = None
        return signers

    def _send_all(self, target: Target, claimed: Sequence[Waiting], deliveries: dict[int, Delivery]) -> Settled:
        """In order per key, several keys at once. After a failure none is begun: the target is tried again later."""
        queues: defaultdict[tuple[str, int], list[Waiting]] = defaultdict(list)
        for waiting in claimed:
            queues[waiting.order_key].append(waiting)
        limit = _RoundLimit(self._stop, time.monotonic() + _HOLD_S / 2, lambda: self.leads)
        whole = Settled([], [], [])
        with ThreadPoolExecutor(min(target.at_once, len(queues)), thread_name_prefix=f"send-{target.name}") as pool:
            works = [
                pool.submit(self._send_in_order, target, order_key, deliveries, limit) for order_key in queues.values()
            ]
            for work in works:
                sent, failed, unsent = work.result()
                whole = Settled([*whole.sent, *sent], [*whole.failed, *failed], [*whole.unsent, *unsent])
        return whole

    def _send_in_order(
        self, target: Target, order_key: Sequence[Waiting], deliveries: dict[int, Delivery], limit: _RoundLimit
    ) -> Settled:
        sent: list[int] = []
        for place, waiting in enumerate(order_key):
            rest = [later.outbox_id for later in order_key[place:]]
            if limit.is_reached():
                return Settled(sent, [], rest)
            try:
                target.send(deliveries[waiting.outbox_id])
            except Exception as error:
                limit.failed = True
                # An unexpected error counts as refused, too; else this event would hold up its job for ever.
                known = error if isinstance(error, DeliveryFailed) else DeliveryFailed(type(error).__name__)
                return Settled(sent, [self._failure(target, waiting, known)], rest[1:])
            sent.append(waiting.outbox_id)
        return Settled(sent, [], [])

    def _failure(self, target: Target, waiting: Waiting, error: DeliveryFailed) -> Failed:
        retry_after_s = min(error.retry_after_s or 0.0, self._retry_policy.cap_s)
        if waiting.tries < target.max_tries:
            retry_in_s = max(retry_after_s, self._retry_policy.wait_s(waiting.tries))
            return Failed(waiting.outbox_id, str(error), retry_in_s, retry_after_s)
        tenant = waiting.row.tenant
        _log.warning(
            "events to %s: %s of tenant %s is dead after %d tries", target.name, waiting.event_type, tenant,
            waiting.tries, extra={"incident": True, "tenant": tenant},
        )  # fmt: skip
        return Failed(waiting.outbox_id, str(error), None, retry_after_s)

    def _rest_s(self, end: Settled, failures: int) -> float:
        """The backoff of the target: its own Retry-After counts."""
        return max([self._retry_policy.wait_s(failures), *(failure.retry_after_s for failure in end.failed)])

    def _keep_lead(self) -> None:
        while True:
            try:
                self.hold()
            except Exception as error:  # without this thread nothing would be delivered
                _log.warning("events: %s", type(error).__name__)
            if self._stop.wait(self._lead_s / 3):
                break
        with contextlib.suppress(LedgerError):
            self._leader.resign()

    def _deliver_loop(self, target: Target) -> None:
        while not self._stop.is_set():
            done = 0
            try:
                done = self.deliver(target) if self.leads else 0
            except Exception as error:  # without its thread the target would get nothing more
                _log.warning("events to %s: %s", target.name, type(error).__name__)
            if not done:
                self._stop.wait(self._poll_s)
