"""Wake-ups between machines by LISTEN and NOTIFY of PostgreSQL.

Within the process a notice is heard at once; to the others it goes out from a thread of its own, at most one for each
lane in a short while, because every NOTIFY takes a lock of the whole server at its commit. Listening needs a connection
that is ours alone: behind a pooler that hands out connections by the transaction, give `listen_url` the server itself.
Without it nothing is heard there, which is said once and shown by `is_pooled`; the ledger is then asked now and then.
Promises: a connection that is lost, cut or deaf is replaced, and everyone is woken once then, since notices may have
been missed meanwhile; while there is none, nothing is raised. A lost notice costs latency, never work.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import conninfo, sql

from DocsToKG.Orchestrator.signal.local import LocalSignal

_log = logging.getLogger("DocsToKG.Orchestrator.signal")
_PAUSE_S = 0.05  # between two notices of one lane
_CHECK_S = 10.0
_GLANCE_S = 0.2
_CLOSE_S = 2.0
_LEAST_BACKOFF_S, _MOST_BACKOFF_S = 0.1, 5.0
_ALIVE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class PgNotifySignal:
    """A `Signal` on one channel. Two threads, started with the first wait or notice."""

    def __init__(
        self, url: str, *, listen_url: str | None = None, channel: str = "docstokg_jobs", check_s: float = _CHECK_S
    ) -> None:
        self._url = _told(url, "docstokg-notify")
        self._listen_url = _told(listen_url or url, "docstokg-listen")
        self._channel = channel
        self._check_s = check_s
        self._local = LocalSignal()
        self._lock = threading.Lock()
        self._lanes: set[str] = set()
        self._something = threading.Event()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.is_listening = False  # whether notices of others arrive, as far as is known
        self.is_pooled = False  # whether a pooler stands between, so that they cannot
        self.notices = 0  # heard from the server, our own among them
        self.sent = 0
        self.troubles = 0
        self.reconnects = 0
        self._begun = False

    def notify(self, lane: str) -> None:
        self._local.notify(lane)
        with self._lock:
            self._lanes.add(lane)
        self._something.set()
        self._start()

    def mark(self) -> int:
        self._start()
        return self._local.mark()

    def wait(self, timeout_s: float, *, since: int | None = None) -> bool:
        self._start()
        return self._local.wait(timeout_s, since=since)

    def close(self) -> None:
        """Send what is waiting to be sent, then stop. Safe to call twice."""
        self._closed.set()
        self._something.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_CLOSE_S)  # one that hangs in a cut network ends by itself
        self._local.close()

    def _start(self) -> None:
        with self._lock:
            if self._threads or self._closed.is_set():
                return
            for target, name in ((self._run_listening, "pg-listen"), (self._run_sending, "pg-notify")):
                self._threads.append(threading.Thread(target=target, name=name, daemon=True))
            for thread in self._threads:
                thread.start()

    def _run_listening(self) -> None:
        self._keep(self._listen_url, self._listen)

    def _run_sending(self) -> None:
        self._keep(self._url, self._send)

    def _keep(self, url: str, deed: Callable[[psycopg.Connection[Any]], None]) -> None:
        """Do it on a connection until that fails, and on another after a pause that grows."""
        pause_s = _LEAST_BACKOFF_S
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
                    deed(connection)
                    return
            except (psycopg.Error, OSError):
                self.troubles += 1
            if time.monotonic() - began > _MOST_BACKOFF_S:
                pause_s = _LEAST_BACKOFF_S
            self._closed.wait(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(_MOST_BACKOFF_S, pause_s * 2)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        self.is_pooled = is_pooled(connection)
        if self.is_pooled:
            _log.warning(
                "wake-ups cannot be heard through a pooler; give queue.listen_connection_string the server itself, "
                "else work of other machines is found by asking"
            )
            return
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self.is_listening = True
        self.reconnects += self._begun
        self._begun = True
        self._local.notify("")  # what was said before we listened is not lost, but unheard
        try:
            while not self._closed.is_set():
                self._hear(connection)
        finally:
            self.is_listening = False

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        """Notices until it is time to see whether the server still knows that we listen."""
        deadline = time.monotonic() + self._check_s
        while not self._closed.is_set() and (left := deadline - time.monotonic()) > 0:
            for notice in connection.notifies(timeout=min(left, _GLANCE_S), stop_after=1):
                self.notices += 1
                self._local.notify(notice.payload)
        if connection.execute("SELECT %s IN (SELECT pg_listening_channels())", (self._channel,)).fetchone() != (True,):
            raise psycopg.OperationalError("the server has forgotten that we listen")

    def _send(self, connection: psycopg.Connection[Any]) -> None:
        while True:
            self._something.wait()
            is_last = self._closed.is_set()  # asked first, so that what was given before the end is sent
            with self._lock:
                lanes = sorted(self._lanes)
                self._lanes.clear()  # before sending: a lane that is named anew meanwhile is sent anew
                if not self._closed.is_set():
                    self._something.clear()
            try:
                for lane in lanes:
                    connection.execute("SELECT pg_notify(%s, %s)", (self._channel, lane[:200]))
                    self.sent += 1
            except BaseException:
                with self._lock:
                    self._lanes.update(lanes)
                self._something.set()
                raise
            if is_last:
                return
            self._closed.wait(_PAUSE_S)


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether somebody between us and the server answers for it, who may give each transaction another session.

    Such a one cannot know the process of a session that it has not chosen yet, and so names another.
    """
    return connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,)


def _told(url: str, name: str) -> str:
    try:
        told = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ValueError("not a PostgreSQL URL") from None  # the driver's words may hold a part of the password
    ours = {**_ALIVE, "application_name": name}
    return conninfo.make_conninfo(url, **{key: value for key, value in ours.items() if key not in told})
