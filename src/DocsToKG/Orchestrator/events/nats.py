"""Events to a subject of NATS, kept by JetStream, which confirms each and drops one it knows by its key.

The client's loop runs in a thread of its own, made when the first event is sent. Promises: an event counts as sent when
a stream has confirmed it; a server that is away is asked again at the next event; addresses, which may hold passwords,
are in no message.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Coroutine
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.js import api
from nats.js import errors as js_errors

from DocsToKG.Orchestrator.events.targets import Delivery, DeliveryFailed, SendLimits

_NOT_IN_A_SUBJECT = re.compile(r"[^A-Za-z0-9_-]+")
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_NAME_IN_USE = 10058
_OVERLAPS = 10065
_KEEP_S = 7 * 24 * 3600.0
_KNOWN_S = 3600.0


class NatsTarget:
    """A target below `subject`: an event goes to `subject.TENANT.job.completed`, and so on by its type."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        subject: str = "orch.events",
        limits: SendLimits = SendLimits(at_once=16),  # noqa: B008 - a frozen value
    ) -> None:
        if not _SUBJECT.fullmatch(subject):
            raise ValueError("a subject has words of letters, digits, - and _ with dots between")
        self.name = name
        self.at_once, self.max_tries, self._timeout_s = limits
        self._servers = [part.strip() for part in url.split(",") if part.strip()]
        self._subject = subject
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._client: Client | None = None
        self._starting = threading.Lock()
        self._connecting: asyncio.Lock | None = None

    def send(self, delivery: Delivery) -> None:
        try:
            self._run(self._publish(delivery))
        except js_errors.NoStreamResponseError:
            raise DeliveryFailed(f"no stream keeps the subject {self._subject}") from None
        except (nats.errors.Error, js_errors.Error, OSError, TimeoutError) as error:
            raise DeliveryFailed(f"NATS: {type(error).__name__}") from None

    def close(self) -> None:
        if self._thread is not None:
            with contextlib.suppress(Exception):  # what is left of a connection that failed
                self._run(self._disconnect())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def subject_of(self, delivery: Delivery) -> str:
        tenant = _NOT_IN_A_SUBJECT.sub("-", delivery.tenant) or "-"
        return f"{self._subject}.{tenant}.{delivery.event_type}"

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop.run_forever, name=f"nats-{self.name}", daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, self._timeout_s), self._loop).result()

    async def _publish(self, delivery: Delivery) -> None:
        client = await self._connected()
        stream = client.jetstream(timeout=self._timeout_s)
        headers = {
            "Nats-Msg-Id": delivery.idempotency_key,
            "Orch-Event-Id": delivery.event_id,
            "Content-Type": "application/vnd.dsse.v1+json",
        }
        await stream.publish(self.subject_of(delivery), delivery.body, headers=headers)

    async def _connected(self) -> Client:
        self._connecting = self._connecting or asyncio.Lock()
        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                await self._disconnect()
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> Client:
        async def on_error(error: Exception) -> None:
            """Without one of ours the client would log it, and addresses have passwords."""

        client = Client()
        try:
            await client.connect(
                self._servers,
                name="docstokg-events",
                allow_reconnect=False,  # we come back by ourselves, and count it
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=2,
                error_cb=on_error,
            )
            await self._make_stream(client)
        except BaseException:
            with contextlib.suppress(Exception):
                await client.close()
            raise
        return client

    async def _make_stream(self, client: Client) -> None:
        """One for a week of events, unless an operator has made one otherwise."""
        try:
            await client.jetstream(timeout=self._timeout_s).add_stream(
                api.StreamConfig(
                    name=self._subject.replace(".", "-"),
                    subjects=[f"{self._subject}.>"],
                    storage=api.StorageType.FILE,
                    max_age=_KEEP_S,
                    duplicate_window=_KNOWN_S,
                )
            )
        except js_errors.BadRequestError as error:
            if error.err_code not in (_NAME_IN_USE, _OVERLAPS):
                raise

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):  # what is left of a connection that failed
                await client.close()
