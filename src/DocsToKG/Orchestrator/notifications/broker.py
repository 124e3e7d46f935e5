"""What all brokers share: wake-ups within the process at once, to others by a thread.

A thread sends each notice, at most once per lane in a short while, because a notice only says "look". Promises: nobody
who notifies or waits is held up by the broker or sees its errors; what could not be sent is sent when the broker is
back; everyone is woken once then, since notices may have been missed meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from DocsToKG.Orchestrator.notifications.local import LocalSignal

PAUSE_S = 0.05  # between two notices of one lane
CLOSE_S = 3.0
LONGEST_LANE = 200
_MOST_LANES = 1000
_LEAST_BACKOFF_S, _MOST_BACKOFF_S = 0.1, 5.0


class RelayedSignal(ABC):
    """A `Signal` that a broker carries to other processes. Its threads start with the first wait or notice.

    The counters are for metrics: `notices` heard from others, `sent` ones, `troubles` with the broker, and how often it
    was reached again (`reconnects`). `is_listening` tells whether notices of others arrive, as far as is known.
    """

    def __init__(self) -> None:
        self._name = uuid4().hex[:16]  # so that we do not wake ourselves twice
        self._local = LocalSignal()
        self._lock = threading.Lock()
        self._lanes: set[str] = set()
        self._something = threading.Event()
        self._closed = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self.is_listening = False
        self.notices = 0
        self.sent = 0
        self.troubles = 0
        self.reconnects = 0
        self._begun = False

    def notify(self, lane: str) -> None:
        self._local.notify(lane)
        with self._lock:
            if len(self._lanes) >= _MOST_LANES:
                self._lanes.clear()  # a notice of any lane makes them look at all
            self._lanes.add(lane[:LONGEST_LANE])
        self._stir()
        self._start(self._senders())

    def mark(self) -> int:
        self._start(self._listeners())
        return self._local.mark()

    def wait(self, timeout_s: float, *, since: int | None = None) -> bool:
        self._start(self._listeners())
        return self._local.wait(timeout_s, since=since)

    def close(self) -> None:
        """Send what is waiting to be sent, if the broker is there, then stop. Safe to call twice."""
        with self._lock:
            self._closed.set()
            threads = list(self._threads.values())
        self._stir()
        deadline = time.monotonic() + CLOSE_S
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))  # one that hangs in a cut network ends by itself
        self._local.close()

    @abstractmethod
    def _senders(self) -> dict[str, Callable[[], None]]:
        """What a notice needs to have running, by the name of the thread: one session with the broker each."""

    @abstractmethod
    def _listeners(self) -> dict[str, Callable[[], None]]:
        """What waiting needs to have running."""

    def _stir(self) -> None:
        """There is something to send, or it is time to end."""
        self._something.set()

    def _start(self, wanted: dict[str, Callable[[], None]]) -> None:
        if wanted.keys() <= self._threads.keys():
            return
        with self._lock:
            for name, session in wanted.items():
                if name not in self._threads and not self._closed.is_set():
                    self._threads[name] = threading.Thread(target=self._keep, args=(session,), name=name, daemon=True)
                    self._threads[name].start()

    def _keep(self, session: Callable[[], None]) -> None:
        """One session after the other until it is time to end, with a pause that grows while the broker is away."""
        pause_s = _LEAST_BACKOFF_S
        while True:
            began = time.monotonic()
            try:
                session()
                return
            except Exception:  # whatever a broker answers, it must not end the wake-ups
                self._count_trouble()
            if time.monotonic() - began > _MOST_BACKOFF_S:
                pause_s = _LEAST_BACKOFF_S
            if self._closed.wait(pause_s * random.uniform(0.5, 1.0)):
                return
            pause_s = min(_MOST_BACKOFF_S, pause_s * 2)

    def _hear(self, sender: str, lane: str) -> None:
        if sender != self._name:
            self.notices += 1
            self._local.notify(lane)

    def _begin_listening(self) -> None:
        """Call it once notices arrive: what was said before is not lost, but unheard."""
        self.is_listening = True
        self.reconnects += self._begun
        self._begun = True
        self._local.notify("")

    def _count_trouble(self) -> None:
        with self._lock:
            self.troubles += 1

    @contextmanager
    def _sending(self) -> Iterator[list[str]]:
        """What waits to be sent; it waits on if that fails. A lane that is named anew meanwhile is sent anew."""
        with self._lock:
            lanes = sorted(self._lanes)
            self._lanes.clear()
            if not self._closed.is_set():
                self._something.clear()
        try:
            yield lanes
            self.sent += len(lanes)
        except BaseException:
            with self._lock:
                self._lanes.update(lanes)
            self._something.set()
            raise
