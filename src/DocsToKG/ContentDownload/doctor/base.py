"""What a check tells, and what every check can do.

Knows levels and findings. Does not know servers, settings or how findings are shown. A check promises: the first thing
that it tells is whether what it looks at can be used at all; it leaves nothing behind; it tells no secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol


class Level(IntEnum):
    """From good to bad."""

    OK = 0
    WARNING = 1  # it works, and somebody should know
    FAILED = 2  # a run would stop, or wait for ever

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, what was seen, and what to do about it where something is to be done."""

    subject: str
    level: Level
    seen: str
    advice: str = ""


class Check(Protocol):
    """One thing to look at. `needed` tells whether no work can be done without it."""

    name: str
    needed: bool

    def look(self) -> Iterator[Finding]:
        """Look, step by step; whoever reads the findings may stop early."""
        ...


def ok(subject: str, seen: str) -> Finding:
    return Finding(subject, Level.OK, seen)


def warning(subject: str, seen: str, advice: str) -> Finding:
    return Finding(subject, Level.WARNING, seen, advice)


def failed(subject: str, seen: str, advice: str) -> Finding:
    return Finding(subject, Level.FAILED, seen, advice)


def missing_extra(extra: str) -> Finding:
    return failed("driver", "the package that speaks to it is not installed", f"pip install 'docstokg[{extra}]'")
