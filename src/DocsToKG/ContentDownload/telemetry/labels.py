"""Bounded label values: what comes from outside never makes more series than was allowed.

Knows how many values each label may have. The first ones seen keep their name, all others become `other` and are
counted. Promises: at most `most` values per label, and one word of printable characters each.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

OTHER = "other"
NONE = "none"

_LONGEST = 80
_UNPRINTABLE = re.compile(r"[^\x21-\x7e\u00a1-\ud7ff\ue000-\ufffd]")
_MOST = 64
# Reasons and statuses are words of ours, of which there are more than sources and tiers.
_OWN: Mapping[str, int] = {"reason": 128, "status": 128}


class LabelBounds:
    """The values in use, label by label. `on_fold` is told the label of each value that became `other`."""

    def __init__(self, *, most_hosts: int = 100, on_fold: Callable[[str], None] = lambda label: None) -> None:
        self._most = {**_OWN, "host": most_hosts}
        self._on_fold = on_fold
        self._known: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def value(self, label: str, value: str) -> str:
        """The value to count under."""
        known = self._known.get(label)
        found = known.get(value) if known is not None else None
        return found if found is not None else self._take_in(label, value)

    def _take_in(self, label: str, value: str) -> str:
        if value == OTHER:
            return OTHER
        clean = _UNPRINTABLE.sub("?", str(value)[:_LONGEST]) or NONE
        with self._lock:
            known = self._known.setdefault(label, {})
            if clean in known or len(known) < self._most.get(label, _MOST):
                known[clean] = clean
                return clean
        self._on_fold(label)
        return OTHER
