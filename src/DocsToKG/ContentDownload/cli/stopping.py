"""Signals that ask a command to stop.

`timeout` sends its signal to the program and then to its group: two that come together are one wish.
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
    """For the block, `wished` hears of each wish to stop, the first with 1, and then it counts as Ctrl+C."""
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
