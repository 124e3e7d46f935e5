"""From host names to addresses, with a real deadline.

The system's resolver cannot be interrupted, so it runs in a few daemon threads and the caller stops waiting when
time is up or its task is cancelled. Answers are kept for a short while; tasks that ask for one name share one look-up,
whatever their event loops. Does not judge addresses; the guard does. Promises: never more than `max_threads` look-ups
at once, no thread when idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import httpx2

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.transport.errors import NameNotFound
from DocsToKG.transport.hosts import patterns_for, plain_host


class NameResolver(Protocol):
    """`lookup` raises `NameNotFound`, and `httpx2.ConnectTimeout` when time is up. Cancelling its task ends the wait,
    not the look-up."""

    def known(self, host: str) -> Sequence[str] | None:
        """What `lookup` would say at once; None where it has to ask."""
        ...

    async def lookup(self, host: str, port: int, *, timeout_s: float | None) -> list[str]: ...


class StaticNames:
    """Answers from a table: exact names, then `*.suffix`, then `*`, then `fallback`."""

    def __init__(self, answers: Mapping[str, Sequence[str]], fallback: NameResolver | None = None) -> None:
        self._answers = {plain_host(name): list(addresses) for name, addresses in answers.items()}
        self._fallback = fallback
        self.known = lru_cache(maxsize=4096)(self._find)

    def _find(self, host: str) -> Sequence[str] | None:
        return next((self._answers[pattern] for pattern in patterns_for(host) if pattern in self._answers), None)

    async def lookup(self, host: str, port: int, *, timeout_s: float | None) -> list[str]:
        addresses = self.known(host)
        if addresses is not None:
            return list(addresses)
        if self._fallback is None:
            raise NameNotFound(f"the host name {host[:255]!r} has no address")
        return await self._fallback.lookup(host, port, timeout_s=timeout_s)


class _Wake:
    """Wakes a task from another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def set(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


@dataclass(slots=True)
class _LookUp:
    """One question under way, and everybody who waits for its answer."""

    host: str
    port: int
    waiters: list[_Wake] = field(default_factory=list)
    begun: bool = False
    done: bool = False
    addresses: list[str] = field(default_factory=list)


class SystemNames:
    """The machine's resolver. Failures are kept `failure_ttl_s`, so that a dead name is not asked for by every work.

    Names whose servers are dead hold their threads for many seconds. A look-up of the event loop that waits longer than
    `patience_s` for a thread gets an extra one, so that dead names do not hold up good ones; at most `max_threads`.
    """

    def __init__(
        self,
        *,
        threads: int = 16,
        max_threads: int = 128,
        patience_s: float = 0.5,
        ttl_s: float = 60.0,
        failure_ttl_s: float = 5.0,
        max_names: int = 4096,
        clock: Clock | None = None,
        getaddrinfo: Callable[..., Iterable[tuple[Any, ...]]] = socket.getaddrinfo,
    ) -> None:
        self._usual_threads = threads
        self._max_threads = max(threads, max_threads)
        self._patience_s = patience_s
        self._ttl_s = ttl_s
        self._failure_ttl_s = failure_ttl_s
        self._max_names = max_names
        self._clock = clock or SystemClock()
        self._getaddrinfo = getaddrinfo
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting: deque[_LookUp] = deque()
        self._under_way: dict[str, _LookUp] = {}
        self._known: OrderedDict[str, tuple[float, list[str]]] = OrderedDict()

    def known(self, host: str) -> Sequence[str] | None:
        return self._remembered(host) or None

    async def lookup(self, host: str, port: int, *, timeout_s: float | None) -> list[str]:
        with self._lock:
            addresses = self._remembered(host)
            if addresses is None:
                wake = _Wake()
                look_up = self._join(host, port, wake)
        if addresses is None:
            await self._await(look_up, wake, timeout_s)
            addresses = look_up.addresses
        if not addresses:
            raise NameNotFound(f"the host name {host[:255]!r} has no address")
        return list(addresses)

    async def _await(self, look_up: _LookUp, wake: _Wake, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.wait([wake.future], timeout=self._patience_s)
                if not look_up.begun:
                    with self._lock:
                        self._start_thread(self._max_threads)
                await wake.future
        except TimeoutError:
            if not look_up.done:
                raise httpx2.ConnectTimeout(f"looking up {look_up.host[:255]!r} took too long") from None
        finally:
            with self._lock:
                if not look_up.done:
                    look_up.waiters.remove(wake)

    def _remembered(self, host: str) -> list[str] | None:
        expires, addresses = self._known.get(host, (0.0, []))
        return addresses if expires > self._clock.monotonic() else None

    def _join(self, host: str, port: int, wake: _Wake) -> _LookUp:
        look_up = self._under_way.get(host)
        if look_up is None:
            look_up = self._under_way[host] = _LookUp(host, port)
            self._waiting.append(look_up)
            self._start_thread()
        elif not self._threads:
            self._start_thread()
        look_up.waiters.append(wake)
        return look_up

    def _start_thread(self, most: int | None = None) -> None:
        if self._threads < (most or self._usual_threads):
            # Where the system gives no more, those there are do it, or the next asker's.
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._work, name="name-look-up", daemon=True).start()
                self._threads += 1

    def _work(self) -> None:
        while (look_up := self._next()) is not None:
            addresses = self._ask(look_up)
            with self._lock:
                self._remember(look_up.host, addresses)
                self._under_way.pop(look_up.host, None)
                look_up.addresses, look_up.done = addresses, True
                waiters = list(look_up.waiters)
            for wake in waiters:
                wake.set()

    def _next(self) -> _LookUp | None:
        with self._lock:
            while self._waiting:
                look_up = self._waiting.popleft()
                if look_up.waiters:
                    look_up.begun = True
                    return look_up
                # Everybody gave up before its turn came.
                self._under_way.pop(look_up.host, None)
            self._threads -= 1
            return None

    def _ask(self, look_up: _LookUp) -> list[str]:
        try:
            answers = self._getaddrinfo(look_up.host, look_up.port, type=socket.SOCK_STREAM)
        except (OSError, ValueError):  # UnicodeError is a ValueError: a label too long to be a name.
            return []
        return in_turn([str(answer[4][0]) for answer in answers])

    def _remember(self, host: str, addresses: list[str]) -> None:
        ttl_s = self._ttl_s if addresses else self._failure_ttl_s
        self._known[host] = (self._clock.monotonic() + ttl_s, addresses)
        self._known.move_to_end(host)
        while len(self._known) > self._max_names:
            self._known.popitem(last=False)


def in_turn(addresses: Iterable[str]) -> list[str]:
    """Each address once, the two families by turns, so that a dead IPv6 route costs one try and not all of them."""
    unique = list(dict.fromkeys(addresses))
    if not unique:
        return []
    first = [text for text in unique if (":" in text) == (":" in unique[0])]
    second = [text for text in unique if (":" in text) != (":" in unique[0])]
    paired = [text for pair in zip(first, second, strict=False) for text in pair]
    shorter = min(len(first), len(second))
    return paired + first[shorter:] + second[shorter:]
