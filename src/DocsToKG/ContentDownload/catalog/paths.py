"""The names of a record's files in the folder of a run, and what they tell of a file. Opens none of them."""

from __future__ import annotations

from pathlib import Path

DATABASE = "manifest.sqlite"
MANIFEST = "manifest.jsonl"
LAST = "last.csv"
ATTEMPTS_CSV = "attempts.csv"
INDEX = "index.json"
SUMMARY = "summary.json"
RESULTS = "results.csv"


def is_in_its_place(path: Path) -> bool:
    """Whether the file has the name of a record's database and the text files of one stand beside it, so that whatever
    is in it was ours."""
    return path.name == DATABASE and any(path.with_name(name).is_file() for name in (MANIFEST, LAST))
