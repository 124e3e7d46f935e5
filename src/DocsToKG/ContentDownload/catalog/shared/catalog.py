"""The catalog of a record that several machines share: the same questions, put to a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg

from DocsToKG.ContentDownload.catalog.connection import Db
from DocsToKG.ContentDownload.catalog.shared.dialect import translated
from DocsToKG.ContentDownload.catalog.shared.schema import check
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.catalog.shared.snapshot import Snapshot, ask_freely, why_refused
from DocsToKG.ContentDownload.catalog.store import ROW_CAP, Catalog, QueryResult
from DocsToKG.ContentDownload.errors import RecordError


class SharedCatalog(Catalog):
    """Reads one shared record. Threads may share it, and ask at once."""

    def __init__(self, shared: SharedRecord, *, owns: bool = True) -> None:
        super().__init__(shared.name)
        self._shared = shared
        self._owns = owns
        self._checked = False
        self._another = None  # its snapshot would be another one

    def close(self) -> None:
        if self._owns:
            self._shared.close()

    def query(self, sql: str, *, max_rows: int = 1_000, max_seconds: float = 10.0) -> QueryResult:
        cap = min(max_rows, ROW_CAP)
        self._check()
        with contextlib.closing(self._shared.connected()) as connection:
            try:
                columns, rows = ask_freely(connection, self._shared.schema, sql, rows=cap + 1, seconds=max_seconds)
            except psycopg.Error as error:
                raise RecordError(why_refused(error, max_seconds)) from error
        return QueryResult(columns, rows[:cap], len(rows) > cap)

    def _ask(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[dict[str, Any]]:
        self._check()
        statement = f"SELECT row_to_json(answer) FROM ({translated(sql, self._shared.schema)}) answer"
        values: Any = parameters if isinstance(parameters, Mapping) else tuple(parameters)
        return [row for (row,) in self._shared.fetch(statement, values)]

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Db]:
        with contextlib.closing(self._open()) as db, self._trouble():
            yield db

    def _open(self) -> Db:
        self._check()
        return Snapshot(self._shared)

    def _check(self) -> None:
        if not self._checked:
            self._shared.again(self._look)
            self._checked = True

    def _look(self) -> None:
        with contextlib.closing(self._shared.connect()) as connection:
            check(connection, self._shared)

    @contextlib.contextmanager
    def _trouble(self) -> Iterator[None]:
        with self._shared.trouble():
            yield
