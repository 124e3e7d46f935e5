"""Works that stand before gates: a queue for each key that shuts one, and which key is worth asking for next.

Knows keys, places in a queue and how fast each moves; asks nobody and wakes nobody. Its owner's lock is held.
Promises: first come, first served within a key; of the keys that may be asked for, the one with the longest queue goes
first, because it is done last; none is passed over for long.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from heapq import nlargest
from itertools import islice

from DocsToKG.ContentDownload.api.steps import NotYet
from DocsToKG.ContentDownload.frontier.task import Crowded, Task
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.urls import host_key

_PACE_WEIGHT = 0.1  # of the newest grant in a key's average
_UNKNOWN_WAIT_S = 5.0  # nobody has passed that gate while we watched
_MOST_COMPARED = 64
_MOST_PASSED_OVER = 256


class GateQueues:
    """Who waits for which key, why, and for how long about."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Task]] = {}  # a key without waiters is not there
        self._why: dict[str, str] = {}
        self._pace: dict[str, tuple[float, float]] = {}  # the last grant of a key, and the average time between two
        self._askable: dict[str, int] = {}  # keys whose first waiter is worth asking for, and since which choice
        self._choices = 0
        self._due: dict[str, float] = {}  # the earliest time to ask for a key again; later ones are stale

    def __contains__(self, key: str) -> bool:
        return key in self._queues

    def __iter__(self) -> Iterator[Task]:
        for queue in self._queues.values():
            yield from queue

    def first(self, key: str) -> Task | None:
        queue = self._queues.get(key)
        return queue[0] if queue else None

    def join(self, key: str, task: Task, why: str | None = None) -> None:
        self._queues.setdefault(key, deque()).append(task)
        if why is not None:
            self._why.setdefault(key, why)

    def leave(self, key: str, task: Task) -> None:
        self._queues[key].remove(task)
        self._forget_if_empty(key)

    def pass_first(self, key: str, now: float) -> None:
        """The first waiter was granted what it waits for."""
        last, average_s = self._pace.get(key, (now, 0.0))
        self._pace[key] = (now, average_s + _PACE_WEIGHT * (now - last - average_s))
        self.drop_first(key)

    def drop_first(self, key: str) -> None:
        self._queues[key].popleft()
        self._forget_if_empty(key)

    def _forget_if_empty(self, key: str) -> None:
        if not self._queues[key]:
            for known in (self._queues, self._why, self._pace):
                known.pop(key, None)

    # which key to ask for, and when

    @property
    def is_any_askable(self) -> bool:
        return bool(self._askable)

    def mark_askable(self, key: str) -> bool:
        """True when it was not before, and somebody waits for it."""
        if key in self._askable or key not in self._queues:
            return False
        self._askable[key] = self._choices
        return True

    def next_askable(self) -> str | None:
        if not self._askable:
            return None
        self._choices += 1
        key = next(iter(self._askable))
        if len(self._askable) > 1 and self._choices - self._askable[key] < _MOST_PASSED_OVER:
            key = max(islice(self._askable, _MOST_COMPARED), key=self._length)
        del self._askable[key]
        return key

    def _length(self, key: str) -> int:
        return len(self._queues.get(key, ()))

    def note(self, answer: NotYet) -> bool:
        """Remember why a key is shut and when to ask again; True when that is sooner than what was known."""
        self._why[answer.key] = answer.why
        if answer.at is None or answer.at >= self._due.get(answer.key, float("inf")):
            return False
        self._due[answer.key] = answer.at
        return True

    def is_due(self, key: str, at: float) -> bool:
        """Whether the time that was noted is still the one to ask at; it is noted no longer."""
        if self._due.get(key) != at:
            return False
        del self._due[key]
        return True

    # for people who look, and for whoever has too many waiting

    def waits(self) -> Counter[str]:
        return Counter({self._why.get(key, key): len(queue) for key, queue in self._queues.items()})

    def crowds(self, keep: int, may: Callable[[CancelToken], bool], now: float) -> list[Crowded]:
        """The works to part with so that about `keep` stay: the last ones of the longest queues, if they `may` go."""
        level = _level([len(queue) for queue in self._queues.values()], keep)
        # Where not even one may stay at each gate, the gates that stay shut for longest go without.
        bare = max(0, len(self._queues) - keep) if level <= 1 else 0
        without = set(nlargest(bare, self._queues, key=lambda key: self._wait_s(key, 0, now)))
        return [
            Crowded(task.root.cancel, host_key(task.gate.url), self._wait_s(key, place, now), self._why.get(key, key))
            for key, queue in self._queues.items()
            for kept in (0 if key in without else level,)
            for place, task in enumerate(islice(queue, kept, None), kept)
            if task.gate is not None and may(task.root.cancel)
        ]

    def _wait_s(self, key: str, place: int, now: float) -> float:
        """How long the one at `place` in a queue may wait."""
        shut_s = max(0.0, self._due.get(key, now) - now)
        return shut_s + (place * self._pace[key][1] if key in self._pace else _UNKNOWN_WAIT_S)


def _level(lengths: list[int], keep: int) -> int:
    """How long each queue may stay so that all together hold about `keep`; short ones leave their share to others."""
    left = keep
    for n, length in enumerate(sorted(lengths)):
        share = max(1, left // (len(lengths) - n))
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
