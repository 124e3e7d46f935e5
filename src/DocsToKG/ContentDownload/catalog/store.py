"""Questions to a finished or running record: what is there, what happened to a work, any SELECT of your own.

Knows the tables. Opens the database for reading only; a running writer is not disturbed.
Promises: nothing asked here can change the record, and no question runs without end.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.catalog import duplicates, works
from DocsToKG.ContentDownload.catalog.connection import Db, stream
from DocsToKG.ContentDownload.catalog.paths import is_in_its_place
from DocsToKG.ContentDownload.catalog.selection import TAKEDOWN_STAGE, Selection
from DocsToKG.ContentDownload.errors import RecordDamaged, RecordError
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import primary_code

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.summary import Figures
    from DocsToKG.ContentDownload.catalog.unproved import UnprovedFile

GROUPS = works.GROUPS
_KNOWN_VERSION = 4
_UPGRADE = "run once with this program to upgrade it"
_NEWEST_COLUMN = "supplements"  # of `manifests`: a record without it was written by an earlier program
ROW_CAP = 10_000
_CACHE_KIB = 16 << 10
_VALUE_CAP = 16 << 20
_ALLOWED = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE},
)
# A fault of this program is no end: the work is tried again.
_NO_ENDS = (Reason.ALREADY_PRESENT, Reason.NOT_MODIFIED, Reason.WORKER_EXCEPTION)
_ENDS = f"""
SELECT doc_id, outcome, reason, cause, explanation FROM manifests m
 WHERE id IN (SELECT MAX(id) FROM manifests WHERE doc_id IN (SELECT value FROM json_each(?)) GROUP BY doc_id)
   AND status IN ('error', 'skipped') AND stage <> '{TAKEDOWN_STAGE}'
   AND reason NOT IN ({", ".join(f"'{reason}'" for reason in _NO_ENDS)})
   AND NOT EXISTS (SELECT 1 FROM downloads d WHERE d.doc_id = m.doc_id)
"""
_URLS = """SELECT url FROM manifests WHERE doc_id = :doc
           UNION SELECT canonical_url AS url FROM manifests WHERE doc_id = :doc
           UNION SELECT url FROM http_events WHERE work_id = :doc AND role = 'artifact'"""


@dataclass(frozen=True, slots=True)
class Download:
    """The file that stands for a work."""

    doc_id: str
    sha256: str
    path: str
    size_bytes: int | None
    mime: str | None
    url: str | None
    license: str | None
    oa_status: str | None
    version: str | None
    run_id: str | None
    created_at: str | None
    proof: str | None = None
    damaged: int | None = None
    version_doi: str | None = None

    @property
    def mark(self) -> str | None:
        """What is to be known of the file by whoever uses it: `unproved`, `damaged`, both or nothing."""
        words = ("unproved" if self.proof == "unproved" else "", "damaged" if self.damaged else "")
        return " ".join(filter(None, words)) or None


# Those of works that were taken down are gone with them.
_SUPPLEMENTS = """SELECT doc_id, supplements, run_id, created_at FROM manifests m
 WHERE supplements <> '[]' AND EXISTS (SELECT 1 FROM downloads d WHERE d.doc_id = m.doc_id)"""
_DOWNLOAD = ", ".join(field.name for field in fields(Download))


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Rows of a question; `truncated` when there were more than the cap."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool


@dataclass(frozen=True, slots=True)
class History:
    """All that is known of a work: its lines, files, requests and the sources tried, oldest first."""

    lines: list[dict[str, Any]]
    downloads: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    attempts: list[dict[str, Any]]


class Catalog:
    """Reads one record. Use as a context manager; threads may share it."""

    def __init__(self, db_path: Path | str) -> None:
        self.db_path = Path(db_path)
        self._connection: Db | None = None
        self._lock = threading.Lock()
        self._another: Callable[[], Db] | None = self._open  # to count with two connections at once

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def figures(self, run_id: str | None = None, *, since: str | None = None) -> Figures:
        """What a run, or the whole record, comes to; `since` leaves out earlier lines."""
        from DocsToKG.ContentDownload.catalog.summary import figures

        with self._reading() as db:
            return figures(db, run_id, since=since, another=self._another)

    def runs(self) -> list[str]:
        """The runs in the record, oldest first."""
        return [row["run_id"] for row in self._ask("SELECT run_id FROM run_summary ORDER BY started_at, run_id")]

    def obtained(self, run_id: str) -> set[str]:
        """The works whose file was obtained by a run."""
        rows = self._ask("SELECT DISTINCT doc_id FROM manifests WHERE run_id = ? AND status = 'ok'", (run_id,))
        return {row["doc_id"] for row in rows}

    def stats(self, group_by: str | None = None, chosen: Selection | None = None) -> list[dict[str, Any]]:
        """Works, obtained, already present, left out by filters, failed and bytes: in all, or per `group_by` (one
        of `GROUPS`)."""
        if group_by is not None and group_by not in GROUPS:
            raise ValueError(f"{group_by!r} is not a grouping; use one of {', '.join(GROUPS)}")
        with self._reading() as db:
            return works.count(db, chosen or Selection(), group_by, another=self._another)

    def page(self, chosen: Selection, *, after: int = 0, limit: int = 50) -> works.Page:
        """Some of the works, in the order of their lines; the next ones are behind `after` of the page."""
        with self._reading() as db:
            return works.page(db, chosen, after=after, limit=limit)

    def each(self, chosen: Selection) -> Iterator[dict[str, Any]]:
        """Every work, one at a time, as the record was when the first was asked for."""
        with contextlib.closing(self._open()) as db, self._trouble():
            yield from works.each(db, chosen)

    def files(self, prefix: str = "") -> Iterator[Download]:
        """The files that stand for works, in the order of their digests; `prefix` is how the digests begin."""
        wanted = f"sha256 >= ? AND sha256 < ? AND {duplicates.STANDS} ORDER BY sha256, doc_id"
        return self._each_file(wanted, (prefix, f"{prefix}g"))

    def earlier_names(self, doc_id: str | None = None) -> list[tuple[str, str]]:
        """Digest and readable name of files that stood for a work and do so no more; of one work, or of all."""
        with self._reading() as db:
            return list(duplicates.earlier_names(db, doc_id))

    def damaged(self) -> Iterator[Download]:
        """The files that stand for works and were found damaged or missing."""
        return self._each_file(f"corrupt <> 0 AND {duplicates.STANDS} ORDER BY +sha256, doc_id")

    def _each_file(self, wanted: str, values: Sequence[Any] = ()) -> Iterator[Download]:
        with contextlib.closing(self._open()) as db, self._trouble():
            rows = stream(db, f"SELECT {_DOWNLOAD} FROM downloads WHERE {wanted}", values)
            yield from (Download(*row) for row in rows)

    def downloads_of(self, doc_id: str) -> list[Download]:
        """Every file of a work, the latest first."""
        found = self._ask(f"SELECT {_DOWNLOAD} FROM downloads WHERE doc_id = ? ORDER BY manifest_id DESC", (doc_id,))
        return [Download(**row) for row in found]

    def supplements(self, doc_id: str | None = None) -> Iterator[Download]:
        """The files that are stored beside papers: of one work, or of all."""
        rows = self._ask(_SUPPLEMENTS) if doc_id is None else self._ask(f"{_SUPPLEMENTS} AND doc_id = ?", (doc_id,))
        for row in rows:
            for file in json.loads(row["supplements"]):
                if file.get("sha256") and file.get("path"):
                    told = (file["sha256"], file["path"], file.get("size_bytes"), file.get("mime"), file.get("url"))
                    yield Download(row["doc_id"], *told, None, None, None, row["run_id"], row["created_at"])

    def find_files(self, key: str) -> list[Download]:
        """The file of each work that `key` means: an id, or the first digits (6 or more) of a digest."""
        found = (self.find_download(doc_id) for doc_id in self._ids_of(key))
        return [file for file in found if file is not None]

    def run_times(self) -> dict[str, tuple[str | None, str | None]]:
        """When each run began and ended."""
        rows = self._ask("SELECT run_id, started_at, finished_at FROM run_summary")
        return {row["run_id"]: (row["started_at"], row["finished_at"]) for row in rows}

    def ends_without_file(self, doc_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The last line of each of these works that ended without a file and has none from before."""
        return self._ask(_ENDS, (json.dumps(doc_ids),))

    def urls_of(self, doc_id: str) -> set[str]:
        """Every address that a work's file was asked for at, redirects among them."""
        found = {row["url"] for row in self._ask(_URLS, {"doc": doc_id})}
        for row in self._ask("SELECT hops FROM manifests WHERE doc_id = ?", (doc_id,)):
            hops = json.loads(row["hops"] or "[]")
            found |= {str(hop["url"]) for hop in hops if isinstance(hop, dict) and hop.get("url")}
        return found - {None, ""}

    def holders(self, sha256: str) -> list[Download]:
        """The works that a file stands for."""
        wanted = f"sha256 = ? AND {duplicates.STANDS} ORDER BY doc_id"
        found = self._ask(f"SELECT {_DOWNLOAD} FROM downloads WHERE {wanted}", (sha256,))
        return [Download(**row) for row in found]

    def unproved(self) -> list[UnprovedFile]:
        """The files in which nothing shows that they are the paper, until a person has settled them."""
        from DocsToKG.ContentDownload.catalog.unproved import unproved_files

        with self._reading() as db:
            return list(unproved_files(db))

    def rejected(self) -> frozenset[tuple[str, str]]:
        """Works, each with the digest of a file that a person has rejected for it."""
        from DocsToKG.ContentDownload.catalog.unproved import rejected_files

        with self._reading() as db:
            return rejected_files(db)

    def duplicates(self, *, limit: int = 50) -> tuple[dict[str, int], list[dict[str, Any]]]:
        """What several works have in common: the totals, and the files that save most."""
        with self._reading() as db:
            return duplicates.totals(db), duplicates.shared_files(db, limit=limit)

    def query(self, sql: str, *, max_rows: int = 1_000, max_seconds: float = 10.0) -> QueryResult:
        """The answer to one SELECT. Anything that would write, attach or configure is refused."""
        db = self._open_file()
        try:
            db.set_authorizer(_only_reading)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_CAP)
            deadline = time.monotonic() + max_seconds
            db.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
            cursor = db.execute(sql)
            rows = cursor.fetchmany(min(max_rows, ROW_CAP) + 1)
            if cursor.description is None:
                raise RecordError("the question is empty: ask with one SELECT")
            columns = tuple(column[0] for column in cursor.description)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise RecordError(_why_refused(error, max_seconds)) from error
        finally:
            db.close()
        cap = min(max_rows, ROW_CAP)
        return QueryResult(columns, rows[:cap], len(rows) > cap)

    def show(self, key: str, *, limit: int = 500) -> History | None:
        """What happened to a work, by its id or by the first digits (6 or more) of its file's sha256."""
        ids = self._ids_of(key)
        if not ids:
            return None
        marks = ", ".join("?" * len(ids))

        def rows(table: str, column: str, order: str = "id") -> list[dict[str, Any]]:
            sql = f"SELECT * FROM {table} WHERE {column} IN ({marks}) ORDER BY {order} LIMIT ?"
            return self._ask(sql, (*ids, limit))

        return History(
            lines=rows("manifests", "doc_id"),
            downloads=rows("downloads", "doc_id", "manifest_id"),
            sources=rows("fallback_attempts", "work_id"),
            attempts=rows("http_events", "work_id"),
        )

    def tries_of(self, doc_id: str, *, limit: int = 200) -> list[dict[str, Any]]:
        """The requests made for a work, oldest first."""
        return self._ask("SELECT * FROM http_events WHERE work_id = ? ORDER BY id LIMIT ?", (doc_id, limit))

    def find_download(self, doc_id: str) -> Download | None:
        """The file that stands for a work, unless it is known to be damaged or missing."""
        found = self.standing(doc_id)
        return found[0] if found is not None and not found[1] else None

    def find_damaged(self, doc_id: str) -> Download | None:
        """The file that stands for a work, when it is known to be damaged or missing."""
        found = self.standing(doc_id)
        return found[0] if found is not None and found[1] else None

    def standing(self, doc_id: str) -> tuple[Download, bool] | None:
        """The file that stands for a work, and whether it is known to be damaged or missing."""
        latest = "WHERE doc_id = ? ORDER BY manifest_id DESC LIMIT 1"
        found = self._ask(f"SELECT {_DOWNLOAD}, corrupt FROM downloads {latest}", (doc_id,))
        if not found:
            return None
        is_damaged = bool(found[0].pop("corrupt"))
        return Download(**found[0]), is_damaged

    def _ids_of(self, key: str) -> list[str]:
        known = self._ask("SELECT 1 FROM manifests WHERE doc_id = ? LIMIT 1", (key,))
        if known or self._ask("SELECT 1 FROM http_events WHERE work_id = ? LIMIT 1", (key,)):
            return [key]
        digits = key.lower()
        if len(digits) < 6 or not set(digits) <= set("0123456789abcdef"):
            return []
        # The range is what LIKE 'digits%' means, in a form that uses the index.
        rows = self._ask(
            "SELECT DISTINCT doc_id FROM downloads WHERE sha256 >= ? AND sha256 < ? ORDER BY doc_id LIMIT 50",
            (digits, digits + "g"),
        )
        return [row["doc_id"] for row in rows]

    def _ask(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[dict[str, Any]]:
        with self._reading() as db:
            cursor = db.execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Db]:
        with self._lock, self._trouble():
            if self._connection is None:
                self._connection = self._open()
            yield self._connection

    def _open(self) -> Db:
        return self._open_file()

    @contextlib.contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _unreadable(self.db_path, error) from error

    def _open_file(self) -> sqlite3.Connection:
        if not self.db_path.is_file():
            raise RecordError(f"there is no record at {self.db_path}: name the folder of a run with --run")
        try:
            return _open_reading(self.db_path)
        except sqlite3.Error as error:
            raise _unreadable(self.db_path, error) from error


def _unreadable(path: Path, error: sqlite3.Error) -> RecordError:
    code = primary_code(error)
    if code == sqlite3.SQLITE_CORRUPT:
        return RecordDamaged(
            f"{path} is damaged: `content resume` keeps it aside and fills a new one from manifest.jsonl"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return RecordError(_no_database(path))
    return RecordError(f"{path} cannot be read: {error}")


def _no_database(path: Path) -> str:
    if path.suffix != ".sqlite":
        return f"{path} is no record of a run: name the folder that was given to `content pull --out`"
    if is_in_its_place(path):
        return f"{path} is no database: `content resume` keeps it aside and fills a new one from manifest.jsonl"
    return f"{path} is no database: move it away, or name the folder that was given to `content pull --out`"


def _open_reading(path: Path) -> sqlite3.Connection:
    uri = path.resolve().as_uri()
    try:
        return _checked(_connect(f"{uri}?mode=ro"), path)
    except sqlite3.OperationalError:
        # On a disk that cannot be written, a record that was closed well can still be read as it stands.
        if path.with_name(f"{path.name}-wal").exists():
            raise
        return _checked(_connect(f"{uri}?mode=ro&immutable=1"), path)


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)


def _checked(db: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Ready to be read; closed where it cannot be."""
    try:
        version = _version(db)
        if version != _KNOWN_VERSION:
            way_out = _UPGRADE if version < _KNOWN_VERSION else "use the newer program"
            raise RecordError(f"{path} has schema version {version}, not {_KNOWN_VERSION}: {way_out}")
        if not db.execute("SELECT 1 FROM pragma_table_info('manifests') WHERE name = ?", (_NEWEST_COLUMN,)).fetchone():
            raise RecordError(f"{path} was written by an earlier version: {_UPGRADE}")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        db.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        db.close()
        raise
    return db


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _only_reading(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action not in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and second == "load_extension"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _why_refused(error: Exception, max_seconds: float) -> str:
    if "interrupted" in str(error):
        return f"the question took longer than {max_seconds:g} s: narrow it, or ask for fewer rows"
    if "not authorized" in str(error) or "prohibited" in str(error):
        return "only reading is allowed here: ask with one SELECT"
    return f"the question cannot be answered: {error}"
