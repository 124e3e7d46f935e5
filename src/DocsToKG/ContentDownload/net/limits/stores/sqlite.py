"""Where limits are remembered for every process of the user: in one small file.

The file is SQLite in WAL mode; each change is one short transaction. A slot passes from one request of a process to the
next without one, for as long as the signals beside the file say that nobody else wants anything. Each process holds a
locked file beside it while it lives, so that the slots of a dead one are known to be free. Knows records and owners, no
rules.
Promises: a change happens wholly or not at all; nobody waits here longer than a few hundredths of a second; what
could not be written because the file was busy is written later; nothing is forgotten by a restart.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from DocsToKG.ContentDownload.net.limits.state import LimitState
from DocsToKG.ContentDownload.net.limits.stores.base import Change, LimitStore, MemoryLimitStore, StoreUnavailable
from DocsToKG.ContentDownload.net.signals import Signals
from DocsToKG.core.clock import Clock
from DocsToKG.core.digest import canonical_json, sha256_hex
from DocsToKG.core.ids import new_worker_id
from DocsToKG.Orchestrator.control.workers.liveness import Presence
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import is_busy
from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import network_disk

T = TypeVar("T")
Keys = tuple[str, ...]
Owed = tuple[Keys, Change[None]]

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS lanes (key TEXT PRIMARY KEY, kept TEXT NOT NULL, touched REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS boot (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT, wall REAL, monotonic REAL);
"""
_BUSY_S = 0.02  # how long one look at the file may wait for another process
_PATIENCE_S = 5.0  # how long a busy file is nothing to speak of
_AGAIN_S = 0.03
_REPAIR_S = 0.5
_NEVER = float("-inf")
_UNSEEN_S = 2.0  # how long a freed slot may stay ours while no other process is there to want it
_UNWANTED_S = 0.25  # the same while others are there and none of them has asked for it
_SOON_S = 0.25  # how soon it is looked whether one is there
_SOON_SHARED_S = 0.05  # how soon it is looked whether one that is there wants it; that one looks no more often
_MOST_SEEN = 20_000
_LATER_S = 0.1
_LOOK_S = 0.25  # how often it is worth asking whether an owner is alive, and the file still the same
_NOTE_S = 20.0  # how often the time is written down, for the case that the machine restarts
_KEEP_S = 2 * 86400.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SqliteLimitStore:
    """The record of every process that opens the same `path`. `space` keeps worlds apart that must not meet."""

    shared = True
    remote = False
    tenure = 0  # a dead process is told from a slow one by the system
    term = None

    def __init__(self, path: Path, *, clock: Clock, space: str = "", boot_id: str | None = None) -> None:
        self.owner = new_worker_id()
        self._path = path
        self._clock = clock
        self._space = f"{space}|" if space else ""
        self._boot_id = _boot_id() if boot_id is None else boot_id
        self._presence = Presence(path, self.owner)
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._mine: dict[str, int] = {}
        self.visits = 0  # how often the record was opened to be read and changed
        self._owed: list[Owed] = []  # what could not be written when it should
        self._spare: dict[Keys, list[tuple[Change[None], float]]] = {}  # what may be taken back, and since when
        self._alive_at: dict[str, float] = {}
        self._signals: Signals | None = None
        # How the signals of these keys are read, and what they were when the record was.
        self._seen: dict[Keys, tuple[Callable[[], object], object]] = {}
        self._away_since: float | None = None
        self._alone = False
        self._shut_until = self._looked_at = self._noted_at = self._counted_at = float("-inf")
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._closed = False
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._presence)
            _patiently(self._open)
            stack.pop_all()
        self._sweep()

    def _sweep(self) -> None:
        """Remove the lock files of processes that were killed; their slots are found free by whoever needs one."""
        for path in self._presence.path.parent.iterdir():
            if path != self._presence.path:
                _is_unlocked(path)

    def change(self, keys: Sequence[str], change: Change[T]) -> T:
        return self._change(keys, change, looks=True)

    def _change(self, keys: Sequence[str], change: Change[T], *, looks: bool, along: Iterable[Keys] = ()) -> T:
        """`looks`: whoever asks takes to heart what the records say, so that the signals may count as seen. `along`:
        where spare slots are to be given up with it."""
        with self._lock:
            now = self._clock.monotonic()
            if now < self._shut_until:
                raise self._away(now)
            try:
                return self._transact(tuple(keys), change, now, looks=looks, along=along)
            except (sqlite3.Error, OSError, ValueError, TypeError) as error:
                raise self._failed(error, now) from error

    def post(self, keys: Sequence[str], change: Change[None], *, soon: bool = False) -> None:
        with self._lock:
            named = tuple(keys)
            if soon and (self._closed or self._may_wait(named)):
                self._spare.setdefault(named, []).append((change, self._clock.monotonic()))
                if self._timer is None:
                    self._try_later(_SOON_S if self._is_alone() else _SOON_SHARED_S)
                return
            try:
                self._change(named, change, looks=False)
            except StoreUnavailable:
                self._owed.append((named, change))
                self._try_later()

    def take_back(self, keys: Sequence[str]) -> bool:
        with self._lock:
            named = tuple(keys)
            spare = self._spare.get(named)
            if not spare:
                return False
            # Every now and then the record is to be seen all the same: it may be gone, or a newcomer may be there.
            now = self._clock.monotonic()
            if now < self._shut_until or now - self._looked_at >= _LOOK_S or not self._may_wait(named):
                return False
            spare.pop()
            return True

    def is_gone(self, owner: str) -> bool:
        now = self._clock.monotonic()
        if now - self._alive_at.get(owner, float("-inf")) < _LOOK_S:
            return False
        if _is_unlocked(self._presence.path.with_name(self._presence.path.name.replace(self.owner, owner))):
            return True
        self._alive_at[owner] = now
        return False

    def _is_alone(self) -> bool:
        """No other process has the record open, as of a moment ago."""
        now = self._clock.monotonic()
        if now - self._counted_at >= _LOOK_S:
            self._counted_at, self._alone = now, False
            with contextlib.suppress(OSError):
                self._alone = os.listdir(self._presence.path.parent) == [self._presence.path.name]
        return self._alone

    def forget(self, keys: Sequence[str]) -> None:
        """The file remembers; it is swept by age."""

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            with contextlib.suppress(StoreUnavailable):
                self._shut_until = float("-inf")
                held = list(self._mine)
                self.change(held, self._leave)
            self._disconnect()
            # Whoever finds our file gone, or unlocked, knows that nothing of ours runs any more.
            self._presence.__exit__(None, None, None)

    def _leave(self, records: list[LimitState]) -> tuple[None, bool]:
        for state in records:
            state.busy.pop(self.owner, None)
        return None, True

    def _transact(self, keys: Keys, change: Change[T], now: float, *, looks: bool, along: Iterable[Keys]) -> T:
        self.visits += 1
        db = self._same_file(now)
        # Slots at other hosts wait on: our own next requests there may take them up.
        goes = list(self._spare) if self._closed else [keys, *along]
        due = [*self._owed, *((key, given_up) for key in goes for given_up, _ in self._spare.get(key, ()))]
        db.execute("BEGIN IMMEDIATE")
        try:
            answer, running = self._apply(db, [*due, (keys, change)], now)
            if looks:
                self._note_seen(keys)
            self._note_time(db, now)
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise
        for ours, number in running.items():
            self._count_mine(ours, number)
        self._owed = []
        for key in goes:
            self._spare.pop(key, None)
        self._away_since = None
        result: T = answer
        return result

    def _apply(
        self, db: sqlite3.Connection, changes: Sequence[tuple[Keys, Change[Any]]], now: float
    ) -> tuple[Any, dict[str, int]]:
        """Read what `changes` are about, make them one after the other, write what they changed. Gives what the last
        one says, and how many exchanges of ours run now at the keys that were changed."""
        state = self._read(db, dict.fromkeys(key for keys, _ in changes for key in keys))
        before = {key: record.demands() for key, record in state.items()}
        touched: dict[str, None] = {}
        result = None
        for keys, change in changes:
            result, is_changed = change([state[key] for key in keys])
            if is_changed:
                touched.update(dict.fromkeys(keys))
        self._raise_signals([key for key in touched if state[key].demands() != before[key]])
        db.executemany(
            "INSERT INTO lanes (key, kept, touched) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (key) DO UPDATE SET kept = ?2, touched = ?3",
            [(self._space + key, state[key].encode(), max(now, state[key].hold_until)) for key in touched],
        )
        return result, {key: state[key].busy.get(self.owner, 0) for key in touched}

    def _read(self, db: sqlite3.Connection, keys: Iterable[str]) -> dict[str, LimitState]:
        """The records of `keys`, with one question for all: each lets other threads in between."""
        names = {self._space + key: key for key in keys}
        marks = ", ".join("?" * len(names))
        found = db.execute(f"SELECT key, kept FROM lanes WHERE key IN ({marks})", list(names)).fetchall()
        state = {names[name]: LimitState.decode(text) for name, text in found}
        return {key: state[key] if key in state else LimitState() for key in names.values()}

    def _raise_signals(self, keys: Sequence[str]) -> None:
        if keys and self._signals is None:
            self._open_signals()  # others, who have them, rely on them
        if self._signals is not None:
            for key in keys:
                self._signals.raise_for(key)

    def _may_wait(self, keys: Keys) -> bool:
        """No other process has asked for anything about `keys`, a pause or a slot, since we looked."""
        seen = self._seen.get(keys)
        return seen is not None and seen[0]() == seen[1]

    def _note_seen(self, keys: Keys) -> None:
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        if self._signals is not None and keys:
            known = self._seen.get(keys)
            read = known[0] if known is not None else self._signals.reader(keys)
            self._seen[keys] = (read, read())

    def _count_mine(self, key: str, running: int) -> None:
        if running:
            self._mine[key] = running
        else:
            self._mine.pop(key, None)

    def _failed(self, error: Exception, now: float) -> StoreUnavailable:
        busy = is_busy(error)
        if self._away_since is None:
            self._away_since = now if busy else now - _PATIENCE_S
        if not busy:
            self._disconnect()
        self._shut_until = now + (_AGAIN_S if busy else _REPAIR_S)
        return self._away(now)

    def _away(self, now: float) -> StoreUnavailable:
        long = self._away_since is not None and now - self._away_since >= _PATIENCE_S
        why = "the shared limits cannot be read" if long else "the shared limits are being read by others"
        return StoreUnavailable(f"{why} ({self._path})" if long else why, max(_AGAIN_S, self._shut_until - now))

    def _try_later(self, wait_s: float = _LATER_S) -> None:
        if self._timer is None and not self._closed:
            timer = threading.Timer(wait_s, self._pay)
            timer.daemon = True
            with contextlib.suppress(RuntimeError):  # the system gives no more threads; the next change does it
                timer.start()
                self._timer = timer

    def _pay(self) -> None:
        with self._lock:
            self._timer = None
            self._counted_at = _NEVER  # a newcomer is not to wait for us
            if self._closed:
                return
            given_up = self._given_up()
            try:
                if self._owed or given_up:
                    self._change((), lambda records: (None, False), looks=False, along=given_up)
            except StoreUnavailable:
                self._try_later()
            if any(self._spare.values()):
                self._try_later(_SOON_S if self._is_alone() else _SOON_SHARED_S)

    def _given_up(self) -> list[Keys]:
        """Where slots of ours lie that another process wants, or that we have kept for long enough."""
        latest = self._clock.monotonic() - (_UNSEEN_S if self._is_alone() else _UNWANTED_S)
        return [
            keys for keys, spare in self._spare.items() if spare and (spare[0][1] <= latest or not self._may_wait(keys))
        ]

    def _same_file(self, now: float) -> sqlite3.Connection:
        """Our connection; a new one when the file was removed or replaced, into which we write what runs."""
        if self._db is not None and now - self._looked_at >= _LOOK_S:
            self._looked_at = now
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self._path).st_ino == self._inode and (self._signals is None or self._signals.is_the_file()):
                    return self._db
            self._disconnect()
        if self._db is None:
            self._open()
        assert self._db is not None
        return self._db

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (kind := network_disk(self._path)) is not None:
            raise OSError(f"it is on a network disk ({kind})")
        db = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        self._db, self._inode = db, os.stat(self._path).st_ino
        self._open_signals()

    def _open_signals(self) -> None:
        # Without them every grant reads the record, as it must.
        with contextlib.suppress(OSError):
            self._signals = Signals(self._path.with_name(f"{self._path.name}-signals"))

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last moments; the machine then takes longer to come back than they lasted.
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("BEGIN IMMEDIATE")
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise sqlite3.DatabaseError("it was written by a later version")
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_VERSION}")
            self._after_restart(db)
            db.execute("DELETE FROM lanes WHERE touched < ?", (self._clock.monotonic() - _KEEP_S,))
            self._announce(db)
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    def _announce(self, db: sqlite3.Connection) -> None:
        """After the file was replaced: what of ours still runs."""
        running = dict(self._mine)

        def notify(records: list[LimitState]) -> tuple[None, bool]:
            for state, number in zip(records, running.values(), strict=True):
                state.busy[self.owner] = number
            return None, True

        if running:
            self._apply(db, [(tuple(running), notify)], self._clock.monotonic())

    def _after_restart(self, db: sqlite3.Connection) -> None:
        """Monotonic time begins anew when the machine starts: bring what is remembered into the new time.

        A wall clock that was set back meanwhile lengthens a pause to at most what was left of it.
        """
        now = self._clock.monotonic()
        row = db.execute("SELECT id, wall, monotonic FROM boot").fetchone()
        if row is not None and (row[0] != self._boot_id or row[2] > now + 1.0):
            shift_s = now - row[2] - max(0.0, self._clock.now() - row[1])
            for key, text in db.execute("SELECT key, kept FROM lanes").fetchall():
                state = LimitState.decode(text).moved(shift_s)
                touched = max(now, state.hold_until)
                db.execute("UPDATE lanes SET kept = ?, touched = ? WHERE key = ?", (state.encode(), touched, key))
        self._note_time(db, now)

    def _note_time(self, db: sqlite3.Connection, now: float) -> None:
        if now - self._noted_at >= _NOTE_S:
            self._noted_at = now
            db.execute("INSERT OR REPLACE INTO boot VALUES (1, ?, ?, ?)", (self._boot_id, self._clock.now(), now))

    def _disconnect(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None
        signals, self._signals = self._signals, None
        self._seen.clear()
        if signals is not None:
            signals.close()


def open_limit_store(path: Path | None, *, clock: Clock, space: str = "") -> tuple[LimitStore, str | None]:
    """The shared record at `path`; where it cannot be made, that of this process alone and a note that says so."""
    if path is None:
        return (
            MemoryLimitStore(),
            "limits hold for this process only: no home directory is known; set limits.store_path",
        )
    try:
        return SqliteLimitStore(path, clock=clock, space=space), None
    except (OSError, sqlite3.Error) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        return MemoryLimitStore(), f"limits hold for this process only: {path} cannot be used ({what})"


def default_store_path(environ: Mapping[str, str]) -> Path | None:
    """Where a user's limits are remembered unless they say otherwise."""
    if environ.get("XDG_STATE_HOME"):
        return Path(environ["XDG_STATE_HOME"]) / "docstokg" / "limits.sqlite"
    return Path(environ["HOME"]) / ".local" / "state" / "docstokg" / "limits.sqlite" if environ.get("HOME") else None


def space_of(connect_to: Mapping[str, str]) -> str:
    """The real world has no name; each sandbox, known by where it is reached, has one of its own."""
    return sha256_hex(canonical_json(dict(connect_to)))[:16] if connect_to else ""


def _boot_id() -> str:
    """Empty where the system tells none; then only a monotonic time that went back shows a restart."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text().strip()
    return ""


def _is_unlocked(path: Path) -> bool:
    """Nobody holds the file: it is gone, or its process has ended without removing it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


def _patiently(action: Callable[[], None]) -> None:
    """At the start, others may hold the file for a while."""
    for _ in range(int(_PATIENCE_S / _BUSY_S / 2)):
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            time.sleep(_BUSY_S)
    action()
