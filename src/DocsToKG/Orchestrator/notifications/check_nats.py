"""NATS servers: reached, a notice sent and heard on a subject of its own, and whether JetStream confirms notices."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from DocsToKG.core.checks import Finding, encryption, failed, missing_extra, ok, warning

_ANSWER_S = 3.0


def check_nats(url: str, setting: str, channel: str = "docstokg") -> Iterator[Finding]:
    """The servers at `url`: nats://host:4222, or several with commas. Wake-ups are hints: work goes on without them."""
    try:
        import nats.errors
    except ImportError:
        yield missing_extra("nats")
        return
    try:
        where = _shown(url)
    except ValueError:
        yield failed("address", "it cannot be read", f"write {setting} as nats://host:4222")
        return
    try:
        yield from asyncio.run(_look(where, url, setting, channel))
    except (nats.errors.Error, OSError, ValueError, TimeoutError) as error:
        advice = f"see to the server, its firewall and {setting}; meanwhile work is found by asking"
        yield failed("reachable", f"{where}: {type(error).__name__}", advice)


async def _look(where: str, url: str, setting: str, channel: str) -> list[Finding]:
    from nats.aio.client import Client

    client = Client()
    servers = [part.strip() for part in url.split(",") if part.strip()]

    async def say_nothing(error: Exception) -> None:
        """The client would print it."""

    try:
        await asyncio.wait_for(
            client.connect(
                servers, allow_reconnect=False, connect_timeout=int(_ANSWER_S), error_cb=say_nothing,
                name="docstokg-doctor",
            ),
            _ANSWER_S * len(servers),
        )  # fmt: skip
        version, server = client.connected_server_version, client.connected_url
        encrypted = server is not None and (server.scheme in ("tls", "wss") or _is_encrypted(client))
        return [
            ok("reachable", where),
            ok("server", f"NATS {version.major}.{version.minor}.{version.patch}"),
            encryption(server.hostname if server else None, encrypted, f"use tls:// in {setting}"),
            await _publish(client, f"{channel}-signal"),
            await _stream(client),
        ]
    finally:
        await _close(client)


async def _publish(client: Any, below: str) -> Finding:
    """Beside the notices themselves, so that the same rights are tried. Workers that hear it look once for work, and a
    stream forgets it after minutes."""
    from nats.errors import Error

    subject = f"{below}.doctor-{secrets.token_hex(8)}"
    try:
        heard = await client.subscribe(subject)
        await client.publish(subject, b"probe")
        await client.flush(timeout=int(_ANSWER_S))
        await heard.next_msg(timeout=_ANSWER_S)
    except (Error, TimeoutError) as error:
        advice = f"allow this user to publish and subscribe to {below}.>"
        return failed("permissions", f"a notice was sent and not heard ({type(error).__name__})", advice)
    return ok("permissions", "a notice was sent and heard")


async def _stream(client: Any) -> Finding:
    from nats.errors import Error

    try:
        await client.jetstream(timeout=_ANSWER_S).account_info()
    except (Error, TimeoutError):
        seen = "no JetStream: notices go out unconfirmed"
        advice = "start the server with -js, and let this user publish to $JS.API.> and subscribe to _INBOX.>"
        return warning("jetstream", seen, f"{advice}, if a lost wake-up should cost less than a second")
    return ok("jetstream", "confirms notices")


def _is_encrypted(client: Any) -> bool:
    return bool(getattr(client, "_server_info", {}).get("tls_required"))


def _shown(url: str) -> str:
    parts = [urlsplit(part.strip()) for part in url.split(",") if part.strip()]
    return "nats " + ", ".join(f"{part.hostname}:{part.port or 4222}" for part in parts)


async def _close(client: Any) -> None:
    try:
        await asyncio.wait_for(client.close(), _ANSWER_S)
    except Exception:
        return
