"""Ctrl+C while modules are read, which takes most of the first second of a command.

What Python raises for it then may be swallowed, taken for an error of the library that is being read, or, within one
written in C++, abort the process. Knows no command. Promises: while a module is read, Ctrl+C ends the process at once,
which loses no more than a kill; at any other time it is the KeyboardInterrupt that it was.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # as the shell writes it
_READS_MODULES = "<frozen importlib."  # the names of Python's own files for it begin so


def end_at_once_while_modules_are_read() -> None:
    """From here on, for the whole process. Where somebody wants Ctrl+C ignored or has other plans, so it stays."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _hear)


def _hear(number: int, frame: FrameType | None) -> NoReturn:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_READS_MODULES):
            try:
                os.write(2, b"Interrupted.\n")
            finally:
                os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
