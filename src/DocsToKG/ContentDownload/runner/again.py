"""Which works of a folder are done once more although they have ended.

Reads the words of `--filter`, which are those of `catalog query`, and `status`, which is how the last try ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from DocsToKG.ContentDownload.catalog.selection import Selection, read_selection
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.runner.rows import ENDED
from DocsToKG.Orchestrator.jobs.states import JobState

_STATUS = {"failed": JobState.ERROR, "ok": JobState.DONE, "skipped": JobState.SKIPPED}
# As in `catalog query`: what may be named several times, and what once.
_MANY = {
    "source": "sources",
    "tier": "tiers",
    "host": "hosts",
    "license": "licences",
    "licence": "licences",
    "version": "versions",
    "state": "states",
}
_ONCE = {"year": "year", "since": "since", "until": "until", "text": "text", "run-id": "run_id"}
_KEYS = ("status", *_MANY, *_ONCE)


@dataclass(frozen=True, slots=True)
class Again:
    """Works whose job ended in one of `states` and that `chosen` means; without it, all of them."""

    states: tuple[JobState, ...] = ENDED
    chosen: Selection | None = None

    @classmethod
    def read(cls, words: Iterable[str], *, now: float) -> Again:
        """What a user wrote as `key=value`: values of one key are alternatives, and every key must fit."""
        given: defaultdict[str, list[str]] = defaultdict(list)
        for word in words:
            key, _, value = (part.strip() for part in word.partition("="))
            if key not in _KEYS or not value:
                raise InputError(f"--filter {word[:60]!r}: write KEY=VALUE; the keys are {', '.join(_KEYS)}")
            given[key] += [value] if key in _ONCE else [one.strip() for one in value.split(",") if one.strip()]
        states = tuple(dict.fromkeys(map(_state, given.pop("status", ()))))
        return cls(states or ENDED, _selection(given, now) if given else None)

    def works(self, catalog: Catalog) -> frozenset[str] | None:
        """The ids of the works that are meant; None when all are."""
        return None if self.chosen is None else frozenset(work["doc_id"] for work in catalog.each(self.chosen))


def _state(word: str) -> JobState:
    if word not in _STATUS:
        raise InputError(f"--filter status={word[:40]}: write status=failed, status=ok or status=skipped")
    return _STATUS[word]


def _selection(given: dict[str, list[str]], now: float) -> Selection:
    many: dict[str, list[str]] = defaultdict(list)
    for key, name in _MANY.items():
        many[name] += given.get(key, [])
    for key in _ONCE:
        if len(given.get(key, ())) > 1:
            raise InputError(f"--filter {key}=... is given twice; one value is meant")
    once = {name: given[key][0] for key, name in _ONCE.items() if key in given}
    return read_selection(**many, **once, now=now)  # type: ignore[arg-type]
