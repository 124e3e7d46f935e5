"""Signals that ask a command to stop.

`timeout` signals the program and then its group: two signals that arrive together count as one.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from DocsToKG.core.interrupts import wish_noted, wish_over

_TOGETHER_S = 0.3  # nobody asks twice as fast by hand
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def heeding(wished: Callable[[int], None]) -> Iterator[None]:
    """Within the block, each signal calls `wished` with its number, from 1, and then counts as Ctrl+C."""
    times: list[float] = []

    def hear(*_: object) -> None:
        now = time.monotonic()
        if times and now - times[-1] < _TOGETHER_S:
            return
        times.append(now)
        wish_noted()
        wished(len(times))
        raise KeyboardInterrupt

    # What whoever started us wants ignored stays so, as in the background of a script.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, hear) for number in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)
        wish_over()
