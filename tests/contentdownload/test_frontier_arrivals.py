"""A work whose answer is on its way holds its place and no thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests import needs

from DocsToKG.ContentDownload.api.steps import Arrival, ExchangeOver, Gate, NotYet, Steps
from DocsToKG.ContentDownload.frontier import arrivals
from DocsToKG.ContentDownload.frontier.arrivals import Arrivals
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.ContentDownload.net.blocking import drive
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.turns import giving_way

LONG_S = 30

pytestmark = needs.system(arrivals.IS_KNOWN, "a system with epoll")


class OpenGate:
    def ask(self, gate: Gate) -> NotYet:
        raise AssertionError("nobody asks")

    def on_free(self, callback: Callable[[str], None]) -> None:
        return None


class Wires:
    """Connections with both ends here."""

    def __init__(self, number: int) -> None:
        self.pairs = [socket.socketpair() for _ in range(number)]

    def step(self, number: int, *, wait_s: float = LONG_S, own: int = 0) -> Arrival:
        return Arrival(self.pairs[number][0].fileno(), time.monotonic() + wait_s, own)

    def answer(self, number: int) -> None:
        self.pairs[number][1].send(b"x")


@pytest.fixture
def wires() -> Iterator[Wires]:
    made = Wires(40)
    yield made
    for pair in made.pairs:
        for end in pair:
            end.close()


@pytest.fixture
def pool() -> Iterator[Frontier]:
    with pool_of(40) as made:
        yield made


def pool_of(places: int) -> Frontier:
    return Frontier(gate=OpenGate(), clock=SystemClock(), threads=places)  # type: ignore[arg-type]


class Ends:
    def __init__(self, pool: Frontier) -> None:
        self._pool = pool
        self.ended: list[Ended] = []
        self._come = threading.Semaphore(0)

    def submit(self, steps: Steps[object], cancel: CancelToken | None = None) -> None:
        self._pool.submit(steps, cancel=cancel or CancelToken(), on_done=self._done)

    def _done(self, ended: Ended) -> None:
        self.ended.append(ended)
        self._come.release()

    def values(self, number: int) -> list[object]:
        for _ in range(number):
            assert self._come.acquire(timeout=LONG_S)
        return [ended.unwrap() for ended in self.ended]


def test_many_answers_are_awaited_with_no_thread_each(pool: Frontier, wires: Wires) -> None:
    waiting, seen = threading.Semaphore(0), set()

    def work(number: int) -> Steps[object]:
        seen.add(threading.get_ident())
        waiting.release()
        came = yield wires.step(number)
        seen.add(threading.get_ident())
        return (number, came)

    ends = Ends(pool)
    for number in range(40):
        ends.submit(work(number))
    for _ in range(40):
        assert waiting.acquire(timeout=LONG_S)
    for number in range(40):
        wires.answer(number)
    assert sorted(ends.values(40)) == [(number, True) for number in range(40)]  # type: ignore[type-var]
    assert len(seen) < 20  # threads that ever had one of them


def test_what_came_before_it_was_awaited_is_seen(pool: Frontier, wires: Wires) -> None:
    def work() -> Steps[object]:
        wires.answer(0)
        return (yield wires.step(0))

    ends = Ends(pool)
    ends.submit(work())
    assert ends.values(1) == [True]


@pytest.mark.parametrize("own", [0, 7])
def test_one_connection_is_awaited_again_and_again(pool: Frontier, wires: Wires, own: int) -> None:
    def work() -> Steps[object]:
        heard = b""
        for _ in range(5):
            wires.answer(0)
            assert (yield wires.step(0, own=own))
            heard += wires.pairs[0][0].recv(10)
        return heard

    ends = Ends(pool)
    ends.submit(work())
    assert ends.values(1) == [b"xxxxx"]


@pytest.mark.parametrize("numbers", [(0, 0, 0), (1, 2, 3)])
def test_a_descriptor_that_was_closed_may_come_back_as_another(pool: Frontier, numbers: tuple[int, ...]) -> None:
    def work() -> Steps[object]:
        for number in numbers:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                theirs.send(b"x")
                assert (yield Arrival(ours.fileno(), time.monotonic() + LONG_S, number))
        return "all"

    ends = Ends(pool)
    ends.submit(work())
    assert ends.values(1) == ["all"]


def test_nobody_waits_beyond_its_time(pool: Frontier, wires: Wires) -> None:
    def work() -> Steps[object]:
        return (yield wires.step(0, wait_s=0.05))

    ends = Ends(pool)
    ends.submit(work())
    assert ends.values(1) == [False]


class Watching:
    """Stands before the system's own, and counts what it is asked."""

    def __init__(self, epoll: Any) -> None:
        self._epoll = epoll
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += name in ("register", "modify")
        return getattr(self._epoll, name)


def test_a_connection_that_has_a_number_is_told_of_without_asking_again(wires: Wires) -> None:
    told: list[tuple[str, bool]] = []
    here: Arrivals[str] = Arrivals(lambda who, came: told.append((who, came)))
    here.open()
    here._epoll = system = Watching(here._epoll)
    fileno = wires.pairs[0][0].fileno()

    def heard(who: str) -> None:
        here.wait(fileno, time.monotonic() + LONG_S, who, 7)
        here.look()
        assert not told
        wires.answer(0)
        here.look()
        assert told.pop() == (who, True)
        wires.pairs[0][0].recv(10)

    heard("first")
    heard("second")
    assert system.asked == 1
    # What comes while nobody waits is told to whoever waits next, if it is still there.
    wires.answer(0)
    here.look()
    here.wait(fileno, time.monotonic() + LONG_S, "late", 7)
    here.look()
    assert told.pop() == ("late", True)
    wires.answer(0)
    here.look()
    wires.pairs[0][0].recv(10)
    heard("last")
    here.close()


class Permits:
    """Lets everybody through who has a place."""

    def ask(self, gate: Gate) -> Permits:
        return self

    def on_free(self, callback: Callable[[str], None]) -> None:
        return None

    def release(self) -> None:
        return None

    def refund(self) -> None:
        return None


def test_a_work_that_waits_for_an_answer_keeps_its_place(wires: Wires) -> None:
    """Places are exchanges in flight: with two of them, a third goes out when one of the first is over. It has come up
    to its gate by then."""
    sent: list[int] = []
    come, gone_out = threading.Semaphore(0), threading.Semaphore(0)

    def work(number: int) -> Steps[object]:
        come.release()
        yield Gate("https://a.org/x.pdf", "source", "artifact")
        sent.append(number)
        gone_out.release()
        yield wires.step(number)
        yield ExchangeOver()
        return number

    pool = Frontier(gate=Permits(), clock=SystemClock(), threads=2)  # type: ignore[arg-type]
    with pool:
        ends = Ends(pool)
        for number in range(6):
            ends.submit(work(number))
        for _ in range(2):
            assert gone_out.acquire(timeout=LONG_S)
        for _ in range(4):
            assert come.acquire(timeout=LONG_S)  # two at work, and as many before their gates
        assert not gone_out.acquire(timeout=0.05)
        assert not come.acquire(timeout=0.05)
        assert pool.active == 2
        wires.answer(sent[0])
        assert gone_out.acquire(timeout=LONG_S)
        assert not gone_out.acquire(timeout=0.05)
        for number in range(6):
            wires.answer(number)
        assert sorted(ends.values(6)) == list(range(6))  # type: ignore[type-var]


def test_one_work_at_a_time_is_prepared_without_a_place() -> None:
    """One that blocks on its way to its gate is the only one beyond the workers."""
    go, begun = threading.Event(), threading.Semaphore(0)

    async def work() -> Steps[object]:
        begun.release()
        with giving_way():
            assert go.wait(LONG_S)
        return 1

    with pool_of(2) as pool:
        ends = Ends(pool)
        for _ in range(8):
            ends.submit(work())
        for _ in range(3):
            assert begun.acquire(timeout=LONG_S)
        assert not begun.acquire(timeout=0.1)
        go.set()
        assert ends.values(8) == [1] * 8


def test_a_prepared_work_that_is_called_off_makes_room_for_another(wires: Wires) -> None:
    come, gone_out, cancel = threading.Semaphore(0), threading.Semaphore(0), CancelToken()

    def work(number: int) -> Steps[object]:
        come.release()
        yield Gate("https://a.org/x.pdf", "source", "artifact")
        gone_out.release()
        yield wires.step(number)
        return number

    pool = Frontier(gate=Permits(), clock=SystemClock(), threads=1)  # type: ignore[arg-type]
    with pool:
        first, second = Ends(pool), Ends(pool)
        first.submit(work(0))
        assert gone_out.acquire(timeout=LONG_S)
        second.submit(work(1), cancel)
        for _ in range(2):
            assert come.acquire(timeout=LONG_S)
        first.submit(work(2))
        assert not come.acquire(timeout=0.05)
        cancel.cancel()
        assert come.acquire(timeout=LONG_S)
        for number in (0, 2):
            wires.answer(number)
        assert sorted(first.values(2)) == [0, 2]  # type: ignore[type-var]


def test_answers_are_seen_while_the_only_thread_that_runs_waits_for_somebody_else(wires: Wires) -> None:
    """Nobody polls then, unless one is woken for it."""
    waits, go = threading.Event(), threading.Event()

    def listening() -> Steps[object]:
        return (yield wires.step(0))

    async def blocked() -> Steps[object]:
        with giving_way():
            waits.set()
            assert go.wait(LONG_S)
        return "late"

    with pool_of(4) as pool:
        first, second = Ends(pool), Ends(pool)
        first.submit(listening())
        second.submit(blocked())
        assert waits.wait(LONG_S)
        wires.answer(0)
        assert first.values(1) == [True]
        go.set()
        assert second.values(1) == ["late"]


def test_a_connection_that_is_shut_down_ends_the_wait(pool: Frontier, wires: Wires) -> None:
    """So a cancelled exchange comes back: cancelling shuts its socket down."""
    cancel = CancelToken()
    cancel.on_cancel(lambda: wires.pairs[0][0].shutdown(socket.SHUT_RDWR))
    waiting = threading.Event()

    def work() -> Steps[object]:
        waiting.set()
        return (yield wires.step(0))

    ends = Ends(pool)
    ends.submit(work(), cancel)
    assert waiting.wait(LONG_S)
    cancel.cancel()
    assert ends.values(1) == [True]


def test_a_caller_who_blocks_goes_on_at_once_and_waits_where_it_reads(wires: Wires) -> None:
    def work() -> Steps[object]:
        return (yield wires.step(0))

    assert drive(work(), gate=OpenGate(), clock=SystemClock(), cancel=CancelToken())  # type: ignore[arg-type]


def test_a_sleeper_is_woken_also_when_others_come_by() -> None:
    """Whoever looks in passing leaves the bell ringing for the one it is meant for."""
    told: list[object] = []
    outlook: Arrivals[str] = Arrivals(lambda who, came: told.append(who))
    outlook.open()
    try:
        outlook.wake()
        outlook.look()
        began = time.monotonic()
        outlook.look(LONG_S)
        assert time.monotonic() - began < LONG_S / 2
        assert told == []
    finally:
        outlook.close()
