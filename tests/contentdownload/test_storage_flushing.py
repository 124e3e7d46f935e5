"""Many files are made to last with one call where that is the better way, and none is said to be safe before."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import needs

from DocsToKG.ContentDownload.errors import StorageError
from DocsToKG.ContentDownload.storage import flushing
from DocsToKG.ContentDownload.storage.flushing import Flushing, sync_disk
from DocsToKG.ContentDownload.storage.local import LocalStore, Order


def store_of(root: Path, whole: Callable[[int], None]) -> LocalStore:
    flushing = Flushing(root, whole)
    flushing.took(60.0, files=1, all_at_once=False)  # file by file is the slower way
    store = LocalStore(root, min_free_bytes=0, flushing=flushing)
    store.prepare()
    return store


def orders(store: LocalStore, number: int) -> list[Order]:
    made = []
    for n in range(number):
        temp = store.temp()
        temp.write(b"paper %d" % n)
        made.append(Order(temp, f"PDF/{n}.pdf"))
    return made


def test_a_round_is_flushed_before_its_names_and_after_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """STO-02: no name is ever without its bytes, and what was stored survives a power cut."""
    seen: list[tuple[int, int]] = []

    def whole(file: int) -> None:
        assert os.fstat(file).st_size > 0
        folder = tmp_path / "PDF"
        seen.append((len(list(folder.iterdir())) if folder.exists() else 0, len(list(tmp_path.glob("cas/*/*/*")))))

    store = store_of(tmp_path, whole)
    monkeypatch.setattr(os, "fsync", lambda file: pytest.fail("the whole disk is flushed instead"))
    store.store_all(kept := orders(store, 5))
    assert seen == [(0, 0), (5, 5)]
    assert [order.stored.path.read_bytes() for order in kept if order.stored] == [b"paper %d" % n for n in range(5)]


def failing_at(number: int) -> Callable[[int], None]:
    """A flush whose call of this number fails."""
    calls: list[int] = []

    def whole(file: int) -> None:
        calls.append(file)
        if len(calls) == number:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return whole


@pytest.mark.parametrize("failing", [1, 2])
def test_what_the_disk_did_not_take_is_said_to_be_stored_by_nobody(tmp_path: Path, failing: int) -> None:
    store = store_of(tmp_path, failing_at(failing))
    store.store_all(made := orders(store, 4))
    assert all(order.stored is None and isinstance(order.error, StorageError) for order in made)


def test_the_oldest_file_is_asked_since_it_is_told_of_all_that_failed(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def whole(file: int) -> None:
        asked.append(os.pread(file, 20, 0))

    store = store_of(tmp_path, whole)
    made = orders(store, 3)
    assert made[2].temp.path  # goes to the disk before the others
    store.store_all(made)
    assert asked == [b"paper 2", b"paper 2"]


def test_one_flush_serves_the_names_of_a_round_and_the_bytes_of_the_next(tmp_path: Path) -> None:
    """STO-02: a file gets its names only after a flush that began when its bytes were written."""
    seen: list[set[str]] = []
    store = store_of(tmp_path, lambda file: seen.append({path.name for path in tmp_path.glob("PDF/*")}))
    first, second = orders(store, 3), orders(store, 5)[3:]
    assert store.store_in_halves(first, ())
    assert store.store_in_halves(second, first)
    assert not store.store_in_halves((), second)
    of_first, of_second = {"0.pdf", "1.pdf", "2.pdf"}, {"3.pdf", "4.pdf"}
    assert seen == [set(), of_first, of_first | of_second]
    assert all(order.stored for order in first + second)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_flush_that_fails_is_the_failure_of_all_it_served(tmp_path: Path, failing: int) -> None:
    store = store_of(tmp_path, failing_at(failing))
    first, second = orders(store, 3), orders(store, 5)[3:]
    store.store_in_halves(first, ())
    store.store_in_halves(second, first)
    store.store_in_halves((), second)
    assert [all(order.stored for order in each) for each in (first, second)] == [failing == 3, failing == 1]


def test_few_files_are_flushed_one_by_one(tmp_path: Path) -> None:
    choice = Flushing(tmp_path, lambda file: None)
    assert not choice.is_for_all(1)
    assert not choice.is_for_all(2)
    assert choice.is_for_all(2, is_due=True)
    assert not choice.is_for_all(0, is_due=True)


def test_the_quicker_way_is_taken_and_the_other_tried_again_at_times(tmp_path: Path) -> None:
    """Others may have written much to the disk: then it is slow to flush all of it, and later it is not."""
    choice = Flushing(tmp_path, lambda file: None)
    assert choice.is_for_all(10)
    choice.took(1.0, files=10, all_at_once=True)
    assert not choice.is_for_all(10)  # nothing is known of it yet
    choice.took(0.1, files=10, all_at_once=False)
    chosen = [choice.is_for_all(10) for _ in range(2 * flushing.LOOK_AGAIN)]
    assert chosen.count(True) == 2
    choice.took(0.001, files=10, all_at_once=True)
    for _ in range(30):
        choice.took(0.001, files=10, all_at_once=True)
    assert choice.is_for_all(10)


def test_a_disk_of_another_kind_is_never_flushed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some take the call and do nothing."""
    monkeypatch.setattr(flushing, "kind_of_disk", lambda folder: "fuse.sshfs")
    assert not Flushing(tmp_path).is_for_all(10)


@needs.system(flushing.may_sync_disk(), "a system that flushes one disk")
def test_the_systems_own_way_takes_an_open_file_and_nothing_else(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write(b"x")
        sync_disk(file.fileno())
    with pytest.raises(OSError, match="descriptor"):
        sync_disk(-1)
