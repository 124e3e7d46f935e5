"""Tokens from the command line: `token new`, `token list`, `token revoke`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from DocsToKG.Orchestrator.cli.options import (
    CommandFailed,
    JsonOption,
    ServedOption,
    ServerFile,
    print_columns,
    settings_of,
)

app = typer.Typer(no_args_is_help=True, help="Tokens that the service accepts.")


@app.command("new")
def token_new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Holder of the token; recorded in the history.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            help="orch:read, orch:operate, orch:quota, orch:backfill; may be repeated.",
            show_default="orch:read",
        ),
    ] = None,
    tenant: Annotated[
        list[str] | None, typer.Option("--tenant", help="Tenant of the token; the first is the default, * means all.")
    ] = None,
    hours: Annotated[float | None, typer.Option("--hours", min=0.01, help="Hours until the token expires.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the token to this new file instead of printing it.")
    ] = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Create a token and print it once.

    Example: docstokg-orchestrator token new worker-1 --scope orch:operate --scope orch:read --out worker-1.token
    """
    from DocsToKG.Orchestrator.api.auth.bearer import ANY, TENANT
    from DocsToKG.Orchestrator.api.auth.permissions import granted
    from DocsToKG.Orchestrator.api.auth.tokens import TokenFile

    scopes, tenants = scope or ["orch:read"], tenant or ["default"]
    wrong = [word for word in scopes if not granted([word], ())]
    wrong += [word for word in tenants if word != ANY and not TENANT.fullmatch(word)]
    if wrong or not name.isprintable() or not 0 < len(name) <= 64:
        raise typer.BadParameter(f"{(wrong or [name])[0][:64]!r} is no scope, tenant or name")
    file = TokenFile(settings_of(ledger, config).tokens_path)
    home = next((word for word in tenants if word != ANY), None)
    token, record = file.make(
        name, scopes=scopes, tenant=home, tenants=tenants, ttl_s=None if hours is None else hours * 3600
    )
    if out is None:
        typer.echo(token)
    else:
        _write_secret(out, token)
    typer.echo(f"token {record.token_id} for {name}: {', '.join(scopes)}; tenants {', '.join(tenants)}", err=True)


@app.command("list")
def token_list(ledger: ServedOption = None, config: ServerFile = None, as_json: JsonOption = False) -> None:
    """List the tokens made here, without the tokens themselves.

    Example: docstokg-orchestrator token list --ledger ./corpus
    """
    from DocsToKG.core.clock import utc_iso
    from DocsToKG.Orchestrator.api.auth.tokens import TokenFile

    records = TokenFile(settings_of(ledger, config).tokens_path).list()
    if as_json:
        for record in records:
            typer.echo(json.dumps({k: v for k, v in asdict(record).items() if k != "digest"}))
        return
    print_columns(
        (r.token_id, r.name, ",".join(r.scopes), ",".join(r.tenants or (r.tenant or "-",)),
         "-" if r.expires_at is None else utc_iso(r.expires_at))
        for r in records
    )  # fmt: skip


@app.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `token list` shows it.")],
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Revoke a token; a running service refuses it within a second.

    Example: docstokg-orchestrator token revoke 4f1c09aa --ledger ./corpus
    """
    from DocsToKG.Orchestrator.api.auth.tokens import TokenFile

    if not TokenFile(settings_of(ledger, config).tokens_path).revoke(token_id):
        raise CommandFailed(f"there is no token {token_id[:64]}; `token list` shows them")


def _write_secret(path: Path, text: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}; name a new file") from None
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text + "\n")
