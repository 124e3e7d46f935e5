"""What can go wrong with the ledger, by what the caller should do about it.

LedgerError
├── LeaseLost          let go: another owner has the job, or it is over
├── UnknownJob         no such job
├── BadJob             the job is refused as given: mend it and submit again
├── LedgerBusy         another process held the file too long: try again
├── LedgerClosed       the ledger object was closed
└── LedgerUnusable     stop and tell the user
    ├── LedgerTooNew   written by a newer version of this program
    └── LedgerDamaged  not a ledger, or broken on disk
"""

from __future__ import annotations


class LedgerError(Exception):
    """Root of everything the ledger raises on purpose."""


class LeaseLost(LedgerError):
    """The lease named is not the job's current one. Nothing was changed."""

    def __init__(self, job_id: int, fence: int | None = None) -> None:
        shown = "" if fence is None else f" (fence {fence})"
        super().__init__(f"job {job_id}: the lease is lost{shown}; drop the work, the job has another owner or is over")
        self.job_id = job_id
        self.fence = fence


class UnknownJob(LedgerError):
    """No job has this id."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"no job {job_id} in this ledger")
        self.job_id = job_id


class BadJob(LedgerError):
    """A job, outcome or name is refused as given."""


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
