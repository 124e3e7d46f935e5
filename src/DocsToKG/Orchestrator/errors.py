"""The errors of the orchestrator, by what the caller should do about them.

LedgerError
├── LeaseLost          let go: another owner has the job, or it is over
├── NotFound           no such thing, or not one of this tenant
│   └── UnknownJob     no such job
├── BadJob             the job is refused as given: mend it and submit again
├── BadPage            the place in a list is not one that was handed out: begin again
├── Conflict           the thing has changed, or was asked for otherwise before: read it again
├── Refused            a rule or an operator forbids it
├── LedgerBusy         another process held the file too long: try again
├── LedgerClosed       the ledger object was closed
└── LedgerUnusable     stop and tell the user
    ├── LedgerTooNew   written by a newer version of this program
    └── LedgerDamaged  not a ledger, or broken on disk
AuditError
├── BadRange           ask for another range; the message says which
├── LedgerContradicts  the ledger is not what its own history says: look at it before anything is signed
└── BadBundle          this is no bundle, or damaged: the message names the file
SigningError
├── SigningUnavailable install what is missing
├── BadKey             a key, a key file or a trust file cannot be used: the message names it
└── NotVerified        do not believe it; `reason` is one of `signing.keys.Reason`
"""

from __future__ import annotations


class LedgerError(Exception):
    """Root of the errors of the ledger and its services."""


class LeaseLost(LedgerError):
    """The lease named is not the job's current one. Nothing was changed."""

    def __init__(self, job_id: int, fence: int | None = None) -> None:
        shown = "" if fence is None else f" (fence {fence})"
        super().__init__(f"job {job_id}: the lease is lost{shown}; drop the work, the job has another owner or is over")
        self.job_id = job_id
        self.fence = fence


class NotFound(LedgerError):
    """There is no such thing, or it is another tenant's, which is the same to the one who asks."""


class UnknownJob(NotFound):
    """No job has this id."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"no job {job_id} in this ledger")
        self.job_id = job_id


class BadJob(LedgerError):
    """A job, outcome or name is refused as given."""


class BadPage(LedgerError):
    """The token of a page, or the cursor of a feed, is not one that this ledger handed out for this question."""


class Conflict(LedgerError):
    """What was asked does not fit what is there now. `version` is the one that is there, where there are versions."""

    def __init__(self, message: str, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class Refused(LedgerError):
    """A rule or an operator forbids it; `reason` is a token that says which, and `until` when it may be asked again
    (Unix seconds), where that is known."""

    def __init__(self, message: str, reason: str, until: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.until = until


class LedgerBusy(LedgerError):
    """The file stayed locked by another process for longer than the busy timeout."""


class LedgerClosed(LedgerError):
    """The ledger object was closed before the call."""


class LedgerUnusable(LedgerError):
    """The ledger cannot be opened or written. The message names the file and the way out."""


class LedgerTooNew(LedgerUnusable):
    """The schema is newer than this program."""


class LedgerDamaged(LedgerUnusable):
    """The file is not a ledger, or is broken."""


class AuditError(Exception):
    """Root of the errors of bundles and manifests."""


class BadRange(AuditError):
    """The range cannot be exported as asked."""


class LedgerContradicts(AuditError):
    """What the ledger keeps of a job is not what its history leads to."""


class BadBundle(AuditError):
    """A file cannot be read as what it should be. `where` names it."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where


class SigningError(Exception):
    """Root of the errors of keys and signatures."""


class SigningUnavailable(SigningError):
    """The libraries for signatures are not installed."""

    def __init__(self) -> None:
        super().__init__("signatures need the audit extra: pip install 'docstokg[audit]'")


class BadKey(SigningError):
    """A key or a file of keys cannot be used."""


class NotVerified(SigningError):
    """The envelope is not to be believed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
