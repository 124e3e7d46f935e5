"""Queue commands on jobs: list, show, why, retry, cancel. A command parses, calls, prints.

Machine output (`--json`) goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.queue_open import find_job, find_jobs, job_state, open_queue, refuse
from DocsToKG.ContentDownload.cli.tables import print_table, printable, span_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.orchestrator.models import JobState
    from DocsToKG.Orchestrator.ledger.base import HistoryRow, JobRecord, Ledger

JobArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A job's number, or the work it stands for: 17, doi:10.1371/...")
]
JobArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Job numbers or works: 17, doi:10.1371/...", show_default=False),
]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Kept in the history.", show_default=False)]

_PAGE = 1000


def list_jobs(
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only jobs in this state.")] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="Only jobs that wait for this host, or name it.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Only jobs whose last error contains this.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only jobs changed since: 30m, 2h, 7d or 2026-01-31T12:00."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 100,
    after: Annotated[int, typer.Option("--after", min=0, help="Only numbers above this one: the next page.")] = 0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs by number.

    Example: contentdownload queue list --state error --reason timeout --since 2h -c corpus.yaml
    """
    from DocsToKG.ContentDownload.cli.queue_filter import JobFilter

    wanted = JobFilter.of(host=host, reason=reason, since=since, now=time.time())
    chosen = job_state(state)
    with open_queue(config, must_exist=True) as queue:
        found = list(islice((job for job in _jobs(queue.ledger, chosen, after) if wanted.fits(job)), limit))
    if as_json:
        for job in found:
            typer.echo(json.dumps(asdict(job)))
    else:
        now = time.time()
        print_table(("id", "state", "tries", "changed", "work", "note"), [_row(job, now) for job in found])
    if len(found) == limit:
        typer.echo(f"There may be more: --after {found[-1].job_id} shows the next page.", err=True)


def show(job: JobArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one job and what happened to it.

    Example: contentdownload queue show doi:10.1371/journal.pone.0262026 -c corpus.yaml
    """
    with open_queue(config, must_exist=True) as queue:
        record = find_job(queue.ledger, job)
        history = queue.ledger.history(record.job_id)
    if as_json:
        typer.echo(json.dumps({**asdict(record), "history": [asdict(row) for row in history]}))
        return
    print_table(("field", "value"), _fields(record))
    print_table(("time (UTC)", "after", "event", "state", "try", "by", "reason"), _timeline(history), title="History")


def why(job: JobArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Tell what keeps a job from running, and when it may.

    Example: contentdownload queue why 17 -c corpus.yaml
    """
    from DocsToKG.ContentDownload.cli.queue_why import facts, holder

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
    """Queue failed jobs again, with their attempts reset: all that ended in error, or the ones named.

    Example: contentdownload queue retry 17 doi:10.1371/journal.pone.0262026 -c corpus.yaml
    """
    with open_queue(config, must_exist=True) as queue:
        if not jobs:
            count, named = queue.ledger.retry_failed(reason=reason), 0
        else:
            ids = [record.job_id for record in find_jobs(queue.ledger, jobs)]
            count, named = queue.ledger.retry_failed(job_ids=ids, states=_not_obtained(), reason=reason), len(ids)
    _say({"retried": count}, f"{_jobs_are(count)} queued again", as_json)
    if count < named:
        typer.echo(f"{_jobs_are(named - count)} not failed or canceled; nothing to repeat.", err=True)


def cancel(
    jobs: JobArguments = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the history.", show_default=False)] = ...,  # type: ignore[assignment]
    state: Annotated[
        str | None, typer.Option("--state", "-s", help="All jobs in this state: queued, pending or in_progress.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before --state is obeyed.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call jobs off. A running one stops at its next heartbeat.

    Example: contentdownload queue cancel 17 18 --reason withdrawn -c corpus.yaml
    """
    if bool(jobs) == (state is not None):
        raise typer.BadParameter("name the jobs, or give --state for all in one state")
    if not reason.strip():
        raise typer.BadParameter("--reason needs words; they are kept in the history")
    chosen = _open_state(state)
    with open_queue(config, must_exist=True) as queue:
        if chosen is not None:
            _confirm(queue.ledger.stats()[chosen.value], chosen, yes)
        ids = _ids_in(queue.ledger, chosen) if chosen else (r.job_id for r in find_jobs(queue.ledger, jobs or ()))
        canceled, over = _cancel_all(queue.ledger, ids, reason)
    _say({"canceled": canceled, "over_already": over}, _canceled_text(canceled, over), as_json)


def _jobs(ledger: Ledger, state: JobState | None, after: int) -> Iterator[JobRecord]:
    """Jobs by number, page by page, so that a long queue is never held in memory."""
    while page := ledger.list_jobs(state, _PAGE, after):
        yield from page
        after = page[-1].job_id


def _row(job: JobRecord, now: float) -> tuple[str, ...]:
    note = job.last_error or job.outcome or job.stage or ""
    changed = f"{span_text(now - job.updated_at)} ago"
    return str(job.job_id), job.state.value, str(job.attempts), changed, job.artifact_id, note


def _fields(record: JobRecord) -> list[tuple[str, str]]:
    from DocsToKG.core.clock import utc_iso

    times = {name for name in type(record).__dataclass_fields__ if name.endswith(("_at", "_until"))}
    return [
        (name, utc_iso(value) if name in times else str(value))
        for name, value in asdict(record).items()
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


def _not_obtained() -> tuple[JobState, ...]:
    from DocsToKG.ContentDownload.orchestrator.models import JobState

    return JobState.ERROR, JobState.CANCELED, JobState.TIMED_OUT


def _open_state(word: str | None) -> JobState | None:
    from DocsToKG.Orchestrator.domain.states import TERMINAL

    state = job_state(word)
    if state in TERMINAL:
        raise typer.BadParameter(f"jobs that are {state} are over; cancel queued, pending or in_progress ones")
    return state


def _confirm(count: int, state: JobState, yes: bool) -> None:
    if yes or count == 0:
        return
    if not _is_person():
        raise typer.BadParameter(f"this calls off {count} jobs; say --yes where nobody can be asked")
    if not typer.confirm(f"Call off all {count} jobs that are {state}?", err=True):
        refuse("nothing was canceled")


def _is_person() -> bool:
    return sys.stdin.isatty()


def _ids_in(ledger: Ledger, state: JobState) -> Iterator[int]:
    return (job.job_id for job in _jobs(ledger, state, 0))


def _cancel_all(ledger: Ledger, ids: Iterable[int], reason: str) -> tuple[int, int]:
    """How many were called off, and how many were over already. Many at once share their writes to the disk."""
    from concurrent.futures import ThreadPoolExecutor

    waiting = iter(ids)
    answers: list[int] = [0, 0]
    with ThreadPoolExecutor(16) as pool:
        while some := list(islice(waiting, _PAGE)):
            for canceled in pool.map(lambda job_id: ledger.cancel(job_id, reason), some):
                answers[0 if canceled else 1] += 1
    return answers[0], answers[1]


def _canceled_text(canceled: int, over: int) -> str:
    return f"{_jobs_are(canceled)} canceled" + (f", {over} over already" if over else "")


def _jobs_are(count: int) -> str:
    return "1 job is" if count == 1 else f"{count} jobs are"


def _say(values: dict[str, Any], text: str, as_json: bool) -> None:
    typer.echo(json.dumps(values) if as_json else printable(text))
