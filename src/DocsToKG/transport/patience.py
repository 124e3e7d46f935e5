"""How long may this exchange still wait, and has it been called off?

Knows the timeouts, the total deadline and the cancel token that one request carries. Every wait of the transport asks
here first, so a server that sends a byte a second cannot outlast the deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2

from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.transport.errors import DeadlineExceeded

_OVER = "the time given to this request is over"


@dataclass(slots=True, eq=False)
class Patience:
    """Limits of one exchange. None means no limit; `deadline` is in the clock's monotonic seconds."""

    clock: Clock
    connect_s: float | None = None
    read_s: float | None = None
    write_s: float | None = None
    deadline: float | None = None
    cancel: CancelToken | None = None
    connect_by: float | None = None
    silence_s: float | None = None

    @classmethod
    def of(cls, request: httpx2.Request, clock: Clock) -> Patience:
        asked: dict[str, Any] = request.extensions
        timeouts = asked.get("timeout") or {}
        connect_s, read_s, write_s = timeouts.get("connect"), timeouts.get("read"), timeouts.get("write")
        silence_s = timeouts.get("silence")
        return cls(clock, connect_s, read_s, write_s, asked.get("deadline"), asked.get("cancel"), None, silence_s)

    def wait(self, limit_s: float | None) -> float | None:
        """Seconds the next wait may take, above zero. Raises when the exchange is called off or out of time."""
        self.check()
        return self.longest(limit_s)

    def longest(self, limit_s: float | None) -> float | None:
        """`limit_s`, or what is left until the deadline if that is less."""
        if self.deadline is None:
            return limit_s
        left = max(self.deadline - self.clock.monotonic(), 1e-6)
        return left if limit_s is None else min(limit_s, left)

    def start_body(self) -> None:
        """The head is there. A server may think long before it answers; in the middle of a body, silence is a stall."""
        if self.silence_s is not None:
            self.read_s = self.silence_s if self.read_s is None else min(self.read_s, self.silence_s)

    def start_connecting(self) -> None:
        """From here the name look-up, the connect and the handshake together may take `connect_s`."""
        if self.connect_s is not None:
            self.connect_by = self.clock.monotonic() + self.connect_s

    def connect_wait(self) -> float | None:
        """As `wait`, for what is left of connecting."""
        if self.connect_by is None:
            return self.wait(None)
        left = self.connect_by - self.clock.monotonic()
        if left <= 0:
            raise self.timed_out(httpx2.ConnectTimeout, "connecting took too long")
        return self.wait(left)

    def check(self) -> None:
        if self.cancel is not None:
            self.cancel.raise_if_cancelled()
        if self.deadline is not None and self.clock.monotonic() >= self.deadline:
            raise DeadlineExceeded(_OVER)

    def timed_out(self, kind: type[httpx2.TimeoutException], message: str) -> Exception:
        """What a socket's timeout means: the deadline, when that is what it was armed with; otherwise `kind`."""
        if self.cancel is not None:
            self.cancel.raise_if_cancelled()
        # Socket timeouts have millisecond grain, so one armed with the deadline may end a hair before it.
        if self.deadline is not None and self.clock.monotonic() >= self.deadline - 0.005:
            return DeadlineExceeded(_OVER)
        return kind(message)

    def broken(self, kind: type[httpx2.NetworkError], error: OSError) -> Exception:
        """What a failing socket call means: our own cancelling, or the network."""
        if self.cancel is not None:
            self.cancel.raise_if_cancelled()
        return kind(f"{type(error).__name__}: {error.strerror or 'connection failed'}")
