"""Events from the command line: `docstokg-orchestrator events`. A command parses, calls, prints."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.Orchestrator.cli.options import (
    JsonOption,
    ServedOption,
    ServerFile,
    ledger_of,
    print_columns,
    settings_of,
)

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.events.outbox import Outbox, TargetStatus, Waiting
    from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
    from DocsToKG.Orchestrator.settings import ServerSettings

app = typer.Typer(no_args_is_help=True, help="Events for other systems: sent, waiting and refused ones.")
TargetOption = Annotated[str | None, typer.Option("--target", metavar="NAME", help="Only those for this target.")]


@app.command("run")
def run(
    ledger: ServedOption = None,
    config: ServerFile = None,
    once: Annotated[bool, typer.Option("--once", help="Send the events that are due, then exit.")] = False,
) -> None:
    """Send events to the targets of the settings until interrupted. `serve` does the same.

    Of several that run, one sends; another takes over when it ends.

    Example: docstokg-orchestrator events run -c server.yaml
    """
    from DocsToKG.Orchestrator import bootstrap

    with _opened(ledger, config) as (settings, opened):
        notifier = bootstrap.notifier_of(settings, opened)
        if notifier is None:
            raise typer.BadParameter("no target: name one under events.targets in the settings (--config FILE)")
        if once:
            typer.echo(f"{notifier.run_once()} sent")
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with notifier.running():
            typer.echo("carrying events", err=True)
            stop.wait()


@app.command("status")
def status(ledger: ServedOption = None, config: ServerFile = None, as_json: JsonOption = False) -> None:
    """Show every target: how many events wait for it, how many are dead, and what was sent last.

    Example: docstokg-orchestrator events status --ledger state/workqueue.sqlite
    """
    with _outbox(ledger, config) as outbox:
        statuses = outbox.statuses()
    if as_json:
        typer.echo(json.dumps([_status(status) for status in statuses]))
    elif not statuses:
        typer.echo("No target: no event is recorded or sent.")
    else:
        heads = ("target", "kind", "tenant", "waiting", "oldest", "dead", "sent", "last sent", "failures", "last error")
        print_columns([heads, *(_line(status) for status in statuses)])


@app.command("list")
def list_events(
    ledger: ServedOption = None,
    config: ServerFile = None,
    target: TargetOption = None,
    dead: Annotated[bool, typer.Option("--dead", help="Dead events instead of waiting ones.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of rows.")] = 100,
    after: Annotated[int, typer.Option("--after", min=0, help="Only numbers above this one, for the next page.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """List events that were not delivered yet, oldest first.

    Example: docstokg-orchestrator events list --dead --target crm
    """
    from DocsToKG.core.clock import utc_iso

    with _outbox(ledger, config) as outbox:
        rows = outbox.list(target, dead=dead, limit=limit, after=after)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(_event(row)))
        return
    print_columns(
        (str(row.outbox_id), row.target, row.event_type, row.row.tenant, str(row.row.job_id or "-"),
         utc_iso(row.row.at), str(row.tries), row.last_error or "")
        for row in rows
    )  # fmt: skip


@app.command("retry")
def retry(
    number: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]...", help="From `events list --dead`.")
    ] = None,
    target: TargetOption = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Send dead events again: those that you name, those of a target, or all. Later events were sent already.

    Example: docstokg-orchestrator events retry --target crm
    """
    with _outbox(ledger, config) as outbox:
        typer.echo(f"{outbox.retry(target, number or ())} wait again")


@app.command("forget")
def forget(
    name: Annotated[str, typer.Argument(metavar="TARGET", help="Its name, as `events status` shows it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Delete waiting events without asking.")] = False,
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Stop recording events for a target and delete those that wait for it. Remove it from the settings first.

    Example: docstokg-orchestrator events forget crm --yes
    """
    with _outbox(ledger, config) as outbox:
        left = sum(status.waiting + status.dead for status in outbox.statuses() if status.name == name)
        if left and not yes and not typer.confirm(f"Delete {left} events that {name} has not received?"):
            raise typer.Exit(1)
        typer.echo(f"{outbox.forget(name)} dropped")


@contextmanager
def _opened(ledger: str | None, config: Path | None) -> Iterator[tuple[ServerSettings, DatabaseLedger]]:
    settings = settings_of(ledger, config)
    with ledger_of(settings) as opened:
        yield settings, opened


@contextmanager
def _outbox(ledger: str | None, config: Path | None) -> Iterator[Outbox]:
    from DocsToKG.Orchestrator.events.outbox import Outbox

    with _opened(ledger, config) as (_, opened):
        yield Outbox(opened)


def _status(status: TargetStatus) -> dict[str, Any]:
    return {
        "target": status.name,
        "kind": status.kind,
        "tenant": status.tenant,
        "types": (status.types or "").strip(",").split(",") if status.types else [],
        "waiting": status.waiting,
        "oldest": _moment(status.oldest_at),
        "dead": status.dead,
        "sent": status.sent,
        "last_sent": _moment(status.last_sent_at),
        "failures": status.failures,
        "next_try": _moment(status.next_at) if status.failures else None,
        "last_error": status.last_error,
    }


def _line(status: TargetStatus) -> list[str]:
    found = _status(status)
    names = ("target", "kind", "tenant", "waiting", "oldest", "dead", "sent", "last_sent", "failures", "last_error")
    return ["-" if found[name] is None else str(found[name]) for name in names]


def _event(waiting: Waiting) -> dict[str, Any]:
    row = waiting.row
    return {
        "number": waiting.outbox_id,
        "target": waiting.target,
        "event_type": waiting.event_type,
        "tenant": row.tenant,
        "job_id": row.job_id,
        "occurred": _moment(round(row.at * 1000)),
        "tries": waiting.tries,
        "next_try": _moment(waiting.next_at) if waiting.next_at and waiting.dead_at is None else None,
        "dead": _moment(waiting.dead_at),
        "last_error": waiting.last_error,
    }


def _moment(at_ms: int | None) -> str | None:
    from DocsToKG.core.clock import utc_iso

    return None if at_ms is None else utc_iso(at_ms / 1000)
