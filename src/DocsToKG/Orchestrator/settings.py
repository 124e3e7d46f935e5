"""The settings of the service: where the ledger is, authentication, limits, events.

Knows names, defaults and bounds. Opens nothing and does not read the environment. Promises: an unknown key is
refused by name, and no value is ever shown in an error.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

DEFAULT_LEDGER = Path("state/workqueue.sqlite")  # where `contentdownload queue` keeps its own
DEFAULT_PORT = 8470
Algorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]


class BadSettings(ValueError):
    """The settings of the service are refused as given; the message names the key and never shows a value."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class KeySettings(_Section):
    """A key that tokens are signed with: a secret of 32 bytes or more for HS256, else a public key, PEM or JWK."""

    file: Path = Field(description="File with the key.")
    algorithm: Algorithm = Field(description="The one algorithm this key is good for.")
    kid: str | None = Field(default=None, max_length=128, description="Name of the key in the head of a token.")


class AuthSettings(_Section):
    """Who may come in. Without keys only the tokens of `docstokg-orchestrator token` are known."""

    tokens_file: Path | None = Field(default=None, description="Tokens made here; default: beside the ledger.")
    keys: tuple[KeySettings, ...] = Field(default=(), max_length=16, description="Keys of signed tokens (JWT).")
    jwks_file: Path | None = Field(default=None, description="A JWK set of public keys.")
    jwks_url: str | None = Field(default=None, pattern=r"^https?://", description="Where a JWK set is fetched from.")
    jwks_private_hosts: tuple[str, ...] = Field(default=(), description="Hosts of jwks_url that may be private.")
    jwks_fresh_seconds: float = Field(default=300.0, ge=10, le=86400, description="How long a fetched set is used.")
    issuer: str | None = Field(default=None, max_length=512, description="The `iss` that a signed token must have.")
    audience: str | None = Field(default=None, max_length=512, description="The `aud` that a signed token must have.")
    leeway_seconds: int = Field(default=30, ge=0, le=300, description="How far clocks may differ.")

    @property
    def has_keys(self) -> bool:
        return bool(self.keys or self.jwks_file or self.jwks_url)


class LimitSettings(_Section):
    """How much one caller may ask."""

    requests_per_second: float = Field(default=200.0, gt=0, le=1e6, description="Requests a token may make, steadily.")
    burst: int = Field(default=400, ge=1, le=1_000_000, description="Requests a token may make at once.")
    body_bytes: int = Field(default=1_048_576, ge=1024, le=64 * 1_048_576, description="Largest body of a request.")
    json_depth: int = Field(default=32, ge=4, le=256, description="Deepest nesting of a body.")
    request_seconds: float = Field(default=30.0, gt=0, le=600, description="Longest time for one answer.")
    body_seconds: float = Field(default=10.0, gt=0, le=600, description="Longest time for a body to arrive.")
    threads: int = Field(default=24, ge=2, le=256, description="Requests that are answered at once.")


class StreamSettings(_Section):
    """Live feeds."""

    heartbeat_seconds: float = Field(default=15.0, gt=0, le=300, description="A sign of life on an idle stream.")
    buffer_events: int = Field(default=1000, ge=10, le=100_000, description="Events a slow reader may be behind.")
    max_streams: int = Field(default=200, ge=1, le=10_000, description="Streams open at once.")
    poll_seconds: float = Field(default=0.5, gt=0, le=60, description="How often the ledger is asked for news.")


class EventTargetSettings(_Section):
    """Somewhere that events are sent to."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Its name in the outbox.")
    kind: Literal["webhook", "nats"] = Field(default="webhook", description="How events travel.")
    url: SecretStr = Field(description="Where to: https://..., or nats://host:4222.")
    secret_env: str | None = Field(default=None, max_length=128, description="Variable with the webhook's secret.")
    secret_file: Path | None = Field(default=None, description="File with the webhook's secret.")
    private_hosts: tuple[str, ...] = Field(
        default=(), description="Hosts of a webhook that may have a private address or speak plain HTTP."
    )
    subject: str = Field(default="orch.events", max_length=200, description="Subject of NATS that events go below.")
    tenant: str = Field(default="*", min_length=1, max_length=200, description="Only events of this tenant; *: all.")
    types: tuple[Annotated[str, Field(pattern=r"^(job|pack_run|control)\.[a-z_]{1,60}$")], ...] = Field(
        default=(), max_length=64, description="Only events of these types, such as job.failed."
    )
    at_once: int = Field(default=4, ge=1, le=64, description="Events on their way at once; of one job always one.")
    timeout_seconds: float = Field(default=10.0, gt=0, le=60, description="Longest time for one delivery.")
    max_tries: int = Field(default=20, ge=1, le=1000, description="Tries after which an event is dead.")


class EventSettings(_Section):
    """Events for others. Without targets none are written down."""

    targets: tuple[EventTargetSettings, ...] = Field(default=(), max_length=32, description="Who gets events.")
    signers: tuple[str, ...] = Field(
        default=(), max_length=8, description="Names of the keys to sign with; default: the newest of every name."
    )
    poll_seconds: float = Field(default=0.5, gt=0, le=60, description="How often the outbox is looked into.")
    retry_seconds: float = Field(default=1.0, gt=0, le=600, description="First wait after a failure, then doubled.")
    retry_cap_seconds: float = Field(default=3600.0, gt=0, le=86400, description="Longest wait between two tries.")


class ServerSettings(_Section):
    """The whole of it."""

    ledger: Path = Field(default=DEFAULT_LEDGER, description="SQLite file of the ledger.")
    connection_string: SecretStr | None = Field(default=None, description="PostgreSQL server of the ledger.")
    listen_connection_string: SecretStr | None = Field(
        default=None, description="The server itself, to listen for wake-ups, when connection_string is a pooler's."
    )
    host: str = Field(default="127.0.0.1", min_length=1, max_length=255, description="Address to listen on.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(default=DEFAULT_PORT, description="0: any free port.")
    behind_tls_proxy: bool = Field(
        default=False, description="A proxy with TLS stands before it; needed to listen beyond this machine."
    )
    drain_seconds: float = Field(default=10.0, ge=0, le=600, description="How long running requests may end.")
    signing_keys: Path | None = Field(
        default=None,
        description="Folder of the keys that bundles and answers are signed with; default: keys beside the ledger.",
    )
    sign_answers: bool = Field(default=True, description="Sign answers that tell of jobs, where there are keys.")
    otlp_endpoint: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="Send spans to this OpenTelemetry collector, like http://127.0.0.1:4318 (extra otel).",
    )
    auth: AuthSettings = Field(default=AuthSettings(), description="Who may come in.")
    limits: LimitSettings = Field(default=LimitSettings(), description="How much one caller may ask.")
    streams: StreamSettings = Field(default=StreamSettings(), description="Live feeds.")
    events: EventSettings = Field(default=EventSettings(), description="Events for others.")

    @property
    def ledger_url(self) -> str | None:
        return None if self.connection_string is None else self.connection_string.get_secret_value()

    @property
    def listen_url(self) -> str | None:
        given = self.listen_connection_string
        return None if given is None else given.get_secret_value()

    @property
    def keys_path(self) -> Path:
        return self.signing_keys or self.ledger.with_name("keys")

    @property
    def tokens_path(self) -> Path:
        return self.auth.tokens_file or self.ledger.with_name(self.ledger.name + ".tokens.json")


def load_settings(file: Path | None, changes: dict[str, Any] | None = None) -> ServerSettings:
    """The settings of a YAML or JSON file, with `changes` on top."""
    values = {} if file is None else _read(file)
    try:
        return ServerSettings.model_validate({**values, **(changes or {})})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] != "extra_forbidden":
            raise BadSettings(f"{key}: {first['msg']}") from None
        near = get_close_matches(key, ServerSettings.model_fields, 1)
        raise BadSettings(f"{key} is not a setting" + (f"; did you mean {near[0]}?" if near else "")) from None


def _read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSettings(f"cannot read {file}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError):  # a date or a number that cannot be is a ValueError
        raise BadSettings(f"{file} is neither YAML nor JSON") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise BadSettings(f"{file} must hold keys and values")
    return values
