"""Circuit breakers of a tenant: check, record, force a state, configure.

Knows keys (`service:`, `host:`, `resolver:`, `jobtype:`); a name without one of these is a service. The rules are in
`jobs.breakers`, the rows in `ledger.breaker_rows`. Promises: however many instances check at once, no more tests pass
than the settings allow; forced states hold until they are changed, and are audited.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from secrets import token_hex
from typing import Annotated, Any, Unpack

from DocsToKG.core.breaker import BreakerSettings, BreakerState
from DocsToKG.Orchestrator.control.inputs import Decision, ReasonedDecision, audit_fields, optional_text, plain_name
from DocsToKG.Orchestrator.control.records import LedgerService
from DocsToKG.Orchestrator.errors import BadJob, NotFound
from DocsToKG.Orchestrator.jobs.breakers import CheckResult, StoredBreaker, default_settings
from DocsToKG.Orchestrator.ledger import breaker_rows as rows
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import JsonFormat, Timestamp, View

_WORDS = {BreakerState.CLOSED: "Closed", BreakerState.OPEN: "Open", BreakerState.HALF_OPEN: "HalfOpen"}
StateWord = Annotated[BreakerState, JsonFormat(_WORDS.__getitem__, type="string", enum=[*_WORDS.values()])]
KINDS = ("service:", "host:", "resolver:", "jobtype:")
_COLUMNS = "tenant, key, state, forced, open_until, state_json, settings_json, version, updated_at"
_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Thresholds(View):
    """When a breaker opens and for how long, see `BreakerSettings`."""

    failure_threshold: float
    window_s: float
    minimum_samples: int
    open_s: float
    longest_open_s: float
    half_open_test_count: int


@dataclass(frozen=True, slots=True)
class BreakerView(View):
    """A circuit breaker."""

    tenant: str
    key: str
    service_id: str
    state: StateWord
    forced: bool
    failure_rate: float
    open_until: Timestamp | None
    settings: Thresholds
    version: int
    updated_at: Timestamp


@dataclass(frozen=True, slots=True)
class TransitionView(View):
    """One change of a breaker's state."""

    at: Timestamp
    old_state: str
    new_state: str
    why: str
    actor: str
    reset_s: float | None


class BreakerService(LedgerService):
    """The breakers of one ledger."""

    def check(self, tenant: str, service_id: str) -> CheckResult:
        """May a request go out now? A yes in the half-open state takes one of the places for tests."""
        key = key_of(service_id)

        def read(tx: ControlTx) -> CheckResult | None:
            found = rows.read(tx, tenant, key)
            if found is None:
                return CheckResult(True, BreakerState.CLOSED, 0.0, 0.0)
            return found.look(tx.now_ms) if found.places(tx.now_ms) != 0 and not found.changes else None

        seen = self._ledger.read(read)
        if seen is not None and seen.state is BreakerState.CLOSED:
            return seen

        def take(tx: ControlTx) -> CheckResult:
            breaker = rows.locked(tx, tenant, key)
            answer = breaker.look(tx.now_ms)
            if answer.allowed:
                breaker.take([token_hex(8)], tx.now_ms)
            rows.write(tx, tenant, key, breaker)
            return answer

        return self._ledger.write(take)

    def record_success(self, tenant: str, service_id: str) -> BreakerView:
        return self._record(tenant, service_id, passed=1)

    def record_failure(
        self, tenant: str, service_id: str, reason: str | None = None, retry_after_s: float | None = None
    ) -> BreakerView:
        """It failed, and perhaps was told when to come back: the breaker will not close before that."""
        why = optional_text("reason", reason)
        return self._record(tenant, service_id, failed=1, retry_after_s=retry_after_s, why=why)

    def _record(
        self, tenant: str, service_id: str, *, passed: int = 0, failed: int = 0, retry_after_s: float | None = None,
        why: str | None = None,
    ) -> BreakerView:  # fmt: skip
        key = key_of(service_id)

        def write(tx: ControlTx) -> BreakerView:
            breaker = rows.locked(tx, plain_name("tenant", tenant), key)
            breaker.judge(tx.now_ms, passed=passed, failed=failed, retry_after_s=retry_after_s, why=why)
            rows.write(tx, tenant, key, breaker)
            return _get(tx, tenant, key)

        return self._ledger.write(write)

    def force_open(self, tenant: str, service_id: str, **by: Unpack[ReasonedDecision]) -> BreakerView:
        return self._force(tenant, service_id, BreakerState.OPEN, **by)

    def force_close(self, tenant: str, service_id: str, **by: Unpack[Decision]) -> BreakerView:
        return self._force(tenant, service_id, BreakerState.CLOSED, **by)

    def unforce(self, tenant: str, service_id: str, **by: Unpack[Decision]) -> BreakerView:
        """Let it go by its answers again."""
        return self._force(tenant, service_id, None, **by)

    def _force(self, tenant: str, service_id: str, state: BreakerState | None, **by: Unpack[Decision]) -> BreakerView:
        key, audit = key_of(service_id), audit_fields(**by)

        def write(tx: ControlTx) -> BreakerView:
            breaker = rows.locked(tx, plain_name("tenant", tenant), key)
            why = audit["reason"] or f"by {audit['actor']}"
            if state is None:
                breaker.unforce(why)
            else:
                breaker.force(state, why)
            rows.write(tx, tenant, key, breaker, actor=audit["actor"])
            event = "breaker_unforced" if state is None else f"breaker_forced_{state.value}"
            tx.note(tenant, event=event, detail={"key": key}, **audit)
            return _get(tx, tenant, key)

        return self._ledger.write(write)

    def configure(
        self, tenant: str, service_id: str, settings: BreakerSettings | None, **by: Unpack[Decision]
    ) -> BreakerView:
        """Give a breaker settings of its own; None brings back those of its kind."""
        key, audit = key_of(service_id), audit_fields(**by)
        text = None if settings is None else json.dumps(asdict(settings), sort_keys=True)

        def write(tx: ControlTx) -> BreakerView:
            rows.locked(tx, plain_name("tenant", tenant), key)
            tx.execute(
                "UPDATE breakers SET settings_json = :text, version = version + 1, updated_at = :now"
                " WHERE tenant = :tenant AND key = :key",
                {"text": text, "now": tx.now_ms, "tenant": tenant, "key": key},
            )
            detail = {"key": key, "settings": None if settings is None else asdict(settings)}
            tx.note(tenant, event="breaker_configured", detail=detail, **audit)
            tx.rules_changed()
            return _get(tx, tenant, key)

        return self._ledger.write(write)

    def list(self, tenant: str, state: str | None = None) -> list[BreakerView]:
        """The tenant's breakers, by key; as they are at this moment, with an open one whose time is over half-open."""
        wanted = None if state is None else _state(state)
        statement = f"SELECT {_COLUMNS} FROM breakers WHERE tenant = :tenant ORDER BY key"
        found = self._ledger.read(
            lambda tx: [_view(row, tx.now_ms) for row in tx.execute(statement, {"tenant": tenant})],
        )
        return [view for view in found if wanted in (None, view.state)]

    def get(self, tenant: str, service_id: str) -> BreakerView:
        key = key_of(service_id)
        return self._ledger.read(lambda tx: _get(tx, tenant, key))

    def transitions(self, tenant: str, service_id: str) -> Sequence[TransitionView]:
        """The latest changes of state, the last one first."""
        statement = (
            "SELECT at, old_state, new_state, why, actor, reset_s FROM breaker_transitions"
            f" WHERE tenant = :tenant AND key = :key ORDER BY at DESC, transition_id DESC LIMIT {_SHOWN}"
        )
        values = {"tenant": tenant, "key": key_of(service_id)}
        found = self._ledger.read(lambda tx: tx.execute(statement, values))
        return [TransitionView(row[0] / 1000, *row[1:]) for row in found]


def key_of(service_id: str) -> str:
    """The key of a breaker. A name that says no kind is a service."""
    name = plain_name("serviceId", service_id)
    return name if name.startswith(KINDS) else f"service:{name}"


def _state(text: str) -> BreakerState:
    try:
        return BreakerState({"halfopen": "half-open", "half_open": "half-open"}.get(text.lower(), text.lower()))
    except ValueError:
        raise BadJob(f"state must be one of {', '.join(BreakerState)}") from None


def _get(tx: ControlTx, tenant: str, key: str) -> BreakerView:
    statement = f"SELECT {_COLUMNS} FROM breakers WHERE tenant = :tenant AND key = :key"
    found = tx.execute(statement, {"tenant": tenant, "key": key})
    if not found:
        raise NotFound(f"no breaker {key[:80]} of this tenant")
    return _view(found[0], tx.now_ms)


def _view(row: Sequence[Any], now: int) -> BreakerView:
    tenant, key, state, forced, open_until, kept, own, version, updated_at = row
    settings = rows.settings_of(key, own) if own else default_settings(key)
    breaker = StoredBreaker.read(settings, state, bool(forced), open_until, kept)
    breaker.tick(now)
    until = None if breaker.open_until is None else breaker.open_until / 1000
    thresholds = Thresholds(*astuple(settings)[:6])
    return BreakerView(
        tenant, key, key.removeprefix("service:"), breaker.state, breaker.forced, breaker.failure_rate(now), until,
        thresholds, version, updated_at / 1000,
    )  # fmt: skip
