"""Standard streams that whoever started the program has closed, or whose reader goes away.

Knows streams and exit codes. Promises: output that was asked for reaches somebody, or the program ends with an error.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

CLOSED_PIPE = 141  # as the shell writes it
_LOST = "standard output is closed, and what was written there is lost: leave it open, or send it to a file"


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """For a program as a whole: it ends with `CLOSED_PIPE` where its reader goes away, and with 1 where something was
    written to a standard output that was closed beforehand."""
    open_what_is_closed()
    end: SystemExit | None = None
    try:
        try:
            yield
        except SystemExit as asked:
            # Libraries that write for us make an end of their own of a broken pipe.
            if isinstance(asked.__context__, BrokenPipeError):
                raise asked.__context__ from None
            end = asked
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        raise SystemExit(CLOSED_PIPE) from None
    if (end is None or not end.code) and output_is_lost():
        print(f"Error: {_LOST}", file=sys.stderr)
        raise SystemExit(1)
    if end is not None:
        raise end


def open_what_is_closed() -> None:
    """Streams that were closed beforehand (`2>&-`) are empty, or lead nowhere. In their order, so that each gets its
    number back, which a database must not have."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # For as long as the program.
            stream = _nowhere() if name == "stdout" else open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)  # as others are: processes of ours need it no less
            setattr(sys, name, stream)


class _Nowhere(io.FileIO):
    """Leads nowhere, and knows whether something went there that somebody wanted."""

    is_missed = False
    is_wanted = True

    def write(self, data: Any, /) -> int:
        self.is_missed |= self.is_wanted
        return super().write(data)


def output_is_lost() -> bool:
    """Whether something was written to a standard output that was closed beforehand."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(raw, _Nowhere):
        return False
    sys.stdout.flush()
    return raw.is_missed


def nobody_has_to_read() -> None:
    """What is written to standard output from here on is told besides: the work lies elsewhere."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Nowhere):
        sys.stdout.flush()
        raw.is_wanted = False


def _nowhere() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(_Nowhere(os.devnull, "w")), encoding="utf-8")


def _silence_stdout() -> None:
    """Its reader is gone: Python flushes standard output once more at exit, which would complain again."""
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(null, sys.stdout.fileno())
    os.close(null)
