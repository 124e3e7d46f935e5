"""Carries events from the outbox to their targets: claim, send, settle, again and again.

Knows who leads: of many instances one carries, and another takes over when it dies. Each target has a thread, so that
a slow one holds up no other. Promises: every committed event is sent at least once, always under the same id; events
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

from DocsToKG.Orchestrator.control.leaders import Leader
from DocsToKG.Orchestrator.errors import LedgerError, SigningError
from DocsToKG.Orchestrator.events.envelope import envelopes
from DocsToKG.Orchestrator.events.outbox import Failed, Outbox, Settled, Waiting, Wish
from DocsToKG.Orchestrator.events.targets import DeliveryFailed, Parcel, Target, parcel_of
from DocsToKG.Orchestrator.ledger.control import ControlLedger
from DocsToKG.Orchestrator.signing.keys import Signer

_log = logging.getLogger("DocsToKG.Orchestrator.events")
_NAME = "events"
_LEAD_S = 15.0
_HOLD_S = 120.0
BATCH = 100


class Patience(NamedTuple):
    """Waits after failures: from `base_s`, doubled each time, up to `cap_s`, a little less at random."""

    base_s: float = 1.0
    cap_s: float = 3600.0

    def wait_s(self, failures: int) -> float:
        return min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 40)) * random.uniform(0.75, 1.0)


@dataclass(slots=True)
class _Enough:
    """When a round begins nothing more: told to stop, out of time, no longer the leader, or the target has failed."""

    stop: threading.Event
    until: float
    leads: Callable[[], bool]
    failed: bool = False

    def is_it(self) -> bool:
        return self.failed or self.stop.is_set() or time.monotonic() >= self.until or not self.leads()


class Notifier:
    """Held by `running` for as long as an instance serves, or driven by `deliver` alone."""

    def __init__(
        self,
        ledger: ControlLedger,
        wishes: Sequence[Wish],
        targets: Sequence[Target],
        *,
        signers: Sequence[Signer] | Callable[[], Sequence[Signer]],
        patience: Patience | None = None,
        poll_s: float = 0.5,
        lead_s: float = _LEAD_S,
        holder: str | None = None,
    ) -> None:
        self._holder = holder or f"notifier_{token_hex(8)}"
        self.outbox = Outbox(ledger, holder=self._holder)
        self._ledger, self._wishes, self.targets = ledger, wishes, targets
        self.signers = signers if callable(signers) else lambda: signers
        self._unsigned: str | None = None
        self._patience = patience or Patience()
        self._poll_s = poll_s
        self._leader = Leader(ledger, _NAME, holder=self._holder, ttl_s=lead_s)
        self._lead_s = lead_s
        self._leads_until = 0.0
        self._stop = threading.Event()

    @property
    def leads(self) -> bool:
        """Whether it is ours to send, by a clock that is behind the ledger's rather than ahead of it."""
        return time.monotonic() < self._leads_until

    def register(self) -> None:
        self.outbox.register(self._wishes)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """In threads of its own, until the block ends; what is on its way then is waited for."""
        self.register()
        threads = [threading.Thread(target=self._lead, name="events-leader", daemon=True)]
        for target in self.targets:
            threads.append(
                threading.Thread(target=self._carry, args=(target,), name=f"events-{target.name}", daemon=True)
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
        """Take or keep the lead; whether it is ours."""
        asked = time.monotonic()
        self._leads_until = asked + self._lead_s * 0.9 if self._leader.hold() else 0.0
        return self.leads

    def deliver(self, target: Target) -> int:
        """One round for one target; how many events it took."""
        if not self.outbox.due(target.name):
            return 0
        signers = self._able()
        if not signers:
            return 0
        claimed = self.outbox.claim(target.name, limit=BATCH, hold_s=_HOLD_S)
        if not claimed:
            return 0
        made = envelopes(self._ledger, [waiting.row for waiting in claimed])
        parcels = {waiting.outbox_id: parcel_of(event, signers) for waiting, event in zip(claimed, made, strict=True)}
        end = self._send_all(target, claimed, parcels)
        self.outbox.settle(target.name, end, partial(self._rest_s, end))
        return len(end.sent)

    def run_once(self) -> int:
        """Send what is due, if it is ours to do; how many events were taken."""
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

    def _able(self) -> Sequence[Signer]:
        """The keys to sign with. That there is none is said once, until there is one again."""
        try:
            signers = self.signers()
        except SigningError as error:
            if self._unsigned != str(error):
                _log.warning("events wait, as they are signed: %s", error, extra={"incident": True})
            self._unsigned = str(error)
            return ()
        self._unsigned = None
        return signers

    def _send_all(self, target: Target, claimed: Sequence[Waiting], parcels: dict[int, Parcel]) -> Settled:
        """Lane by lane, several at once. After a failure none is begun: the target is asked again, but later."""
        lanes: defaultdict[tuple[str, int], list[Waiting]] = defaultdict(list)
        for waiting in claimed:
            lanes[waiting.lane].append(waiting)
        enough = _Enough(self._stop, time.monotonic() + _HOLD_S / 2, lambda: self.leads)
        whole = Settled([], [], [])
        with ThreadPoolExecutor(min(target.at_once, len(lanes)), thread_name_prefix=f"send-{target.name}") as pool:
            works = [pool.submit(self._send_lane, target, lane, parcels, enough) for lane in lanes.values()]
            for work in works:
                sent, failed, unsent = work.result()
                whole = Settled([*whole.sent, *sent], [*whole.failed, *failed], [*whole.unsent, *unsent])
        return whole

    def _send_lane(
        self, target: Target, lane: Sequence[Waiting], parcels: dict[int, Parcel], enough: _Enough
    ) -> Settled:
        sent: list[int] = []
        for place, waiting in enumerate(lane):
            rest = [later.outbox_id for later in lane[place:]]
            if enough.is_it():
                return Settled(sent, [], rest)
            try:
                target.send(parcels[waiting.outbox_id])
            except Exception as error:
                enough.failed = True
                # What nobody foresaw counts as refused, too; else this event would hold up its job for ever.
                known = error if isinstance(error, DeliveryFailed) else DeliveryFailed(type(error).__name__)
                return Settled(sent, [self._failure(target, waiting, known)], rest[1:])
            sent.append(waiting.outbox_id)
        return Settled(sent, [], [])

    def _failure(self, target: Target, waiting: Waiting, error: DeliveryFailed) -> Failed:
        wish_s = min(error.retry_after_s or 0.0, self._patience.cap_s)
        if waiting.tries < target.max_tries:
            again_s = max(wish_s, self._patience.wait_s(waiting.tries))
            return Failed(waiting.outbox_id, str(error), again_s, wish_s)
        tenant = waiting.row.tenant
        _log.warning(
            "events to %s: %s of tenant %s is dead after %d tries", target.name, waiting.event_type, tenant,
            waiting.tries, extra={"incident": True, "tenant": tenant},
        )  # fmt: skip
        return Failed(waiting.outbox_id, str(error), None, wish_s)

    def _rest_s(self, end: Settled, failures: int) -> float:
        """How long the target is left alone: it may have said so itself."""
        return max([self._patience.wait_s(failures), *(failure.wish_s for failure in end.failed)])

    def _lead(self) -> None:
        while True:
            try:
                self.hold()
            except Exception as error:  # whatever it is, nobody would carry anything without this thread
                _log.warning("events: %s", type(error).__name__)
            if self._stop.wait(self._lead_s / 3):
                break
        with contextlib.suppress(LedgerError):
            self._leader.resign()

    def _carry(self, target: Target) -> None:
        while not self._stop.is_set():
            done = 0
            try:
                done = self.deliver(target) if self.leads else 0
            except Exception as error:  # whatever it is, the target must not be without its thread from now on
                _log.warning("events to %s: %s", target.name, type(error).__name__)
            if not done:
                self._stop.wait(self._poll_s)
