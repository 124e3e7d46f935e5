"""What can go wrong with bundles and manifests, by what the caller should do about it.

AuditError
├── BadRange           ask for another range; the message says which
├── LedgerContradicts  the ledger is not what its own history says: look at it before anything is signed
└── BadBundle          this is no bundle, or not one to be read on: the message names the place
"""

from __future__ import annotations


class AuditError(Exception):
    """Root of everything the audit room raises on purpose."""


class BadRange(AuditError):
    """The range cannot be exported as asked."""


class LedgerContradicts(AuditError):
    """What the ledger keeps of a job is not what its history leads to."""


class BadBundle(AuditError):
    """A file cannot be read as what it should be. `where` names it."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where
