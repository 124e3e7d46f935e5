"""Tasks: raced, called off from other threads, never cut where they must finish, and run for threads that wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.tasks import Answer, Answers, LoopThread, called_off_by, finished, race

FOREVER = 10**9  # turns of the loop
Branch = Callable[[], Coroutine[Any, Any, str | None]]


class Branches:
    """Branches that say when they begin and how they end; `most` ran side by side."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cut: list[str] = []
        self.running = 0
        self.most = 0

    def branch(self, name: str, turns: int = 0, gives: str | None = None, error: Exception | None = None) -> Branch:
        return partial(self._run, name, turns, gives, error)

    async def _run(self, name: str, turns: int, gives: str | None, error: Exception | None) -> str | None:
        self.begun.append(name)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cut.append(name)
            raise
        finally:
            self.running -= 1
        if error is not None:
            raise error
        return gives


def test_the_first_that_is_not_none_wins_and_the_others_are_cut_before_the_race_is_over() -> None:
    own = Branches()
    branches = [own.branch("none"), own.branch("slow", FOREVER, "late"), own.branch("quick", 3, "won")]
    assert asyncio.run(race(branches, 3)) == "won"
    assert own.cut == ["slow"]
    assert own.running == 0


def test_branches_begin_in_order_and_only_so_many_run_at_once() -> None:
    own = Branches()
    branches = [own.branch(f"b{number}", turns=number % 3) for number in range(9)]
    assert asyncio.run(race(branches, 2)) is None
    assert own.begun == [f"b{number}" for number in range(9)]
    assert own.most == 2


@pytest.mark.parametrize("parallel", [-1, 0, 1])
def test_where_one_runs_at_a_time_nobody_begins_after_the_winner(parallel: int) -> None:
    own = Branches()
    assert asyncio.run(race([own.branch("a"), own.branch("b", 2, "won"), own.branch("c", 0, "too")], parallel)) == "won"
    assert own.begun == ["a", "b"]


def test_a_race_of_nobody_has_no_winner() -> None:
    assert asyncio.run(race([], 3)) is None


def test_a_fault_of_a_branch_ends_the_race_and_cuts_the_others() -> None:
    own = Branches()
    with pytest.raises(LookupError):
        asyncio.run(race([own.branch("slow", FOREVER), own.branch("bad", 2, error=LookupError())], 2))
    assert own.cut == ["slow"]


def test_a_win_counts_although_another_branch_fails_in_the_same_turn() -> None:
    """The file is stored then: the work is done."""
    own = Branches()
    for order in (("bad", "good"), ("good", "bad")):
        made = {"bad": own.branch("bad", 2, error=LookupError()), "good": own.branch("good", 2, "won")}
        assert asyncio.run(race([made[name] for name in order], 2)) == "won"


def test_who_is_cut_out_of_a_race_leaves_no_branch_running() -> None:
    own = Branches()

    async def called_off() -> None:
        racing = asyncio.create_task(race([own.branch("a", FOREVER), own.branch("b", FOREVER)], 2))
        await asyncio.sleep(0.01)
        racing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await racing
        assert own.running == 0

    asyncio.run(called_off())
    assert sorted(own.cut) == ["a", "b"]


def test_a_token_calls_off_what_is_awaited_from_another_thread() -> None:
    token, begun, left = CancelToken(), threading.Event(), []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.sleep(60)
        finally:
            left.append("cleaned up")

    def cancel() -> None:
        assert begun.wait(20)
        token.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        asyncio.run(called_off_by(token, work()))
    thread.join()
    assert left == ["cleaned up"]


def test_what_was_called_off_before_it_began_never_begins() -> None:
    token, began = CancelToken(), []
    token.cancel()

    async def work() -> None:
        began.append(1)

    with pytest.raises(Cancelled):
        asyncio.run(called_off_by(token, work()))
    assert began == []


def test_the_task_goes_on_after_a_work_was_called_off() -> None:
    """What is cancelled is the work; whoever awaited it lives on, also under a time limit."""

    async def one_after_another() -> str:
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.01, token.cancel)
        with pytest.raises(Cancelled):
            await called_off_by(token, asyncio.sleep(60))
        async with asyncio.timeout(20):
            await asyncio.sleep(0.01)
        return "alive"

    assert asyncio.run(one_after_another()) == "alive"


def test_a_token_that_is_cancelled_as_the_work_ends_cuts_nothing_that_follows() -> None:
    async def work(token: CancelToken) -> str:
        token.cancel()
        return "done"

    async def outer() -> str:
        token = CancelToken()
        done = await called_off_by(token, work(token))
        await asyncio.sleep(0.01)
        return done

    assert asyncio.run(outer()) == "done"


def test_a_task_that_is_cancelled_itself_is_not_taken_for_a_work_that_was_called_off() -> None:
    async def outer() -> None:
        task = asyncio.create_task(called_off_by(CancelToken(), asyncio.sleep(60)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(outer())


def test_a_token_of_a_long_life_keeps_nothing_of_works_that_are_over() -> None:
    import gc
    import weakref

    class Held:
        pass

    token = CancelToken()

    async def work(held: Held) -> None:
        return None

    held = Held()
    gone = weakref.ref(held)
    asyncio.run(called_off_by(token, work(held)))
    del held
    gc.collect()
    assert gone() is None


def test_what_must_finish_is_not_cut_however_often_it_is_cancelled() -> None:
    async def outer() -> None:
        written, go_on = [], asyncio.Event()

        async def write() -> str:
            await go_on.wait()
            written.append("all")
            return "stored"

        task = asyncio.create_task(finished(write()))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        go_on.set()
        assert await task == "stored"
        assert written == ["all"]

    asyncio.run(outer())


def test_a_threads_answer_comes_however_often_its_task_is_cancelled() -> None:
    async def outer() -> None:
        loop = asyncio.get_running_loop()
        answers, stored = Answers(loop), [Answer[None](loop=loop) for _ in range(3)]
        waiting = [asyncio.create_task(answer.wait()) for answer in stored]
        await asyncio.sleep(0)
        for task in waiting[:2]:
            task.cancel()
            task.cancel()
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
        thread = threading.Thread(target=lambda: [answers.give(answer) for answer in stored])
        thread.start()
        await asyncio.gather(*waiting)
        thread.join()

    asyncio.run(outer())


def test_a_fault_of_what_must_finish_is_the_callers() -> None:
    async def write() -> None:
        await asyncio.sleep(0)
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        asyncio.run(finished(write()))


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    with LoopThread("t") as loop:
        yield loop


def test_threads_run_works_on_one_loop_and_get_what_came_of_them(loop: LoopThread) -> None:
    async def work(number: int) -> tuple[int, str]:
        await asyncio.sleep(0.01)
        return number, threading.current_thread().name

    found: list[tuple[int, str]] = []
    threads = [threading.Thread(target=lambda n=n: found.append(loop.run(work(n)))) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(number, "t") for number in range(5)]


def test_a_fault_of_the_work_is_the_waiting_threads(loop: LoopThread) -> None:
    async def work() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        loop.run(work())


def test_a_waiting_thread_is_let_go_when_its_work_is_called_off(loop: LoopThread) -> None:
    token = CancelToken()
    timer = threading.Timer(0.05, token.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        loop.run(asyncio.sleep(60), cancel=token)
    timer.join()


def test_the_loop_does_not_wait_for_itself(loop: LoopThread) -> None:
    async def work() -> None:
        with pytest.raises(RuntimeError, match="wait for itself"):
            loop.run(asyncio.sleep(0))

    loop.run(work())


def test_no_thread_begins_before_there_is_something_to_do() -> None:
    with LoopThread("never used"):
        assert "never used" not in [thread.name for thread in threading.enumerate()]


def test_closing_cuts_what_runs_waits_until_it_has_cleaned_up_and_ends_the_thread() -> None:
    loop, begun, left, ended = LoopThread("closing"), threading.Event(), [], []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            left.append("cleaned up")

    def wait() -> None:
        with pytest.raises(Cancelled):
            loop.run(work())
        ended.append("told")

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(20)
    began = time.monotonic()
    loop.close()
    thread.join(20)
    assert time.monotonic() - began < 20
    assert (left, ended) == (["cleaned up"], ["told"])
    assert "closing" not in [thread.name for thread in threading.enumerate()]
    loop.close()  # once more changes nothing


@pytest.mark.parametrize("use", [lambda loop: loop.run(asyncio.sleep(0)), lambda loop: loop.call(print)])
def test_a_loop_that_is_closed_does_not_come_back(use: Callable[[LoopThread], object]) -> None:
    loop = LoopThread()
    loop.run(asyncio.sleep(0))
    loop.close()
    with pytest.raises(Cancelled):
        use(loop)


def test_one_that_was_never_used_is_closed_for_good_too() -> None:
    loop = LoopThread()
    loop.close()
    with pytest.raises(Cancelled):
        loop.run(asyncio.sleep(0), cancel=CancelToken())


def test_calls_are_made_on_the_loop_in_their_order(loop: LoopThread) -> None:
    made: list[int] = []
    for number in range(50):
        loop.call(made.append, number)
    loop.run(asyncio.sleep(0))
    assert made == list(range(50))


def test_works_that_are_handed_over_while_the_loop_closes_are_called_off_or_done() -> None:
    """Nobody waits for ever."""
    for _ in range(30):
        loop, ends = LoopThread(), []
        loop.run(asyncio.sleep(0))
        token = CancelToken()

        def hand_over(loop: LoopThread = loop, ends: list[str] = ends, token: CancelToken = token) -> None:
            for _ in range(20):
                try:
                    loop.run(asyncio.sleep(0), cancel=token)
                    ends.append("done")
                except Cancelled:
                    ends.append("called off")

        threads = [threading.Thread(target=hand_over) for _ in range(3)]
        for thread in threads:
            thread.start()
        loop.close()
        for thread in threads:
            thread.join(20)
        assert len(ends) == 60
