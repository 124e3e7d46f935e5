"""`queue cancel`: cancel jobs by number or by a filter.

A filter may match more than was meant, so the command shows how many jobs there are and the first of them, and asks.
Promises: a job that has ended stays as it ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption, with_groups
from DocsToKG.ContentDownload.cli.queue.jobs import JobArguments, jobs_are, say
from DocsToKG.ContentDownload.cli.queue.opening import find_jobs, job_state, open_queue
from DocsToKG.ContentDownload.cli.queue.selection import JobOptions
from DocsToKG.ContentDownload.cli.tables import printable
from DocsToKG.Orchestrator.cli.options import CommandFailed

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.cli.queue.selection import JobSelection
    from DocsToKG.ContentDownload.orchestrator.models import JobState
    from DocsToKG.Orchestrator.ledger.base import Ledger

PAGE = 1000
_SHOWN = 5


@with_groups
def cancel(
    *,
    jobs: JobArguments = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the history.")],
    state: Annotated[
        str | None, typer.Option("--state", "-s", help="All jobs in this state: queued, pending or in_progress.")
    ] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TEXT", help="Only jobs whose last error contains this.")
    ] = None,
    choice: JobOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Cancel the jobs of a choice without asking.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel jobs. A running job stops at its next heartbeat.

    Example: contentdownload queue cancel --host www.example.org --reason withdrawn -c corpus.yaml
    """
    by_choice = state is not None or error is not None or choice != JobOptions()
    if bool(jobs) == by_choice:
        raise typer.BadParameter("name the jobs, or choose them by --state, --host, --error, --since, --type, --tenant")
    if not reason.strip():
        raise typer.BadParameter("--reason needs words; they are kept in the history")
    chosen = choice.selection(states=_open_states(state), error=error) if by_choice else None
    with open_queue(config, must_exist=True) as queue:
        if chosen is not None:
            _confirm(queue.ledger, chosen, yes)
        found = chosen.jobs(queue.ledger, page=PAGE) if chosen else find_jobs(queue.ledger, jobs or ())
        canceled, over = _cancel_all(queue.ledger, (job.job_id for job in found), reason)
    text = f"{jobs_are(canceled)} canceled" + (f", {over} over already" if over else "")
    say({"canceled": canceled, "over_already": over}, text, as_json)


def _open_states(word: str | None) -> tuple[JobState, ...]:
    """The state that was named, or all that are not over."""
    from DocsToKG.Orchestrator.jobs.states import TERMINAL, JobState

    state = job_state(word)
    if state in TERMINAL:
        raise typer.BadParameter(f"jobs that are {state} are over; cancel queued, pending or in_progress ones")
    return tuple(one for one in JobState if one not in TERMINAL) if state is None else (state,)


def _confirm(ledger: Ledger, chosen: JobSelection, yes: bool) -> None:
    """Show which jobs would be canceled, and ask; without a terminal only `--yes` continues."""
    first: list[str] = []
    count = 0
    for job in chosen.jobs(ledger, page=PAGE) if not yes else ():
        count += 1
        if count <= _SHOWN:
            first.append(f"  {job.job_id}  {job.state.value}  {printable(job.artifact_id)[:100]}")
    if count == 0:
        return
    more = [f"  ... and {count - _SHOWN} more"] if count > _SHOWN else []
    typer.echo("\n".join([f"This cancels {count} job{'' if count == 1 else 's'}:", *first, *more]), err=True)
    if not is_person():
        raise typer.BadParameter("add --yes where nobody can answer; nothing was canceled")
    if not typer.confirm("Continue?", err=True):
        raise CommandFailed("nothing was canceled")


def is_person() -> bool:
    return sys.stdin.isatty()


def _cancel_all(ledger: Ledger, ids: Iterator[int], reason: str) -> tuple[int, int]:
    """How many were called off, and how many were over already."""
    from DocsToKG.Orchestrator.ledger.base import JobFilter

    canceled = found = 0
    while page := list(islice(ids, PAGE)):
        found += len(page)
        canceled += ledger.cancel_many(JobFilter(job_ids=page), reason)
    return canceled, found - canceled
