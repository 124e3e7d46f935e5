"""What a record of limits promises whoever keeps them, and the record of one process alone.

Knows records and owners, no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from DocsToKG.ContentDownload.net.limits.state import LimitState
from DocsToKG.core.cancel import CancelToken

T = TypeVar("T")
_LOOK_EVERY = 16
Change = Callable[[list[LimitState]], tuple[T, bool]]


class StoreUnavailable(Exception):
    """The record cannot be read now: no request may start. Ask again after `again_s`."""

    def __init__(self, why: str, again_s: float) -> None:
        super().__init__(why)
        self.why = why
        self.again_s = again_s


class LimitStore(Protocol):
    """Keeps one record per key. The caller sees to it that one thread at a time is inside."""

    owner: str
    shared: bool  # with other processes
    remote: bool  # a `change` may wait for a server, so that no event loop may call it

    @property
    def tenure(self) -> int:
        """Another number than before when slots that were granted to this owner may have gone to others since; below
        zero while none is surely ours."""

    @property
    def term(self) -> CancelToken | None:
        """Cancelled shortly before slots of this owner may go to others; None where that never happens."""

    def change(self, keys: Sequence[str], change: Change[T]) -> T:
        """Hand the records of `keys` to `change`, which alters them and says whether they are to be written."""

    def post(self, keys: Sequence[str], change: Change[None], *, soon: bool = False) -> None:
        """The same for what must not get lost: when the record is away, it is done as soon as it is back. No
        event loop is held up.

        With `soon` it may wait some milliseconds for a change that comes anyway.
        """

    def take_back(self, keys: Sequence[str]) -> bool:
        """Undo a change of exactly `keys` that was posted `soon` and is not written yet; False when there is none."""

    def is_gone(self, owner: str) -> bool:
        """`owner` runs no more."""

    def forget(self, keys: Sequence[str]) -> None:
        """Nobody in this process needs `keys` for now."""

    def close(self) -> None: ...


class MemoryLimitStore:
    """The record of one process."""

    owner = "me"
    shared = remote = False
    tenure = 0
    term = None

    def __init__(self) -> None:
        self._states: dict[str, LimitState] = {}
        self._unseen: set[str] = set()  # keys whose records were changed and not looked at since
        self._taken_back = 0

    def change(self, keys: Sequence[str], change: Change[T]) -> T:
        self._unseen.difference_update(keys)
        return change([self._states.setdefault(key, LimitState()) for key in keys])[0]

    def post(self, keys: Sequence[str], change: Change[None], *, soon: bool = False) -> None:
        if not soon:  # its own slots a process counts itself
            self.change(keys, change)
            self._unseen.update(keys)

    def take_back(self, keys: Sequence[str]) -> bool:
        """Nobody else wants a slot; the record is only to be seen now and then, since what it says may expire."""
        self._taken_back += 1
        return self._taken_back % _LOOK_EVERY > 0 and self._unseen.isdisjoint(keys)

    def is_gone(self, owner: str) -> bool:
        return False

    def forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._states.pop(key, None)

    def close(self) -> None:
        self._states.clear()
