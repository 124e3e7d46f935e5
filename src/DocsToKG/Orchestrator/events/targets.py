"""What a notifier needs of a target, and the parcel that is handed to it.

Pure. Knows no wire. The body is a DSSE envelope around the event, signed once, so that every try of every target sends
the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Signer

PAYLOAD_TYPE = "application/vnd.docstokg.orch.event.v1+json"


@dataclass(frozen=True, slots=True)
class Parcel:
    """One event on its way: what names it, and the body."""

    event_id: str
    event_type: str
    tenant: str
    idempotency_key: str
    body: bytes


class DeliveryFailed(Exception):
    """The target did not take the event. The message names no secret. `retry_after_s` is the target's own wish."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Target(Protocol):
    """Somewhere that events are sent to. `send` may be called from several threads at once."""

    @property
    def name(self) -> str: ...

    @property
    def at_once(self) -> int:
        """How many events may be on their way at the same time; those of one job never are."""
        ...

    @property
    def max_tries(self) -> int: ...

    def send(self, parcel: Parcel) -> None:
        """Returns when the target has taken the event, raises `DeliveryFailed` else."""
        ...

    def close(self) -> None: ...


def parcel_of(event: dict[str, Any], signers: Sequence[Signer]) -> Parcel:
    """The event in its canonical spelling, signed."""
    payload = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    body = json.dumps(dsse.sign(payload, PAYLOAD_TYPE, signers), separators=(",", ":")).encode()
    return Parcel(event["eventId"], event["eventType"], event["tenantId"], event["idempotencyKey"], body)
