"""Ed25519 keys: making them, using them, knowing them by their id.

Knows one key. Folders and trust files are in `keyring`. Promises: a private key is never in a message, a log or a repr;
a key id is computed from the public key, so nobody can give a key another's id.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import BadKey, SigningUnavailable

KIND = "ed25519"
_PUBLIC_BYTES = 32


def library(part: str) -> Any:
    """A module of securesystemslib, which only those need who sign or verify."""
    try:
        importlib.import_module("cryptography")  # securesystemslib only misses it later
        return importlib.import_module(f"securesystemslib.{part}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("securesystemslib", "cryptography"):
            raise SigningUnavailable from None
        raise


class Reason(StrEnum):
    """Why an envelope is not believed."""

    MALFORMED = "malformed"  # not an envelope, or not in the one form an envelope has
    WRONG_TYPE = "wrong-type"  # the payload is of another kind than was asked for
    NOT_SIGNED = "not-signed"  # no signature at all
    BAD_SIGNATURE = "bad-signature"  # a key that is known did not make this signature over these bytes
    UNTRUSTED = "untrusted"  # good or not, the signatures are of keys that are not trusted
    EXPIRED = "expired"  # of trusted keys, but not good at the moment that was asked about
    TOO_FEW = "too-few"  # good ones, but fewer than were asked for


@dataclass(frozen=True, slots=True)
class PublicKey:
    """What others need of a key. Times are Unix seconds; `expires_at` None: good until it is taken out of the trust."""

    public: str
    name: str
    created_at: float
    expires_at: float | None = None
    key_id: str = field(init=False)
    made_of: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        made_of = _public(self.public)
        object.__setattr__(self, "made_of", made_of)
        object.__setattr__(self, "key_id", made_of.keyid)

    @property
    def shown(self) -> str:
        return f"key {self.key_id[:16]} ({self.name})"

    @property
    def span(self) -> str:
        end = "" if self.expires_at is None else f", good until {utc_iso(self.expires_at)}"
        return f"made {utc_iso(self.created_at)}{end}"

    def is_good_at(self, now: float) -> bool:
        return self.expires_at is None or now < self.expires_at

    def has_signed(self, signature: bytes, message: bytes) -> bool:
        try:
            self.made_of.verify_signature(library("signer").Signature(self.key_id, signature.hex()), message)
        except library("exceptions").UnverifiedSignatureError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom one believes: these keys, as good at `now` (Unix seconds), and how many of them must have signed."""

    keys: Sequence[PublicKey]
    now: float
    threshold: int = 1

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(key.key_id for key in self.keys)


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that can sign. `made_by` holds the private half and is never shown."""

    key: PublicKey
    made_by: Any = field(repr=False, compare=False)

    def pem(self) -> bytes:
        """The private key as it is kept: PKCS 8, PEM. For the key's own file alone."""
        content: bytes = self.made_by.private_bytes
        return content


def new_signer(name: str, now: float, expires_at: float | None = None) -> Signer:
    made_by = library("signer").CryptoSigner.generate_ed25519()
    return Signer(PublicKey(made_by.public_key.keyval["public"], name, now, expires_at), made_by)


def signer_from_pem(pem: bytes, key: PublicKey) -> Signer:
    """The signer of a private key, which must be the other half of `key`."""
    crypto_signer = library("signer").CryptoSigner
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        made_by = crypto_signer(load_pem_private_key(pem, None))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Nothing of the content may be in the message: it is a secret, though not a key.
        raise BadKey(f"the private file of {key.shown} holds no Ed25519 key (PEM, PKCS 8, no passphrase)") from None
    if made_by.public_key.keyval["public"] != key.public:
        raise BadKey(f"the private file of {key.shown} belongs to another key")
    return Signer(key, made_by)


def _public(text: str) -> Any:
    """The key of 64 hexadecimal digits, in lower case; its id is the one that securesystemslib computes."""
    signer = library("signer")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw = bytes.fromhex(text)
    except (ValueError, TypeError):
        raw = b""
    if len(raw) != _PUBLIC_BYTES or raw.hex() != text:
        raise BadKey("a public key is 64 hexadecimal digits in lower case")
    return signer.SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(raw))
