"""`results.csv`: what became of every input line, in the order it was given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from DocsToKG.ContentDownload.telemetry.snapshots import replacing
from DocsToKG.ContentDownload.telemetry.text import csv_line

RESULT_COLUMNS = ("line", "input", "id", "outcome", "path", "reason", "source", "mark", "version", "version_doi")


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One input line: as it was written, the work it stands for, and either the file or the reason."""

    line: int
    input: str
    id: str | None = None
    outcome: str | None = None
    path: str | None = None
    reason: str | None = None
    source: str | None = None  # the file that holds the line
    mark: str | None = None  # of the file: `unproved`, `damaged`
    version: str | None = None  # of the file: publishedVersion, acceptedVersion or submittedVersion
    version_doi: str | None = None  # of that version


def write_results(path: Path, rows: Iterable[ResultRow]) -> None:
    """Put `results.csv` in place whole; a reader sees the old file or the new one."""
    with replacing(path) as file:
        file.write(csv_line(RESULT_COLUMNS))
        for row in rows:
            file.write(csv_line([getattr(row, name) for name in RESULT_COLUMNS]))
