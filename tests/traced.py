"""The connections of SQLite ledgers, with their statements and steps counted."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.Orchestrator.ledger.drivers.sqlite import driver, schema

STEPS = 100  # of SQLite's machine, for one call of a handler


class Traced:
    """What ledgers do that are opened from here on: all of it where `reading`, else what they write."""

    def __init__(self, patch: pytest.MonkeyPatch, *, reading: bool = False) -> None:
        self.statements: list[str] = []
        self.steps = 0
        self._open = schema.open_connection
        for module in (driver, schema) if reading else (driver,):
            patch.setattr(module, "open_connection", self._opened)

    def _opened(self, path: Path, **words: Any) -> sqlite3.Connection:
        connection = self._open(path, **words)
        connection.set_trace_callback(self.statements.append)
        connection.set_progress_handler(self._step, STEPS)
        return connection

    def _step(self) -> int:
        self.steps += STEPS
        return 0

    def clear(self) -> None:
        self.statements.clear()
        self.steps = 0
