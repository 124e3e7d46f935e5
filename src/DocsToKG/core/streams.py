"""Standard streams that whoever started the program has closed, or whose reader goes away."""

from __future__ import annotations

import contextlib
import os
import sys


def open_what_is_closed() -> None:
    """Streams that were closed beforehand (`2>&-`) are empty, or lead nowhere. In their order, so that each gets its
    number back, which a database must not have."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - for as long as the program
            os.set_inheritable(stream.fileno(), True)  # as others are: processes of ours need it no less
            setattr(sys, name, stream)


def silence_stdout() -> None:
    """Its reader is gone: Python flushes standard output once more at exit, which would complain again."""
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(null, sys.stdout.fileno())
    os.close(null)
