"""Queue commands on jobs: list, show, why, retry. A command parses, calls, prints.

Machine output (`--json`) goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption, with_groups
from DocsToKG.ContentDownload.cli.queue.opening import find_job, find_jobs, job_state, open_queue
from DocsToKG.ContentDownload.cli.queue.selection import JobOptions
from DocsToKG.ContentDownload.cli.tables import print_table, printable, span_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.orchestrator.models import JobState
    from DocsToKG.Orchestrator.ledger.base import HistoryRow, JobRecord

JobArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A job's number, or the id of its work: 17, doi:10.1371/...")
]
JobArguments = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Job numbers or works: 17, doi:10.1371/...")
]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Kept in the history.")]

PAGE = 1000


@with_groups
def list_(
    *,
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only jobs in this state.")] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", "--error", metavar="TEXT", help="Only jobs whose last error contains this."),
    ] = None,
    jobs: JobOptions,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of jobs.")] = 100,
    after: Annotated[
        int, typer.Option("--after", min=0, help="Only job numbers above this one, for the next page.")
    ] = 0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs by number.

    Example: contentdownload queue list --state error --reason timeout --since 2h -c corpus.yaml
    """
    chosen = job_state(state)
    wanted = jobs.selection(states=() if chosen is None else (chosen,), error=reason)
    with open_queue(config, must_exist=True) as queue:
        found = list(islice(wanted.jobs(queue.ledger, after=after, page=PAGE), limit))
    if as_json:
        for job in found:
            typer.echo(json.dumps(_with_node(job)))
    else:
        _print_jobs(found, time.time())
    if len(found) == limit:
        typer.echo(f"There may be more: --after {found[-1].job_id} shows the next page.", err=True)


def show(job: JobArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one job and what happened to it.

    Example: contentdownload queue show doi:10.1371/journal.pone.0262026 -c corpus.yaml
    """
    with open_queue(config, must_exist=True) as queue:
        record = find_job(queue.ledger, job)
        history = queue.ledger.history(record.job_id)
    nodes = _nodes(history)
    if as_json:
        told = [{**asdict(row), "node": node} for row, node in zip(history, nodes, strict=True)]
        typer.echo(json.dumps({**_with_node(record), "history": told}))
        return
    print_table(("field", "value"), _fields(record))
    _print_history(history, nodes)


def why(job: JobArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Explain why a job does not run, and when it can.

    Example: contentdownload queue why 17 -c corpus.yaml
    """
    from DocsToKG.ContentDownload.cli.queue.why import facts, holder

    with open_queue(config, must_exist=True) as queue:
        record = find_job(queue.ledger, job)
        answer = queue.ledger.why(record.job_id)
        held_by = holder(queue.ledger.path, record)
    if as_json:
        typer.echo(json.dumps({**asdict(answer), "artifact_id": record.artifact_id, **asdict(held_by)}))
        return
    print_table(("", ""), facts(answer, record, held_by, now=time.time()))


def retry(
    jobs: JobArguments = None, reason: ReasonOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Queue failed jobs again with their attempts reset: all jobs in state error, or those that you name.

    Example: contentdownload queue retry 17 doi:10.1371/journal.pone.0262026 -c corpus.yaml
    """
    from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE

    with open_queue(config, must_exist=True) as queue:
        if not jobs:
            count, named = queue.ledger.retry_failed(job_type=DEFAULT_JOB_TYPE, reason=reason), 0
        else:
            ids = [record.job_id for record in find_jobs(queue.ledger, jobs)]
            count, named = queue.ledger.retry_failed(job_ids=ids, states=_not_obtained(), reason=reason), len(ids)
    say({"retried": count}, f"{jobs_are(count)} queued again", as_json)
    if count < named:
        typer.echo(f"{jobs_are(named - count)} not failed or canceled; nothing to repeat.", err=True)


def _print_jobs(found: Sequence[JobRecord], now: float) -> None:
    """The column of nodes is there where machines work together."""
    from DocsToKG.core.ids import node_of

    nodes = [node_of(job.worker_id) or "" for job in found]
    columns = ("id", "state", "tries", "changed", "work", "note", *(("node",) if any(nodes) else ()))
    rows = [(*_row(job, now), node) for job, node in zip(found, nodes, strict=True)]
    print_table(columns, [row[: len(columns)] for row in rows])


def _print_history(history: Sequence[HistoryRow], nodes: Sequence[str | None]) -> None:
    more = ("node",) if any(nodes) else ()
    columns = ("time (UTC)", "after", "event", "state", "try", "by", "reason", *more)
    rows = [(*row, node or "") for row, node in zip(_timeline(history), nodes, strict=True)]
    print_table(columns, [row[: len(columns)] for row in rows], title="History")


def _with_node(job: JobRecord) -> dict[str, Any]:
    from DocsToKG.core.ids import node_of

    return {**asdict(job), "node": node_of(job.worker_id)}


def _row(job: JobRecord, now: float) -> tuple[str, ...]:
    where = job.stage if job.worker_id is not None else None  # what went wrong before is not what it does now
    note = where or job.last_error or job.outcome or job.stage or ""
    changed = f"{span_text(now - job.updated_at)} ago"
    return str(job.job_id), job.state.value, str(job.attempts), changed, job.artifact_id, note


def _fields(record: JobRecord) -> list[tuple[str, str]]:
    from DocsToKG.core.clock import utc_iso

    times = {name for name in type(record).__dataclass_fields__ if name.endswith(("_at", "_until"))}
    return [
        (name, utc_iso(value) if name in times else str(value))
        for name, value in _with_node(record).items()
        if value is not None
    ]


def _timeline(history: Sequence[HistoryRow]) -> Iterator[tuple[str, ...]]:
    from DocsToKG.core.clock import utc_iso

    before = history[0].at if history else 0.0
    for row in history:
        tries = "" if row.attempts is None else str(row.attempts)
        after = span_text(row.at - before)
        when = utc_iso(row.at)[:19].replace("T", " ")
        yield when, after, row.event, row.to_state or "", tries, row.actor, row.reason or ""
        before = row.at


def _nodes(history: Sequence[HistoryRow]) -> list[str | None]:
    """The node of each event: what is said under a lease is said by the one that took it."""
    from DocsToKG.core.ids import node_of

    owners = {row.fence: row.actor for row in history if row.event == "leased"}
    return [node_of(owners.get(row.fence, row.actor)) for row in history]


def _not_obtained() -> tuple[JobState, ...]:
    from DocsToKG.ContentDownload.orchestrator.models import JobState

    return JobState.ERROR, JobState.CANCELED, JobState.TIMED_OUT


def jobs_are(count: int) -> str:
    return "1 job is" if count == 1 else f"{count} jobs are"


def say(values: dict[str, Any], text: str, as_json: bool) -> None:
    typer.echo(json.dumps(values) if as_json else printable(text))
