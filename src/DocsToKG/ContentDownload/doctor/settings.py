"""The settings themselves: manners on the web, secrets, and whether several machines fit together.

Knows only what was configured and where each value came from; asks nobody. Promises to name a secret, never to show it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from DocsToKG.ContentDownload.config.environment import KNOWN_VARIABLES, NEW_PREFIX, variable_name
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.config.rules import contact_of, user_agent
from DocsToKG.core.checks import Finding, is_here, ok, warning
from DocsToKG.Orchestrator.ledger.drivers.sqlite.disk import network_disk

_SHORTEST = 3  # characters; less would be found in every word
_BEATS = 3
_AWS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD")
_ROLES = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")


def secrets_in(cfg: ContentDownloadConfig) -> dict[str, str]:
    """Every secret that is set, by its key."""
    return dict(_secrets(cfg, ""))


def known_secrets(cfg: ContentDownloadConfig, environ: Mapping[str, str]) -> list[str]:
    """Every word that must never be shown, the longest first: whole values, and the passwords of addresses."""
    words = set(secrets_in(cfg).values()) | {environ[name] for name in _AWS if environ.get(name)}
    passwords = {word for value in words for word in _passwords(value)}
    return sorted((word for word in words | passwords if len(word) >= _SHORTEST), key=len, reverse=True)


def check_manners(cfg: ContentDownloadConfig) -> Iterator[Finding]:
    """Who asks, and how politely."""
    contact = contact_of(cfg)
    if contact is None:
        advice = "content config set contact you@your-university.edu"
        yield warning("contact", "none: services are not told who asks, and some refuse", advice)
    else:
        yield ok("contact", f"{contact}, as {user_agent(cfg)}")
    if cfg.robots.enabled:
        yield ok("robots.txt", "obeyed")
    else:
        yield warning("robots.txt", "not read", "set robots.enabled: true for anything but a sandbox")
    yield from _rates(cfg)


def _rates(cfg: ContentDownloadConfig) -> Iterator[Finding]:
    limits = cfg.limits
    if limits.rate_factor > 1:
        seen = f"every rate is multiplied by {limits.rate_factor:g}"
        yield warning("rates", seen, "set limits.rate_factor: 1 for anything but a sandbox of your own")
    if not limits.shared and cfg.rate_limit.backend == "local":
        seen = "processes of this machine do not share them"
        yield warning("rates", seen, "set limits.shared: true")
    if cfg.http.connect_to:
        seen = f"requests for {', '.join(sorted(cfg.http.connect_to)[:3])} go to a sandbox"
        yield warning("way out", seen, "remove http.connect_to to reach the web")


def check_secrets(
    cfg: ContentDownloadConfig, origins: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Whether secrets are there, and in a safe place. `origins` tells where each setting came from."""
    found = secrets_in(cfg)
    yield ok("set", ", ".join(found) or "none")
    for key, value in found.items():
        yield from _place_of(key, value, origins.get(key))
        yield from _password(key, value)
    if "s3" in (cfg.storage.backend, cfg.hishel.backend):
        yield _bucket_keys(environ)


def _place_of(key: str, value: str, origin: str | None) -> Iterator[Finding]:
    """A file that others may read is no place for a password."""
    if origin is None or ("://" in value and not any(_passwords(value))):
        return
    path = Path(origin).expanduser()
    try:
        mode = path.stat().st_mode if path.is_file() else 0
    except OSError:
        return
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        names = [name for name, where in KNOWN_VARIABLES.items() if ".".join(where) == key and name.isupper()]
        variable = names[0] if names else variable_name(tuple(key.split(".")), NEW_PREFIX)
        yield warning(
            "place", f"{key} stands in {path}, which others may read", f"set {variable} instead, or chmod 600"
        )


def _password(key: str, value: str) -> Iterator[Finding]:
    for address in value.split(",") if key.endswith(("redis_url", "signal_url")) else ():
        try:
            parts = urlsplit(address.strip())
        except ValueError:
            continue  # whoever looks at that server says so
        if not is_here(parts.hostname) and not (parts.password or parts.username):
            yield warning(
                "password", f"{key} has none for {parts.hostname}", "set one on the server and in the address"
            )


def _bucket_keys(environ: Mapping[str, str]) -> Finding:
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return ok("bucket", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set")
    if role := next((name for name in _ROLES if environ.get(name)), None):
        return ok("bucket", f"a role, by {role}")
    advice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role"
    return warning("bucket", "no keys in the environment; only the machine's own role can help", advice)


def check_together(cfg: ContentDownloadConfig) -> Iterator[Finding]:
    """Whether machines that share a queue share the rest; what each keeps for itself is a warning."""
    engine = cfg.orchestrator
    if engine.lease_ttl_seconds < _BEATS * engine.heartbeat_seconds:
        seen = f"a lease of {engine.lease_ttl_seconds} s outlives fewer than {_BEATS} heartbeats"
        yield warning("leases", seen, "raise orchestrator.lease_ttl_seconds, so that one lost heartbeat frees nothing")
    else:
        yield ok("leases", f"{engine.lease_ttl_seconds} s, renewed every {engine.heartbeat_seconds} s")
    yield ok("drain", f"{engine.drain_seconds:g} s; a supervisor must wait longer before it kills")
    if not cfg.queue.is_file:
        yield from _shared(cfg)


def _shared(cfg: ContentDownloadConfig) -> Iterator[Finding]:
    if cfg.rate_limit.backend == "local":
        seen = "each machine keeps the limits of hosts for itself: N machines ask N times as often"
        yield warning("limits", seen, "set rate_limit.backend: redis and rate_limit.redis_url")
    if cfg.storage.backend == "fs" and network_disk(Path(cfg.storage.root_dir)) is None:
        seen = "files stay on the machine that fetched them"
        yield warning("files", seen, "set storage.root_dir: s3://bucket/prefix, or a disk that all machines mount")
    if cfg.catalog.backend == "sqlite":
        seen = "each machine keeps a record of its own works"
        yield warning("record", seen, "set catalog.backend: postgres and catalog.connection_string")


def _secrets(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, SecretStr):
        yield at, value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets(getattr(value, name), f"{at}.{name}" if at else name)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, f"{at}.{key}")


def _passwords(value: str) -> Iterator[str]:
    """What is secret in an address, as written and as meant."""
    for address in value.split(","):
        try:
            password = urlsplit(address.strip()).password
        except ValueError:
            continue
        if password:
            yield password
            yield unquote(password)
    # The other spelling of a PostgreSQL address: host=... password=...
    for word in value.split():
        if word.startswith("password="):
            yield word.removeprefix("password=").strip("'")
