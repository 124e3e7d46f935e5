"""One loop, run by those who wait for it: each gets its own end, and none is left behind."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests import needs
from tests.transport.curl_support import CountingToken

from DocsToKG.transport.shared_loop import LoopClosed, SharedLoop


@pytest.fixture
def loop():
    shared = SharedLoop()
    yield shared
    shared.close(asyncio.sleep(0))


async def after(seconds, said):
    await asyncio.sleep(seconds)
    if isinstance(said, Exception):
        raise said
    return said


async def thread():
    await asyncio.sleep(0)
    return threading.current_thread()


def test_a_thread_that_is_alone_does_its_work_itself(loop):
    before = threading.active_count()
    assert loop.run(thread()) is threading.current_thread()
    assert threading.active_count() == before
    with pytest.raises(ZeroDivisionError):
        loop.run(after(0, ZeroDivisionError()))


def test_whoever_goes_on_takes_over_from_the_one_that_is_done(loop):
    begun = threading.Barrier(9)

    def work(number):
        begun.wait()
        return [loop.run(after(0.003 * ((number * 5 + turn) % 7), (number, turn))) for turn in range(20)]

    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(work, number) for number in range(8)]
        begun.wait()
        for number, one in enumerate(found):
            assert one.result(20) == [(number, turn) for turn in range(20)]


def test_a_short_work_does_not_wait_for_a_long_one(loop):
    enough = threading.Event()

    async def long_one():
        while not enough.is_set():  # noqa: ASYNC110  # a thread sets it
            await asyncio.sleep(0.01)
        return "long"

    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(loop.run, long_one())
        time.sleep(0.05)
        assert [loop.run(after(0, number)) for number in range(5)] == list(range(5))
        assert not long.done()
        enough.set()
        assert long.result(60) == "long"


@pytest.mark.parametrize("leads", [True, False])
def test_a_token_ends_the_work_of_the_one_that_runs_the_loop_and_of_one_that_waits(loop, leads):
    token = CountingToken()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(loop.run, after(60 if leads else 0.4, 1), token if leads else None)
        time.sleep(0.05)
        second = pool.submit(loop.run, after(0.2 if leads else 60, 2), None if leads else token)
        time.sleep(0.05)
        token.cancel()
        cancelled, other = (first, second) if leads else (second, first)
        with pytest.raises(asyncio.CancelledError):
            cancelled.result(0.2)
        assert other.result(5) in (1, 2)
    assert token.held == 0


def test_closing_ends_what_is_under_way_and_begins_nothing_more():
    loop, last = SharedLoop(), []

    async def end():
        last.append(len(asyncio.all_tasks()))

    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(loop.run, after(60, number)) for number in range(6)]
        time.sleep(0.05)
        loop.close(end())
        for one in waiting:
            with pytest.raises(asyncio.CancelledError):
                one.result(5)
    assert last == [1]
    loop.close(end())
    with pytest.raises(LoopClosed):
        loop.run(after(0, 1))


def test_closing_while_others_begin_leaves_nobody_waiting():
    for _ in range(20):
        loop, ended_one = SharedLoop(), threading.Semaphore(0)

        def ask(loop=loop, ended_one=ended_one):
            ended = 0
            while True:
                try:
                    loop.run(after(0.0005, 1))
                    ended += 1
                    ended_one.release()
                except (LoopClosed, asyncio.CancelledError):
                    return ended

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            assert ended_one.acquire(timeout=60)
            loop.close(asyncio.sleep(0))
            assert sum(one.result(60) for one in asking) > 0


def test_it_is_of_use_where_a_loop_runs_already(loop):
    async def main():
        return loop.run(after(0.01, "inside"))

    assert asyncio.run(main()) == "inside"


def test_ctrl_c_ends_the_work_and_the_loop_is_of_use_afterwards(loop):
    ended = []

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    main = threading.main_thread()
    if threading.current_thread() is not main:
        needs.lacks("tests in the main thread, to which signals come")
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main.ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        loop.run(work())
    timer.join()
    assert ended == [True]
    assert loop.run(after(0, 1)) == 1
