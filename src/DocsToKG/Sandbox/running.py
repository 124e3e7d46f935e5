"""Run a server: in the foreground until a signal, in a process of its own, or in a thread.

The process is stopped by its own handle, and stops by itself when the pipe to its standard input closes, so that it
never outlives the program that started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from DocsToKG.Sandbox.router import Router
from DocsToKG.Sandbox.server import serve

_START_S = 30.0


async def run_until_stopped(
    router: Router, *, port: int, ready: Callable[[int], None], follow_stdin: bool = False
) -> None:
    """Serve until SIGINT or SIGTERM, or, with `follow_stdin`, until standard input ends."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if follow_stdin:
        loop.add_reader(0, lambda: None if os.read(0, 4096) else stop.set())
    try:
        await serve(router, port=port, ready=ready, stop=stop)
    finally:
        if follow_stdin:
            loop.remove_reader(0)


class InProcess:
    """`python -m DocsToKG.Sandbox` with the given words."""

    def __init__(self, *, arguments: Callable[[], Sequence[str]]) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> int:
        """Returns the port."""
        command = [sys.executable, "-m", "DocsToKG.Sandbox", "--ready-json", *self._arguments()]
        # A session of its own: Ctrl+C is for the program that started it, which then ends it.
        process = self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        # A child that hangs before it is ready is ended, which ends the read as well.
        watchdog = threading.Timer(_START_S, process.kill)
        watchdog.start()
        try:
            line = process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            self.stop()
            raise RuntimeError("the sandbox did not start; run `python -m DocsToKG.Sandbox` to see why")
        return int(json.loads(line)["port"])

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # `communicate` closes standard input, which is the child's signal to go.
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


class InThread:
    """A loop in a thread of this process."""

    pid = None

    def __init__(self, *, router: Callable[[], Router], port: int) -> None:
        self._board = router
        self._port = port
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None

    def start(self) -> int:
        """Returns the port."""
        self._thread = threading.Thread(target=self._run, name="sandbox", daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_S) or self._failure:
            raise RuntimeError(f"the sandbox did not start: {self._failure}") from self._failure
        return self._port

    def stop(self) -> None:
        if self._loop and self._stop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await serve(self._board(), port=self._port, ready=self._is_ready, stop=self._stop)

    def _is_ready(self, port: int) -> None:
        self._port = port
        self._ready.set()
