"""Serve an application until told to stop, and let running requests end first."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from DocsToKG.Orchestrator.api.context import state_of

_HEAD_BYTES = 64 * 1024
_IDLE_S = 75


class _Server(uvicorn.Server):
    """Calls `on_drain` when it begins to stop, so that streams close their connections."""

    def __init__(self, config: uvicorn.Config, on_drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_drain = on_drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_drain()
        await super().shutdown(sockets)


def serve(app: FastAPI, listener: socket.socket, *, drain_s: float) -> None:
    """Blocks until SIGTERM or SIGINT; new connections are refused from then on, running requests may end."""
    # Schemas and routes stay for good. A full collection over all of them stopped the loop for 70 ms each time; from
    # here on only what came after them is collected.
    gc.collect()
    gc.freeze()
    _server(app, drain_s).run(sockets=[listener])


@contextmanager
def serving(app: FastAPI, listener: socket.socket, *, drain_s: float) -> Iterator[None]:
    """The same in a thread, until the block is left; signals stay with the rest of the program."""
    server = _server(app, drain_s)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="console", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(drain_s + 5)


def _server(app: FastAPI, drain_s: float) -> _Server:
    def drain() -> None:
        state = state_of(app)
        state.draining = True
        state.streams.close()

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=max(1, round(drain_s)),
        h11_max_incomplete_event_size=_HEAD_BYTES,
        ws="websockets-sansio",
        ws_max_size=64 * 1024,
    )
    return _Server(config, drain)
