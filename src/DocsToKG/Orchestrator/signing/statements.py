"""JSON that carries its own signatures: a field `signatures` beside the rest of an object, over the rest of it.

An answer of the service is read by people and programs that know nothing of envelopes, so the payload stays readable
and the signatures stand in it. The signed bytes are those of DSSE: the object without `signatures`, as sorted, compact
JSON in UTF-8, under a payload type.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from DocsToKG.core.digest import canonical_json
from DocsToKG.Orchestrator.errors import NotVerified
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import PublicKey, Reason, Signer

ANSWER = "application/vnd.docstokg.answer+json"
REPLAY = "application/vnd.docstokg.replay-manifest+json"
FIELD = "signatures"


def signatures(document: Mapping[str, Any], kind: str, signers: Sequence[Signer]) -> list[dict[str, str]]:
    """The value of the field, for an object that is otherwise complete."""
    found: list[dict[str, str]] = dsse.sign(_payload(document), kind, signers)[FIELD]
    return found


def signed(document: Mapping[str, Any], kind: str, signers: Sequence[Signer]) -> dict[str, Any]:
    return {**document, FIELD: signatures(document, kind, signers)}


def envelope_of(document: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The object as the DSSE envelope that it stands for."""
    try:
        payload = base64.b64encode(_payload(document)).decode()
    except (ValueError, RecursionError):
        raise NotVerified(Reason.MALFORMED, "it cannot be written as JSON again") from None
    return {"payload": payload, "payloadType": kind, "signatures": document.get(FIELD)}


def verify(
    document: Mapping[str, Any], kind: str, trusted: Sequence[PublicKey], now: float, threshold: int = 1
) -> list[str]:
    """The ids of the keys that signed it, once it is believed; raises `NotVerified` else."""
    envelope = envelope_of(document, kind)
    dsse.verify(envelope, trusted, now, threshold, payload_type=kind)
    return list(dsse.signature_bytes(envelope))


def signed_parts(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects that carry signatures, with the place where they stand: the whole, or the entries of its lists.

    No deeper: what is inside of an entry may be another's words, and must not be taken for a statement of ours.
    """
    if not isinstance(value, dict):
        return
    if isinstance(value.get(FIELD), list):
        yield "", value
        return
    for name, inner in value.items():
        for number, entry in enumerate(inner if isinstance(inner, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get(FIELD), list):
                yield f"/{name}/{number}", entry


def unsigned_parts(value: Any) -> Iterator[str]:
    """The places in lists of signed objects at which one stands that is not."""
    signed_places = {place for place, _ in signed_parts(value)}
    for name in {place.rpartition("/")[0][1:] for place in signed_places if place}:
        for number in range(len(value[name])):
            if f"/{name}/{number}" not in signed_places:
                yield f"/{name}/{number}"


def _payload(document: Mapping[str, Any]) -> bytes:
    return canonical_json({name: value for name, value in document.items() if name != FIELD})
