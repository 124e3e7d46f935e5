"""`results.csv` after a takedown: the rows of a work say at once what became of it, not only after the next run.

Knows the columns of the file. Promises: rows of other works keep their values; a file that is none of ours, or none at
all, stays as it is; a reader sees the old file or the new one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from DocsToKG.ContentDownload.api.types import OutcomeClass, Reason
from DocsToKG.ContentDownload.telemetry.folder import RESULTS
from DocsToKG.ContentDownload.telemetry.results import RESULT_COLUMNS
from DocsToKG.ContentDownload.telemetry.snapshots import replacing
from DocsToKG.ContentDownload.telemetry.text import csv_line

_AGAIN = "may be had again; `content pull` fetches it"


def retell(root: Path, doc_id: str, refused: str | None) -> bool:
    """Say in the results why the work is refused, or, with None, that it may be had again; whether a row was of it."""
    path = root / RESULTS
    try:
        if not any(_id(row) == doc_id for row in _rows(path)):
            return False
        with replacing(path) as file:
            file.write(csv_line(RESULT_COLUMNS))
            for row in _rows(path):
                file.write(csv_line(_told(row, refused) if _id(row) == doc_id else row))
    except (FileNotFoundError, csv.Error):
        return False
    return True


def _rows(path: Path) -> Iterator[list[str]]:
    """The rows of a file of ours; of any other, none."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines: Iterable[list[str]] = csv.reader(file)
        if next(iter(lines), None) == list(RESULT_COLUMNS):
            yield from (row for row in lines if len(row) == len(RESULT_COLUMNS))


def _id(row: list[str]) -> str:
    return row[RESULT_COLUMNS.index("id")]


def _told(row: list[str], refused: str | None) -> list[str]:
    told = dict(zip(RESULT_COLUMNS, row, strict=True)) | {"path": ""}
    if told["outcome"] == "duplicate":
        return list(told.values())  # it speaks of the line that names the work first
    if refused is not None:
        told |= {"outcome": OutcomeClass.SKIP, "reason": f"{Reason.TAKEN_DOWN}: {refused[:1].upper()}{refused[1:]}."}
    elif told["outcome"] == OutcomeClass.SKIP:
        told |= {"outcome": "pending", "reason": _AGAIN}
    return list(told.values())
