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
        self._ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            _go_on(main, theirs, [self._ours, *(other._ours for other in others)])
        theirs.close()
        self.stdin = self._ours.makefile("wb")
        self.stdout = self._ours.makefile("rb")
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def admit(self, files: Sequence[int]) -> None:
        """Let it begin. Its copies of the open `files` stay open for as long as it lives."""
        with contextlib.suppress(OSError):  # it is gone, which is noticed elsewhere
            socket.send_fds(self._ours, [b"!"], files)

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
        for each in (self.stdin, self.stdout, self._ours):
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


def _go_on(main: Callable[[], int], pipe: socket.socket, foreign: Iterable[socket.socket]) -> None:
    """In the copy. Never returns."""
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl+C is for the process that made it
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        atexit._clear()
        for each in foreign:
            each.close()
        said, _held, _, _ = socket.recv_fds(pipe, 1, _MOST_FILES)
        os.dup2(pipe.fileno(), 0)
        os.dup2(pipe.fileno(), 1)
        pipe.close()
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
