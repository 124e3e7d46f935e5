"""What the sandbox complains of, less what nobody could have heeded.

A machine that is busy with other things reads late: while the word that asks for a pause lies unread at the client,
other processes cannot know of it. The record of a run says when each such answer was read.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

_SLACK_S = 0.1
_PAUSES = "SELECT host, ts, elapsed_ms FROM http_events WHERE http_status IN (429, 503) AND elapsed_ms IS NOT NULL"


def complaints(violations: Iterable[dict[str, Any]], records: Iterable[Path]) -> list[dict[str, Any]]:
    """Those of `violations` that a client could have avoided, by the databases of its runs."""
    wall = time.time() - time.monotonic()
    pauses = [pause for record in records for pause in _pauses_told(record)]

    def lay_unread(found: dict[str, Any]) -> bool:
        came = found["at_s"] + wall
        return any(host == found["host"] and sent - _SLACK_S <= came <= read + _SLACK_S for host, sent, read in pauses)

    return [found for found in violations if found["kind"] != "retry-after" or not lay_unread(found)]


def _pauses_told(record: Path) -> list[tuple[str, float, float]]:
    """Who asked for a pause, when that request was sent and when its answer was read."""
    with contextlib.closing(sqlite3.connect(record)) as database:
        rows = database.execute(_PAUSES).fetchall()
    read = [(host, datetime.fromisoformat(ts).timestamp(), elapsed_ms / 1000) for host, ts, elapsed_ms in rows]
    return [(host, at - took_s, at) for host, at, took_s in read]
