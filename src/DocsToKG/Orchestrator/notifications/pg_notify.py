"""Wake-ups between machines by LISTEN and NOTIFY of PostgreSQL.

Listening needs a connection that is ours alone: behind a pooler that hands out connections by the transaction, give
`listen_url` the server itself. Without it nothing is heard there, which is said once and shown by `is_pooled`; the
ledger is then asked now and then. Every NOTIFY takes a lock of the whole server at its commit, so that few are better
than many. A connection that is lost, cut or deaf is replaced.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import conninfo, sql

from DocsToKG.Orchestrator.notifications.broker import PAUSE_S, RelayedSignal

_log = logging.getLogger("DocsToKG.Orchestrator.notifications")
_CHECK_S = 10.0
_GLANCE_S = 0.2
_ALIVE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class PgNotifySignal(RelayedSignal):
    """A `Signal` on one channel of the server at `url`. The server tells us our own notices too; they count."""

    def __init__(
        self, url: str, *, listen_url: str | None = None, channel: str = "docstokg_jobs", check_s: float = _CHECK_S
    ) -> None:
        super().__init__()
        self._url = _told(url, "docstokg-notify")
        self._listen_url = _told(listen_url or url, "docstokg-listen")
        self._channel = channel
        self._check_s = check_s
        self.is_pooled = False  # whether a pooler stands between, so that notices of others cannot arrive

    def _senders(self) -> dict[str, Callable[[], None]]:
        return {"pg-notify": self._send}

    def _listeners(self) -> dict[str, Callable[[], None]]:
        return {"pg-listen": self._listen}

    def _send(self) -> None:
        with psycopg.connect(self._url, autocommit=True, prepare_threshold=None) as connection:
            while True:
                self._something.wait()
                is_last = self._closed.is_set()  # asked first, so that what was given before the end is sent
                with self._sending() as lanes:
                    for lane in lanes:
                        connection.execute("SELECT pg_notify(%s, %s)", (self._channel, lane))
                if is_last:
                    return
                self._closed.wait(PAUSE_S)

    def _listen(self) -> None:
        with psycopg.connect(self._listen_url, autocommit=True, prepare_threshold=None) as connection:
            self.is_pooled = is_pooled(connection)
            if self.is_pooled:
                _log.warning(
                    "wake-ups cannot be heard through a pooler; give queue.listen_connection_string the server itself, "
                    "else work of other machines is found by asking"
                )
                return
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            self._begin_listening()
            try:
                while not self._closed.is_set():
                    self._read_on(connection)
            finally:
                self.is_listening = False

    def _read_on(self, connection: psycopg.Connection[Any]) -> None:
        """Notices until it is time to see whether the server still knows that we listen."""
        deadline = time.monotonic() + self._check_s
        while not self._closed.is_set() and (left := deadline - time.monotonic()) > 0:
            for notice in connection.notifies(timeout=min(left, _GLANCE_S), stop_after=1):
                self._hear("", notice.payload)
        if connection.execute("SELECT %s IN (SELECT pg_listening_channels())", (self._channel,)).fetchone() != (True,):
            raise psycopg.OperationalError("the server has forgotten that we listen")


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
