"""The sources of a run: how often each was asked, what it delivered, and which one is failing.

Knows the table of sources tried and what its outcomes mean for the source itself, as against the files it names.
Reads only. Promises: a source that refuses us is named with the setting to check; one that lacks its key is named once.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from DocsToKG.ContentDownload.catalog.aggregates import TRIED
from DocsToKG.ContentDownload.catalog.connection import Db
from DocsToKG.ContentDownload.catalog.counts import Scope
from DocsToKG.ContentDownload.catalog.rollups import count_all

_FAILED = frozenset({"retryable", "timeout", "error", "nonretryable"})
# The owner's rule and our own budget are no fault of a source.
_NO_FAULT = frozenset({"robots", "budget_exhausted", "filtered", "taken-down"})
_LACKS = ("missing_key", "missing_email")
_STATUS = re.compile(r"\b[45]\d\d\b")
_FEWEST_ERRORS = 3
_FAILING_SHARE = 0.5


@dataclass(slots=True)
class SourceFigures:
    """One source in a run. `errors` are its own: it could not be asked, refused us, or sent nonsense."""

    asked: int = 0
    files: int = 0
    guesses: int = 0  # of the files, those whose address was built by a rule
    share: float | None = None  # of all files obtained
    no_good: int = 0  # works for which none of the files it named was any good
    errors: int = 0
    by_error: dict[str, int] = field(default_factory=dict)
    skipped: str | None = None  # why it was never asked, when that is for lack of a key or an address
    advice: str | None = None  # what to look at, in the words of the source

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_failing(self) -> bool:
        refused = any(kind.startswith("refused") for kind in self.by_error)
        return refused or (self.errors >= _FEWEST_ERRORS and self.errors >= _FAILING_SHARE * self.asked)


def source_figures(db: Db, scope: Scope) -> dict[str, SourceFigures]:
    """Every source that was asked or lacked its key, by name; files are not counted here."""
    found: dict[str, SourceFigures] = {}
    for (source, outcome, stage, word, http_status), (count, reason) in sorted(_tried(db, scope).items(), key=_often):
        if outcome == "skipped" and word not in _LACKS:
            continue
        figures = found.setdefault(source, SourceFigures())
        if outcome == "skipped":
            figures.skipped = word
            continue
        figures.asked += count
        if outcome not in _FAILED or word in _NO_FAULT:
            continue
        if stage == "fetch":
            figures.no_good += count
        else:
            _add_error(figures, count, _kind(word, http_status, reason), reason)
    return found


_Tried = tuple[str, str, str, str, int | None]


def _tried(db: Db, scope: Scope) -> dict[_Tried, tuple[int, str]]:
    """How often each thing happened at each source, with one of the reasons in full."""
    found: dict[_Tried, tuple[int, str]] = {}
    for (*kind, said), count in count_all(db, TRIED, scope)["tried"].items():
        known, last = found.get(tuple(kind), (0, ""))
        found[tuple(kind)] = (known + count, max(last, said))
    return found


def _often(tried: tuple[_Tried, tuple[int, str]]) -> tuple[str, int, str]:
    return tried[0][0], -tried[1][0], str(tried[0])


def count_files(found: dict[str, SourceFigures], delivered: Counter[tuple[str, str, str, bool]]) -> None:
    """Add the files: `delivered` counts them by source, tier, evidence and whether the address was guessed."""
    total = delivered.total()
    for (source, _, _, guessed), count in delivered.items():
        figures = found.setdefault(source, SourceFigures())
        figures.files += count
        figures.guesses += count if guessed else 0
        figures.share = round(figures.files / total, 6)


def failing_sources(found: dict[str, SourceFigures]) -> dict[str, str]:
    """By source: what goes wrong, how often, and what to look at."""
    return {name: _sentence(figures) for name, figures in sorted(found.items()) if figures.is_failing}


def skipped_sources(found: dict[str, SourceFigures]) -> dict[str, str]:
    """By source: why it was never asked."""
    return {name: figures.skipped for name, figures in sorted(found.items()) if figures.skipped and not figures.asked}


def _sentence(figures: SourceFigures) -> str:
    kinds = ", ".join(f"{kind} on {count} of {figures.asked}" for kind, count in list(figures.by_error.items())[:3])
    return kinds + (f": {figures.advice}" if figures.advice else "")


def _add_error(figures: SourceFigures, count: int, kind: str, reason: str) -> None:
    figures.errors += count
    figures.by_error[kind] = figures.by_error.get(kind, 0) + count
    figures.by_error = dict(sorted(figures.by_error.items(), key=lambda item: -item[1]))
    if kind.startswith("refused"):
        # `refused: CORE answered 401; check resolvers.core.api_key`
        figures.advice = reason.partition(";")[2].strip() or figures.advice


def _kind(word: str, http_status: int | None, reason: str) -> str:
    said = _STATUS.search(reason)
    status = http_status if http_status is not None else said[0] if said is not None else None
    return f"{word or 'unknown'} {status}" if status is not None else word or "unknown"
