"""Opens the wake-up channel that the settings name.

The driver of a broker is imported only when it is used. No broker has to run: one that is unavailable costs latency,
and nothing else.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from DocsToKG.Orchestrator.errors import LedgerUnusable
from DocsToKG.Orchestrator.notifications.base import Signal
from DocsToKG.Orchestrator.notifications.local import LocalSignal

SignalKind: TypeAlias = Literal["local", "pg_notify", "redis", "nats"]
DEFAULT_CHANNEL = "docstokg"
_EXTRAS = {"pg_notify": "postgres", "redis": "redis", "nats": "nats"}


def open_signal(kind: SignalKind, url: str | None = None, *, channel: str = DEFAULT_CHANNEL) -> Signal:
    """The signal of that kind through the broker at `url`; the local one has none. Those who share a broker and should
    not wake each other have another `channel` each."""
    if kind == "local":
        return LocalSignal()
    try:
        return _through_broker(kind, url or "", channel)
    except ImportError:
        extra = _EXTRAS[kind]
        raise LedgerUnusable(
            f"queue.signal: {kind!r} needs the {extra} extra: pip install 'docstokg[{extra}]'"
        ) from None
    except ValueError as error:
        raise LedgerUnusable(f"the address of the queue's signal: {error}") from None


def _through_broker(kind: SignalKind, url: str, channel: str) -> Signal:
    if kind == "redis":
        from DocsToKG.Orchestrator.notifications.redis_streams import RedisSignal

        return RedisSignal(url, channel=f"{channel}:signal")
    if kind == "nats":
        from DocsToKG.Orchestrator.notifications.nats import NatsSignal

        return NatsSignal(url, channel=f"{channel}-signal")
    from DocsToKG.Orchestrator.notifications.pg_notify import PgNotifySignal

    return PgNotifySignal(url, channel=f"{channel}_jobs")
