"""An event loop for threads, with no thread of its own: one of those that wait runs it for all of them.

A thread that is alone with its work is never woken by another one. Promises: one thread at a time runs the loop, and
when its own work is over, another that waits goes on; whatever was begun ends before `close` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from DocsToKG.core.cancel import CancelToken

_T = TypeVar("_T")


class LoopClosed(Exception):
    """Nothing can be begun any more."""


class _Call(Generic[_T]):
    """One piece of work. Its thread runs the loop, or waits at the lock."""

    def __init__(self, work: Coroutine[Any, Any, _T]) -> None:
        self.work = work
        self.task: asyncio.Task[None] | None = None
        self.runs_loop = False
        self.until_woken = threading.Lock()
        self.until_woken.acquire()
        self.is_over = False
        self.error: BaseException | None = asyncio.CancelledError()  # before it has begun

    async def do(self) -> None:
        try:
            self._result = await self.work
            self.error = None
        except BaseException as error:
            self.error = error

    def result(self) -> _T:
        if self.error is not None:
            raise self.error
        return self._result


class SharedLoop:
    """Safe to share between threads. It is made with the first work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_run = False
        self._waiting: dict[_Call[Any], None] = {}  # at the lock, in the order in which they came
        self._closed = False

    def run(self, work: Coroutine[Any, Any, _T], cancel: CancelToken | None = None) -> _T:
        """Blocks until the work is over. Cancelling the token cancels its task."""
        if asyncio._get_running_loop() is not None:  # no thread can run two; a notebook's cell has one already
            with ThreadPoolExecutor(1) as aside:
                return aside.submit(self.run, work, cancel).result()
        call = _Call(work)
        loop = self._enter(call)
        forget = None if cancel is None else cancel.on_cancel(lambda: _cancel(loop, call))
        try:
            self._wait(loop, call)
        finally:
            if forget is not None:
                forget()
        return call.result()

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what is under way, then do `last`."""
        try:
            self.run(self._end(last))
        except LoopClosed:
            last.close()

    async def _end(self, last: Coroutine[Any, Any, None]) -> None:
        with self._lock:
            self._closed = True
        await asyncio.sleep(0)  # what was asked for before has begun now
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await last

    def _enter(self, call: _Call[Any]) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                call.work.close()
                raise LoopClosed
            loop = self._loop = self._loop or asyncio.new_event_loop()
            if self._is_run:
                self._waiting[call] = None
                loop.call_soon_threadsafe(self._begin, call)
            else:
                self._is_run = call.runs_loop = True
        if call.runs_loop:
            self._begin(call)
        return loop

    def _begin(self, call: _Call[Any]) -> None:
        assert self._loop is not None
        call.task = self._loop.create_task(self._do(call))
        call.task.add_done_callback(lambda _: self._finish(call))

    async def _do(self, call: _Call[Any]) -> None:
        await call.do()
        self._finish(call)  # now, rather than in the next turn of the loop

    def _finish(self, call: _Call[Any]) -> None:
        if call.is_over:
            return
        call.is_over = True
        call.work.close()  # one that was cancelled before it began
        with self._lock:
            self._waiting.pop(call, None)
            if not call.runs_loop:
                call.until_woken.release()
            elif self._loop is not None:
                self._loop.stop()

    def _wait(self, loop: asyncio.AbstractEventLoop, call: _Call[Any]) -> None:
        try:
            if not call.runs_loop:
                call.until_woken.acquire()
            self._run_for(loop, call)
        except BaseException:  # Ctrl-C: nobody waits for it any more
            with self._lock:
                self._waiting.pop(call, None)
            _cancel(loop, call)
            self._run_for(loop, call)
            raise
        finally:
            if call.runs_loop:
                self._hand_over(loop)

    def _run_for(self, loop: asyncio.AbstractEventLoop, call: _Call[Any]) -> None:
        while call.runs_loop and not call.is_over:
            loop.run_forever()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            following = next(iter(self._waiting), None)
            if following is not None:
                del self._waiting[following]
                following.runs_loop = True
                following.until_woken.release()
                return
            self._is_run = False
            if self._closed:
                loop.close()


def _cancel(loop: asyncio.AbstractEventLoop, call: _Call[Any]) -> None:
    """From any thread, without effect when the work is over."""

    def now() -> None:
        if call.task is not None:
            call.task.cancel()

    with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
        loop.call_soon_threadsafe(now)
