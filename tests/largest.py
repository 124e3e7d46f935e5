"""How much a process grows over a piece of work, at its largest.

Linux forgets the largest size so far when asked, so that what a process was before hides nothing. Where it does not
let us ask, only growth beyond everything before is seen.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

_FORGET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def can_forget() -> bool:
    try:
        _FORGET.write_text("5")
    except OSError:
        return False
    return True


@contextlib.contextmanager
def grown_mb() -> Iterator[Callable[[], float]]:
    """Gives what tells, afterwards, by how many megabytes."""
    knows = can_forget()
    before = _kib("VmRSS") if knows else _ever_kib()
    yield lambda: ((_kib("VmHWM") if knows else _ever_kib()) - before) / 1024


def _kib(field: str) -> int:
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1])


def _ever_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
