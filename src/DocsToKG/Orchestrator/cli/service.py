"""The service from the command line: `serve` runs it, `call` sends it one request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from DocsToKG.core.streams import nobody_has_to_read
from DocsToKG.Orchestrator.cli.options import CommandFailed, ServedOption, ServerFile, settings_of


def serve(
    ledger: ServedOption = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="0: any free port.", show_default="8470")
    ] = None,
    config: ServerFile = None,
    log_level: Annotated[
        Literal["off", "warning", "info"], typer.Option("--log-level", help="info: a JSON line for each job's change.")
    ] = "warning",
) -> None:
    """Serve the ledger over HTTP until interrupted; running requests finish first.

    Without settings, the service opens the queue or the pull of this folder, listens on this machine only, and prints a
    first token.

    Example: docstokg-orchestrator serve --ledger ./corpus --port 8470
    """
    nobody_has_to_read()  # it serves also where nobody is told
    from DocsToKG.Orchestrator import bootstrap
    from DocsToKG.Orchestrator.api.observability.job_log import listening
    from DocsToKG.Orchestrator.api.server import serve as run

    settings = settings_of(ledger, config, host=host, port=port)
    if settings.ledger_url is None and not settings.ledger.exists():
        typer.echo(f"There is no ledger yet; an empty one is made at {settings.ledger}.", err=True)
    with (
        listening(log_level),
        bootstrap.open_service(settings) as service,
        bootstrap.listening_socket(settings) as listener,
    ):
        address = bootstrap.address_of(listener)
        typer.echo(address)
        token = bootstrap.first_token(service.tokens)
        if token is None:
            typer.echo(f"Console: {address}/console/", err=True)
        else:
            typer.echo(f"token {token}")
            typer.echo(f"Console: {address}/console/#token={token}", err=True)
            typer.echo(f"The token is shown this once; {service.tokens.path} keeps its digest.", err=True)
        run(service.app, listener, drain_s=settings.drain_seconds)


def call(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT or DELETE.")],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="As docs/reference/http-api.md has it, like /jobs/7/why.")
    ],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", envvar="DOCSTOKG_ORCHESTRATOR", help="Address of the service.")
    ] = "http://127.0.0.1:8470",
    body: Annotated[str | None, typer.Option("--body", metavar="JSON", help="Body of the request.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept in the history.")] = None,
    ticket: Annotated[str | None, typer.Option("--ticket", help="Ticket; kept in the history.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Tenant, for a token of several tenants.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="File with the token.", show_default="the variable DOCSTOKG_TOKEN"
        ),
    ] = None,
) -> None:
    """Call the API of a running service, and print the answer as JSON.

    Example: docstokg-orchestrator call POST /jobs/7/cancel --reason "the wrong list"
    """
    from DocsToKG.Orchestrator.client.calls import Calls

    if method.upper() not in ("GET", "POST", "PUT", "DELETE") or not path.startswith("/"):
        raise typer.BadParameter("write it like: call POST /jobs/7/cancel")
    said = _json_object(body)
    said |= {name: word for name, word in (("reason", reason), ("ticket", ticket)) if word is not None}
    token = os.environ.get("DOCSTOKG_TOKEN", "") if token_file is None else token_file.read_text(encoding="utf-8")
    if not token.strip():
        raise CommandFailed("no token: set DOCSTOKG_TOKEN or give --token-file")
    with Calls(url, token, tenant=tenant) as calls:
        answer = calls.request(method.upper(), path, said or None)
    typer.echo(json.dumps(answer, indent=2))


def _json_object(body: str | None) -> dict[str, Any]:
    try:
        value = json.loads(body or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CommandFailed('--body must be a JSON object, like \'{"note": "checked"}\'')
    return value
