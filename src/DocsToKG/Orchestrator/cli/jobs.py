"""Jobs of a ledger file from the command line: `status`, `history`, `jobs list`, `jobs show`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from DocsToKG.Orchestrator.cli.options import CommandFailed, JsonOption, print_columns

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

LedgerOption = Annotated[Path, typer.Option("--ledger", metavar="PATH", help="The ledger's SQLite file.")]
JobArgument = Annotated[int, typer.Argument(metavar="JOB_ID", help="The job's number.")]
app = typer.Typer(no_args_is_help=True, help="The jobs of a ledger.")


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


def history(job_id: JobArgument, ledger: LedgerOption, as_json: JsonOption = False) -> None:
    """Show the history of a job, oldest event first.

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


@app.command("list")
def list_jobs(
    ledger: LedgerOption,
    state: Annotated[str | None, typer.Option("--state", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of rows.")] = 100,
    after: Annotated[int, typer.Option("--after", min=0, help="Only ids above this one, for the next page.")] = 0,
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


@app.command("show")
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


@contextmanager
def _open(path: Path) -> Iterator[SqliteLedger]:
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

    # Reading must not make a ledger where there is none.
    if not path.is_file():
        raise CommandFailed(f"there is no ledger at {path}; check the path")
    with SqliteLedger(path, wal=None) as ledger:
        yield ledger
