"""Only a few threads of a pool run at once; one that waits for somebody else lets another take its turn.

A pool of many threads that all want the interpreter spends most of its time handing it round. So a pool gives out few
turns, and whatever is about to block in one of its threads (a socket, a look-up) does so inside `giving_way`.
Knows threads, no sockets. A thread that belongs to no pool gives way to nobody, and nothing happens.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol


class Turn(Protocol):
    """One thread's turn in its pool."""

    def leave(self) -> None:
        """Let another thread run."""

    def take(self) -> None:
        """Go on; blocks until it is this thread's turn again."""


class _Mine(threading.local):
    turn: Turn | None = None


_mine = _Mine()


def join_pool(turn: Turn | None) -> None:
    """This thread runs by turns from now on; by itself again with None."""
    _mine.turn = turn


class _GivingWay:
    """One for all threads: what it must remember, each thread knows by itself."""

    __slots__ = ()

    def __enter__(self) -> None:
        turn = _mine.turn
        if turn is not None:
            turn.leave()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn = _mine.turn
        if turn is not None:
            turn.take()


_giving_way = _GivingWay()


def giving_way() -> _GivingWay:
    """Around a wait: `with giving_way(): ...`. Not while a lock is held that others need to go on."""
    return _giving_way
