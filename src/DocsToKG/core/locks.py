"""Locks of open files, which the system drops when the last process that has the file is gone.

A process that was killed may need a moment for that, as long as the disk owes it an answer. Knows files and times only.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable

_AGAIN_S = 0.02


def lock_soon(file: int, *, within_s: float, is_leaving: Callable[[], bool] = lambda: True) -> bool:
    """Whether the lock is ours: at once, or within the time while whoever has it `is_leaving`."""
    until = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until or not is_leaving():
                return False
        time.sleep(_AGAIN_S)
