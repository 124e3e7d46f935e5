"""The heads of many files' cache entries, written together: seen at once here, soon by others, never half."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import eventually

from DocsToKG.ContentDownload.net.stores.base import Entry, StoreFailed
from DocsToKG.ContentDownload.net.stores.file import FileBackend
from DocsToKG.ContentDownload.net.stores.grouped import GroupedHeads
from DocsToKG.ContentDownload.net.stores.sqlite import SqliteBackend
from DocsToKG.core.clock import ManualClock

KEY = "a" * 64
LONG_S = 30


@pytest.fixture
def heads(tmp_path: Path) -> Iterator[GroupedHeads]:
    heads = GroupedHeads(tmp_path / "heads.sqlite", clock=ManualClock())
    yield heads
    heads.close()


def entry(number: int, key: str = KEY, stored_at: float = 1.0) -> Entry:
    return Entry(key, f"{number:032x}", b"head %d" % number, stored_at)


def seen(heads: GroupedHeads | FileBackend, key: str = KEY) -> list[bytes]:
    return sorted(head for _, head in heads.heads(key))


def test_looking_makes_no_file(heads: GroupedHeads, tmp_path: Path) -> None:
    assert (seen(heads), list(heads.walk()), heads.clear()) == ([], [], 0)
    heads.sweep(0, now=1.0, ttl_s=1.0)
    heads.delete(KEY, [f"{1:032x}"])
    assert list(tmp_path.iterdir()) == []


def test_rows_wait_for_the_next_one_where_the_system_gives_no_thread(
    heads: GroupedHeads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    heads.put(entry(1), replaced=())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        heads.put(entry(2), replaced=())
    assert seen(heads) == [b"head 1", b"head 2"]
    heads.put(entry(3), replaced=())
    others = GroupedHeads(tmp_path / "heads.sqlite")
    eventually(lambda: seen(others) == [b"head 1", b"head 2", b"head 3"])


def test_the_first_is_written_at_once_and_the_next_ones_are_seen_here_at_once(
    heads: GroupedHeads, tmp_path: Path
) -> None:
    others = GroupedHeads(tmp_path / "heads.sqlite")
    heads.put(entry(1), replaced=())
    assert seen(others) == [b"head 1"]
    # More than once: whoever writes late stays for the next ones.
    for number in (2, 3):
        heads.put(entry(number), replaced=())
        here = [b"head %d" % each for each in range(1, number + 1)]
        assert seen(heads) == here
        eventually(lambda here=here: seen(others) == here)
    others.close()


def test_what_is_replaced_is_gone_although_it_waits(heads: GroupedHeads) -> None:
    heads.put(entry(1), replaced=())
    heads.put(entry(2), replaced=())
    heads.put(entry(3), replaced=[f"{1:032x}", f"{2:032x}"])
    assert seen(heads) == [b"head 3"]
    heads.write()
    assert seen(heads) == [b"head 3"]


def test_what_is_deleted_while_it_waits_never_comes_back(heads: GroupedHeads) -> None:
    heads.put(entry(1), replaced=())
    heads.put(entry(2), replaced=())
    heads.delete(KEY, [f"{1:032x}", f"{2:032x}"])
    assert seen(heads) == []
    heads.write()
    assert list(heads.walk()) == []


def test_a_new_head_takes_the_old_ones_place(heads: GroupedHeads) -> None:
    heads.put(entry(1), replaced=())
    assert heads.rewrite(Entry(KEY, f"{1:032x}", b"new", 1.0))
    assert seen(heads) == [b"new"]
    assert not heads.rewrite(entry(9))


def test_closing_writes_what_waits(heads: GroupedHeads, tmp_path: Path) -> None:
    for number in range(10):
        heads.put(entry(number), replaced=())
    heads.close()
    again = GroupedHeads(tmp_path / "heads.sqlite")
    assert len(seen(again)) == 10
    assert again.clear() == 10
    again.close()


def test_old_ones_are_swept(heads: GroupedHeads) -> None:
    heads.put(entry(1, stored_at=1.0), replaced=())
    heads.put(entry(2, stored_at=99.0), replaced=())
    heads.write()
    heads.sweep(7, now=100.0, ttl_s=50.0)
    assert seen(heads) == [b"head 2"]


def test_a_file_that_is_no_record_is_a_failure_of_the_store_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "heads.sqlite").write_bytes(b"not a database, whatever its name says" * 100)
    heads = GroupedHeads(tmp_path / "heads.sqlite")
    with pytest.raises(StoreFailed):
        heads.heads(KEY)
    with pytest.raises(StoreFailed):
        heads.put(entry(1), replaced=())
    heads.close()


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    heads = GroupedHeads(tmp_path / "heads.sqlite")

    def fill(start: int) -> None:
        for number in range(start, start + 100):
            heads.put(entry(number, key=f"{number:064x}"), replaced=())
            assert seen(heads, f"{number:064x}") == [b"head %d" % number]

    threads = [threading.Thread(target=fill, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert len(list(heads.walk())) == 400
    heads.close()


def test_entries_of_an_earlier_version_without_a_body_are_still_found(tmp_path: Path) -> None:
    folder = tmp_path / "entries" / KEY[:2] / KEY[2:]
    folder.mkdir(parents=True)
    old = f"{7:032x}"
    (folder / f"{old}.json").write_bytes(b"old head")
    backend = FileBackend(tmp_path)
    assert backend.heads(KEY) == [(old, b"old head")]
    backend.put(entry(8), None, replaced=[old])
    assert seen(backend) == [b"head 8"]
    backend.close()


def test_what_others_write_is_seen_within_a_second_and_a_little(tmp_path: Path) -> None:
    """However late it was written, and whatever else is in the file."""
    clock = ManualClock()
    here = GroupedHeads(tmp_path / "heads.sqlite", clock=clock)
    others = GroupedHeads(tmp_path / "heads.sqlite", clock=clock)
    here.put(entry(1), replaced=())
    keys = [digit * 64 for digit in "bcdef"]
    for number, key in enumerate(keys):
        assert (seen(here, key), seen(here)) == ([], [b"head 1"])
        others.put(entry(number, key=key, stored_at=clock.now()), replaced=())
        clock.advance(1.0)
        others.write()
        assert seen(here, key) == [b"head %d" % number]
    others.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "heads.sqlite")) as edited, edited:
        edited.execute("INSERT INTO entries VALUES ('a', 'b', 'c', 'd'), ('Not hex', '', 1e300, '')")
    again = GroupedHeads(tmp_path / "heads.sqlite", clock=clock)
    assert [seen(again, key) for key in [KEY, *keys, "0" * 64]] == [[b"head 1"], *[seen(here, key) for key in keys], []]
    again.close()
    here.close()


def test_a_large_file_is_looked_into_some_times_before_all_its_keys_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(GroupedHeads(tmp_path / "heads.sqlite")) as heads:
        heads.put(Entry(KEY, f"{1:032x}", b"x" * 100_000, 1.0), replaced=())
    asked: list[float] = []

    def beginnings(rows: SqliteBackend, digits: int, *, since: float) -> list[str]:
        asked.append(since)
        return [KEY[:digits]]

    monkeypatch.setattr(SqliteBackend, "beginnings", beginnings)
    again = GroupedHeads(tmp_path / "heads.sqlite", clock=ManualClock())
    assert (seen(again, "b" * 64), asked) == ([], [])
    for _ in range(100):
        assert seen(again) == [b"x" * 100_000]
        assert seen(again, "b" * 64) == []
    assert asked == [float("-inf")]
    again.close()


@pytest.mark.parametrize("number", [1, 3, 4, 63, 64, 65, 149])
def test_any_number_is_written_together(heads: GroupedHeads, tmp_path: Path, number: int) -> None:
    heads.put(entry(0, key="b" * 64), replaced=())
    keys = [f"{n * 7919 % 1000:064x}" for n in range(number)]
    for n, key in enumerate(keys):
        heads.put(entry(n, key=key), replaced=())
    heads.write()
    others = GroupedHeads(tmp_path / "heads.sqlite")
    assert [seen(others, key) for key in keys] == [[b"head %d" % n] for n in range(number)]
    others.close()


def test_a_file_of_an_earlier_version_is_used_as_it_is(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "heads.sqlite")) as old, old:
        old.execute(
            "CREATE TABLE entries (key TEXT NOT NULL, id TEXT NOT NULL, stored_at REAL NOT NULL, head BLOB NOT NULL,"
            " PRIMARY KEY (key, id)) WITHOUT ROWID"
        )
        old.execute("INSERT INTO entries VALUES (?, ?, 1.0, ?)", (KEY, f"{1:032x}", b"head 1"))
    heads = GroupedHeads(tmp_path / "heads.sqlite")
    assert seen(heads) == [b"head 1"]
    heads.put(entry(2), replaced=[f"{1:032x}"])
    heads.put(entry(3, key="b" * 64, stored_at=99.0), replaced=())
    heads.write()
    assert (seen(heads), len(list(heads.walk()))) == ([b"head 2"], 2)
    heads.sweep(0, now=100.0, ttl_s=50.0)
    assert list(heads.walk()) == [b"head 3"]
    heads.close()


@pytest.mark.parametrize("is_written", [True, False])
def test_what_was_replaced_stays_gone_when_its_successor_is_deleted(heads: GroupedHeads, is_written: bool) -> None:
    heads.put(entry(9, key="b" * 64), replaced=())
    heads.put(entry(1), replaced=())
    if is_written:
        heads.write()
    heads.put(entry(2), replaced=[f"{1:032x}"])
    heads.delete(KEY, [f"{2:032x}"])
    assert seen(heads) == []
    heads.write()
    assert seen(heads) == []


def test_what_was_replaced_stays_gone_when_its_successor_is_rewritten(heads: GroupedHeads) -> None:
    heads.put(entry(1), replaced=())
    heads.put(entry(2), replaced=[f"{1:032x}"])
    assert heads.rewrite(entry(2))
    assert seen(heads) == [b"head 2"]
