"""The frontier drives steps: gates, waits, races, cancels, without holding a thread while a work waits."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from DocsToKG.ContentDownload.api.steps import Gate, GateShut, NotYet, Race, Steps, Wait
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.urls import BadUrl, host_key


@dataclass
class SlotGate:
    """A gatekeeper with `slots` per host and no rates."""

    slots: int = 1
    taken: dict[str, int] = field(default_factory=dict)
    most: int = 0
    order: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[str], None]] = []

    def ask(self, gate: Gate) -> SlotPermit | NotYet:
        key = f"host:{host_key(gate.url)}"
        with self._lock:
            if self.taken.get(key, 0) >= self.slots:
                return NotYet(key, None, f"a free slot at {key}")
            self.taken[key] = self.taken.get(key, 0) + 1
            self.most = max(self.most, self.taken[key])
            self.order.append(gate.url)
            return SlotPermit(self, key)

    def on_free(self, callback: Callable[[str], None]) -> None:
        self._callbacks.append(callback)

    def free(self, key: str) -> None:
        with self._lock:
            self.taken[key] -= 1
        for callback in self._callbacks:
            callback(key)


class SlotPermit:
    def __init__(self, gate: SlotGate, key: str) -> None:
        self._gate, self._key, self._held = gate, key, True

    def release(self) -> None:
        if self._held:
            self._held = False
            self._gate.free(self._key)

    def refund(self) -> None:
        return None


@pytest.fixture
def gate() -> SlotGate:
    return SlotGate()


def visit(url: str, seconds: float = 0.0) -> Steps[str]:
    permit = yield Gate(url, "test", "artifact")
    try:
        time.sleep(seconds)
    finally:
        permit.release()
    return url


def frontier(gate: SlotGate, threads: int = 4) -> Frontier:
    return Frontier(gate=gate, clock=SystemClock(), threads=threads)


def run_all(pool: Frontier, works: list[Steps[str]]) -> list[Ended]:
    ended: list[Ended] = []
    over = threading.Semaphore(0)

    def done(end: Ended) -> None:
        ended.append(end)
        over.release()

    for work in works:
        pool.submit(work, cancel=CancelToken(), on_done=done)
    for _ in works:
        assert over.acquire(timeout=10)
    return ended


def test_a_work_runs_to_its_value(gate: SlotGate) -> None:
    with frontier(gate) as pool:
        assert pool.run(visit("https://a.org/1")) == "https://a.org/1"


def test_an_exception_reaches_the_caller(gate: SlotGate) -> None:
    def broken() -> Steps[None]:
        yield Wait(0.0, "nothing")
        raise LookupError("lost")

    with frontier(gate) as pool, pytest.raises(LookupError, match="lost"):
        pool.run(broken())


def test_the_slots_of_a_host_are_never_exceeded(gate: SlotGate) -> None:
    """LIM-06, at the level of the frontier."""
    with frontier(gate, threads=8) as pool:
        run_all(pool, [visit(f"https://a.org/{n}", 0.002) for n in range(60)])
    assert gate.most == 1


def test_waiters_of_one_host_are_served_in_order(gate: SlotGate) -> None:
    with frontier(gate, threads=1) as pool:
        run_all(pool, [visit(f"https://a.org/{n}") for n in range(20)])
    assert gate.order == [f"https://a.org/{n}" for n in range(20)]


def test_a_busy_host_does_not_hold_up_another(gate: SlotGate) -> None:
    """Forty works stand before one slow host; a work of another host is through long before them."""
    ended: list[Ended] = []
    with frontier(gate, threads=2) as pool:
        for n in range(40):
            pool.submit(visit(f"https://slow.org/{n}", 0.05), cancel=CancelToken(), on_done=ended.append)
        pool.run(visit("https://quick.org/1"))
        assert len(ended) < 20


def test_waiting_holds_no_thread(gate: SlotGate) -> None:
    def sleeper() -> Steps[None]:
        yield Wait(time.monotonic() + 0.2, "a while")

    with frontier(gate, threads=1) as pool:
        begin = time.monotonic()
        run_all(pool, [sleeper() for _ in range(200)])
        assert 0.2 <= time.monotonic() - begin < 20.0  # one after the other they take forty


def test_a_wait_is_never_shorter_than_asked(gate: SlotGate) -> None:
    def sleeper(until: float) -> Steps[float]:
        yield Wait(until, "a while")
        return time.monotonic()

    with frontier(gate, threads=2) as pool:
        for delay in (0.05, 0.01, 0.03):
            until = time.monotonic() + delay
            assert pool.run(sleeper(until)) >= until


def test_a_sooner_timer_is_not_slept_through(gate: SlotGate) -> None:
    def sleeper(seconds: float) -> Steps[None]:
        yield Wait(time.monotonic() + seconds, "a while")

    with frontier(gate, threads=3) as pool:
        pool.submit(sleeper(5.0), cancel=CancelToken(), on_done=lambda end: None)
        time.sleep(0.05)  # let a thread fall asleep on the long timer
        begin = time.monotonic()
        pool.run(sleeper(0.05))
        assert time.monotonic() - begin < 4.0


def branch(url: str, seconds: float, value: str | None) -> Callable[[CancelToken], Steps[str | None]]:
    def steps(cancel: CancelToken) -> Steps[str | None]:
        permit = yield Gate(url, "test", "artifact")
        woken = threading.Event()
        try:
            with cancel.calling(woken.set):
                woken.wait(seconds)
            cancel.raise_if_cancelled()
        finally:
            permit.release()
        return value

    return steps


def race(*branches: Callable[[CancelToken], Steps[str | None]], parallel: int = 2) -> Steps[str | None]:
    winner = yield Race(branches, parallel, CancelToken())
    return winner


def test_the_first_success_wins_and_the_loser_is_cut_at_once(gate: SlotGate) -> None:
    """RES-04: the caller does not wait for the loser, and the loser's slot is free again soon."""
    with frontier(gate) as pool:
        begin = time.monotonic()
        won = pool.run(race(branch("https://a.org/", 30, "slow"), branch("https://b.org/", 0.05, "quick")))
        assert won == "quick"
        assert time.monotonic() - begin < 25
    assert gate.taken == {"host:a.org": 0, "host:b.org": 0}


def test_a_race_without_a_winner_ends_with_none(gate: SlotGate) -> None:
    with frontier(gate) as pool:
        assert pool.run(race(branch("https://a.org/", 0, None), branch("https://b.org/", 0, None))) is None
        assert pool.run(race()) is None


def test_a_race_keeps_to_its_parallelism_and_order(gate: SlotGate) -> None:
    """RES-03, RES-29."""
    with frontier(gate) as pool:
        branches = [branch(f"https://h{n}.org/", 0.0, None) for n in range(5)]
        assert pool.run(race(*branches, parallel=1)) is None
    assert gate.order == [f"https://h{n}.org/" for n in range(5)]


def test_races_do_not_deadlock_a_pool_of_one_thread(gate: SlotGate) -> None:
    with frontier(gate, threads=1) as pool:
        works = [
            race(branch(f"https://h{n}.org/", 0.0, None), branch(f"https://k{n}.org/", 0.0, "x")) for n in range(20)
        ]
        assert [end.value for end in run_all(pool, works)] == ["x"] * 20


def test_a_fault_in_a_branch_reaches_the_parent(gate: SlotGate) -> None:
    def broken(cancel: CancelToken) -> Steps[str | None]:
        yield Wait(0.0, "nothing")
        raise LookupError("lost")

    with frontier(gate) as pool, pytest.raises(LookupError):
        pool.run(race(broken, branch("https://a.org/", 30, "slow")))


def test_cancelling_a_parked_work_ends_it_and_frees_its_place(gate: SlotGate) -> None:
    with frontier(gate, threads=2) as pool:
        hold = gate.ask(Gate("https://a.org/", "t", "artifact"))
        assert isinstance(hold, SlotPermit)
        token, box, over = CancelToken(), [], threading.Event()
        pool.submit(visit("https://a.org/1"), cancel=token, on_done=lambda end: (box.append(end), over.set())[0])
        while not pool.waits():
            time.sleep(0.001)
        token.cancel()
        assert over.wait(5)
        assert isinstance(box[0].error, Cancelled)
        assert not pool.waits()
        hold.release()


def test_stop_lets_running_works_finish_and_drops_parked_ones(gate: SlotGate) -> None:
    """ORC-11: running jobs finish within the grace; jobs not begun are given back."""
    pool = frontier(gate, threads=1)
    pool.start()
    ended: list[Ended] = []
    pool.submit(visit("https://a.org/1", 0.1), cancel=CancelToken(), on_done=ended.append)
    while not gate.order:
        time.sleep(0.001)
    for n in range(5):
        pool.submit(visit(f"https://b.org/{n}"), cancel=CancelToken(), on_done=ended.append)
    pool.stop(grace_s=5)
    assert sorted(end.value or "dropped" for end in ended) == ["dropped"] * 5 + ["https://a.org/1"]
    assert pool.live == 0


def test_stop_cuts_works_that_outlast_the_grace(gate: SlotGate) -> None:
    pool = frontier(gate, threads=2)
    pool.start()
    ended: list[Ended] = []
    token = CancelToken()
    pool.submit(branch("https://a.org/", 30, "slow")(token), cancel=token, on_done=ended.append)
    while not gate.order:
        time.sleep(0.001)
    begin = time.monotonic()
    pool.stop(grace_s=0.05)
    assert time.monotonic() - begin < 25
    assert isinstance(ended[0].error, Cancelled)


@pytest.mark.slow
def test_many_works_on_many_hosts_all_end(gate: SlotGate) -> None:
    with frontier(gate, threads=6) as pool:
        ended = run_all(pool, [visit(f"https://h{n % 17}.org/{n}") for n in range(2000)])
    assert len(ended) == 2000
    assert all(end.error is None for end in ended)


def test_a_race_that_is_cut_by_a_stop_calls_its_work_off(gate: SlotGate) -> None:
    """A work whose branches were called off has not failed: nobody said that there is no winner."""
    pool = frontier(gate, threads=2)
    pool.start()
    hold = gate.ask(Gate("https://a.org/", "t", "artifact"))
    ended: list[Ended] = []
    begun: list[str] = []

    def late(cancel: CancelToken) -> Steps[str | None]:
        begun.append("late")
        yield Wait(0.0, "nothing")
        return None

    pool.submit(race(branch("https://a.org/", 0, "x"), late, parallel=1), cancel=CancelToken(), on_done=ended.append)
    while not pool.waits():
        time.sleep(0.001)
    pool.stop(grace_s=0.0)
    assert isinstance(hold, SlotPermit)
    assert isinstance(ended[0].error, Cancelled)
    assert begun == []


def test_a_gate_that_stays_shut_for_long_is_not_stood_before() -> None:
    class FarAway(SlotGate):
        def ask(self, gate: Gate) -> SlotPermit | NotYet:
            return NotYet("host:a.org", time.monotonic() + 3600, "Retry-After of 3600 s")

    with frontier(FarAway()) as pool, pytest.raises(GateShut, match="3600"):
        pool.run(visit("https://a.org/1"))


class Faulty(SlotGate):
    """Breaks when it is asked for a work on `/bad`."""

    def ask(self, gate: Gate) -> SlotPermit | NotYet:
        if "/bad" in gate.url:
            raise LookupError(gate.url)
        return super().ask(gate)


def test_a_fault_of_the_gate_ends_the_work_that_asked_and_no_thread() -> None:
    with frontier(Faulty(), threads=1) as pool:
        for url in ("https://a.org/bad", "https://[", f"https://{'a' * 300}.org/"):
            with pytest.raises((LookupError, BadUrl)):
                pool.run(visit(url))
        assert pool.run(visit("https://a.org/good")) == "https://a.org/good"
        assert pool.live == 0


@pytest.mark.parametrize("threads", [1, 4])
def test_a_fault_of_the_gate_for_one_who_waits_lets_the_next_in(threads: int) -> None:
    gate = Faulty()
    urls = [f"https://a.org/{kind}{n}" for n in range(4) for kind in ("good", "bad")]
    with frontier(gate, threads=threads) as pool:
        hold = gate.ask(Gate("https://a.org/", "t", "artifact"))
        assert isinstance(hold, SlotPermit)
        ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        for url in urls:
            pool.submit(visit(url), cancel=CancelToken(), on_done=ended.put)
        while pool.waits().total() < len(urls):
            time.sleep(0.001)
        hold.release()
        ends = [ended.get(timeout=10) for _ in urls]
        assert pool.live == 0
    assert sorted(str(end.value) for end in ends if end.error is None) == sorted(url for url in urls if "good" in url)
    assert [type(end.error) for end in ends if end.error is not None] == [LookupError] * 4
