"""A ledger on a clock that stands still, and a second look at the file through plain SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from tests.orchestrator.jobs import enqueue, lease_one  # noqa: F401 (fixtures)

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path, clock: ManualClock, blank_ledger: Path) -> Iterator[SqliteLedger]:
    path.parent.mkdir(exist_ok=True)
    copyfile(blank_ledger, path)
    with SqliteLedger(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def sql(ledger: SqliteLedger, path: Path) -> Callable[..., list[Any]]:
    """Plain SQL on the file, behind the ledger's back."""

    def run(statement: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return connection.execute(statement, values).fetchall()

    return run
