"""A corpus as a bag (RFC 8493, version 1.0): the files under `data/`, their digests, and what is known of each.

The works are described in the tag files `metadata/works.jsonl` and `metadata/works.csv`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from DocsToKG.ContentDownload.export.copying import Copied, copy_file, new_folder
from DocsToKG.ContentDownload.export.tables import write_csv, write_jsonl
from DocsToKG.ContentDownload.storage.files import StoredFiles

_ALGORITHM = "sha256"


def write_bag(rows: Iterable[dict[str, Any]], files: StoredFiles, place: Path, *, day: str, made_by: str) -> Copied:
    """The bag at `place`; `day` is the date it was made."""
    copied = Copied()
    with new_folder(place) as folder:
        (folder / "data").mkdir()
        (folder / "metadata").mkdir()
        with (folder / "metadata" / "works.jsonl").open("wb") as out, _manifest(folder) as manifest:
            write_jsonl(_with_files(rows, files, folder / "data", manifest, copied), out)
        _write_table(folder / "metadata")
        _write_tags(folder, copied, day=day, made_by=made_by)
    return copied


def _with_files(
    rows: Iterable[dict[str, Any]], files: StoredFiles, data: Path, manifest: Any, copied: Copied
) -> Iterator[dict[str, Any]]:
    listed: set[str] = set()
    for row in rows:
        if row["path"] in listed or copy_file(files, row, data, copied):
            if row["path"] not in listed:
                listed.add(row["path"])
                manifest.write(_line(row["sha256"], f"data/{row['path']}"))
            yield row


def _manifest(folder: Path) -> Any:
    return (folder / f"manifest-{_ALGORITHM}.txt").open("w", encoding="utf-8", newline="\n")


def _write_table(metadata: Path) -> None:
    """The same rows once more, for people with a spreadsheet."""
    with (metadata / "works.jsonl").open("rb") as lines, (metadata / "works.csv").open("wb") as out:
        write_csv(map(orjson.loads, lines), out)


def _write_tags(folder: Path, copied: Copied, *, day: str, made_by: str) -> None:
    _write(folder / "bagit.txt", ["BagIt-Version: 1.0", "Tag-File-Character-Encoding: UTF-8"])
    info = [
        "External-Description: Research papers, each with its licence and where it came from in metadata/works.csv",
        f"Bagging-Date: {day}",
        f"Bag-Software-Agent: {made_by}",
        f"Payload-Oxum: {copied.bytes}.{copied.files}",
    ]
    _write(folder / "bag-info.txt", info)
    tags = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.relative_to(folder).parts[0] != "data"
    ]
    lines = [_line(_digest(path), path.relative_to(folder).as_posix()).rstrip("\n") for path in tags]
    _write(folder / f"tagmanifest-{_ALGORITHM}.txt", lines)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _line(digest: str, path: str) -> str:
    # RFC 8493 section 2.1.3: what would end or escape a line is encoded.
    return f"{digest}  {path.replace('%', '%25').replace(chr(10), '%0A').replace(chr(13), '%0D')}\n"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, _ALGORITHM).hexdigest()
