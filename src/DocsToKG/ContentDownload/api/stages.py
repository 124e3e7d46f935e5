"""Where a work is while it is worked on.

A work may ask several sources at once; it is where the furthest of its downloads is, and at its tier while there is
none. Knows the order of the stages, not who asks. Lives on one event loop. Promises to tell only what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SCHEDULED: Final = "scheduled"
HEAD_CHECK: Final = "head_check"
FETCH: Final = "fetch"
VERIFY: Final = "verify"
STORE: Final = "store"
INDEX: Final = "index"

_Where = tuple[str, str | None]  # a stage, and the address of the file it is for
_FURTHER = {HEAD_CHECK: 1, FETCH: 2, VERIFY: 3, STORE: 4, INDEX: 5}


def resolving(tier: str) -> str:
    return f"resolve:{tier}"


class WorkStages:
    """The stages of one work. `tell` hears the stage, and the address that is asked there if it is one of a file."""

    __slots__ = ("_branches", "_tell", "_tier", "_told")

    def __init__(self, tell: Callable[[str, str | None], None]) -> None:
        self._tell = tell
        self._tier: _Where = (SCHEDULED, None)
        self._told: _Where = self._tier
        self._branches: dict[object, _Where] = {}

    def tier(self, name: str) -> None:
        """The sources of this tier are asked from now on."""
        self._tier = (resolving(name), None)
        self._show(self._where())

    def at(self, branch: object, stage: str, url: str | None = None) -> None:
        """A download has come to a stage; without `url` its address stays the same."""
        branches = self._branches
        if url is None and branch in branches:
            url = branches[branch][1]
        branches[branch] = where = (stage, url)
        self._show(where if len(branches) == 1 else self._where())

    def leave(self, branch: object) -> None:
        """A download is over, however it ended."""
        if self._branches.pop(branch, None) is not None:
            self._show(self._where())

    def _where(self) -> _Where:
        return max(self._branches.values(), key=_how_far) if self._branches else self._tier

    def _show(self, where: _Where) -> None:
        if where != self._told:
            self._told = where
            self._tell(*where)


def _how_far(where: _Where) -> int:
    return _FURTHER[where[0]]
