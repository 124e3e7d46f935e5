"""Tasks of asyncio, as this project uses them: called off from other threads, raced, and run for threads that wait.

Knows event loops and cancel tokens; knows nothing of papers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from DocsToKG.core.cancel import Cancelled, CancelToken

T = TypeVar("T")


def on_event_loop() -> bool:
    """Whether this thread runs an event loop, which must not be held up."""
    return asyncio._get_running_loop() is not None


async def called_off_by(cancel: CancelToken, work: Coroutine[Any, Any, T]) -> T:
    """Await `work` in the current task; when the token is cancelled, in any thread, it ends with `Cancelled`."""
    if cancel.cancelled:
        work.close()
        raise Cancelled
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    over: list[bool] = []
    forget = cancel.on_cancel(lambda: _tell(loop, _cancel_unless_done, task, over))
    try:
        return await work
    except asyncio.CancelledError:
        if not cancel.cancelled:
            raise
        task.uncancel()
        raise Cancelled from None
    finally:
        over.append(True)
        forget()


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and nothing runs there any more
        loop.call_soon_threadsafe(function, *args)


def _cancel_unless_done(task: asyncio.Task[Any], over: list[bool]) -> None:
    if not over:
        task.cancel()


async def race(branches: Sequence[Callable[[], Coroutine[Any, Any, T | None]]], parallel: int) -> T | None:
    """Run the branches in order, at most `parallel` at once. The first that returns something other than None wins;
    the others are cancelled. None when no branch won; an exception of a branch ends the race, unless another won at
    the same time."""
    waiting = deque(branches)
    running: set[asyncio.Task[T | None]] = set()
    try:
        while waiting or running:
            while waiting and len(running) < max(1, parallel):
                running.add(asyncio.create_task(waiting.popleft()()))
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            faults = [task.exception() for task in done]
            results = [task.result() for task, fault in zip(done, faults, strict=True) if fault is None]
            for won in results:
                if won is not None:
                    return won
            for fault in faults:
                if fault is not None:
                    raise fault
        return None
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)


async def finished(work: Awaitable[T]) -> T:
    """Wait until `work` is over, whatever cancels the current task meanwhile; what has begun cannot be called off."""
    future = asyncio.ensure_future(work)
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            if future.done():
                break
            continue
        except Exception:
            break
    return future.result()


async def finished_in(executor: concurrent.futures.Executor, function: Callable[..., T], *words: Any) -> T:
    """`finished`, of a call that may block."""
    return await finished(asyncio.get_running_loop().run_in_executor(executor, function, *words))


class Answer(asyncio.Future[T]):
    """What a thread will say, as `finished` for a plain value: who waits for it is not woken by a cancelling."""

    def cancel(self, msg: object = None) -> bool:
        return False

    async def wait(self) -> T:
        with contextlib.suppress(asyncio.CancelledError):  # it is thrown once the answer is there
            await self
        return self.result()


class Answers:
    """Gives answers that are known in other threads to the tasks of a loop, many with one call of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._known: deque[Answer[None]] = deque()
        self._is_called = False

    def give(self, answer: Answer[None]) -> None:
        """From any thread."""
        self._known.append(answer)
        if not self._is_called:
            self._is_called = True
            _tell(self.loop, self._settle)

    def _settle(self) -> None:
        self._is_called = False
        while self._known:
            self._known.popleft().set_result(None)


async def not_before(work: Awaitable[T]) -> T:
    """`finished`; a cancelling that came meanwhile is met afterwards."""
    task = asyncio.current_task()
    assert task is not None
    cancelled = task.cancelling()
    result = await finished(work)
    if task.cancelling() > cancelled:
        raise asyncio.CancelledError
    return result


_loaded: set[str] = set()


async def loaded(module: str) -> None:
    """Import a module that takes long; the event loop goes on meanwhile."""
    if module not in _loaded:
        await in_thread(importlib.import_module, module)
        _loaded.add(module)


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """`function` by a thread, where there is an event loop that would have to wait for it."""
    if asyncio._get_running_loop() is None:  # a caller steps through the coroutine itself
        return function(*args)
    return await asyncio.to_thread(function, *args)


class LoopThread:
    """An event loop in a thread of its own, for callers in other threads. Starts when it is first needed."""

    def __init__(self, name: str = "loop") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Call `function` soon, on the loop."""
        with self._lock:
            self._open().call_soon_threadsafe(function, *args)

    def run(self, work: Coroutine[Any, Any, T], cancel: CancelToken | None = None) -> T:
        """Run `work` on the loop while the calling thread waits; its value or its exception is the caller's."""
        running = work if cancel is None else called_off_by(cancel, work)
        try:
            with self._lock:
                if threading.current_thread() is self._thread:
                    raise RuntimeError("the loop cannot wait for itself")
                future = asyncio.run_coroutine_threadsafe(running, self._open())
        except (Cancelled, RuntimeError):
            running.close()
            work.close()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            work.close()  # it may not have begun
            raise Cancelled("the event loop was closed") from None
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what still runs, wait for it, and end the thread."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(loop.stop)
        if threading.current_thread() is not thread:
            thread.join()

    def _open(self) -> asyncio.AbstractEventLoop:
        """The loop; held by the lock, so that nothing is handed to one that is about to close."""
        if self._closed:
            raise Cancelled("the event loop is closed")
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()
        return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
