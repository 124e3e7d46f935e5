"""Which sockets are open, and whether one may serve another request.

libcurl takes bytes that came after the end of a response for the next response, under the next URL. A kept HTTP/1.1
connection with bytes waiting before its request is therefore not used. Knows sockets by the two ends of their
connection, since libcurl tells no more when it is about to send.
"""

from __future__ import annotations

import select
import socket
import sys
from typing import TypeAlias

Ends: TypeAlias = tuple[str, str, int, int]  # as PREREQFUNCTION tells them: peer, own address, peer's port, own port

# In Linux's struct tcp_info: how many bytes have come, a number of 64 bits.
_TCP_INFO = getattr(socket, "TCP_INFO", 0) if sys.platform == "linux" else 0
_RECEIVED_AT, _TCP_INFO_BYTES = 128, 136
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Connection:
    """One open connection. `exclusive` once it spoke HTTP/1, where one exchange follows the other."""

    __slots__ = ("_incoming", "_received", "_spoiled", "ends", "exclusive", "fileno", "secure")

    def __init__(self, ends: Ends, fileno: int, secure: bool) -> None:
        self.ends = ends
        self.fileno = fileno
        self.secure = secure
        self.exclusive = False
        self._received = 0  # of TLS, when the last exchange was over
        self._spoiled = fileno < 0
        self._incoming = select.poll()
        if fileno >= 0:
            self._incoming.register(fileno, select.POLLIN)

    def spoil(self) -> None:
        """It serves no further request."""
        self._spoiled = True

    def rest(self) -> None:
        """An exchange is over. What is there already, or comes from now on, belongs to none: over TLS libcurl may take
        it from the socket before the next request, so that it is counted here."""
        if not (self.secure and self.exclusive):
            return
        sock = self._socket()
        if sock is None:
            return
        try:
            self._received = _received(sock)
            self._spoiled = self._spoiled or bool(self._incoming.poll(0))
        except OSError:
            self._spoiled = True
        finally:
            sock.detach()  # it stays libcurl's

    def is_quiet(self) -> bool:
        """Is it open, with nothing come since the last exchange?"""
        if not self.exclusive:
            return True
        if self._spoiled or self._incoming.poll(0):
            return False
        return not self.secure or not self._has_received()

    def may_have_been_answered(self) -> bool:
        """Could a response be here so soon, in the call that sent the request? Only that of a server on this machine,
        and only when something has come since. False where the system does not tell."""
        return is_near(self.ends[0]) and self._has_received(unknown=False)

    def _has_received(self, *, unknown: bool = True) -> bool:
        """More than when the last exchange was over."""
        sock = self._socket()
        if sock is None:
            return unknown
        try:
            return _received(sock) > self._received
        except OSError:
            return unknown
        finally:
            sock.detach()

    def _socket(self) -> socket.socket | None:
        try:
            return socket.socket(_FAMILIES[":" in self.ends[0]], socket.SOCK_STREAM, 0, fileno=self.fileno)
        except OSError:
            return None


def is_near(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


class Connections:
    """Those that were opened, the oldest forgotten first. Every socket that libcurl opens is told of,
    so that no number leads to a connection that is closed."""

    def __init__(self, most: int = 16_384) -> None:
        self._most = most
        self._by_ends: dict[Ends, Connection] = {}
        self.between = self._by_ends.get
        self._by_fileno: dict[int, Connection] = {}

    def opening(self, fileno: int) -> None:
        """A new socket has this number."""
        former = self._by_fileno.pop(fileno, None)
        if former is not None:
            former.spoil()
            if self._by_ends.get(former.ends) is former:
                del self._by_ends[former.ends]

    def opened(self, ends: Ends, filenos: list[int], secure: bool) -> Connection:
        """One of these sockets has become the connection between these ends."""
        fileno = next((number for number in filenos if _own_port(number) == ends[3]), -1)
        self._by_ends.pop(ends, None)
        connection = self._by_ends[ends] = self._by_fileno[fileno] = Connection(ends, fileno, secure)
        while len(self._by_ends) > self._most:
            oldest = self._by_ends.pop(next(iter(self._by_ends)))
            oldest.spoil()
            if self._by_fileno.get(oldest.fileno) is oldest:
                del self._by_fileno[oldest.fileno]
        return connection

    def __len__(self) -> int:
        return len(self._by_ends)


def _received(sock: socket.socket) -> int:
    if not _TCP_INFO:
        return 0
    info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
    return int.from_bytes(info[_RECEIVED_AT:_TCP_INFO_BYTES], sys.byteorder)


def _own_port(fileno: int) -> int:
    try:
        sock = socket.socket(fileno=fileno)
    except OSError:
        return 0
    try:
        port: int = sock.getsockname()[1]
        return port
    except OSError:
        return 0
    finally:
        sock.detach()
