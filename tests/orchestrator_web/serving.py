"""A real server on loopback around an application, and a reader of event streams."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from tests.waiting import eventually

PATIENCE_S = 30.0


@contextmanager
def served(app: FastAPI, **more: Any) -> Iterator[int]:
    """The port at which the application answers, until the block is left."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)  # so that a slow reader is noticed soon
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="websockets-sansio",
        timeout_graceful_shutdown=10,
        **more,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        eventually(lambda: server.started)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listener.close()
        assert not thread.is_alive()


class EventStream:
    """Reads Server-Sent Events from a socket, as they come."""

    def __init__(
        self,
        port: int,
        path: str,
        token: str,
        *,
        room: int | None = None,
        method: str = "GET",
        content: str = "",
        **headers: str,
    ) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(PATIENCE_S)
        if room is not None:  # so that it is full soon
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self._socket.connect(("127.0.0.1", port))
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
        if content:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content.encode())}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", content]).encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers: dict[str, str] = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        self._text = b""

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def body(self) -> Any:
        return json.loads(self._file.read(int(self.headers["content-length"])))

    def blocks(self) -> Iterator[dict[str, str]]:
        """Every block up to the end of the stream: its fields; a comment has the name ''."""
        while True:
            while b"\n\n" not in self._text:
                chunk = self._chunk()
                if not chunk:
                    return
                self._text += chunk
            block, _, self._text = self._text.partition(b"\n\n")
            fields: dict[str, str] = {}
            for line in block.decode().split("\n"):
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            yield fields

    def events(self) -> Iterator[dict[str, str]]:
        return (fields for fields in self.blocks() if "data" in fields)

    def next_event(self) -> tuple[str, str | None, Any]:
        """Name, id and data of the next event."""
        fields = next(self.events())
        return fields["event"], fields.get("id"), json.loads(fields["data"])

    def _chunk(self) -> bytes:
        size = int(self._file.readline().strip() or b"0", 16)
        data = self._file.read(size) if size else b""
        self._file.readline()
        return data
