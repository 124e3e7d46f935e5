"""A work that waits for the disk holds no thread and is not called off; one that is done with the network, no place."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from DocsToKG.ContentDownload.api.steps import ExchangeOver, Gate, NotYet, Race, Steps, Until, Wait
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.ContentDownload.net.blocking import drive
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock

LONG_S = 30


class OpenGate:
    def ask(self, gate: Gate) -> NotYet:
        raise AssertionError("nobody asks")

    def on_free(self, callback: Callable[[str], None]) -> None:
        return None


class Disk:
    """Is done when the test says so."""

    def __init__(self) -> None:
        self.come = threading.Semaphore(0)
        self._wakes: list[Callable[[], None]] = []

    def start(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)
        self.come.release()

    def await_come(self, number: int = 1) -> None:
        for _ in range(number):
            assert self.come.acquire(timeout=LONG_S)

    def finish(self) -> None:
        for wake in self._wakes:
            wake()
        self._wakes = []


class Ends:
    def __init__(self) -> None:
        self.all: list[Ended] = []
        self._told = threading.Semaphore(0)

    def __call__(self, ended: Ended) -> None:
        self.all.append(ended)
        self._told.release()

    def await_ends(self, number: int = 1) -> list[Ended]:
        for _ in range(number):
            assert self._told.acquire(timeout=LONG_S)
        return self.all


@pytest.fixture
def pool() -> Iterator[Frontier]:
    with Frontier(gate=OpenGate(), clock=SystemClock(), threads=1) as pool:
        yield pool


def storing(disk: Disk, value: object = "stored") -> Steps[object]:
    yield Until(disk.start, "the disk")
    return value


def at_once() -> Steps[str]:
    yield from ()
    return "done"


def test_the_only_thread_does_other_works_meanwhile(pool: Frontier) -> None:
    disk, ends = Disk(), Ends()
    for number in range(5):
        pool.submit(storing(disk, number), cancel=CancelToken(), on_done=ends)
    disk.await_come(5)
    assert pool.run(at_once()) == "done"
    assert (pool.live, ends.all) == (5, [])
    disk.finish()
    assert sorted(ended.value for ended in ends.await_ends(5)) == [0, 1, 2, 3, 4]


def test_what_is_done_at_once_goes_on_at_once(pool: Frontier) -> None:
    def steps() -> Steps[str]:
        yield Until(lambda wake: wake(), "the disk")
        return "stored"

    assert pool.run(steps()) == "stored"


def test_being_told_twice_is_being_told_once(pool: Frontier) -> None:
    def steps() -> Steps[str]:
        yield Until(lambda wake: (wake(), wake())[0], "the disk")
        yield Wait(0.0, "nothing")
        return "stored"

    assert pool.run(steps()) == "stored"


def test_a_start_that_fails_is_told_to_the_work(pool: Frontier) -> None:
    def start(wake: Callable[[], None]) -> None:
        raise OSError("no disk")

    def steps() -> Steps[str]:
        yield Until(start, "the disk")
        return "stored"

    with pytest.raises(OSError, match="no disk"):
        pool.run(steps())


def test_a_cancelled_work_is_stored_all_the_same(pool: Frontier) -> None:
    """Its file has been proved and claimed: it is told of, and not lost half-way."""
    disk, ends, token = Disk(), Ends(), CancelToken()
    pool.submit(storing(disk), cancel=token, on_done=ends)
    disk.await_come()
    token.cancel()
    assert pool.run(at_once()) == "done"
    assert ends.all == []
    disk.finish()
    [ended] = ends.await_ends()
    assert ended.value == "stored"


def test_a_work_that_was_cancelled_before_still_waits_for_what_it_set_going(pool: Frontier) -> None:
    disk, ends, token = Disk(), Ends(), CancelToken()

    def steps() -> Steps[str]:
        token.cancel()
        yield Until(disk.start, "the disk")
        return "stored"

    pool.submit(steps(), cancel=token, on_done=ends)
    disk.await_come()
    disk.finish()
    assert ends.await_ends()[0].value == "stored"


def test_its_cancellation_is_met_at_the_next_wait(pool: Frontier) -> None:
    disk, ends, token = Disk(), Ends(), CancelToken()

    def steps() -> Steps[None]:
        yield Until(disk.start, "the disk")
        yield Wait(time.monotonic() + LONG_S, "long")

    pool.submit(steps(), cancel=token, on_done=ends)
    disk.await_come()
    token.cancel()
    disk.finish()
    assert isinstance(ends.await_ends()[0].error, Cancelled)


def test_stopping_waits_for_the_disk_beyond_the_grace() -> None:
    disk, ends = Disk(), Ends()
    pool = Frontier(gate=OpenGate(), clock=SystemClock(), threads=2)
    pool.start()
    pool.submit(storing(disk), cancel=CancelToken(), on_done=ends)
    disk.await_come()
    stopping = threading.Thread(target=lambda: pool.stop(grace_s=0.0))
    stopping.start()
    stopping.join(0.2)
    assert stopping.is_alive()
    disk.finish()
    stopping.join(LONG_S)
    assert not stopping.is_alive()
    assert ends.await_ends()[0].value == "stored"


def test_a_branch_that_stores_wins_although_its_parent_is_called_off(pool: Frontier) -> None:
    disk, ends, token = Disk(), Ends(), CancelToken()

    def steps() -> Steps[object]:
        winner: object = yield Race([lambda own: storing(disk)], parallel=1, cancel=token)
        return winner

    pool.submit(steps(), cancel=token, on_done=ends)
    disk.await_come()
    token.cancel()
    disk.finish()
    assert ends.await_ends()[0].value == "stored"


def test_a_caller_that_blocks_waits_for_it_too() -> None:
    def start(wake: Callable[[], None]) -> None:
        threading.Timer(0.01, wake).start()

    def steps() -> Steps[str]:
        yield Until(start, "the disk")
        return "stored"

    assert drive(steps(), gate=OpenGate(), clock=SystemClock(), cancel=CancelToken()) == "stored"


class CountedGate:
    """Lets everybody through and counts who is between a grant and the end of its exchange."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = self.grants = 0

    def ask(self, gate: Gate) -> CountedGate:
        with self._lock:
            self.now += 1
            self.grants += 1
            self.most = max(self.most, self.now)
        return self

    def on_free(self, callback: Callable[[str], None]) -> None:
        return None

    def release(self) -> None:
        with self._lock:
            self.now -= 1

    def refund(self) -> None:
        return None


def exchange(number: int, gate: CountedGate) -> Steps[int]:
    permit = yield Gate(f"https://{number % 3}.org/x", "test", "artifact")
    time.sleep(0.002)
    permit.release()
    yield ExchangeOver()
    time.sleep(0.002)
    return number


def test_no_more_exchanges_run_at_once_than_there_are_workers_and_none_is_forgotten() -> None:
    gate, ends = CountedGate(), Ends()
    with Frontier(gate=gate, clock=SystemClock(), threads=3, most_running=8) as pool:
        for number in range(200):
            pool.submit(exchange(number, gate), cancel=CancelToken(), on_done=ends)
        assert sorted(ended.value for ended in ends.await_ends(200)) == list(range(200))
        assert (gate.most <= 3, gate.now, pool._at_work) == (True, 0, 0)


def test_the_next_exchange_begins_while_what_came_is_still_proved() -> None:
    """One worker, and the first work does not end before the second has been at its gate."""
    gate, ends, second = CountedGate(), Ends(), threading.Event()

    def first() -> Steps[str]:
        permit = yield Gate("https://a.org/x", "test", "artifact")
        permit.release()
        yield ExchangeOver()
        assert second.wait(LONG_S)
        return "proved"

    def other() -> Steps[str]:
        permit = yield Gate("https://b.org/x", "test", "artifact")
        second.set()
        permit.release()
        return "second"

    with Frontier(gate=gate, clock=SystemClock(), threads=1) as pool:
        pool.submit(first(), cancel=CancelToken(), on_done=ends)
        pool.submit(other(), cancel=CancelToken(), on_done=ends)
        assert {ended.value for ended in ends.await_ends(2)} == {"proved", "second"}


def test_exchanges_and_proofs_take_turns_of_several_each() -> None:
    """What is alike goes quicker one after another; neither kind waits until the other is done."""
    gate, ends, log = CountedGate(), Ends(), list[str]()

    def work() -> Steps[None]:
        permit = yield Gate("https://a.org/x", "test", "artifact")
        log.append("exchange")
        permit.release()
        yield ExchangeOver()
        log.append("proof")

    pool = Frontier(gate=gate, clock=SystemClock(), threads=4)
    for _ in range(200):
        pool.submit(work(), cancel=CancelToken(), on_done=ends)
    with pool:
        ends.await_ends(200)
    turns = [kind for kind, _ in itertools.groupby(log)]
    assert log.index("proof") < 50
    assert 10 < len(turns) < 100


def test_a_work_that_waits_or_fails_in_its_exchange_leaves_its_place() -> None:
    gate, ends = CountedGate(), Ends()

    def waits() -> Steps[str]:
        yield Gate("https://a.org/x", "test", "artifact")
        yield Wait(time.monotonic() + 0.01, "a little")
        return "waited"

    def fails() -> Steps[str]:
        yield Gate("https://a.org/x", "test", "artifact")
        raise ValueError("broken")

    with Frontier(gate=gate, clock=SystemClock(), threads=1) as pool:
        for steps in (waits(), fails(), waits(), fails(), waits()):
            pool.submit(steps, cancel=CancelToken(), on_done=ends)
        assert len(ends.await_ends(5)) == 5
        assert pool._at_work == 0


def test_a_work_that_stands_before_a_gate_for_want_of_a_place_can_be_called_off() -> None:
    """It has been elsewhere, and others have taken its place."""
    gate, ends, disk, begun, go = CountedGate(), Ends(), Disk(), threading.Event(), threading.Event()

    def comes_back() -> Steps[str]:
        yield Until(disk.start, "the disk")
        yield Gate("https://b.org/x", "test", "artifact")
        return "never"

    def holds() -> Steps[str]:
        yield Gate("https://a.org/x", "test", "artifact")
        begun.set()
        assert go.wait(LONG_S)
        return "held"

    with Frontier(gate=gate, clock=SystemClock(), threads=1) as pool:
        token = CancelToken()
        pool.submit(comes_back(), cancel=token, on_done=ends)
        disk.await_come()
        pool.submit(holds(), cancel=CancelToken(), on_done=ends)
        assert begun.wait(LONG_S)
        disk.finish()
        until = time.monotonic() + LONG_S
        while not pool.waits():
            assert time.monotonic() < until
            time.sleep(0.005)
        assert pool.waits() == {"a free worker": 1}
        token.cancel()
        assert isinstance(ends.await_ends()[0].error, Cancelled)
        go.set()
        assert ends.await_ends()[1].value == "held"
    assert gate.grants == 1
