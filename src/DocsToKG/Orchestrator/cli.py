"""Look into a ledger, and serve it over HTTP, from the command line: `docstokg-orchestrator`.

A command parses, calls, prints. Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from DocsToKG.core.streams import nobody_has_to_read
from DocsToKG.Orchestrator import cli_audit, cli_events, cli_keys
from DocsToKG.Orchestrator.command_line import (
    CommandFailed,
    CommandGroup,
    JsonOption,
    ServedOption,
    ServerFile,
    print_columns,
    settings_of,
)

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

LedgerOption = Annotated[Path, typer.Option("--ledger", metavar="PATH", help="The ledger's SQLite file.")]
JobArgument = Annotated[int, typer.Argument(metavar="JOB_ID", help="The job's number.")]

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="The job ledger. Start here: docstokg-orchestrator serve. Then: docs/howto/serve-the-ledger.md",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
jobs_app = typer.Typer(no_args_is_help=True, help="The jobs of a ledger.")
app.add_typer(jobs_app, name="jobs")
token_app = typer.Typer(no_args_is_help=True, help="Tokens that the service takes.")
app.add_typer(token_app, name="token")
app.add_typer(cli_events.app, name="events")
cli_audit.app.add_typer(cli_keys.app, name="keys")
app.add_typer(cli_audit.app, name="audit")


def _version(asked: bool) -> None:
    if asked:
        from DocsToKG.core.product import product_version

        typer.echo(f"DocsToKG Orchestrator {product_version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Read by `CommandGroup`."""


@app.command("status")
def status(ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show how many jobs are in each state, and whether leasing is paused.

    Example: docstokg-orchestrator status --ledger papers/state/ledger.sqlite
    """
    with _open(ledger) as opened:
        counts, paused = opened.stats(), opened.is_paused()
    if as_json:
        typer.echo(json.dumps({**counts, "paused": paused}))
        return
    print_columns([(name, str(n)) for name, n in counts.items() if name != "leased"])
    typer.echo("paused" if paused else "leasing")


@jobs_app.command("list")
def list_jobs(
    ledger: LedgerOption,
    state: Annotated[str | None, typer.Option("--state", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 100,
    after: Annotated[int, typer.Option("--after", min=0, help="Only ids above this one: the next page.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """List jobs by id.

    Example: docstokg-orchestrator jobs list --ledger papers/state/ledger.sqlite --state error
    """
    from DocsToKG.Orchestrator.jobs.states import JobState

    if state is not None and state not in list(JobState):
        raise typer.BadParameter(f"{state!r} is no state; use one of {', '.join(JobState)}")
    with _open(ledger) as opened:
        records = opened.list_jobs(None if state is None else JobState(state), limit, after)
    if as_json:
        for record in records:
            typer.echo(json.dumps(asdict(record)))
        return
    print_columns((str(r.job_id), r.state.value, str(r.attempts), r.artifact_id, r.last_error or "") for r in records)


@jobs_app.command("show")
def show(job_id: JobArgument, ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show one job.

    Example: docstokg-orchestrator jobs show 17 --ledger papers/state/ledger.sqlite
    """
    with _open(ledger) as opened:
        record = asdict(opened.job(job_id))
    if as_json:
        typer.echo(json.dumps(record))
    else:
        print_columns((name, str(value)) for name, value in record.items() if value is not None)


@app.command("history")
def history(job_id: JobArgument, ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show what happened to a job, first to last.

    Example: docstokg-orchestrator history 17 --ledger papers/state/ledger.sqlite
    """
    from DocsToKG.core.clock import utc_iso

    with _open(ledger) as opened:
        opened.job(job_id)
        rows = opened.history(job_id)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(asdict(row)))
    else:
        print_columns((utc_iso(r.at), r.event, r.to_state or "-", r.actor, r.reason or "") for r in rows)


@app.command("serve")
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
    """Serve the ledger over HTTP until interrupted, and let running requests end.

    With no settings it opens the queue of this folder, or what a pull keeps here, on this machine only, and prints a
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


@app.command("call")
def call(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT or DELETE.")],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="As docs/reference/http-api.md has it, like /jobs/7/why.")
    ],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", envvar="DOCSTOKG_ORCHESTRATOR", help="Where the service is.")
    ] = "http://127.0.0.1:8470",
    body: Annotated[str | None, typer.Option("--body", metavar="JSON", help="What to say.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept in the history.")] = None,
    ticket: Annotated[str | None, typer.Option("--ticket", help="The ticket that it goes by.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="For a token of several tenants.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="File with the token.", show_default="the variable DOCSTOKG_TOKEN"
        ),
    ] = None,
) -> None:
    """Ask a running service one thing of its API, and print the answer as JSON.

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
        answer = calls.ask(method.upper(), path, said or None)
    typer.echo(json.dumps(answer, indent=2))


def _json_object(body: str | None) -> dict[str, Any]:
    try:
        value = json.loads(body or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CommandFailed('--body must be a JSON object, like \'{"note": "checked"}\'')
    return value


@token_app.command("new")
def token_new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will hold it; stands in the history.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            help="orch:read, orch:operate, orch:quota, orch:backfill; may be repeated.",
            show_default="orch:read",
        ),
    ] = None,
    tenant: Annotated[list[str] | None, typer.Option("--tenant", help="The first is its home; * means all.")] = None,
    hours: Annotated[float | None, typer.Option("--hours", min=0.01, help="How long it is good.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write it to this new file instead of printing it.")] = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Make a token and show it once.

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


@token_app.command("list")
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


@token_app.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `token list` shows it.")],
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Take a token back; a running service refuses it within a second.

    Example: docstokg-orchestrator token revoke 4f1c09aa --ledger ./corpus
    """
    from DocsToKG.Orchestrator.api.auth.tokens import TokenFile

    if not TokenFile(settings_of(ledger, config).tokens_path).take_back(token_id):
        raise CommandFailed(f"there is no token {token_id[:64]}; `token list` shows them")


def _write_secret(path: Path, text: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}; name a new file") from None
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text + "\n")


@contextmanager
def _open(path: Path) -> Iterator[SqliteLedger]:
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

    # Reading must not make a ledger where there is none.
    if not path.is_file():
        raise CommandFailed(f"there is no ledger at {path}; check the path")
    with SqliteLedger(path, wal=None) as ledger:
        yield ledger
