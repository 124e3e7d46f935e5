"""A SQLite file that another process is just making."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.net.stores.sqlite import SqliteBackend
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.Orchestrator.ledger.drivers.sqlite.busy import set_journal_mode

OPENERS: dict[str, Callable[[Path], object]] = {"cache": SqliteBackend, "record": open_database}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.sqlite"


def hold(path: Path) -> sqlite3.Connection:
    """Somebody who writes to the file, in the mode that a new file has."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE t (a)")
    return other


@pytest.mark.parametrize("kind", OPENERS)
def test_whoever_opens_a_file_that_another_is_making_waits_for_it(path: Path, kind: str) -> None:
    other = hold(path)
    end = threading.Timer(0.2, other.execute, ("COMMIT",))
    began = time.monotonic()
    end.start()
    OPENERS[kind](path)
    end.join()
    assert time.monotonic() - began >= 0.15
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_one_who_never_lets_go_is_waited_for_no_longer_than_was_said(path: Path) -> None:
    other, connection = hold(path), sqlite3.connect(path, timeout=0, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        set_journal_mode(connection, "wal", 0.05)
    other.execute("ROLLBACK")
