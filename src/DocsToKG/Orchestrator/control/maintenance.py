"""Maintenance mode: leasing is halted everywhere; reads, heartbeats and completions go on.

Knows its row in the settings. Promises: it acts on every instance from the next lease on, and is audited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from DocsToKG.Orchestrator.control.inputs import AuditFields, Decision, audit_fields
from DocsToKG.Orchestrator.control.records import LedgerService
from DocsToKG.Orchestrator.ledger.control import EVERY, ControlTx, version_of
from DocsToKG.Orchestrator.ledger.policy_rows import MAINTENANCE
from DocsToKG.Orchestrator.views import Timestamp, View


@dataclass(frozen=True, slots=True)
class MaintenanceStatus(View):
    """Whether leasing is halted, and who has switched it last."""

    on: bool
    actor: str | None = None
    reason: str | None = None
    since: Timestamp | None = None


class MaintenanceService(LedgerService):
    """The switch of one ledger."""

    def on(self, **by: Unpack[Decision]) -> MaintenanceStatus:
        audit = audit_fields(**by)
        return self._ledger.write(lambda tx: _switch(tx, True, audit))

    def off(self, **by: Unpack[Decision]) -> MaintenanceStatus:
        audit = audit_fields(**by)
        return self._ledger.write(lambda tx: _switch(tx, False, audit))

    def status(self) -> MaintenanceStatus:
        return self._ledger.read(_status)

    def start_governing(self) -> None:
        """Have this ledger governed from now on, also where no rule was written yet: breakers of job types are fed."""

        def start(tx: ControlTx) -> None:
            if version_of(tx) == 0:
                tx.rules_changed()

        if self._ledger.read(version_of) == 0:
            self._ledger.write(start)


def _switch(tx: ControlTx, on: bool, audit: AuditFields) -> MaintenanceStatus:
    before = _status(tx)
    tx.execute(
        "INSERT INTO settings (name, value, actor, reason, updated_at) VALUES (:name, :value, :actor, :reason, :now)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value, actor = excluded.actor, reason = excluded.reason,"
        " updated_at = excluded.updated_at",
        {
            "name": MAINTENANCE, "value": "1" if on else "0", "actor": audit["actor"], "reason": audit["reason"],
            "now": tx.now_ms,
        },
    )  # fmt: skip
    if before.on != on:
        tx.note(EVERY, event=f"maintenance_{'on' if on else 'off'}", **audit)
    tx.rules_changed()
    return _status(tx)


def _status(tx: ControlTx) -> MaintenanceStatus:
    statement = "SELECT value, actor, reason, updated_at FROM settings WHERE name = :name"
    found = tx.execute(statement, {"name": MAINTENANCE})
    if not found:
        return MaintenanceStatus(False)
    value, actor, reason, at = found[0]
    return MaintenanceStatus(value == "1", actor, reason, at / 1000)
