"""Wait for what another thread or process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(holds: Callable[[], T], what: str = "", *, within_s: float = 60.0, every_s: float = 0.01) -> T:
    """The first answer of `holds` that is true. Fails when there is none by then, which no test should be near to."""
    deadline = time.monotonic() + within_s
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"it did not happen within {within_s:g} s{what and ': '}{what}"
        time.sleep(every_s)
    return answer
