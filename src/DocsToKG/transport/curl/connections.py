"""Which sockets are open, and whether one may serve another request.

libcurl takes bytes that came after the end of a response for the next response, under the next URL. A kept HTTP/1.1
connection with bytes waiting before its request is therefore not used. Knows sockets by the two ends of their
connection, since libcurl tells no more when it is about to send.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from typing import TypeAlias

Ends: TypeAlias = tuple[str, str, int, int]  # as PREREQFUNCTION tells them: peer, own address, peer's port, own port

_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class Connection:
    """One open connection. `exclusive` once it spoke HTTP/1, where one exchange follows the other."""

    __slots__ = ("ends", "exclusive", "fileno", "secure")

    def __init__(self, ends: Ends, fileno: int, secure: bool) -> None:
        self.ends = ends
        self.fileno = fileno
        self.secure = secure
        self.exclusive = False

    def is_quiet(self) -> bool:
        """Is it still this connection, open, with nothing waiting to be read?"""
        try:
            sock = socket.socket(_FAMILIES[":" in self.ends[0]], socket.SOCK_STREAM, 0, fileno=self.fileno)
        except OSError:
            return False
        try:
            if sock.getsockname()[1] != self.ends[3] or sock.getpeername()[1] != self.ends[2]:
                return False
            sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            sock.detach()  # it stays libcurl's
        return False


class Connections:
    """Those that were opened, the oldest forgotten first."""

    def __init__(self, most: int = 65_536) -> None:
        self._most = most
        self._by_ends: OrderedDict[Ends, Connection] = OrderedDict()

    def opened(self, ends: Ends, filenos: list[int], secure: bool) -> Connection:
        """One of these sockets has become the connection between these ends."""
        fileno = next((number for number in filenos if _own_port(number) == ends[3]), -1)
        connection = self._by_ends[ends] = Connection(ends, fileno, secure)
        self._by_ends.move_to_end(ends)
        while len(self._by_ends) > self._most:
            self._by_ends.popitem(last=False)
        return connection

    def between(self, ends: Ends) -> Connection | None:
        return self._by_ends.get(ends)

    def __len__(self) -> int:
        return len(self._by_ends)


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
