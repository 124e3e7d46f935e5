"""The composition root: builds the service from its settings, and closes it in the opposite order.

The only place that sees all settings. Promises: an unsafe configuration is refused before anything listens.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.api.auth.tokens import TokenFile
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
from DocsToKG.Orchestrator.ledger.opening import open_ledger
from DocsToKG.Orchestrator.settings import AuthSettings, BadSettings, EventTargetSettings, ServerSettings
from DocsToKG.Orchestrator.tracing import spans_to, tracer_of_process

if TYPE_CHECKING:
    from fastapi import FastAPI

    from DocsToKG.Orchestrator.events.notifier import Notifier
    from DocsToKG.Orchestrator.events.targets import Target

_JWKS_BYTES = 1_048_576
_JWKS_SECONDS = 5.0
_SECRET_CHARACTERS = 4096
FIRST = "first"
_CONSOLE_TOKEN_S = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Service:
    """The application, its ledger and the tokens made here."""

    app: FastAPI
    ledger: DatabaseLedger
    tokens: TokenFile


@contextmanager
def open_service(settings: ServerSettings, *, clock: Clock | None = None) -> Iterator[Service]:
    refuse_unsafe(settings)
    from DocsToKG.Orchestrator.api.app import build_app
    from DocsToKG.Orchestrator.api.audit_export import AuditExporter
    from DocsToKG.Orchestrator.api.context import AppState
    from DocsToKG.Orchestrator.api.housekeeping import Housekeeping
    from DocsToKG.Orchestrator.api.observability.spans import JobSpans
    from DocsToKG.Orchestrator.api.services import Services
    from DocsToKG.Orchestrator.api.sse import EventStreams
    from DocsToKG.Orchestrator.signing.current import ResponseSigner
    from DocsToKG.Orchestrator.signing.keyring import KeyFolder

    with ExitStack() as stack:
        tokens = TokenFile(settings.tokens_path, clock=clock)
        admission = _admission(settings, tokens, clock or SystemClock(), stack)
        ledger = open_ledger(settings.ledger, url=settings.ledger_url, listen_url=settings.listen_url, clock=clock)
        stack.callback(ledger.close)
        services, chosen = Services(ledger), settings.streams
        streams = EventStreams(
            services.feed,
            ledger,
            buffer_events=chosen.buffer_events,
            heartbeat_s=chosen.heartbeat_seconds,
            poll_s=chosen.poll_seconds,
            max_streams=chosen.max_streams,
        )
        signer = ResponseSigner(KeyFolder(settings.keys_path), clock=clock)
        state = AppState(
            services=services,
            admission=admission,
            streams=streams,
            sign=signer if settings.sign_answers else bytes,
            audit_exporter=AuditExporter(partial(_second_reader, settings, clock), signer),
            spans=JobSpans(_tracer(settings.otlp_endpoint, stack)),
        )
        app = build_app(state, body_bytes=settings.limits.body_bytes)
        services.maintenance.start_governing()
        stack.enter_context(Housekeeping(services).running())
        notifier = notifier_of(settings, ledger, clock=clock)
        if notifier is not None:
            stack.enter_context(notifier.running())
        yield Service(app, ledger, tokens)


def _tracer(endpoint: str | None, stack: ExitStack) -> Any | None:
    """That of the collector which is named, or else of the whole process; None where nobody wants spans."""
    from DocsToKG.Orchestrator.api.observability.spans import INSTRUMENTATION

    if endpoint is None:
        return tracer_of_process(INSTRUMENTATION)
    try:
        provider = stack.enter_context(spans_to(endpoint, about={"service.name": "docstokg-orchestrator"}))
    except ImportError as error:
        raise BadSettings(f"otlp_endpoint needs {error.name}; install it with: pip install 'docstokg[otel]'") from None
    return provider.get_tracer(INSTRUMENTATION)


def notifier_of(settings: ServerSettings, ledger: DatabaseLedger, *, clock: Clock | None = None) -> Notifier | None:
    """What carries events to the targets of the settings; None where there are no targets."""
    from DocsToKG.Orchestrator.errors import SigningError
    from DocsToKG.Orchestrator.events.notifier import Notifier, RetryPolicy
    from DocsToKG.Orchestrator.events.outbox import Subscription
    from DocsToKG.Orchestrator.signing.current import CurrentSigners
    from DocsToKG.Orchestrator.signing.keyring import KeyFolder

    events = settings.events
    if not events.targets:
        return None
    if len({target.name for target in events.targets}) < len(events.targets):
        raise BadSettings("events.targets: two have the same name")
    signers = CurrentSigners(KeyFolder(settings.keys_path), events.signers, clock=clock)
    try:
        signers()
    except SigningError as error:
        raise BadSettings(f"events are signed: {error}") from None
    return Notifier(
        ledger,
        [Subscription(target.name, target.kind, target.tenant, target.types) for target in events.targets],
        [_target(target, clock) for target in events.targets],
        signers=signers,
        retry_policy=RetryPolicy(events.retry_seconds, events.retry_cap_seconds),
        poll_s=events.poll_seconds,
    )


def _target(wanted: EventTargetSettings, clock: Clock | None) -> Target:
    from DocsToKG.Orchestrator.events.targets import SendLimits

    url, key = wanted.url.get_secret_value(), f"events.targets.{wanted.name}"
    limits = SendLimits(wanted.at_once, wanted.max_tries, wanted.timeout_seconds)
    try:
        if wanted.kind == "nats":
            from DocsToKG.Orchestrator.events.nats import NatsTarget

            return NatsTarget(wanted.name, url, subject=wanted.subject, limits=limits)
        from DocsToKG.Orchestrator.events.webhook import Webhook, checked_url, secret_bytes

        return Webhook(
            wanted.name,
            checked_url(url, wanted.private_hosts),
            secret=secret_bytes(_secret(wanted)),
            private_hosts=wanted.private_hosts,
            limits=limits,
            clock=clock,
        )
    except ModuleNotFoundError:
        raise BadSettings(f"{key}: this needs the nats extra: pip install 'docstokg[nats]'") from None
    except ValueError as error:
        raise BadSettings(f"{key}: {error}") from None


def _secret(wanted: EventTargetSettings) -> str:
    """The secret of a webhook, from the environment or a file."""
    if wanted.secret_env is not None:
        found = os.environ.get(wanted.secret_env)
        if not found:
            raise ValueError(f"the variable {wanted.secret_env} is not set")
        return found
    if wanted.secret_file is None:
        raise ValueError("name its secret by secret_env or secret_file; the receiver proves with it who sends")
    try:
        return wanted.secret_file.read_text(encoding="utf-8")[:_SECRET_CHARACTERS]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {wanted.secret_file}: {getattr(error, 'strerror', 'not text')}") from None


def _second_reader(settings: ServerSettings, clock: Clock | None) -> DatabaseLedger:
    """The same ledger once more: a long reading of the one that serves would hold up every other."""
    return open_ledger(settings.ledger, url=settings.ledger_url, listen_url=settings.listen_url, clock=clock)


def refuse_unsafe(settings: ServerSettings) -> None:
    """Beyond this machine tokens must not travel in clear, and must come from somebody who can take them back."""
    if is_loopback(settings.host):
        return
    if not settings.behind_tls_proxy:
        raise BadSettings(
            f"{settings.host} can be reached from other machines, and this program speaks no TLS: put a proxy with TLS "
            "before it and set behind_tls_proxy, or listen on 127.0.0.1"
        )
    if not settings.auth.has_keys:
        raise BadSettings(
            f"{settings.host} can be reached from other machines: set auth.keys, auth.jwks_file or auth.jwks_url"
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening_socket(settings: ServerSettings) -> socket.socket:
    """Bound before anything is printed, so that the address shown is the one that answers."""
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(family[4][:2], family=family[0], backlog=2048)
    except OSError as error:
        # The library adds the address to the system's words once more.
        why = (error.strerror or str(error)).partition(" (while attempting")[0]
        advice = "; choose another with --port" if error.errno == errno.EADDRINUSE else ""
        raise BadSettings(f"cannot listen on {settings.host} port {settings.port}: {why}{advice}") from None
    # Connections inherit it. The event loop sets it only on sockets that name their protocol, which these do not;
    # without it each answer on a kept connection waits for the reader's delayed acknowledgement, 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def console_beside(settings: ServerSettings) -> Iterator[str]:
    """The service in a thread of this process, with a token of its own that ends with it; the address that opens it."""
    from DocsToKG.Orchestrator.api.auth.permissions import SCOPES
    from DocsToKG.Orchestrator.api.server import serving
    from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT

    with open_service(settings) as service, listening_socket(settings) as listener:
        token, record = service.tokens.make(
            "console", scopes=SCOPES, tenant=DEFAULT_TENANT, tenants=("*",), ttl_s=_CONSOLE_TOKEN_S
        )
        try:
            with serving(service.app, listener, drain_s=settings.drain_seconds):
                yield f"{address_of(listener)}/console/#token={token}"
        finally:
            service.tokens.revoke(record.token_id)


def first_token(tokens: TokenFile) -> str | None:
    """A token for everything, where there is none yet."""
    from DocsToKG.Orchestrator.api.auth.permissions import SCOPES
    from DocsToKG.Orchestrator.ledger.base import DEFAULT_TENANT

    if tokens.list():
        return None
    token, _ = tokens.make(FIRST, scopes=SCOPES, tenant=DEFAULT_TENANT, tenants=("*",))
    return token


def _admission(settings: ServerSettings, tokens: TokenFile, clock: Clock, stack: ExitStack) -> Any:
    import anyio

    from DocsToKG.Orchestrator.api.auth.admission import Admission
    from DocsToKG.Orchestrator.api.auth.bearer import Authority
    from DocsToKG.Orchestrator.api.auth.rate_limit import RateLimiter

    auth, limits = settings.auth, settings.limits
    return Admission(
        authority=Authority(
            tokens=tokens,
            keys=_key_ring(auth, clock, stack),
            issuer=auth.issuer,
            audience=auth.audience,
            leeway_s=auth.leeway_seconds,
            clock=clock,
        ),
        rate_limiter=RateLimiter(per_second=limits.requests_per_second, burst=limits.burst, clock=clock),
        json_depth=limits.json_depth,
        body_seconds=limits.body_seconds,
        request_seconds=limits.request_seconds,
        threads=anyio.CapacityLimiter(limits.threads),
    )


def _key_ring(auth: AuthSettings, clock: Clock, stack: ExitStack) -> Any:
    from DocsToKG.Orchestrator.api.auth.keys import BadKey, KeyRing, key_from_file, keys_from_set

    try:
        fixed = [key_from_file(key.file, key.algorithm, key.kid) for key in auth.keys]
        fixed += keys_from_set(auth.jwks_file) if auth.jwks_file is not None else []
    except BadKey as error:
        raise BadSettings(str(error)) from None
    fetch = None if auth.jwks_url is None else _fetcher(auth.jwks_url, auth.jwks_private_hosts, clock, stack)
    return KeyRing(fixed, fetch=fetch, fresh_s=auth.jwks_fresh_seconds, clock=clock)


def _fetcher(url: str, private_hosts: tuple[str, ...], clock: Clock, stack: ExitStack) -> Callable[[], bytes]:
    """Gets the published key set through the transport, with its address guard, a size cap and a deadline."""
    from DocsToKG.transport.adapters import guarded_transport
    from DocsToKG.transport.client import build_client

    wire = guarded_transport(allow_hosts=private_hosts, clock=clock)
    client = stack.enter_context(
        build_client(wire, user_agent="docstokg-orchestrator", timeout_connect_s=_JWKS_SECONDS,
                     timeout_read_s=_JWKS_SECONDS)
    )  # fmt: skip

    def fetch() -> bytes:
        extensions = {"deadline": clock.monotonic() + _JWKS_SECONDS}
        with client.stream("GET", url, extensions=extensions) as response:
            if response.status_code != 200:
                raise LedgerError(f"the key set answers {response.status_code}")
            content = b""
            for block in response.iter_bytes():
                content += block
                if len(content) > _JWKS_BYTES:
                    raise LedgerError("the key set is too large")
            return content

    return fetch
