"""Files left to be stored: many in a round, told of when they are safe; a disk that is behind is waited for."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.errors import CandidateRejected, StorageError
from DocsToKG.ContentDownload.storage.local import LocalStore, Stored
from DocsToKG.ContentDownload.storage.rounds import Rounds

LONG_S = 30


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path, min_free_bytes=0)
    store.prepare()
    return store


def keep(store: LocalStore, data: bytes, human: str) -> Stored:
    """One file, brought by a task."""
    temp = store.temp()
    temp.write(data)
    return asyncio.run(store.storing(temp, human=human))


def test_a_file_is_there_durably_when_its_task_goes_on(store: LocalStore) -> None:
    stored = keep(store, b"paper", "PDF/a.pdf")
    assert stored.path.read_bytes() == b"paper"
    assert store.verify(hashlib.sha256(b"paper").hexdigest(), "PDF/a.pdf")


def test_nothing_is_told_to_be_safe_before_the_disk_has_said_so(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STO-02"""
    hold, fsync = threading.Event(), os.fsync

    def held(file: int) -> None:
        assert hold.wait(LONG_S)
        fsync(file)

    monkeypatch.setattr(os, "fsync", held)

    async def bring() -> Stored:
        temp = store.temp()
        temp.write(b"paper")
        storing = asyncio.create_task(store.storing(temp, human="PDF/a.pdf"))
        assert not (await asyncio.wait([storing], timeout=0.1))[0]
        assert not (store.root / "PDF" / "a.pdf").exists()
        hold.set()
        return await storing

    assert asyncio.run(bring()).path.read_bytes() == b"paper"


def test_the_loop_goes_on_while_the_disk_takes_its_time(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, ended = os.fsync, threading.Event()

    def slow(file: int) -> None:
        assert ended.wait(LONG_S)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)

    async def bring() -> list[Stored]:
        temps = [store.temp() for _ in range(20)]
        for number, temp in enumerate(temps):
            temp.write(b"%d" % number)
        bringing = [store.storing(temp, human=f"PDF/{number}.pdf") for number, temp in enumerate(temps)]
        asyncio.get_running_loop().call_later(0.01, ended.set)  # nobody else could
        return await asyncio.gather(*bringing)

    assert [stored.path.read_bytes() for stored in asyncio.run(bring())] == [b"%d" % number for number in range(20)]


def test_a_name_that_leads_out_is_refused_to_the_one_who_brought_it(store: LocalStore) -> None:
    with pytest.raises(CandidateRejected):
        keep(store, b"bad", "../bad.pdf")


def test_what_waits_for_the_disk_is_not_held_in_memory(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far behind the disk is: then there are many that wait."""
    hold, fsync = threading.Event(), os.fsync

    def held(file: int) -> None:
        assert hold.wait(LONG_S)
        fsync(file)

    monkeypatch.setattr(os, "fsync", held)

    async def bring() -> None:
        temps = [store.temp() for _ in range(100)]
        for number, temp in enumerate(temps):
            temp.write(b"%d" % number)
        storing = [
            asyncio.create_task(store.storing(temp, human=f"PDF/{number}.pdf")) for number, temp in enumerate(temps)
        ]
        await asyncio.sleep(0)
        assert [temp.data for temp in temps] == [None] * 100
        hold.set()
        await asyncio.gather(*storing)
        for temp in temps:
            temp.discard()

    asyncio.run(bring())


def test_duties_left_during_a_round_are_done_together_in_the_next() -> None:
    hold, begun, rounds_seen = threading.Event(), threading.Event(), []
    done = threading.Semaphore(0)

    def work(duties: object) -> None:
        rounds_seen.append(list(duties))  # type: ignore[call-overload]
        begun.set()
        assert hold.wait(LONG_S)

    rounds: Rounds[int] = Rounds(work)
    rounds.begin(0, done.release)
    assert begun.wait(LONG_S)
    for number in range(1, 6):
        rounds.begin(number, done.release)
    hold.set()
    for _ in range(6):
        assert done.acquire(timeout=LONG_S)
    assert rounds_seen == [[0], [1, 2, 3, 4, 5]]


def test_the_end_of_a_round_and_the_beginning_of_the_next_are_one_deed() -> None:
    hold, begun, told = threading.Event(), threading.Event(), threading.Semaphore(0)
    deeds: list[tuple[list[int], list[int]]] = []

    def in_halves(fresh: Sequence[int], half_done: Sequence[int]) -> bool:
        deeds.append((list(fresh), list(half_done)))
        begun.set()
        assert hold.wait(LONG_S)
        return bool(fresh)

    rounds: Rounds[int] = Rounds(lambda duties: pytest.fail("these are left"), in_halves=in_halves)
    rounds.begin(0, told.release)
    assert begun.wait(LONG_S)
    rounds.begin(1, told.release)
    rounds.begin(2, told.release)
    assert not told.acquire(blocking=False)
    hold.set()
    for _ in range(3):
        assert told.acquire(timeout=LONG_S)
    assert deeds == [([0], []), ([1, 2], [0]), ([], [1, 2])]


def test_whoever_gathers_takes_along_all_that_come() -> None:
    done, rounds_seen = threading.Semaphore(0), []
    gathering, enough = threading.Event(), threading.Event()

    def gather(seconds: float) -> None:
        gathering.set()
        assert enough.wait(LONG_S)

    rounds: Rounds[int] = Rounds(lambda duties: rounds_seen.append(len(duties)), lively_s=LONG_S, sleep=gather)
    rounds.begin(0, done.release)
    assert done.acquire(timeout=LONG_S)
    rounds.begin(1, done.release)
    assert gathering.wait(LONG_S)
    for number in range(40):
        rounds.begin(number, done.release)
    assert rounds.threads == 1
    enough.set()
    for _ in range(41):
        assert done.acquire(timeout=LONG_S)
    assert rounds_seen == [1, 41]


def test_nobody_takes_what_comes_from_the_one_that_gathers() -> None:
    """The one that was in a round when the other came goes without anything."""
    begun, hold, gathering, enough = (threading.Event() for _ in range(4))
    done, rounds_seen, first = threading.Semaphore(0), [], []

    def work(duties: Sequence[int]) -> None:
        rounds_seen.append(len(duties))
        first.append(threading.current_thread())
        begun.set()
        assert hold.wait(LONG_S)

    def gather(seconds: float) -> None:
        gathering.set()
        assert enough.wait(LONG_S)

    rounds: Rounds[int] = Rounds(work, lively_s=LONG_S, linger_s=0.01, sleep=gather)
    rounds.begin(0, done.release)
    assert begun.wait(LONG_S)
    for number in range(20):  # more than one thread is for
        rounds.begin(number, done.release)
    assert gathering.wait(LONG_S)
    hold.set()
    first[0].join(LONG_S)
    assert (rounds_seen, rounds.threads, rounds.left) == ([1], 1, 20)
    enough.set()
    for _ in range(21):
        assert done.acquire(timeout=LONG_S)
    assert rounds_seen == [1, 20]


def test_a_round_that_fails_is_the_end_of_nobody_elses_duty(store: LocalStore) -> None:
    done = threading.Semaphore(0)

    def work(duties: object) -> None:
        if duties == ["bad"]:
            raise RuntimeError("a fault of ours")

    rounds: Rounds[str] = Rounds(work, at_once=1)
    tell: Callable[[], None] = done.release
    rounds.begin("bad", tell)
    assert done.acquire(timeout=LONG_S)
    rounds.begin("good", tell)
    assert done.acquire(timeout=LONG_S)


def test_a_file_whose_round_failed_is_not_said_to_be_stored(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise MemoryError("a fault of ours")

    monkeypatch.setattr(os, "fsync", fails)
    monkeypatch.setattr("DocsToKG.ContentDownload.storage.local.in_words", fails)  # nor can it be put into words
    with pytest.raises(StorageError, match="not stored"):
        keep(store, b"paper", "PDF/a.pdf")


def test_the_threads_go_when_there_is_nothing_left() -> None:
    done = threading.Semaphore(0)
    before = set(threading.enumerate())  # some may still be going that another test began
    rounds: Rounds[int] = Rounds(lambda duties: None, linger_s=0.01)
    for number in range(40):
        rounds.begin(number, done.release)
    for _ in range(40):
        assert done.acquire(timeout=LONG_S)
    own = [thread for thread in threading.enumerate() if thread.name == "rounds" and thread not in before]
    for thread in own:
        thread.join(LONG_S)
    assert not any(thread.is_alive() for thread in own)
    rounds.begin(1, done.release)
    assert done.acquire(timeout=LONG_S)


def test_where_the_system_gives_no_thread_the_duty_is_done_by_who_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done: list[str] = []
    rounds = Rounds[str](done.extend)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        rounds.begin("a", lambda: done.append("told"))
    assert done == ["a", "told"]
    again = threading.Event()
    rounds.begin("b", again.set)
    assert again.wait(LONG_S)
