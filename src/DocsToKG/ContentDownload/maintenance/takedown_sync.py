"""The list of takedowns that several machines share: what one refuses, all do.

Knows the table beside the shared record. Promises: a work on the list is refused by every machine within seconds, and
no file stands for it on the shared record, whichever machine sends one.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.catalog.shared.schema import prepare
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.telemetry.replication import send_now
from DocsToKG.core.clock import Clock

_INSERT = "INSERT INTO {s}.takedowns AS known (doc_id, taken_at, stands, entry) VALUES (%s, %s, %s, %s)"
_ADD = f"{_INSERT} ON CONFLICT DO NOTHING"
_PUT = f"""
{_INSERT} ON CONFLICT (doc_id, taken_at) DO UPDATE
   SET stands = excluded.stands, entry = excluded.entry, change = nextval('{{s}}.takedown_changes')
 WHERE known.entry <> excluded.entry
"""
_CHANGED = "SELECT change, entry FROM {s}.takedowns WHERE change > %s ORDER BY change"
_FORGET = "DELETE FROM {s}.downloads d USING {s}.takedowns t WHERE t.stands AND t.doc_id = d.doc_id RETURNING 1"


class TakedownSync:
    """What all machines refuse. `clock` is for what is written along."""

    def __init__(self, shared: SharedRecord, *, clock: Clock, node: str | None = None) -> None:
        self._shared = shared
        self._clock = clock
        self._node = node or socket.gethostname()
        self._seen = 0
        self._is_ready = False

    def put(self, entry: Mapping[str, Any]) -> None:
        """Add the entry, or replace the one of the same work and moment."""
        self._ask(_PUT, _row(entry))

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add the entry, unless the list has one of the same work and moment."""
        self._ask(_ADD, _row(entry))

    def changed(self) -> list[dict[str, Any]]:
        """The entries that were added or changed since the last look."""
        found = self._ask(_CHANGED, (self._seen,))
        self._seen = max([self._seen, *(int(change) for change, _ in found)])
        return [json.loads(entry) for _, entry in found]

    def forget_files(self) -> int:
        """No file stands for what is refused; returns how many were on record."""
        return len(self._ask(_FORGET, ()))

    def send(self, database: Path) -> None:
        """What this machine's own record says of it, to the shared one."""
        send_now(self._shared, database, node=self._node, clock=self._clock)

    def _ask(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if not self._is_ready:
            prepare(self._shared)
            self._is_ready = True
        return self._shared.fetch(sql.replace("{s}", self._shared.schema), values)


def _row(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    told = json.dumps({**entry, "pending": False}, sort_keys=True)
    return entry["doc_id"], entry["taken_at"], entry["undone_at"] is None, told
