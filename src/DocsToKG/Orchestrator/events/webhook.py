"""Events to an HTTP address: one POST each, with a signature that the receiver's own secret proves.

Headers follow the Standard Webhooks convention (`webhook-id`, `webhook-timestamp`, `webhook-signature`), for which
receivers have libraries. Knows the wire through `transport`, so its address guard judges every address. Promises: the
secret is in no message, log or record; no redirect is followed; of an answer at most a few KiB are read; a target that
dribbles is left after `timeout_s`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import urlsplit

from DocsToKG.core.backoff import parse_retry_after
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.events.targets import Delivery, DeliveryFailed, SendLimits
from DocsToKG.transport.adapters import guarded_transport
from DocsToKG.transport.client import BaseTransport, TransportFailed, build_client
from DocsToKG.transport.hosts import patterns_for, plain_host
from DocsToKG.transport.names import NameResolver

_PREFIX = "whsec_"
_MIN_SECRET = 16
_MAX_ANSWER_BYTES = 4096
_HEADERS = {"Content-Type": "application/vnd.dsse.v1+json", "Accept": "*/*", "Accept-Encoding": "identity"}


def secret_bytes(text: str) -> bytes:
    """The key that a secret stands for: `whsec_` and base64, as other senders write it, or the text itself."""
    said = text.strip()
    try:
        key = base64.b64decode(said[len(_PREFIX) :], validate=True) if said.startswith(_PREFIX) else said.encode()
    except (binascii.Error, UnicodeEncodeError, ValueError):
        raise ValueError(f"a secret that begins with {_PREFIX} goes on in base64") from None
    if len(key) < _MIN_SECRET:
        raise ValueError(f"a secret has at least {_MIN_SECRET} bytes")
    return key


def checked_url(url: str, private_hosts: Sequence[str]) -> str:
    """An address that a webhook may have; plain HTTP only to hosts that were allowed to be private."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) and "@" not in parts.netloc
    except ValueError:
        fits = False
    if not fits:
        raise ValueError("url should look like https://host/path")
    allowed = {plain_host(host) for host in private_hosts}
    if parts.scheme == "http" and allowed.isdisjoint(patterns_for(parts.hostname or "")):
        raise ValueError("url must begin with https://, unless its host is among private_hosts")
    return url


def signature(secret: bytes, event_id: str, timestamp: int, body: bytes) -> str:
    """What stands in `webhook-signature`."""
    made = hmac.new(secret, f"{event_id}.{timestamp}.".encode() + body, sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


class Webhook:
    """A target at an HTTP address."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: bytes,
        private_hosts: Sequence[str] = (),
        limits: SendLimits = SendLimits(),  # noqa: B008 - a frozen value
        clock: Clock | None = None,
        names: NameResolver | None = None,
        transport: BaseTransport | None = None,
    ) -> None:
        self.name = name
        self.at_once, self.max_tries, self._timeout_s = limits
        self._url = url
        self._host = urlsplit(url).hostname or ""
        self._secret = secret
        self._clock = clock or SystemClock()
        wire = transport or guarded_transport(allow_hosts=private_hosts, names=names, clock=self._clock)
        self._client = build_client(
            wire, user_agent="docstokg-orchestrator", timeout_connect_s=self._timeout_s, timeout_read_s=self._timeout_s
        )

    def send(self, delivery: Delivery) -> None:
        timestamp = int(self._clock.now())
        headers = {
            **_HEADERS,
            "webhook-id": delivery.event_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, delivery.event_id, timestamp, delivery.body),
            "Idempotency-Key": delivery.idempotency_key,
            "X-Orch-Event-Type": delivery.event_type,
        }
        try:
            self._post(delivery.body, headers)
        except TransportFailed as error:
            raise DeliveryFailed(f"{self._host}: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._client.close()

    def _post(self, body: bytes, headers: dict[str, str]) -> None:
        extensions = {"deadline": self._clock.monotonic() + self._timeout_s}
        with self._client.stream("POST", self._url, content=body, headers=headers, extensions=extensions) as answer:
            read = 0
            for block in answer.iter_raw():
                read += len(block)
                if read > _MAX_ANSWER_BYTES:
                    break
            if not 200 <= answer.status_code < 300:
                subscription = parse_retry_after(answer.headers.get("retry-after"), now=self._clock.now())
                raise DeliveryFailed(f"{self._host} answers {answer.status_code}", subscription)
