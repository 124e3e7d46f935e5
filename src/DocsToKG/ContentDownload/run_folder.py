"""The folder of a run: one owner at a time, and what is needed to go on with it later.

Knows the names below the output root that are not records: `state/run.lock`, `state/inputs.jsonl` (what was asked
for, line by line, or the name of the list in `state/queries` when it was a query) and `state/run.json` (the settings
given on the command line). Does not know jobs or papers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from DocsToKG.ContentDownload.catalog.paths import DATABASE, LAST, MANIFEST
from DocsToKG.ContentDownload.errors import FolderInUse, RecordError, StorageError
from DocsToKG.ContentDownload.inputs import InputLine
from DocsToKG.ContentDownload.telemetry.snapshots import replacing
from DocsToKG.core.locks import lock_soon

_TEXT_CHARS = 500  # of an input line, enough to recognise it
_KILLED_S, _LEAVING_S = 1.0, 5.0


@dataclass(frozen=True, slots=True)
class AskedLine:
    """One input line as it is remembered: what was written, and the work it stands for or why it stands for none."""

    source: str
    line: int
    text: str
    work_id: str | None = None
    problem: str | None = None
    first: tuple[str, int] | None = None  # source and line that named the same work before


@dataclass(frozen=True, slots=True)
class SavedRun:
    """What is needed to go on: the settings given, whether the folder holds everything (then it may be moved), and
    where the catalog is, seen from the folder."""

    config_file: str | None
    overrides: dict[str, Any]
    movable: bool
    database: str


class RunFolder:
    """The output root of a run, locked while in use."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.queries = self.state / "queries"
        self._inputs = self.state / "inputs.jsonl"
        self._settings = self.state / "run.json"
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise StorageError(f"{self.root} is not a folder; name another one with --out") from None
        self.state.mkdir(mode=0o700, exist_ok=True)  # addresses in here may carry keys
        lock = open(self.state / "run.lock", "a+")
        # A run that was killed a moment ago may not know it yet, and those that it started may be about to go.
        if not lock_soon(lock.fileno(), within_s=_KILLED_S) and not lock_soon(
            lock.fileno(), within_s=_LEAVING_S, is_leaving=lambda: _is_leaving(_owner_of(lock))
        ):
            owner = _owner_of(lock)
            lock.close()
            raise FolderInUse(f"{self.root} is in use by {owner}; wait for it to end, or stop it")
        lock.truncate(0)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        self._lock = lock
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def lock(self) -> int:
        """The open file that holds the folder, for processes that work in it as well."""
        assert self._lock is not None, "enter the folder first"
        return self._lock.fileno()

    def remember_inputs(self, lines: Iterable[InputLine]) -> Iterator[InputLine]:
        """Pass the lines on while writing them down; the list is in place once all have passed."""
        with replacing(self._inputs) as file:
            for line in lines:
                file.write(line_json(line))
                yield line

    def remember_listing(self, key: str) -> None:
        """What was asked for is the list of this name."""
        with replacing(self._inputs) as file:
            file.write(json.dumps({"listing": key}).encode() + b"\n")

    def listing(self) -> str | None:
        """The name of the list that was asked for; None when it was lines."""
        if not self._inputs.exists():
            return None
        with open(self._inputs, "rb") as file, _reading(self._inputs):
            name = json.loads(file.readline() or b"{}").get("listing")
        return str(name) if name is not None else None

    def asked(self) -> Iterator[AskedLine]:
        """What this folder's run was asked for, in order."""
        key = self.listing()
        return read_lines(self._inputs if key is None else self.queries / f"{key}.jsonl")

    def remember(self, saved: SavedRun) -> None:
        with replacing(self._settings) as file:
            file.write(json.dumps(asdict(saved), indent=1).encode())

    def saved(self) -> SavedRun:
        """How the last run here was started."""
        try:
            return SavedRun(**json.loads(self._settings.read_bytes()))
        except FileNotFoundError:
            if any((self.root / name).is_file() for name in (DATABASE, MANIFEST, LAST)):
                raise RecordError(
                    f"{self._settings} is gone, and with it what was asked for and how: run the original "
                    "`content pull` again; what it had obtained is known from the record and not fetched again"
                ) from None
            raise RecordError(
                f"{self.root} is not the folder of a run: it has no state/run.json; start one with `content pull --out`"
            ) from None
        except NotADirectoryError:
            raise RecordError(f"{self.root} is a file; name the folder of the run, the one that it is in") from None
        except (ValueError, TypeError) as error:
            raise RecordError(f"{self._settings} cannot be read ({error}); run the original command again") from error


def record_of(run: Path) -> Path:
    """The catalog of the runs in a folder, wherever it is kept; a file is its own."""
    if run.is_file():
        return run
    try:
        return run / RunFolder(run).saved().database
    except RecordError:
        return run / DATABASE


def read_lines(path: Path, *, size_bytes: int | None = None) -> Iterator[AskedLine]:
    """The remembered lines of a file, or of its first `size_bytes`; a last line that was cut off is none."""
    if not path.exists():
        return
    with open(path, "rb") as file:
        while (size_bytes is None or file.tell() < size_bytes) and (text := file.readline()).endswith(b"\n"):
            with _reading(path):
                entry = json.loads(text)
                if "first" in entry:
                    entry["first"] = tuple(entry["first"])
                line = AskedLine(**entry)
            yield line


def _owner_of(lock: IO[str]) -> str:
    lock.seek(0)
    return lock.read(100).strip() or "another process"


def _is_leaving(owner: str) -> bool:
    """Whether the process that wrote its name into the lock is no more, or ends; others may have it from that one."""
    word, _, number = owner.partition(" ")
    if word != "process" or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    # One that was killed gives its memory back before its files, and then is there until its parent asks for it.
    with suppress(OSError):
        return not Path(f"/proc/{number}/cmdline").read_bytes()
    return False


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Something else in the file than what we wrote is named with the way out."""
    try:
        yield
    except (ValueError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{path} is damaged, and with it what was asked for: run the original `content pull` again; what it had "
            "obtained is known from the record and not fetched again"
        ) from error


def line_json(line: InputLine) -> bytes:
    """An input line as it is remembered."""
    twice = line.duplicate_of is not None
    kept = {
        "source": line.source,
        "line": line.line_no,
        "text": line.text[:_TEXT_CHARS],
        "work_id": line.work.work_id if line.work is not None else None,
        "problem": line.problem,
        "first": (line.duplicate_source or line.source, line.duplicate_of) if twice else None,
    }
    return json.dumps({key: value for key, value in kept.items() if value is not None}).encode() + b"\n"
