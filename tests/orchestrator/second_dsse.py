"""DSSE written a second time, from its specification, over `cryptography` alone: what an outsider would write."""

from __future__ import annotations

import base64
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def signed_bytes(envelope: dict[str, Any]) -> bytes:
    kind, body = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    return b" ".join([b"DSSEv1", str(len(kind)).encode(), kind, str(len(body)).encode(), body])


def check(envelope: dict[str, Any], public: dict[str, str]) -> bytes:
    """The payload, once every signature is that of its key; `public` has the raw keys in hexadecimal by key id."""
    for one in envelope["signatures"]:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public[one["keyid"]]))
        key.verify(base64.b64decode(one["sig"]), signed_bytes(envelope))
    return base64.b64decode(envelope["payload"])
