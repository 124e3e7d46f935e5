"""Dead Simple Signing Envelopes: bytes of a named kind, signed by one or more keys.

Knows the envelope (https://github.com/secure-systems-lab/dsse, v1.0). Does not know what is signed, nor files.
Promises: an envelope is believed only when enough trusted keys that are good at the moment asked about signed these
very bytes; a signature that names a trusted key and is not its own spoils the whole; the error says what is wrong.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import NotVerified
from DocsToKG.Orchestrator.signing.keys import PublicKey, Reason, Signer, library

MAX_SIGNATURES = 32


def sign(payload: bytes, payload_type: str, signers: Sequence[Signer]) -> dict[str, Any]:
    """The envelope as a dict that JSON can hold; its signatures stand in the order of the key ids."""
    if not 0 < len(signers) <= MAX_SIGNATURES:
        raise ValueError(f"an envelope takes 1 to {MAX_SIGNATURES} signers, not {len(signers)}")
    envelope = library("dsse").Envelope(payload, payload_type, {})
    for signer in sorted(signers, key=lambda signer: signer.key.key_id):
        envelope.sign(signer.made_by)
    made: dict[str, Any] = envelope.to_dict()
    return made


def verify(
    envelope: Mapping[str, Any],
    trusted: Iterable[PublicKey],
    now: float,
    threshold: int = 1,
    *,
    payload_type: str | None = None,
) -> bytes:
    """The payload, once `threshold` trusted keys that are good at `now` (Unix seconds) have signed it.

    Signatures of unknown keys are passed over, as DSSE asks; raises `NotVerified` else.
    """
    payload, kind, signatures = _opened(envelope)
    if payload_type is not None and kind != payload_type:
        raise NotVerified(Reason.WRONG_TYPE, f"the envelope holds {kind[:100]!r}, not {payload_type!r}")
    known = {key.key_id: key for key in trusted}
    good = [known[key_id] for key_id in signatures if key_id in known]
    message = library("dsse").Envelope(payload, kind, {}).pae()
    for key in good:
        if not key.has_signed(signatures[key.key_id], message):
            raise NotVerified(Reason.BAD_SIGNATURE, f"the signature of {key.shown} is not over these bytes")
    _enough(signatures, good, now, threshold)
    return payload


def signature_bytes(envelope: Mapping[str, Any]) -> dict[str, bytes]:
    """The signatures of an envelope by key id, none of them checked."""
    return _opened(envelope)[2]


def _enough(signatures: Mapping[str, bytes], found: Sequence[PublicKey], now: float, threshold: int) -> None:
    if threshold < 1:
        raise ValueError("at least one signature must be asked for")
    in_time = [key for key in found if key.is_good_at(now)]
    if len(in_time) >= threshold:
        return
    if not found:
        who = ", ".join(key_id[:16] for key_id in signatures)
        raise NotVerified(Reason.UNTRUSTED, f"signed by {who}, which is not among the trusted keys")
    late = [key for key in found if key not in in_time]
    if late:
        raise NotVerified(Reason.EXPIRED, f"{late[0].shown} is not good at {utc_iso(now)}: {late[0].span}")
    raise NotVerified(Reason.TOO_FEW, f"{len(in_time)} trusted signature(s), {threshold} asked for")


def _opened(envelope: Mapping[str, Any]) -> tuple[bytes, str, dict[str, bytes]]:
    """Payload, kind and signatures by key id, of an envelope that has exactly the fields an envelope has."""
    if not isinstance(envelope, Mapping) or set(envelope) != {"payload", "payloadType", "signatures"}:
        raise _malformed("an envelope has payload, payloadType and signatures, and nothing else")
    kind, listed = envelope["payloadType"], envelope["signatures"]
    if not isinstance(kind, str) or not isinstance(listed, list) or len(listed) > MAX_SIGNATURES:
        raise _malformed(f"payloadType is a text, and signatures a list of at most {MAX_SIGNATURES}")
    if not listed:
        raise NotVerified(Reason.NOT_SIGNED, "the envelope has no signature")
    signatures: dict[str, bytes] = {}
    for one in listed:
        if not isinstance(one, Mapping) or set(one) != {"keyid", "sig"} or not isinstance(one["keyid"], str):
            raise _malformed("a signature has keyid and sig, and nothing else")
        if one["keyid"] in signatures:
            raise _malformed(f"key {one['keyid'][:16]!r} has signed twice")
        signatures[one["keyid"]] = _decoded(one["sig"])
    return _decoded(envelope["payload"]), kind, signatures


def _decoded(text: object) -> bytes:
    """Standard base64 in its one canonical spelling, so that no byte of an envelope can change unseen."""
    if not isinstance(text, str):
        raise _malformed("base64 is a text")
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError, ValueError):
        raise _malformed("the payload or a signature is not base64") from None
    if base64.b64encode(data).decode() != text:
        raise _malformed("the payload or a signature is base64 in an unusual spelling")
    return data


def _malformed(message: str) -> NotVerified:
    return NotVerified(Reason.MALFORMED, message)
