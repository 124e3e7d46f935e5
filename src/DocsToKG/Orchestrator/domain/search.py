"""What is looked for in a list of jobs: the words of a search box, taken apart. Pure.

Knows quotes and the few names that may stand before a colon. Does not know tables. Promises: a bounded number of
words of bounded length, whatever was typed; what is not one of our names is a word like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
}
_PART = re.compile(r'(?:(?P<name>[a-z]+):)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class Search:
    """`words` must each occur in a text of the job, whatever their case; `exactly` are fields with the value wanted."""

    words: tuple[str, ...] = ()
    exactly: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.words and not self.exactly


def parse(text: str) -> Search:
    """What somebody typed: `worker:w1 "not found" 10.1000/xyz`."""
    words: list[str] = []
    exactly: dict[str, str] = {}
    for found in _PART.finditer(text[: MAX_WORDS * MAX_CHARS]):
        name = found["name"]
        value = found["phrase"] if found["phrase"] is not None else found["word"]
        value = value.replace("\0", "").strip()[:MAX_CHARS]
        if name in FIELDS and value:
            exactly[FIELDS[name]] = value
        elif name is not None or value:
            words.append((f"{name}:{value}" if name is not None else value).lower())
    return Search(tuple(words[:MAX_WORDS]), exactly)


def pattern(word: str) -> str:
    """The word as a pattern of LIKE with the escape sign `!`: found anywhere, and its own signs mean themselves."""
    escaped = word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
