"""Settings of the interpreter for a process that does nothing but our work.

A work makes some thousand objects and hardly a cycle: looking for cycles as often as Python does by itself takes a
tenth of the time. Threads that wait for the interpreter after the disk should have it soon. Only for processes of our
own: what somebody else's program holds, or how it shares its time, is not ours to settle.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_FOR_CYCLES = (20_000, 20, 50)
_SWITCH_S = 0.001
_program = {"ours": False}


def declare_ours() -> None:
    """Said by our own programs before they load anything: no cycle is made by that, and nobody else's work is here."""
    _program["ours"] = True
    gc.set_threshold(*_LOOK_FOR_CYCLES)


def is_ours() -> bool:
    return _program["ours"]


@contextmanager
def ours_alone() -> Iterator[None]:
    """For the block, the process works for us alone."""
    thresholds, switch_s = gc.get_threshold(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()  # what is there now stays until the end
    gc.set_threshold(*_LOOK_FOR_CYCLES)
    sys.setswitchinterval(min(switch_s, _SWITCH_S))
    try:
        yield
    finally:
        sys.setswitchinterval(switch_s)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
