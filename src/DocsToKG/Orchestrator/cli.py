"""Look into a ledger file from the command line: `docstokg-orchestrator`.

A command parses, calls, prints. Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

LedgerOption = Annotated[Path, typer.Option("--ledger", metavar="PATH", help="The ledger's SQLite file.")]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output.")]
JobArgument = Annotated[int, typer.Argument(metavar="JOB_ID")]

app = typer.Typer(no_args_is_help=True, help="The job ledger.", pretty_exceptions_enable=False)
jobs_app = typer.Typer(no_args_is_help=True, help="The jobs of a ledger.")
app.add_typer(jobs_app, name="jobs")


def main() -> None:
    app(prog_name="docstokg-orchestrator")


@app.callback()
def _root() -> None:
    """Read by the command line only."""


@app.command("status")
def status(ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show how many jobs are in each state, and whether leasing is paused."""
    with _open(ledger) as opened:
        counts, paused = opened.stats(), opened.is_paused()
    if as_json:
        typer.echo(json.dumps({**counts, "paused": paused}))
        return
    _print_columns([(name, str(n)) for name, n in counts.items() if name != "leased"])
    typer.echo("paused" if paused else "leasing")


@jobs_app.command("list")
def list_jobs(
    ledger: LedgerOption,
    state: Annotated[str | None, typer.Option("--state", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = 100,
    after: Annotated[int, typer.Option("--after", min=0, help="Only ids above this one: the next page.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """List jobs by id."""
    from DocsToKG.Orchestrator.domain.states import JobState

    if state is not None and state not in list(JobState):
        raise typer.BadParameter(f"{state!r} is no state; use one of {', '.join(JobState)}")
    with _open(ledger) as opened:
        records = opened.list_jobs(None if state is None else JobState(state), limit, after)
    if as_json:
        for record in records:
            typer.echo(json.dumps(asdict(record)))
        return
    _print_columns((str(r.job_id), r.state.value, str(r.attempts), r.artifact_id, r.last_error or "") for r in records)


@jobs_app.command("show")
def show(job_id: JobArgument, ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show one job."""
    with _open(ledger) as opened:
        record = asdict(opened.job(job_id))
    if as_json:
        typer.echo(json.dumps(record))
    else:
        _print_columns((name, str(value)) for name, value in record.items() if value is not None)


@app.command("history")
def history(job_id: JobArgument, ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show what happened to a job, first to last."""
    from DocsToKG.core.clock import utc_iso

    with _open(ledger) as opened:
        opened.job(job_id)
        rows = opened.history(job_id)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(asdict(row)))
    else:
        _print_columns((utc_iso(r.at), r.event, r.to_state or "-", r.actor, r.reason or "") for r in rows)


@contextmanager
def _open(path: Path) -> Iterator[SqliteLedger]:
    from DocsToKG.Orchestrator.errors import LedgerError
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

    # Looking must not make a ledger where there is none.
    if not path.is_file():
        typer.echo(f"Error: there is no ledger at {path}", err=True)
        raise typer.Exit(1)
    try:
        with SqliteLedger(path, wal=None) as ledger:
            yield ledger
    except LedgerError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None


def _print_columns(rows: Iterable[Sequence[str]]) -> None:
    lines = [[_printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _printable(text: str) -> str:
    # Errors may quote what a server sent; that must not steer the reader's terminal.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
