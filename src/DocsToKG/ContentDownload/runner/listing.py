"""The works of a query, listed once: what has been taken from the service, and where it goes on.

Knows two files in the folder of the run: `state/queries/<key>.jsonl`, the works in order, and `<key>.json`, the
checkpoint. Promises: the cursor moves only after the page before it is on disk here and, by its caller, on the ledger;
what a killed run had written beyond its last checkpoint is cut off, so that no work is there twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.inputs import InputLine
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier, to_work
from DocsToKG.ContentDownload.resolvers.openalex_query import WorksQuery
from DocsToKG.ContentDownload.run_folder import RunFolder, line_json, read_lines
from DocsToKG.ContentDownload.telemetry.snapshots import replacing


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far the listing is. `cursor` names the next page, None the first; `size_bytes` of the list are valid."""

    search: str | None = None
    filter: str | None = None
    sort: str | None = None
    most: int | None = None
    cursor: str | None = None
    exhausted: bool = False  # the service has no further page
    closed: bool = False  # every work of the list has ended
    works: int = 0
    size_bytes: int = 0
    total: int | None = None  # as the service counts

    @property
    def query(self) -> WorksQuery:
        return WorksQuery(self.search, self.filter, self.sort)

    @property
    def complete(self) -> bool:
        return self.exhausted or (self.most is not None and self.works >= self.most)


class Listing:
    """The list of one query in one folder."""

    def __init__(self, folder: RunFolder, key: str, checkpoint: Checkpoint) -> None:
        self._place = _place(folder, key)
        self._list = self._place.with_suffix(".jsonl")
        self._listed: set[str] = set()
        self.key = key
        self.at = checkpoint

    @classmethod
    def begin(cls, folder: RunFolder, query: WorksQuery, most: int | None) -> Listing:
        """Go on with the list of this query, or begin one: anew where the last has been worked off."""
        known = _read_checkpoint(_place(folder, query.key))
        if known is None or known.closed:
            known = Checkpoint(query.search, query.filter, query.sort)
        listing = cls(folder, query.key, replace(known, most=most))
        listing._save()
        folder.remember_listing(query.key)
        listing._listed = listing._ids()
        return listing

    @classmethod
    def of(cls, folder: RunFolder) -> Listing | None:
        """The list that the last command in this folder asked for; None when it asked for something else."""
        key = folder.listing()
        known = _read_checkpoint(_place(folder, key)) if key is not None else None
        if key is None or known is None:
            return None
        listing = cls(folder, key, known)
        listing._listed = listing._ids()
        return listing

    def lines(self) -> Iterator[InputLine]:
        """What is listed so far, each with the work as far as its id tells it."""
        for asked in read_lines(self._list, size_bytes=self.at.size_bytes):
            yield InputLine(asked.line, asked.source, asked.text, work=named(asked.work_id or ""))

    def fresh(self, works: Sequence[WorkArtifact]) -> list[WorkArtifact]:
        """Those that are not listed yet, each once, as many as are still wanted."""
        new = {work.work_id: work for work in works if work.work_id not in self._listed}
        room = len(new) if self.at.most is None else max(0, self.at.most - self.at.works)
        return list(new.values())[:room]

    def add(self, works: Sequence[WorkArtifact], *, cursor: str | None, total: int | None) -> None:
        """Works that are on the ledger. `cursor` is of the next page; None when this was the last one."""
        lines = [
            line_json(InputLine(self.at.works + number, "query", work.doi or work.work_id, work))
            for number, work in enumerate(works, start=1)
        ]
        size_bytes = self._write(b"".join(lines))
        self._listed.update(work.work_id for work in works)
        self.at = replace(self.at, works=self.at.works + len(works), size_bytes=size_bytes, total=total)
        # A page that is cut by the limit is asked for again when more are wanted.
        if self.at.most is None or self.at.works < self.at.most:
            self.at = replace(self.at, cursor=cursor, exhausted=cursor is None)
        self._save()

    def close(self) -> None:
        """All works of the list have ended: the same command begins a new list, which may hold new works."""
        self.at = replace(self.at, closed=True)
        self._save()

    def _ids(self) -> set[str]:
        lines = read_lines(self._list, size_bytes=self.at.size_bytes)
        return {line.work_id for line in lines if line.work_id is not None}

    def _write(self, data: bytes) -> int:
        with open(self._list, "ab") as file:
            file.truncate(self.at.size_bytes)
            file.seek(0, os.SEEK_END)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()

    def _save(self) -> None:
        self._place.parent.mkdir(exist_ok=True)
        if not self._list.exists():
            self._list.touch()
        with replacing(self._place) as file:
            file.write(json.dumps(asdict(self.at), indent=1).encode())


def named(work_id: str) -> WorkArtifact:
    """The work on the ledger has all its fields; should the ledger be gone, the id alone leads to the paper."""
    try:
        return replace(to_work(parse_identifier(work_id)), work_id=work_id)
    except BadIdentifier:
        return WorkArtifact(work_id)


def _place(folder: RunFolder, key: str) -> Path:
    return folder.queries / f"{key}.json"


def _read_checkpoint(path: Path) -> Checkpoint | None:
    try:
        return Checkpoint(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise RecordError(f"{path} cannot be read ({error}); delete it to list the query anew") from error
