"""What can go wrong, by what the caller should do about it.

ContentDownloadError
├── CandidateRejected      this copy is not it: try the next candidate
├── TransientFailure       not now: come back later
│   └── PutOff             no other copy would fare better now
│       ├── StorageAway    the store takes no files now
│       └── LimitsAway     the limits shared with other machines are out of reach
└── RunError               stop the run and tell the user
    ├── ConfigError        a setting is wrong
    ├── InputError         nothing usable was given
    ├── FolderInUse        another run holds the folder
    ├── StorageError       the disk or store does not take or give the bytes
    │   ├── DiskFull
    │   └── FileUnreadable one stored file cannot be read; the others may be well
    ├── RecordError        the run's record cannot be read or written
    │   └── RecordDamaged  its database is not whole: the next run fills a new one
    └── IndexDamaged       the offline index is not whole: build it anew

`SkipDownload` and `DownloadError` are the names under which callers of the three download stages
know the first two.
"""

from __future__ import annotations


class ContentDownloadError(Exception):
    """Root of everything this package raises on purpose."""


class CandidateRejected(ContentDownloadError):
    """This copy is not the paper, or may not be had. Try the next candidate."""

    def __init__(
        self, reason: str, detail: str = "", *, url: str | None = None, http_status: int | None = None
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.url = url
        self.http_status = http_status


class TransientFailure(ContentDownloadError):
    """It may work later: the server is busy or away, or a limit says not yet."""

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        url: str | None = None,
        http_status: int | None = None,
        retry_after_s: float | None = None,
        tested: bool = False,
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.url = url
        self.http_status = http_status
        self.retry_after_s = retry_after_s
        self.tested = tested  # nothing was sent for this work, but others have just found the host still down


class PutOff(TransientFailure):
    """Something of ours is away. It says nothing of the copy, and another one would fare no better: the work comes back
    later, as if it had not been tried."""


class StorageAway(PutOff):
    """The store takes or gives no files now."""


class LimitsAway(PutOff):
    """A transfer was cut by ourselves: the server that keeps the limits of all machines was out of reach for so long
    that it may give our place at the host to another."""


SkipDownload = CandidateRejected
DownloadError = TransientFailure


class RunError(ContentDownloadError):
    """The run cannot go on. The message names the thing and the way out."""


class ConfigError(RunError):
    """A setting is wrong: which key, where it came from, what would be right."""


class InputError(RunError):
    """Nothing usable was given."""


class FolderInUse(RunError):
    """Another run is working in this folder."""


class StorageError(RunError):
    """The store does not take or give the bytes."""


class DiskFull(StorageError):
    """Too little space is left to store another file."""


class FileUnreadable(StorageError):
    """One stored file cannot be read, and that says nothing of the others."""


class RecordError(RunError):
    """The run's record cannot be read or written."""


class RecordDamaged(RecordError):
    """The record's database is not whole. The next run fills a new one from the text files."""


class IndexDamaged(RunError):
    """The offline index of open copies is not whole. Build it anew from its sources."""


def told_error(kind: str, text: str) -> RunError:
    """The error that another process has told of."""
    known = globals().get(kind)
    if isinstance(known, type) and issubclass(known, RunError):
        return known(text)
    return RunError(text)
