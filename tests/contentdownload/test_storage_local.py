"""The local store: whole files or none, one object per content, names never overwritten."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import threading
from pathlib import Path

import pytest
from tests import needs
from tests.waiting import eventually

from DocsToKG.ContentDownload.errors import CandidateRejected, DiskFull, StorageError
from DocsToKG.ContentDownload.storage import flushing
from DocsToKG.ContentDownload.storage.cas import cas_path
from DocsToKG.ContentDownload.storage.disk import hard_link
from DocsToKG.ContentDownload.storage.local import LocalStore, Order, Stored, TempFile

NAME = "PDF/2021__a__x.pdf"


KINDS = {
    "in memory": {},
    "without a name": {"in_memory": 0},
    "named": {"in_memory": 0, "unnamed": False},
}


@pytest.fixture(params=KINDS)
def store(tmp_path: Path, request: pytest.FixtureRequest) -> LocalStore:
    made = LocalStore(tmp_path / "root", min_free_bytes=0, fsync=False, **KINDS[request.param])
    made.prepare()
    return made


def no_links(source: str, target: str) -> None:
    """A disk without hard links, such as exFAT."""
    raise OSError(errno.EPERM, "Operation not permitted", source)


def put(store: LocalStore, data: bytes, human: str = NAME) -> Stored:
    temp = store.temp()
    temp.write(data)
    return store.store(temp, human=human)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def temps(store: LocalStore) -> list[str]:
    return [name for name in os.listdir(store.root / ".tmp") if name.startswith("part-")]


def test_bytes_are_counted_and_hashed_as_they_come(store):
    """DL-10."""
    with store.temp(".pdf") as temp:
        for piece in (b"one", b"", b"two" * 1000):
            temp.write(piece)
        whole = b"one" + b"two" * 1000
        assert (temp.size, temp.sha256) == (len(whole), sha(whole))
        assert temp.path.read_bytes() == whole


def test_leaving_without_storing_removes_the_file(store):
    """DL-12: a failing path leaves nothing."""
    with contextlib.suppress(ZeroDivisionError), store.temp() as temp:
        temp.write(b"half a paper")
        assert temps(store) == ([temp.path.name] if temp.has_name else [])
        raise ZeroDivisionError
    assert temps(store) == []
    temp.discard()


def test_a_file_is_ours_until_it_is_stored_and_then_takes_no_more(store):
    with store.temp() as temp:
        temp.write(b"x")
        assert store.prepare() == 0, "a sweeper leaves it alone"
        assert store.store(temp, human=NAME).path.read_bytes() == b"x"
        with pytest.raises(ValueError, match="closed"):
            temp.write(b"y")


def test_a_stored_file_has_two_names_and_one_body(store):
    """STO-01, STO-04."""
    stored = put(store, b"paper")
    assert stored == Stored(sha(b"paper"), 5, str(store.root / NAME), False, "hardlink")
    assert stored.path.read_bytes() == b"paper"
    assert os.path.samefile(stored.path, store.root / "cas/sha256" / sha(b"paper")[:2] / sha(b"paper")[2:])
    assert stored.path.stat().st_mode & 0o777 == 0o444
    assert temps(store) == []


def test_the_same_bytes_twice_are_one_object(store):
    """STO-03."""
    first = put(store, b"paper", "PDF/a.pdf")
    inode = cas_path(store.root, first.sha256).stat().st_ino
    second = put(store, b"paper", "PDF/b.pdf")
    assert (first.duplicate, second.duplicate) == (False, True)
    assert cas_path(store.root, second.sha256).stat().st_ino == inode, "the object that was there stays"
    assert os.path.samefile(first.path, second.path)


def test_storing_the_same_paper_again_changes_nothing(store):
    first = put(store, b"paper")
    second = put(store, b"paper")
    assert second.path == first.path
    assert second.duplicate
    assert len(list((store.root / "PDF").iterdir())) == 1


def test_other_bytes_under_a_name_get_a_sibling(store):
    put(store, b"first version")
    second = put(store, b"second version")
    third = put(store, b"third version")
    assert [second.path.name, third.path.name] == ["2021__a__x__2.pdf", "2021__a__x__3.pdf"]
    assert (store.root / NAME).read_bytes() == b"first version"
    assert put(store, b"second version").path == second.path


def test_a_users_own_file_or_link_under_the_name_is_left_alone(store):
    (store.root / "PDF").mkdir()
    (store.root / NAME).symlink_to(store.root / "nowhere")
    stored = put(store, b"paper")
    assert stored.path.name == "2021__a__x__2.pdf"
    assert (store.root / NAME).is_symlink()


def test_an_object_that_lost_bytes_is_healed(store):
    """A disk that lost power may keep a name and lose its bytes; the next download repairs it."""
    stored = put(store, b"paper")
    cas_path(store.root, stored.sha256).unlink()
    cas_path(store.root, stored.sha256).write_bytes(b"")
    assert not store.verify(stored.sha256)
    again = put(store, b"paper", "PDF/b.pdf")
    assert not again.duplicate
    assert store.verify(stored.sha256)


def test_a_name_outside_the_root_stores_nothing(store):
    """DL-15."""
    with pytest.raises(CandidateRejected, match="path-policy"):
        put(store, b"paper", "../paper.pdf")
    assert temps(store) == []
    assert not store.has(sha(b"paper"))


def test_an_object_is_adopted_without_moving_bytes(store):
    stored = put(store, b"paper", "PDF/a.pdf")
    adopted = store.adopt(stored.sha256, "PDF/b.pdf")
    assert adopted == Stored(stored.sha256, 5, str(store.root / "PDF/b.pdf"), True, "hardlink")
    assert os.path.samefile(adopted.path, stored.path)
    assert store.adopt(sha(b"unknown"), "PDF/c.pdf") is None
    assert not (store.root / "PDF/c.pdf").exists()


def test_an_object_is_read_and_verified(store):
    stored = put(store, b"paper")
    with store.open(stored.sha256) as file:
        assert file.read() == b"paper"
    assert store.verify(stored.sha256)
    assert store.open(sha(b"unknown")) is None
    assert not store.verify(sha(b"unknown"))
    cas_path(store.root, stored.sha256).chmod(0o644)
    cas_path(store.root, stored.sha256).write_bytes(b"PAPER")
    assert not store.verify(stored.sha256)


def test_without_a_content_store_the_readable_name_is_the_file(tmp_path):
    """STO-01: it can be switched off."""
    store = LocalStore(tmp_path, cas_enabled=False, min_free_bytes=0)
    store.prepare()
    stored = put(store, b"paper")
    assert (stored.link, stored.duplicate) == ("none", False)
    assert stored.path.read_bytes() == b"paper"
    assert stored.path.stat().st_nlink == 1
    assert put(store, b"paper").duplicate
    assert put(store, b"other").path.name == "2021__a__x__2.pdf"
    assert not (tmp_path / "cas").exists()
    assert not store.has(stored.sha256)
    assert store.open(stored.sha256) is None
    assert store.adopt(stored.sha256, "PDF/b.pdf") is None


@pytest.mark.parametrize("cas_enabled", [True, False])
def test_a_disk_without_hard_links_gets_copies(tmp_path, cas_enabled):
    store = LocalStore(tmp_path, cas_enabled=cas_enabled, min_free_bytes=0, link=no_links)
    store.prepare()
    stored = put(store, b"paper")
    assert stored.link in (("copy", "reflink") if cas_enabled else ("none",))
    assert stored.path.read_bytes() == b"paper"
    assert stored.path.stat().st_mode & 0o777 == 0o444
    inode = stored.path.stat().st_ino
    assert put(store, b"paper").duplicate
    assert stored.path.stat().st_ino == inode, "what was there stays"
    assert put(store, b"other").path.name == "2021__a__x__2.pdf"
    assert (tmp_path / NAME).read_bytes() == b"paper"
    assert temps(store) == []
    assert not cas_enabled or store.verify(stored.sha256)


def test_threads_racing_with_the_same_bytes_keep_one_object(store):
    """STO-03: also when workers race."""
    data = os.urandom(200_000)
    start = threading.Barrier(12)
    stored: list[Stored] = []

    def worker(number: int) -> None:
        temp = store.temp()
        temp.write(data)
        start.wait(10)
        stored.append(store.store(temp, human=f"PDF/{number % 3}.pdf"))

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.duplicate for one in stored) == [False] + [True] * 11
    assert len({one.path.stat().st_ino for one in stored}) == 1
    assert sorted(os.listdir(store.root / "PDF")) == ["0.pdf", "1.pdf", "2.pdf"]
    assert store.verify(sha(data))


@pytest.mark.parametrize("link", [hard_link, no_links])
def test_threads_racing_for_a_name_with_other_bytes_lose_nothing(tmp_path, link):
    store = LocalStore(tmp_path, min_free_bytes=0, fsync=False, link=link)
    store.prepare()
    start = threading.Barrier(8)

    def worker(number: int) -> None:
        temp = store.temp()
        temp.write(b"version %d" % number)
        start.wait(10)
        store.store(temp, human=NAME)

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {path.read_bytes() for path in (tmp_path / "PDF").iterdir()}
    assert found == {b"version %d" % number for number in range(8)}


def test_prepare_sweeps_the_dead_and_spares_the_living(store):
    """DL-12: a live owner holds its lock, in this or any other process."""
    (store.root / ".tmp" / "part-dead.pdf").write_bytes(b"half")
    (store.root / ".tmp" / "part-sealed").write_bytes(b"whole")
    (store.root / ".tmp" / "part-sealed").chmod(0o444)
    (store.root / ".tmp" / "notes.txt").write_text("somebody's")
    with store.temp() as living:
        living.write(b"half")
        assert LocalStore(store.root, min_free_bytes=0).prepare() == 2
        assert living.path.read_bytes() == b"half"
        assert sorted(os.listdir(store.root / ".tmp")) == sorted(["notes.txt", *temps(store)])


def test_too_little_space_stops_the_run_before_it_begins(tmp_path):
    """STO-10: the message names the place and the need."""
    store = LocalStore(tmp_path, min_free_bytes=1 << 60)
    with pytest.raises(DiskFull, match=rf"{tmp_path}.*MiB free, {1 << 40} MiB needed"):
        store.prepare()


def test_a_full_disk_is_said_in_our_words():
    """FAIL-11: the kernel's own refusal, from the device that is always full."""
    if not os.path.exists("/dev/full"):
        needs.lacks("/dev/full")
    with TempFile(lambda: (os.open("/dev/full", os.O_WRONLY), None), where="here", in_memory=10) as temp:
        temp.write(b"paper")
        with pytest.raises(DiskFull, match="here: no space left"):
            temp.write(b"more than is kept in memory")


def test_a_root_that_is_a_file_is_named_in_the_error(tmp_path):
    (tmp_path / "root").write_text("not a folder")
    with pytest.raises(StorageError, match="root"):
        LocalStore(tmp_path / "root" / "below", min_free_bytes=0).prepare()


@pytest.mark.parametrize("cas_enabled", [True, False])
def test_bytes_are_on_the_disk_before_a_name_and_names_before_the_answer(tmp_path, monkeypatch, cas_enabled):
    """A power cut after `store` has returned loses nothing; one before it leaves no name without its bytes."""
    events: list[str] = []
    real_fsync = os.fsync

    def fsync(fd: int) -> None:
        place = os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), tmp_path)
        events.append("bytes" if place.startswith(".tmp") else place)
        real_fsync(fd)

    def link(source: str, target: str) -> None:
        hard_link(source, target)
        events.append(f"link {Path(target).relative_to(tmp_path).parts[0]}")

    if not os.path.exists("/proc/self/fd"):
        needs.lacks("/proc/self/fd")
    store = LocalStore(tmp_path, cas_enabled=cas_enabled, min_free_bytes=0, link=link)
    store.prepare()
    monkeypatch.setattr(os, "fsync", fsync)
    digest = put(store, b"paper").sha256
    objects = {"cas/sha256", f"cas/sha256/{digest[:2]}"} if cas_enabled else set()
    links = ["link cas", "link PDF"] if cas_enabled else ["link PDF"]
    assert events[: 1 + len(links)] == ["bytes", *links]
    assert set(events[1 + len(links) :]) == {".", "PDF"} | objects
    assert len(events) == 1 + len(links) + 2 + len(objects), "each folder once"


def test_files_that_come_together_are_made_to_last_together(tmp_path, monkeypatch):
    """A folder that many files of a round are named in is told once; no answer comes before that. This is the way of
    disks that cannot be flushed as a whole."""
    syncs: list[str] = []
    real_fsync, hold = os.fsync, threading.Event()

    def fsync(fd: int) -> None:
        syncs.append(os.readlink(f"/proc/self/fd/{fd}"))
        assert hold.wait(10)
        real_fsync(fd)

    if not os.path.exists("/proc/self/fd"):
        needs.lacks("/proc/self/fd")
    monkeypatch.setattr(flushing, "kind_of_disk", lambda folder: "some other")
    store = LocalStore(tmp_path, min_free_bytes=0)
    store.prepare()
    monkeypatch.setattr(os, "fsync", fsync)
    threads = [threading.Thread(target=put, args=(store, b"%d" % n, f"PDF/{n}.pdf")) for n in range(40)]
    for thread in threads:
        thread.start()
    eventually(lambda: store.waiting >= 36)
    assert all(thread.is_alive() for thread in threads), "nothing is told to be safe before it is"
    hold.set()
    for thread in threads:
        thread.join(10)
    assert len(list((tmp_path / "PDF").iterdir())) == 40
    assert syncs.count(str(tmp_path / "PDF")) == 5, "four came alone, the others together"


def test_one_bad_name_in_a_round_costs_only_its_own_file(tmp_path, monkeypatch):
    store = LocalStore(tmp_path, min_free_bytes=0)
    store.prepare()
    good, bad = (store.temp() for _ in range(2))
    good.write(b"good")
    bad.write(b"bad")
    orders = [Order(bad, "../bad.pdf"), Order(good, "PDF/good.pdf")]
    store.store_all(orders)
    assert isinstance(orders[0].error, CandidateRejected)
    assert orders[1].stored.path.read_bytes() == b"good"
    assert not store.has(sha(b"bad"))


def test_a_folder_that_somebody_removed_is_made_again(store):
    put(store, b"one")
    shutil.rmtree(store.root / "PDF")
    shutil.rmtree(store.root / "cas")
    assert put(store, b"two").path.read_bytes() == b"two"
    assert store.verify(sha(b"two"), NAME)


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("before", [60, 200])
def test_a_body_that_begins_anew_has_nothing_of_the_former_one(tmp_path, before, unnamed):
    store = LocalStore(tmp_path, min_free_bytes=0, fsync=False, in_memory=100, unnamed=unnamed)
    store.prepare()
    for after in (40, 300):
        with store.temp() as temp:
            temp.write(b"x" * before)
            temp.restart()
            assert temp.size == 0
            temp.write(b"y" * after)
            assert (temp.size, temp.sha256) == (after, sha(b"y" * after))
            assert temp.path.read_bytes() == b"y" * after


def test_a_body_is_on_the_disk_only_when_it_is_stored_or_large(tmp_path):
    store = LocalStore(tmp_path, min_free_bytes=0, fsync=False, in_memory=100)
    store.prepare()
    with store.temp() as temp:
        temp.write(b"x" * 60)
        assert temp.data == b"x" * 60
        assert temp.sha256 == sha(b"x" * 60)
        temp.write(b"y" * 60)
        assert temp.data is None
        temp.write(b"z" * 60)
        whole = b"x" * 60 + b"y" * 60 + b"z" * 60
        assert (temp.path.read_bytes(), temp.sha256) == (whole, sha(whole))
