"""A loopback server whose side of every connection a script plays, byte by byte."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import ssl
import sys
import termios
import threading
from collections.abc import Callable
from typing import Any

from tests.waiting import eventually


class Side:
    """The server's side of one connection."""

    def __init__(self, sock: socket.socket, server: RawServer) -> None:
        self.sock = sock
        self._sockets = server.sockets

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def arrive(self, data: bytes) -> None:
        """Send, and wait until the client's machine has it all: on a busy one that may come later."""
        self.send(data)
        eventually(lambda: not int.from_bytes(fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder))

    def start_tls(self, context: ssl.SSLContext) -> None:
        self.sock = context.wrap_socket(self.sock, server_side=True)
        self._sockets.append(self.sock)

    def reset(self) -> None:
        """End with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.sock.close()

    def cut(self) -> None:
        """End the stream below TLS, without its closing word."""
        socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class RawServer:
    """Takes connections, each into a thread of its own, until it is closed; then all of them end."""

    def __init__(
        self, side_of: Callable[[socket.socket], Any], script_of: Callable[[int], Callable[[Any], None]]
    ) -> None:
        """`side_of` a socket is what a script is given; `script_of` the number of a connection, from 0, plays it."""
        self._side_of, self._script_of = side_of, script_of
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.sockets: list[socket.socket] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(20)
            script = self._script_of(self.connections)
            self.connections += 1
            self.sockets.append(sock)
            thread = threading.Thread(target=self._play, args=(script, sock), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _play(self, script: Callable[[Any], None], sock: socket.socket) -> None:
        side = self._side_of(sock)
        with contextlib.suppress(OSError):
            script(side)
        with contextlib.suppress(OSError):
            side.sock.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for sock in self.sockets:
            sock.close()
