"""One connection: bytes out, bytes in, TLS or not.

Knows sockets and the patience of the exchange that uses it now. Does not know HTTP beyond where a head ends. The socket
never blocks: what is not there yet is waited for in one place, where other threads get their turn.
Promises: no wait outlasts the patience; cancelling from another thread unblocks a waiting call, and never
touches an exchange that took the connection over later.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import httpx2

from DocsToKG.core.turns import giving_way
from DocsToKG.transport.errors import ClosedEarly, HeadersTooLarge, TlsFailed
from DocsToKG.transport.patience import Patience

_HEAD_END = re.compile(rb"\n\r?\n")
_HEAD_BLOCK = 64 * 1024
_CONNECT_SLICE_MS = 20
# Saves a call where the system knows it; elsewhere it is set afterwards.
_NEVER_BLOCKS = getattr(socket, "SOCK_NONBLOCK", 0)
_numbers = itertools.count(1)


class Awaited(NamedTuple):
    """Bytes that are to come on a connection: its descriptor, the machine's time at which nobody waits any longer, and
    what to call when that time is over, so that reading fails rather than waits again. `number` is this connection's
    alone, while descriptors are given to others later."""

    fileno: int
    until: float
    give_up: Callable[[], None]
    number: int


class Wire:
    """A socket and the bytes read ahead. Used by one exchange at a time, from `begin` to `finish` or `close`."""

    __slots__ = (
        "_ahead",
        "_forget",
        "_lock",
        "_number",
        "_patience",
        "_poller",
        "_sock",
        "_was_sent",
        "has_received",
        "peer",
        "ragged",
        "reused",
    )

    def __init__(self, family: socket.AddressFamily, patience: Patience) -> None:
        self._sock = socket.socket(family, socket.SOCK_STREAM | _NEVER_BLOCKS)
        self._sock.settimeout(0.0)
        self._poller = select.poll()
        self._poller.register(self._sock, select.POLLOUT)
        self._lock = threading.Lock()
        self._number = next(_numbers)
        self._ahead = b""
        self._was_sent = False  # and nothing has come since: the answer needs time
        self._patience: Patience | None = None
        self._forget: Callable[[], object] = _nothing
        self.peer = ""
        self.ragged = False
        self.reused = False
        self.begin(patience)

    def begin(self, patience: Patience) -> None:
        """From now on this exchange waits, and its cancelling shuts the socket down."""
        self._patience = patience
        self.has_received = False
        if patience.cancel is not None:
            self._forget = patience.cancel.on_cancel(partial(self._abort, patience))

    def finish(self) -> None:
        """The exchange is over and the connection may be kept: its cancelling no longer reaches us."""
        self._forget()
        self._forget = _nothing
        with self._lock:
            self._patience = None
        self.reused = True

    def close(self) -> None:
        self._forget()
        self._forget = _nothing
        with self._lock:
            self._patience = None
            self._sock.close()

    def _abort(self, patience: Patience) -> None:
        # shutdown, not close: close would leave a reader in another thread blocked, and could free its descriptor
        # number for somebody else. The plain socket's method, because SSLSocket.shutdown drops the TLS state.
        with self._lock, contextlib.suppress(OSError):
            if self._patience is patience:
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def connect(self, address: str, port: int, wait_s: float | None) -> None:
        """Connect within `wait_s`; raises OSError, TimeoutError among them, when that fails."""
        patience = self._used_by()
        with contextlib.suppress(BlockingIOError):
            self._sock.connect((address, port))
        self._await_connected(patience, wait_s)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer = address

    def _await_connected(self, patience: Patience, wait_s: float | None) -> None:
        if not self._poller.poll(0):
            give_up = None if wait_s is None else patience.clock.monotonic() + wait_s
            # In slices, since shutting down a socket that is still connecting does not wake its waiter everywhere.
            with giving_way():
                while not self._poller.poll(_CONNECT_SLICE_MS):
                    patience.check()
                    if give_up is not None and patience.clock.monotonic() >= give_up:
                        raise TimeoutError
        patience.check()
        if code := self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, os.strerror(code))

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Handshake, with `host` as the name to be proved. An early end is kept apart from a clean one (`ragged`)."""
        patience = self._used_by()
        try:
            with self._lock:
                self._sock = tls = context.wrap_socket(
                    self._sock, server_hostname=host, do_handshake_on_connect=False, suppress_ragged_eofs=False
                )
            while (event := _shake_hands(tls)) is not None:
                self._await(event, patience.connect_wait())
        except TimeoutError:
            raise patience.timed_out(httpx2.ConnectTimeout, "the TLS handshake took too long") from None
        except (OSError, ValueError) as error:
            raise _tls_failure(patience, host, error) from error

    def rest(self, seconds: float) -> None:
        """Send nothing for a while, as far as the patience allows. A connection that breaks meanwhile is told of."""
        patience = self._used_by()
        try:
            self._await(0, patience.wait(seconds))
        except TimeoutError:
            patience.check()
        else:
            patience.check()
            raise httpx2.WriteError("the connection broke while it waited")

    def send(self, data: bytes) -> None:
        patience = self._patience or self._used_by()
        rest = memoryview(data)
        try:
            while rest:
                try:
                    rest = rest[self._sock.send(rest) :]
                except (BlockingIOError, ssl.SSLWantWriteError):
                    self._await(select.POLLOUT, patience.wait(patience.write_s))
                except ssl.SSLWantReadError:
                    self._await(select.POLLIN, patience.wait(patience.write_s))
            self._was_sent = not isinstance(self._sock, ssl.SSLSocket)
        except TimeoutError:
            raise patience.timed_out(httpx2.WriteTimeout, "the server took our bytes too slowly") from None
        except OSError as error:
            raise patience.broken(httpx2.WriteError, error) from error

    def receive(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any; empty at the end of the stream."""
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
            return block
        return self._receive(size)

    def receive_head(self, max_bytes: int) -> bytes:
        """Everything up to and with the empty line. Empty when the stream ends before the first byte."""
        head = self._ahead or self._receive(_HEAD_BLOCK)
        searched = 0
        while (end := _HEAD_END.search(head, searched)) is None:
            if len(head) > max_bytes:
                raise HeadersTooLarge(f"the head of the answer is longer than {max_bytes} bytes")
            more = self._receive(_HEAD_BLOCK) if head else b""
            if not more:
                return self._no_head(head)
            searched, head = max(0, len(head) - 2), head + more
        if end.end() > max_bytes:
            raise HeadersTooLarge(f"the head of the answer is longer than {max_bytes} bytes")
        self._ahead = head[end.end() :]
        return head[: end.end()]

    def _no_head(self, head: bytes) -> bytes:
        if head:
            raise ClosedEarly("the server closed the connection in the middle of the headers")
        return b""

    def put_back(self, data: bytes) -> None:
        """These bytes were read too far."""
        self._ahead = data + self._ahead

    @property
    def is_unheard(self) -> bool:
        """Was it used before, and has nothing come since? Then its server may have closed it meanwhile."""
        return self.reused and not self.has_received

    @property
    def has_bytes_ahead(self) -> bool:
        return bool(self._ahead)

    def is_stale(self) -> bool:
        """Is there anything to read on an idle connection? Whatever it is, an end or a stray byte, it is of no use."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        self._poller.modify(self._sock, select.POLLIN)
        return bool(self._poller.poll(0))

    def stop_waiting(self) -> None:
        """Only what has already arrived is wanted: the next calls fail rather than wait."""
        patience = self._used_by()
        patience.read_s = 0.0

    def has_more(self) -> bool:
        """Is there anything to read at once?"""
        if self._ahead or (isinstance(self._sock, ssl.SSLSocket) and self._sock.pending()):
            return True
        self._poller.modify(self._sock, select.POLLIN)
        return bool(self._poller.poll(0))

    def awaited(self) -> Awaited:
        """What comes next, for those who wait for many connections at once."""
        # Nothing is checked here: a deadline that is over is no wait, and a socket that was shut down is ready.
        patience = self._patience or self._used_by()
        wait_s = patience.longest(patience.read_s)
        until = math.inf if wait_s is None else time.monotonic() + wait_s
        self._was_sent = False
        return Awaited(self._sock.fileno(), until, self.stop_waiting, self._number)

    def _receive(self, size: int) -> bytes:
        patience = self._patience or self._used_by()
        patience.check()
        try:
            if self._was_sent:
                self._was_sent = False
                self._await(select.POLLIN, patience.wait(patience.read_s))
            block = None
            while block is None:
                try:
                    block = self._sock.recv(size)
                except (BlockingIOError, ssl.SSLWantReadError):
                    self._await(select.POLLIN, patience.wait(patience.read_s))
                except ssl.SSLWantWriteError:
                    self._await(select.POLLOUT, patience.wait(patience.read_s))
        except ssl.SSLEOFError:
            self.ragged, block = True, b""
        except TimeoutError:
            raise patience.timed_out(httpx2.ReadTimeout, "the server sent nothing in time") from None
        except OSError as error:
            raise patience.broken(httpx2.ReadError, error) from error
        if block:
            self.has_received = True
        else:
            patience.check()
        return block

    def _await(self, event: int, wait_s: float | None) -> None:
        """Until the socket is ready; raises TimeoutError. Shutting it down in another thread ends the wait."""
        self._poller.modify(self._sock, event)
        if wait_s is not None and wait_s <= 0:
            ready = self._poller.poll(0)
        else:
            with giving_way():
                ready = self._poller.poll(None if wait_s is None else math.ceil(wait_s * 1000))
        if not ready:
            raise TimeoutError

    def _used_by(self) -> Patience:
        if self._patience is None:
            raise httpx2.ReadError("the connection is closed")
        return self._patience


def _shake_hands(tls: ssl.SSLSocket) -> int | None:
    """What the handshake waits for; None when it is done."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return select.POLLIN
    except ssl.SSLWantWriteError:
        return select.POLLOUT
    return None


def _tls_failure(patience: Patience, host: str, error: OSError | ValueError) -> Exception:
    if patience.cancel is not None:
        patience.cancel.raise_if_cancelled()
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(f"the certificate of {host!r} was not accepted: {error.verify_message}")
    reason = getattr(error, "reason", None) or type(error).__name__
    return TlsFailed(f"no TLS connection to {host!r}: {reason}")


def _nothing() -> None:
    return None
