"""Wake-ups between machines by NATS: a small stream of JetStream, or a plain subject where there is none.

The stream lives in memory and keeps the last notice of each lane for a while; everyone reads it with a consumer of
their own, which acknowledges nothing. JetStream is the first choice because the server confirms each notice and its
heartbeats tell silence from deafness. A server without it, or an account that may not use it, carries the same notices
on the same subject, so nodes of both kinds hear each other. The client's loop runs in one thread of ours.
Promises: a server, stream or consumer that is gone is replaced, and everyone is woken once then.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal
from urllib.parse import urlsplit

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js import errors as js_errors

from DocsToKG.Orchestrator.notifications.broker import PAUSE_S, RelayedSignal

_SCHEMES = ("nats", "tls", "ws", "wss")
_CONNECT_S = 2
_ANSWER_S = 2.0
_HEARTBEAT_S = 1.0
_KEEP_S = 600.0
_MOST_NOTICES = 1000
_NAME_IN_USE = 10058
_NOT_IN_A_SUBJECT = re.compile(r"[^A-Za-z0-9_-]+")


class NatsSignal(RelayedSignal):
    """A `Signal` below the subject `channel` of the servers at `url`: nats://host:4222, or several with commas."""

    def __init__(self, url: str, *, channel: str = "docstokg-signal", heartbeat_s: float = _HEARTBEAT_S) -> None:
        super().__init__()
        self._servers = _servers(url)
        self._subject = _NOT_IN_A_SUBJECT.sub("-", channel)
        self._heartbeat_s = heartbeat_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stirred: asyncio.Event | None = None
        self._heard_at = 0.0
        self.mode: Literal["jetstream", "core"] | None = None  # None before the first session

    def _senders(self) -> dict[str, Callable[[], None]]:
        return {"nats-signal": self._run}

    def _listeners(self) -> dict[str, Callable[[], None]]:
        return self._senders()

    def _stir(self) -> None:
        super()._stir()
        loop, stirred = self._loop, self._stirred
        if loop is not None and stirred is not None:
            with contextlib.suppress(RuntimeError):  # the session has ended; the next one looks by itself
                loop.call_soon_threadsafe(stirred.set)

    def _run(self) -> None:
        asyncio.run(self._session())

    async def _session(self) -> None:
        self._stirred, self._loop = asyncio.Event(), asyncio.get_running_loop()
        client, gone = Client(), asyncio.Event()
        try:
            await self._connect(client, gone)
            send = await self._join(client)
            self._begin_listening()
            await self._work(client, gone, send)
        finally:
            self.is_listening = False
            with contextlib.suppress(Exception):  # what is left of a connection that failed
                await asyncio.wait_for(client.close(), _ANSWER_S)

    async def _connect(self, client: Client, gone: asyncio.Event) -> None:
        async def on_end() -> None:
            gone.set()

        async def on_error(error: Exception) -> None:
            """Without one of ours the client would log it, and addresses have passwords."""

        await client.connect(
            self._servers,
            name="docstokg-signal",
            allow_reconnect=False,  # we come back by ourselves: with a stream and a consumer, and counted
            max_reconnect_attempts=1,  # each server is tried, and then again
            reconnect_time_wait=0,
            connect_timeout=_CONNECT_S,
            ping_interval=2,
            max_outstanding_pings=2,
            closed_cb=on_end,
            disconnected_cb=on_end,
            error_cb=on_error,
        )

    async def _join(self, client: Client) -> Callable[[str], Awaitable[Any]]:
        """Listen, and answer how a notice is sent."""
        stream = client.jetstream(timeout=_ANSWER_S)
        try:
            await self._consume(client, stream)
        except (js_errors.Error, nats.errors.NoRespondersError, nats.errors.TimeoutError):
            if not client.is_connected:
                raise
            self.mode = "core"
            await client.subscribe(f"{self._subject}.>", cb=self._on_message)
            await client.flush(timeout=_CONNECT_S)
            return lambda lane: client.publish(self._lane(lane), self._notice(lane))
        self.mode = "jetstream"
        return lambda lane: stream.publish(self._lane(lane), self._notice(lane), timeout=_ANSWER_S)

    async def _consume(self, client: Client, stream: JetStreamContext) -> None:
        await self._make_stream(stream)
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox, cb=self._on_message)
        try:
            await stream.add_consumer(
                self._subject,
                api.ConsumerConfig(
                    deliver_subject=inbox,
                    deliver_policy=api.DeliverPolicy.NEW,
                    ack_policy=api.AckPolicy.NONE,
                    idle_heartbeat=self._heartbeat_s,
                    mem_storage=True,
                ),
            )
        except BaseException:
            with contextlib.suppress(nats.errors.Error):
                await subscription.unsubscribe()
            raise

    async def _make_stream(self, stream: JetStreamContext) -> None:
        try:
            await stream.add_stream(
                api.StreamConfig(
                    name=self._subject,
                    subjects=[f"{self._subject}.>"],
                    storage=api.StorageType.MEMORY,
                    max_msgs=_MOST_NOTICES,
                    max_msgs_per_subject=1,
                    max_age=_KEEP_S,
                )
            )
        except js_errors.BadRequestError as error:
            if error.err_code != _NAME_IN_USE:  # one that an operator made otherwise is as good
                raise

    async def _work(self, client: Client, gone: asyncio.Event, send: Callable[[str], Awaitable[Any]]) -> None:
        """Send what there is to send until it is time to end, and see that we are not deaf."""
        assert self._stirred is not None
        self._heard_at = time.monotonic()
        while not gone.is_set():
            is_last = self._closed.is_set()  # asked first, so that what was given before the end is sent
            with self._sending() as lanes:
                for lane in lanes:
                    await send(lane)
                if lanes:
                    await client.flush(timeout=_CONNECT_S)
            if is_last:
                return
            await asyncio.sleep(PAUSE_S if lanes else 0)
            await _first(self._stirred.wait(), gone.wait(), timeout_s=self._heartbeat_s)
            self._stirred.clear()
            if self.mode == "jetstream" and time.monotonic() - self._heard_at > 3 * self._heartbeat_s:
                raise nats.errors.TimeoutError  # the consumer is gone, or the stream with it
        raise nats.errors.ConnectionClosedError

    async def _on_message(self, message: Msg) -> None:
        self._heard_at = time.monotonic()
        if message.headers is not None and "Status" in message.headers:
            return  # a heartbeat
        sender, _, lane = message.data[:400].decode(errors="replace").partition(" ")
        self._hear(sender, lane)

    def _lane(self, lane: str) -> str:
        return f"{self._subject}.{_NOT_IN_A_SUBJECT.sub('-', lane) or '-'}"

    def _notice(self, lane: str) -> bytes:
        return f"{self._name} {lane}".encode()


def _servers(url: str) -> list[str]:
    servers = [part.strip() for part in url.split(",") if part.strip()]
    try:
        parts = [urlsplit(server) for server in servers]
        fits = all(part.scheme in _SCHEMES and part.hostname and (part.port or 1) for part in parts)
    except ValueError:
        fits = False
    if not servers or not fits:
        raise ValueError("should look like nats://host:4222")
    return servers


async def _first(*waits: Any, timeout_s: float) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
