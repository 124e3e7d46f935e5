"""Copies of this process that go on as processes of their own, with everything loaded that it has loaded.

A copy of a process with threads inherits locks that nobody will ever free, and a copy of somebody else's program holds
what is not ours. Promises: only a program of ours that has a single thread is copied; a copy never returns into its
caller, and ends by itself when the process that made it is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence

from DocsToKG.core import process

_MOST_FILES = 32


def may_fork() -> bool:
    """Whether a copy is safe: on Linux, where native threads are counted as well."""
    return process.is_ours() and sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


class Forked:
    """One copy, which runs `main` once it is `admit`ted: with the files that are given to it, and with standard input
    and output that lead here. Otherwise as `subprocess.Popen`."""

    def __init__(self, main: Callable[[], int], others: Iterable[Forked] = ()) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Words go through pipes: a socket whose other side was killed with words unread is broken, and not at its end.
        commands, answers, (self._gate, gate) = os.pipe(), os.pipe(), socket.socketpair()
        self.stdin = os.fdopen(commands[1], "wb")
        self.stdout = os.fdopen(answers[0], "rb")
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self.pid = os.fork()
        if self.pid == 0:
            for one in (self, *others):
                one.close()
            _go_on(main, gate, commands[0], answers[1])
        gate.close()
        os.close(commands[0])
        os.close(answers[1])

    def admit(self, files: Sequence[int]) -> None:
        """Let it begin. Its copies of the open `files` stay open for as long as it lives."""
        with contextlib.suppress(OSError):  # it is gone, which is noticed elsewhere
            socket.send_fds(self._gate, [b"!"], files)

    def wait(self) -> int:
        with self._lock:
            if self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def dismiss(self) -> None:
        """For one that was never admitted."""
        self.kill()
        self.wait()
        self.close()

    def close(self) -> None:
        for each in (self.stdin, self.stdout, self._gate):
            with contextlib.suppress(OSError):
                each.close()


def fork_many(main: Callable[[], int], count: int) -> list[Forked]:
    """So many copies; what is loaded by now is shared with them."""
    gc.collect()
    gc.freeze()  # the collector would write into what is shared
    try:
        made: list[Forked] = []
        for _ in range(count):
            made.append(Forked(main, made))
        return made
    finally:
        gc.unfreeze()


def _go_on(main: Callable[[], int], gate: socket.socket, commands: int, answers: int) -> None:
    """In the copy. Never returns."""
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl+C is for the process that made it
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        atexit._clear()
        said, _held, _, _ = socket.recv_fds(gate, 1, _MOST_FILES)
        gate.close()
        os.dup2(commands, 0)
        os.dup2(answers, 1)
        os.close(commands)
        os.close(answers)
        code = main() if said else 0
    except SystemExit as wanted:
        code = wanted.code if isinstance(wanted.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stderr.flush()
        os._exit(code)
