"""What goes wrong while a record is written reaches those who wait, and keeps what was told."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.contentdownload.small_record import fetched, lines_of, obtained, record_in, rows_of
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.errors import DiskFull, FolderInUse, RecordError, RunError
from DocsToKG.ContentDownload.telemetry import Counts
from DocsToKG.ContentDownload.telemetry import record as record_module
from DocsToKG.ContentDownload.telemetry.schema import open_database


def test_a_second_record_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with record_in(tmp_path), pytest.raises(FolderInUse, match=str(tmp_path)), record_in(tmp_path):
        pass
    with record_in(tmp_path):
        pass


def test_a_failing_callback_reaches_every_later_caller_and_the_rest_of_the_batch_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    watched: list[RunError] = []

    def fail() -> None:
        raise RuntimeError("ledger away")

    record = record_in(tmp_path, batch_window_s=0.2)
    record.open()
    record.on_failure(watched.append)
    record.finish(obtained("doi:10.1/a"), then=fail)
    record.finish(obtained("doi:10.1/b"), then=lambda: told.append("b"))
    with pytest.raises(RecordError, match="ledger away"):
        record.flush()
    for later in (lambda: record.attempt(fetched()), lambda: record.finish(obtained()), record.close):
        with pytest.raises(RecordError, match="ledger away"):
            later()
    assert told == ["b"]
    assert len(watched) == 1
    late: list[RunError] = []
    record.on_failure(late.append)
    assert late == watched
    with record_in(tmp_path) as again:
        assert again.repairs == ()


def test_a_producer_waiting_for_room_is_freed_when_the_writer_fails(tmp_path: Path) -> None:
    record = record_in(tmp_path, capacity=2, batch_window_s=0.05)
    record.open()
    outcome: list[BaseException] = []

    def fail() -> None:
        raise RuntimeError("no more")

    def produce() -> None:
        try:
            while True:
                record.attempt(fetched())
        except RecordError as error:
            outcome.append(error)

    record.finish(obtained(), then=fail)
    threads = [threading.Thread(target=produce) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(outcome) == 4
    with pytest.raises(RecordError):
        record.close()


def test_a_callback_may_write_to_the_full_record(tmp_path: Path) -> None:
    with record_in(tmp_path, capacity=1) as record:

        def then() -> None:
            for _ in range(20):
                record.attempt(fetched())

        record.finish(obtained(), then=then)
        record.flush()
        record.finish(obtained("doi:10.1/b"), then=then)
    assert len((tmp_path / "attempts.csv").read_text().splitlines()) == 1 + 40


def test_a_callback_that_waits_for_its_own_writer_is_told_so(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    record.open()
    record.finish(obtained(), then=record.flush)
    with pytest.raises(RecordError, match="do not flush in a callback"):
        record.close()


def test_a_reader_in_the_middle_of_a_long_look_does_not_hold_up_the_end(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    record.open()
    reader = sqlite3.connect(tmp_path / "manifest.sqlite")
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM manifests").fetchone()
    record.finish(obtained())
    begun = time.monotonic()
    record.close()
    assert time.monotonic() - begun < 25  # whoever waited for the reader would give up after thirty
    reader.close()


def test_a_closed_record_takes_nothing_and_closing_twice_is_harmless(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    record.open()
    record.close()
    record.close()
    with pytest.raises(RecordError, match="closed"):
        record.finish(obtained())


def test_an_error_in_the_block_is_not_hidden_by_a_failing_record(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("ledger away")

    def block() -> None:
        with record_in(tmp_path) as record:
            record.finish(obtained(), then=fail)
            raise KeyError("the news")

    with pytest.raises(KeyError, match="the news"):
        block()


def test_a_full_disk_stops_the_run_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAIL-11: the database is given no more pages, which SQLite reports as it reports a full disk."""
    told: list[str] = []
    databases: list[sqlite3.Connection] = []

    def opening(path: Path | None) -> sqlite3.Connection:
        databases.append(open_database(path))
        return databases[-1]

    monkeypatch.setattr(record_module, "open_database", opening)
    record = record_in(tmp_path)
    record.open()
    databases[0].execute("PRAGMA max_page_count = 1")

    def feed() -> None:
        for number in range(200):
            record.finish(obtained(f"doi:10.1/{number}", title="t" * 1000), then=lambda: told.append("too early"))
        record.flush()

    with pytest.raises(DiskFull, match="free some space"):  # while it is fed, or at the latest when it is flushed
        feed()
    with pytest.raises(DiskFull):
        record.close()
    assert told == []
    with record_in(tmp_path) as again:
        assert again.counts() == Counts()
    assert lines_of(tmp_path / "manifest.jsonl") == []


@pytest.mark.parametrize("name", ["attempts.csv", "manifest.jsonl"])
def test_a_device_or_a_pipe_in_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(RecordError, match="not a regular file"), record_in(tmp_path):
        pass
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(RecordError, match="not a regular file"), record_in(tmp_path):
        pass


FILLS_UP = """
import resource, sys
from pathlib import Path
from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import SystemClock
record = RunTelemetry(Path(sys.argv[1]), run_id="r", config_hash="c", clock=SystemClock())
record.open()
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
told = 0
def then():
    global told
    told += 1
try:
    for number in range(100_000):
        record.finish(ManifestRecord(doc_id=f"doi:{number}", outcome="error", reason="r" * 500), then=then)
        if number % 50 == 0:
            record.flush()
except RunError as error:
    print(type(error).__name__, told)
"""


@pytest.mark.slow
def test_a_disk_that_takes_no_more_stops_the_run_and_keeps_what_was_told(warm: WarmPrograms, tmp_path: Path) -> None:
    """FAIL-11: the system itself refuses to let any file grow further."""
    ran = subprocess.run(
        [*warm.words("python"), "-c", FILLS_UP, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    name, told = ran.stdout.split()
    assert name in ("RecordError", "DiskFull")
    assert int(told) > 50
    with record_in(tmp_path):
        pass
    lines = lines_of(tmp_path / "manifest.jsonl")
    stored = rows_of(tmp_path, "SELECT doc_id FROM manifests ORDER BY id")
    assert [line["doc_id"] for line in lines] == [row[0] for row in stored]
    assert len(lines) >= int(told)
