"""`results.csv` after a takedown, or once a person has settled whether a file is the paper: the rows of a work say at
once what became of it, not only after the next run.

Knows the columns of the file. Promises: rows of other works keep their values; a file that is none of ours, or none at
all, stays as it is; a reader sees the old file or the new one.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from DocsToKG.ContentDownload.api.types import OutcomeClass, Reason
from DocsToKG.ContentDownload.catalog.paths import RESULTS
from DocsToKG.ContentDownload.telemetry.snapshots import RESULT_COLUMNS, replacing
from DocsToKG.ContentDownload.telemetry.text import csv_line

Row = dict[str, str]
_AGAIN = "may be had again; `content pull` fetches it"


def update_results(root: Path, doc_id: str, refused: str | None) -> bool:
    """Say in the results why the work is refused, or, with None, that it may be had again; whether a row was of it."""
    return _rewrite(root, doc_id, lambda row: _refused(row, refused))


def update_file_result(root: Path, doc_id: str, *, path: str | None, reason: str = "") -> bool:
    """Say in the results that the file at `path` is the paper, or, with None and a reason, that there is none."""
    outcome = OutcomeClass.SUCCESS if path else OutcomeClass.ERROR
    return _rewrite(root, doc_id, lambda row: _settled(row, path or "", outcome, reason))


def _rewrite(root: Path, doc_id: str, told: Callable[[Row], Row]) -> bool:
    path = root / RESULTS
    try:
        if not any(row["id"] == doc_id for row in _rows(path)):
            return False
        with replacing(path) as file:
            file.write(csv_line(RESULT_COLUMNS))
            for row in _rows(path):
                file.write(csv_line(list((told(row) if row["id"] == doc_id else row).values())))
    except (FileNotFoundError, csv.Error):
        return False
    return True


def _rows(path: Path) -> Iterator[Row]:
    """The rows of a file of ours; of any other, none."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines: Iterable[list[str]] = csv.reader(file)
        if next(iter(lines), None) == list(RESULT_COLUMNS):
            for line in lines:
                if len(line) == len(RESULT_COLUMNS):
                    yield dict(zip(RESULT_COLUMNS, line, strict=True))


def _refused(row: Row, refused: str | None) -> Row:
    told = row | {"path": "", "mark": ""}
    if told["outcome"] == "duplicate":
        return told  # it speaks of the line that names the work first
    if refused is not None:
        told |= {"outcome": OutcomeClass.SKIP, "reason": f"{Reason.TAKEN_DOWN}: {refused[:1].upper()}{refused[1:]}."}
    elif told["outcome"] == OutcomeClass.SKIP:
        told |= {"outcome": "pending", "reason": _AGAIN}
    return told


def _settled(row: Row, path: str, outcome: str, reason: str) -> Row:
    told = row | {"path": path, "mark": ""}
    return told if row["outcome"] == "duplicate" else told | {"outcome": outcome, "reason": reason}
