"""Several processes that work together: started, listened to, replaced when they die, ended without a trace.

Knows commands, pipes and exit codes; knows nothing of queues or papers. A member gets its order on standard input, then
`stop SECONDS`, and when its boss is gone the end of the input; it speaks in JSON lines on standard output: `up` when it
works, `failed` with an error that stops everybody, anything else is passed on. Promises: a member that dies is replaced
until the crew is stopped; one that cannot even begin, several times in a row, fails the crew; after `stop` or `kill` no
process of the crew is left, not even a dead one.
"""

from __future__ import annotations

import contextlib
import json
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import IO, Any

import orjson

from DocsToKG.ContentDownload.orchestrator.forking import Forked

_FALSE_STARTS = 3
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0
_LENGTH = struct.Struct(">I")

Word = dict[str, Any]


class Member:
    """One process and what it has said last."""

    def __init__(
        self, command: Sequence[str], order: bytes, keep_open: Sequence[int], copy: Forked | None = None
    ) -> None:
        self.process: Forked | subprocess.Popen[bytes]
        if copy is not None:
            self.process = copy
            copy.admit(keep_open)
        else:
            # Its own group: Ctrl+C is for the boss, who then tells the members.
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=keep_open, process_group=0
            )
        self.is_up = False
        self.state: Word = {}
        self.tell(_LENGTH.pack(len(order)) + order)

    def tell(self, data: bytes) -> None:
        """A member that is dead already hears nothing; that is noticed elsewhere."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def hear(self, on_word: Callable[[Word], None]) -> int:
        """Every word until it is gone; its exit code."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                word = word_of(line)
            except ValueError:  # a last line that death has torn
                continue
            if word.get("up"):
                self.is_up = True
            self.state = word.get("state", self.state)
            on_word(word)
        code = self.process.wait()
        self.close()
        return code

    def stop(self, grace_s: float) -> None:
        self.tell(b"stop %f\n" % grace_s)

    def close(self) -> None:
        if isinstance(self.process, Forked):
            self.process.close()
            return
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


class Crew:
    """`count` members that run `command`. `on_word(member, word)` hears them and must not raise; `on_death` follows
    each that died. `copies` of this process are the first members, where there are any."""

    def __init__(
        self,
        command: Sequence[str],
        order: bytes,
        *,
        count: int,
        on_word: Callable[[Member, Word], None],
        on_death: Callable[[], None] = lambda: None,
        on_failure: Callable[[str, str], None] = lambda kind, text: None,
        keep_open: Sequence[int] = (),
        copies: Iterable[Forked] = (),
    ) -> None:
        self._command = tuple(command)
        self._order = order
        self._on_word = on_word
        self._on_death = on_death
        self._on_failure = on_failure
        self._keep_open = tuple(keep_open)
        self._copies = list(copies)
        self._lock = threading.Lock()
        self._members: dict[int, Member] = {}  # by seat
        self._stopping = threading.Event()
        self.deaths = 0
        self._threads = [
            threading.Thread(target=self._fill, args=(seat,), name=f"crew-{seat}", daemon=True) for seat in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def members(self) -> list[Member]:
        with self._lock:
            return list(self._members.values())

    def replace_nobody(self) -> None:
        """Whoever ends from here on is followed by no other."""
        self._stopping.set()

    def halt(self, grace_s: float) -> None:
        """Everybody stops within `grace_s`; nobody is replaced any more."""
        with self._lock:
            self._stopping.set()
            members = list(self._members.values())
        for member in members:
            member.stop(grace_s)

    def stop(self, grace_s: float, *, patience_s: float = 10.0) -> None:
        """Halt, and return when all are gone; who is not `patience_s` after the grace is killed."""
        self.halt(grace_s)
        until = time.monotonic() + grace_s + patience_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End all at once."""
        self._stopping.set()
        for member in self.members:
            member.process.kill()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        for copy in self._copies:
            copy.dismiss()
        self._copies.clear()

    def _fill(self, seat: int) -> None:
        """Keep one seat taken."""
        false_starts = 0
        while not self._stopping.is_set():
            has_begun, how = self._have_one(seat)
            if self._stopping.is_set():
                return
            self.deaths += 1
            self._on_death()
            false_starts = 0 if has_begun else false_starts + 1
            if false_starts >= _FALSE_STARTS:
                self._on_failure("RunError", f"worker processes end before they begin ({how})")
                return
            self._stopping.wait(min(_FIRST_PAUSE_S * 2**false_starts, _LONGEST_PAUSE_S))

    def _have_one(self, seat: int) -> tuple[bool, str]:
        """Seat a member and hear it out: whether it got to work, and how it ended."""
        try:
            member = self._seat(seat)
        except OSError as error:  # no memory, or too many processes or open files
            return False, error.strerror or type(error).__name__
        if member is None:
            return False, "stopped"
        code = member.hear(partial(self._heed, member))
        with self._lock:
            del self._members[seat]
        return member.is_up, f"exit code {code}"

    def _seat(self, seat: int) -> Member | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            copy = self._copies.pop() if self._copies else None
            member = self._members[seat] = Member(self._command, self._order, self._keep_open, copy)
            return member

    def _heed(self, member: Member, word: Word) -> None:
        if failed := word.get("failed"):
            self._on_failure(failed["kind"], failed["text"])
        self._on_word(member, word)


class Boss:
    """The other side, in a member: its order, and when to stop."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        self._commands = commands
        self._answers = answers
        self._lock = threading.Lock()
        self._gathered: dict[str, list[Any]] = {}
        self.has_gathered = threading.Event()

    def order(self) -> bytes:
        (length,) = _LENGTH.unpack(self._commands.read(_LENGTH.size))
        return self._commands.read(length)

    def wait_for_stop(self) -> float | None:
        """The grace that is granted; None when the boss is gone."""
        words = self._commands.readline().split()
        return float(words[1]) if words[:1] == [b"stop"] else None

    def say(self, word: Word) -> None:
        """After all that was gathered. A boss who is gone hears nothing."""
        self._speak([word])

    def gather(self, kind: str, said: Any) -> None:
        """To be said in a list with others of its `kind`, before the next word or by `say_gathered`: hearing each by
        itself costs the boss as much as it costs us."""
        with self._lock:
            if not self._gathered:
                self.has_gathered.set()
            self._gathered.setdefault(kind, []).append(said)

    def say_gathered(self) -> None:
        self._speak([])

    def _speak(self, words: list[Word]) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            self.has_gathered.clear()
            if self._gathered:
                words = [self._gathered, *words]
                self._gathered = {}
            self._answers.write(b"".join(map(_line, words)))
            self._answers.flush()


def _as_json(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _line(word: Word) -> bytes:
    try:
        return orjson.dumps(word, default=_as_json, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a number or a text that only Python has
        return json.dumps(word, default=_as_json).encode() + b"\n"


def word_of(line: bytes) -> Word:
    try:
        word: Word = orjson.loads(line)
    except ValueError:
        word = json.loads(line)
    return word
