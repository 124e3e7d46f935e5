"""Incidents: raised, acknowledged and resolved.

Knows their table. Promises: a source has one open incident at a time, which counts repetitions; an acknowledged one
stays until it is resolved, and a resolved one is never opened again; every change is audited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Unpack

from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.inputs import Decision, audit_fields, plain_name
from DocsToKG.Orchestrator.control.records import LedgerService, Record, check_version
from DocsToKG.Orchestrator.errors import BadJob, Conflict, NotFound
from DocsToKG.Orchestrator.ledger import breaker_rows
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import JsonFormat, Timestamp, View

SEVERITIES = ("info", "warning", "error", "critical")
STATES = ("open", "acknowledged", "resolved")


@dataclass(frozen=True, slots=True)
class IncidentView(View):
    """An incident."""

    incident_id: str
    tenant: str
    source: str
    severity: str
    cause: str
    state: Annotated[str, JsonFormat(enum=[*STATES])]
    count: int
    first_at: Timestamp
    last_at: Timestamp
    actor: str | None
    reason: str | None
    ticket: str | None
    updated_at: Timestamp
    version: int


_INCIDENT = Record(IncidentView, "incidents")


@dataclass(frozen=True, slots=True)
class IncidentPage(View):
    """Incidents, the last one first."""

    incidents: Sequence[IncidentView]
    next_page_token: str | None


class IncidentService(LedgerService):
    """The incidents of one ledger."""

    def raise_(self, tenant: str, source: str, severity: str, cause: str) -> IncidentView:
        """Tell of something; it joins what is known of the source and not resolved."""
        if severity not in SEVERITIES:
            raise BadJob(f"severity must be one of {', '.join(SEVERITIES)}")
        name, origin = plain_name("tenant", tenant), plain_name("source", source, 500)
        text = plain_name("cause", cause, 500)

        def write(tx: ControlTx) -> IncidentView:
            return _get(tx, name, breaker_rows.raise_incident(tx, name, origin, severity, text))

        return self._ledger.write(write)

    def list(
        self, tenant: str, state: str | None = None, *, page_token: str | None = None, page_size: int | None = None
    ) -> IncidentPage:
        if state is not None and state not in STATES:
            raise BadJob(f"state must be one of {', '.join(STATES)}")
        size = paging.page_size(page_size)
        where, values = "tenant = :tenant AND (:state IS NULL OR state = :state)", {"tenant": tenant, "state": state}
        return self._ledger.read(
            lambda tx: IncidentPage(*_INCIDENT.page(tx, where, values, by="last_at", size=size, token=page_token))
        )

    def get(self, tenant: str, incident_id: str) -> IncidentView:
        return self._ledger.read(lambda tx: _get(tx, tenant, incident_id))

    def acknowledge(
        self, tenant: str, incident_id: str, *, if_version: int | None = None, **by: Unpack[Decision]
    ) -> IncidentView:
        """Somebody looks at it. Doing so twice is no harm; one that is resolved is refused."""
        return self._move(tenant, incident_id, "acknowledged", if_version, **by)

    def resolve(
        self, tenant: str, incident_id: str, *, if_version: int | None = None, **by: Unpack[Decision]
    ) -> IncidentView:
        """It is over. What happens from now on is a new one."""
        return self._move(tenant, incident_id, "resolved", if_version, **by)

    def _move(
        self, tenant: str, incident_id: str, state: str, if_version: int | None, **by: Unpack[Decision]
    ) -> IncidentView:
        audit = audit_fields(**by)

        def write(tx: ControlTx) -> IncidentView:
            now = _get(tx, tenant, incident_id, lock=True)
            check_version("incident", now.version, if_version)
            if now.state == state:
                return now
            if now.state == "resolved":
                raise Conflict(f"incident {now.incident_id} is resolved", now.version)
            tx.execute(
                "UPDATE incidents SET state = :state, actor = :actor, reason = :reason, ticket = :ticket,"
                " updated_at = :now, version = version + 1 WHERE incident_id = :id",
                {**audit, "state": state, "now": tx.now_ms, "id": now.incident_id},
            )
            tx.note(tenant, event=f"incident_{state}", detail={"incident": now.incident_id}, **audit)
            return _get(tx, tenant, incident_id)

        return self._ledger.write(write)


def _get(tx: ControlTx, tenant: str, incident_id: str, lock: bool = False) -> IncidentView:
    found = _INCIDENT.find(tx, lock=lock, incident_id=incident_id, tenant=tenant)
    if found is None:
        raise NotFound(f"no incident {incident_id[:80]} of this tenant")
    return found
