"""What can go wrong with keys and signatures, by what the caller should do about it.

SigningError
├── SigningUnavailable   install what is missing
├── BadKey               a key, a key file or a trust file cannot be used: the message names it and the way out
└── NotVerified          do not believe it; `reason` is a word of `Reason`
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why an envelope is not believed."""

    MALFORMED = "malformed"  # not an envelope, or not in the one form an envelope has
    WRONG_TYPE = "wrong-type"  # the payload is of another kind than was asked for
    NOT_SIGNED = "not-signed"  # no signature at all
    BAD_SIGNATURE = "bad-signature"  # a key that is known did not make this signature over these bytes
    UNTRUSTED = "untrusted"  # good or not, the signatures are of keys that are not trusted
    EXPIRED = "expired"  # of trusted keys, but not good at the moment that was asked about
    TOO_FEW = "too-few"  # good ones, but fewer than were asked for


class SigningError(Exception):
    """Root of everything the signing room raises on purpose."""


class SigningUnavailable(SigningError):
    """The libraries for signatures are not installed."""

    def __init__(self) -> None:
        super().__init__("signatures need the audit extra: pip install 'docstokg[audit]'")


class BadKey(SigningError):
    """A key or a file of keys cannot be used."""


class NotVerified(SigningError):
    """The envelope is not to be believed."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
