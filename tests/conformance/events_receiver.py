"""A webhook receiver on loopback, as somebody else might write one: it proves sender and signature by itself."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SECRET = "a secret of enough bytes"


class Answer(NamedTuple):
    status: int = 204
    headers: Mapping[str, str] = MappingProxyType({})


class Receiver:
    """Keeps every request that it could prove, in the order they came."""

    def __init__(self, public_key: str) -> None:
        self.public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        self.heads: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.events: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.answers: Callable[[dict[str, Any]], Answer] = lambda event: Answer()
        self.always: Answer | None = None
        self.lock = threading.Lock()
        self.url = ""

    @property
    def ids(self) -> list[str]:
        return [event["eventId"] for event in self.events]

    def take(self, head: dict[str, str], body: bytes) -> Answer:
        with self.lock:
            if self.always is not None:
                return self.always
            try:
                event = self._proved(head, body)
            except Exception as error:
                self.wrong.append(repr(error))
                return Answer(400)
            answer = self.answers(event)
            if 200 <= answer.status < 300:
                self.heads.append(head)
                self.bodies.append(body)
                self.events.append(event)
            return answer

    def _proved(self, head: dict[str, str], body: bytes) -> dict[str, Any]:
        signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + body
        made = base64.b64encode(hmac.new(SECRET.encode(), signed, sha256).digest()).decode()
        assert hmac.compare_digest(head["webhook-signature"], f"v1,{made}")
        envelope = json.loads(body)
        payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
        [signature] = envelope["signatures"]
        message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
        self.public_key.verify(base64.b64decode(signature["sig"]), message)
        event: dict[str, Any] = json.loads(payload)
        assert head["webhook-id"] == event["eventId"]
        assert head["idempotency-key"] == event["idempotencyKey"]
        return event


@contextlib.contextmanager
def receiving(public_key: str) -> Iterator[Receiver]:
    receiver = Receiver(public_key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hooks"
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
