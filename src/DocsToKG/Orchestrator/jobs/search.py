"""The search box of a list of jobs: words and `name:value` terms. Pure.

Knows quotes and the few names that may stand before a colon. Does not know tables. Promises: a bounded number of words
of bounded length, whatever was typed; an unknown name is a word like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from DocsToKG.Orchestrator.jobs.status import JobStatus

MAX_WORDS = 8
MAX_CHARS = 200

# What may stand before a colon, and the field that is meant.
FIELDS: Mapping[str, str] = {
    "type": "job_type",
    "source": "source",
    "worker": "worker_id",
    "host": "host_key",
    "correlation": "correlation_id",
    "project": "project",
    "artifact": "artifact_id",
    "stage": "stage",
    "outcome": "outcome",
}
_STATUS = "status"
_STATUSES = frozenset(status.value for status in JobStatus)
_ERROR = "error"
_PART = re.compile(r'(?:(?P<name>[a-z]+):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class Search:
    """`words` must each occur in a text of the job, whatever their case, and `errors` in its last error; `exactly` are
    fields with the value wanted; `statuses` are those of which the job must have one, where any is named."""

    words: tuple[str, ...] = ()
    exactly: Mapping[str, str] = field(default_factory=dict)
    statuses: frozenset[JobStatus] = frozenset()
    errors: tuple[str, ...] = ()


def parse(text: str) -> Search:
    """What somebody typed: `status:failed worker:w1 error:timeout "not found" 10.1000/xyz`."""
    words: list[str] = []
    errors: list[str] = []
    exactly: dict[str, str] = {}
    statuses: set[JobStatus] = set()
    for found in _PART.finditer(text[: MAX_WORDS * MAX_CHARS]):
        name = found["name"]
        value = found["phrase"] if found["phrase"] is not None else found["word"]
        value = value.replace("\0", "").strip()[:MAX_CHARS]
        if name in FIELDS and value:
            exactly[FIELDS[name]] = value
        elif name == _STATUS and value in _STATUSES:
            statuses.add(JobStatus(value))
        elif name == _ERROR and value:
            errors.append(value.lower()[:MAX_CHARS])
        elif name is not None or value:
            words.append((f"{name}:{value}" if name is not None else value).lower()[:MAX_CHARS])
    return Search(tuple(words[:MAX_WORDS]), exactly, frozenset(statuses), tuple(errors[:MAX_WORDS]))


def pattern(word: str) -> str:
    """The word as a pattern of LIKE with the escape sign `!`: found anywhere, and its own signs mean themselves."""
    escaped = word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
