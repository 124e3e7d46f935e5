"""Few threads of a frontier run at once, and none of them is missed when it blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from DocsToKG.ContentDownload.api.steps import Gate, NotYet, Race, Steps, Wait
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.turns import giving_way


class OpenGate:
    """Lets everybody through."""

    def ask(self, gate: Gate) -> NotYet:
        raise AssertionError("nobody asks here")

    def on_free(self, callback: Callable[[str], None]) -> None:
        return None


class Meter:
    """How many are inside at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *exc_info: object) -> None:
        with self._lock:
            self.now -= 1


def pool_of(threads: int, most_running: int) -> Frontier:
    return Frontier(gate=OpenGate(), clock=SystemClock(), threads=threads, most_running=most_running)  # type: ignore[arg-type]


def run_all(pool: Frontier, works: list[Steps[object]]) -> list[Ended]:
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


def test_threads_that_give_way_wait_together_and_run_by_turns() -> None:
    """Twenty waits of a fifth of a second on twenty threads take about one, and what comes after them runs by turns."""
    waiting, running = Meter(), Meter()

    def work() -> Steps[int]:
        with giving_way(), waiting:
            time.sleep(0.2)
        with running:
            sum(range(2000))
        return 1
        yield Wait(0.0, "never")

    with pool_of(20, most_running=1) as pool:
        began = time.monotonic()
        assert len(run_all(pool, [work() for _ in range(20)])) == 20
        took_s = time.monotonic() - began
    assert waiting.most > 10
    assert running.most == 1
    assert took_s < 3.5  # one after the other they take four


def test_a_thread_that_blocks_without_a_word_does_not_stop_the_others() -> None:
    """A disk that does not answer: the turns of those who are stuck are given out a second time."""
    door = threading.Event()
    inside = threading.Semaphore(0)

    def stuck() -> Steps[None]:
        inside.release()
        assert door.wait(10)
        yield Wait(0.0, "nothing")

    def quick() -> Steps[str]:
        yield Wait(0.0, "nothing")
        return "done"

    with pool_of(12, most_running=1) as pool:
        for _ in range(10):
            pool.submit(stuck(), cancel=CancelToken(), on_done=lambda end: None)
        for _ in range(10):
            assert inside.acquire(timeout=5)
        assert pool.run(quick()) == "done"
        door.set()


def test_after_a_jam_the_turns_are_few_again() -> None:
    running = Meter()

    def stuck() -> Steps[None]:
        time.sleep(0.1)
        return
        yield Wait(0.0, "never")

    def light() -> Steps[None]:
        with running:
            sum(range(2000))
        return
        yield Wait(0.0, "never")

    with pool_of(8, most_running=1) as pool:
        run_all(pool, [stuck() for _ in range(8)])
        time.sleep(0.2)
        run_all(pool, [light() for _ in range(200)])
    assert running.most == 1


def test_a_timer_is_kept_while_every_turn_is_taken_by_a_stuck_thread() -> None:
    door = threading.Event()

    def stuck() -> Steps[None]:
        assert door.wait(10)
        return
        yield Wait(0.0, "never")

    def later() -> Steps[float]:
        asked = time.monotonic() + 0.1
        yield Wait(asked, "later")
        return time.monotonic() - asked

    with pool_of(4, most_running=1) as pool:
        pool.submit(stuck(), cancel=CancelToken(), on_done=lambda end: None)
        assert 0.0 <= pool.run(later()) < 2.0
        door.set()


def test_a_thread_of_no_pool_gives_way_to_nobody() -> None:
    with giving_way():
        pass


def in_row(*ways: Callable[[CancelToken], Steps[object]]) -> Steps[object]:
    found = yield Race(ways, 1, CancelToken())
    return ("found", found)


def answers(value: object, log: list[object]) -> Callable[[CancelToken], Steps[object]]:
    def way(cancel: CancelToken) -> Steps[object]:
        log.append(value)
        yield Wait(0.0, "nothing")
        return value

    return way


def test_branches_in_a_row_run_until_one_has_a_value() -> None:
    log: list[object] = []
    with pool_of(2, most_running=1) as pool:
        assert pool.run(in_row(answers(None, log), answers(7, log), answers(8, log))) == ("found", 7)
        assert log == [None, 7]
        assert pool.run(in_row(answers(None, []), answers(None, []))) == ("found", None)
        assert pool.run(in_row()) == ("found", None)


def test_a_row_inside_a_row_hands_its_value_up() -> None:
    def outer(cancel: CancelToken) -> Steps[object]:
        return (yield Race([answers(None, []), answers("inner", [])], 1, cancel))

    with pool_of(1, most_running=1) as pool:
        assert pool.run(in_row(answers(None, []), outer)) == ("found", "inner")


def test_a_fault_and_a_calling_off_in_a_row_reach_the_asker_and_end_the_row() -> None:
    log: list[object] = []

    def broken(cancel: CancelToken) -> Steps[object]:
        yield Wait(0.0, "nothing")
        raise LookupError("lost")

    def called_off(cancel: CancelToken) -> Steps[object]:
        yield Wait(0.0, "nothing")
        raise Cancelled

    with pool_of(1, most_running=1) as pool:
        with pytest.raises(LookupError, match="lost"):
            pool.run(in_row(broken, answers(1, log)))
        with pytest.raises(Cancelled):
            pool.run(in_row(called_off, answers(1, log)))
    assert log == []


def test_cancelling_a_work_reaches_the_branch_that_waits_in_its_row() -> None:
    seen: list[object] = []
    began = threading.Event()

    def waits(cancel: CancelToken) -> Steps[object]:
        try:
            began.set()
            yield Wait(time.monotonic() + 60, "long")
        except Cancelled:
            seen.append(cancel.cancelled)
            raise
        return None

    token, ended = CancelToken(), threading.Event()
    with pool_of(1, most_running=1) as pool:
        pool.submit(in_row(waits), cancel=token, on_done=lambda end: ended.set())
        assert began.wait(5)
        token.cancel()
        assert ended.wait(5)
    assert seen == [True]


def test_whoever_feeds_the_pool_knows_how_many_more_it_takes() -> None:
    door = threading.Event()

    def stuck() -> Steps[None]:
        assert door.wait(10)
        return
        yield Wait(0.0, "never")

    with pool_of(1, most_running=1) as pool:
        for _ in range(12):
            pool.submit(stuck(), cancel=CancelToken(), on_done=lambda end: None)
        assert pool.room(most_live=16, most_fresh=99) == 4
        assert pool.room(most_live=12, most_fresh=99) == 0
        assert pool.room(most_live=11, most_fresh=99) == 0
        assert pool.room(most_live=99, most_fresh=8) == 0
        door.set()


def test_stopping_waits_for_a_loser_that_comes_back_late() -> None:
    """It waits for its turn while the others leave for good."""

    def wins(cancel: CancelToken) -> Steps[object]:
        yield Wait(time.monotonic() + 0.05, "a moment")
        return "won"

    def loses(cancel: CancelToken) -> Steps[object]:
        with giving_way():
            time.sleep(0.1)
        yield Wait(0.0, "nothing")
        return None

    def work() -> Steps[object]:
        return (yield Race([loses, loses, loses, wins], 4, CancelToken()))

    for _ in range(5):
        pool = pool_of(6, most_running=1)
        pool.start()
        assert pool.run(work()) == "won"
        stopper = threading.Thread(target=pool.stop, kwargs={"grace_s": 0.0}, daemon=True)
        stopper.start()
        stopper.join(10)
        assert not stopper.is_alive()
