"""The protocol of a target, and a delivery.

Pure. Knows no network. The body is a DSSE envelope around the event, signed once, so that every try of every target
sends the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Signer

PAYLOAD_TYPE = "application/vnd.docstokg.orch.event.v1+json"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event to deliver: its ids, and the signed body."""

    event_id: str
    event_type: str
    tenant: str
    idempotency_key: str
    body: bytes


class SendLimits(NamedTuple):
    """How many events are sent at once, how often one is tried, and how long a try may take."""

    at_once: int = 4
    max_tries: int = 20
    timeout_s: float = 10.0


class DeliveryFailed(Exception):
    """The target did not take the event. The message names no secret; `retry_after_s` is what the target asked for."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Target(Protocol):
    """A receiver of events. `send` may be called from several threads at once."""

    @property
    def name(self) -> str: ...

    @property
    def at_once(self) -> int:
        """How many events may be on their way at the same time; those of one job never are."""
        ...

    @property
    def max_tries(self) -> int: ...

    def send(self, delivery: Delivery) -> None:
        """Returns when the target has taken the event, raises `DeliveryFailed` else."""
        ...

    def close(self) -> None: ...


def delivery_of(event: dict[str, Any], signers: Sequence[Signer]) -> Delivery:
    """The event in canonical JSON, signed."""
    payload = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    body = json.dumps(dsse.sign(payload, PAYLOAD_TYPE, signers), separators=(",", ":")).encode()
    return Delivery(event["eventId"], event["eventType"], event["tenantId"], event["idempotencyKey"], body)
