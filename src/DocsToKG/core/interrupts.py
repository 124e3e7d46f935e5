"""Ctrl+C in a program of ours, from its first moment on.

Most of the first second goes into reading modules. What Python raises for Ctrl+C then may be swallowed, taken for an
error of the library that is being read, or, within one written in C++, abort the process. Knows no command. Promises:
while a module is read, Ctrl+C ends the process at once, which loses no more than a kill; at any other time it is the
KeyboardInterrupt that it was, and where nobody sees to that, a line and 130.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130  # as the shell writes it
_READS_MODULES = "<frozen importlib."  # the names of Python's own files for it begin so


# The wish to stop. Where the KeyboardInterrupt comes up while Python runs a `__del__` or a callback of the garbage
# collector, it is printed and lost; whoever waits for long looks here.
_wished = threading.Event()


def wish_noted() -> None:
    """Somebody wants the program to stop; from its signal handler."""
    _wished.set()


def wish_over() -> None:
    _wished.clear()


def raise_if_wished() -> None:
    """KeyboardInterrupt again, in the main thread, for one that was lost."""
    if _wished.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """For a whole program. Where somebody wants Ctrl+C ignored, or has plans of his own with it, so it stays."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _hear)
    try:
        yield
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _hear(number: int, frame: FrameType | None) -> NoReturn:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_READS_MODULES):
            try:
                os.write(2, b"Interrupted.\n")
            finally:
                os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
