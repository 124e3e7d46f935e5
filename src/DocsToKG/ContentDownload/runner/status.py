"""How a run stands and how it ended, in numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from DocsToKG.ContentDownload.api.types import OutcomeClass, Reason
from DocsToKG.ContentDownload.telemetry.snapshots import ResultRow

_TAKEN_DOWN = re.compile(r"\btaken down on \d{4}-\d\d-\d\d\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A look at a run in motion. `present` were obtained by an earlier run."""

    total: int
    present: int
    done: int
    skipped: int
    failed: int
    bytes: int
    active: int
    waits: Mapping[str, int]

    @property
    def left(self) -> int:
        return max(0, self.total - self.present - self.done - self.skipped - self.failed)


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: one row per input line, and the counts of its works."""

    rows: tuple[ResultRow, ...]
    successful: int  # works whose file is there, also from earlier runs
    already: int  # of these, obtained before this run
    failed: int  # what robots.txt forbids is no failure: see `skipped`
    pending: int  # not begun or not finished: the run was stopped
    invalid: int  # lines that name no work
    folder: Path  # of the record
    files: Path  # the storage root
    left_out: int = 0  # by the user's own filters
    taken_down: int = 0  # refused, as they were removed for good
    skipped: int = 0  # works that their owners do not want fetched

    @property
    def total_processed(self) -> int:
        return self.successful + self.failed + self.skipped

    @property
    def complete(self) -> bool:
        """Every line was obtained, already there, left out on purpose or taken down."""
        return not (self.failed or self.skipped or self.pending or self.invalid)


@dataclass(slots=True)
class Tally:
    """What has been counted so far."""

    total: int = 0
    present: int = 0
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OutcomeClass, 0))
    bytes: int = 0
    fetched: set[str] = field(default_factory=set)  # works obtained by this run


def counted(rows: Collection[ResultRow], fetched: Collection[str], folder: Path, files: Path) -> RunResult:
    ends = [row.outcome for row in rows]
    already = [row.id for row in rows if row.outcome == OutcomeClass.SUCCESS and row.id not in fetched]
    left_out = sum(is_left_out(row) for row in rows)
    taken_down = sum(is_taken_down(row) for row in rows)
    return RunResult(
        rows=tuple(rows),
        successful=ends.count(OutcomeClass.SUCCESS),
        already=len(already),
        failed=ends.count(OutcomeClass.ERROR),
        pending=ends.count("pending"),
        invalid=ends.count("invalid"),
        folder=folder,
        files=files,
        left_out=left_out,
        taken_down=taken_down,
        skipped=ends.count(OutcomeClass.SKIP) - left_out - taken_down,
    )


def is_left_out(row: ResultRow) -> bool:
    """Whether the user's own filters are why there is no file."""
    return _skipped_for(row) == Reason.FILTERED and not is_taken_down(row)


def is_taken_down(row: ResultRow) -> bool:
    """Whether a takedown is why there is no file."""
    word = _skipped_for(row)
    # Earlier programs wrote takedowns down as a filter; the queue of such a run still says so.
    return word == Reason.TAKEN_DOWN or (word == Reason.FILTERED and _TAKEN_DOWN.search(row.reason or "") is not None)


def _skipped_for(row: ResultRow) -> str | None:
    return (row.reason or "").partition(":")[0] if row.outcome == OutcomeClass.SKIP else None
