"""Commands on the persistent work queue. A command parses, calls, prints.

Machine output (`--json`) goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import CommandGroup
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.tables import print_table, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.cli.queue_lines import QueueLine
    from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue

ReasonOption = Annotated[str | None, typer.Option("--reason", help="Kept in the history.", show_default=False)]
JobArgument = Annotated[int, typer.Argument(metavar="JOB_ID", help="The number `queue list` shows.")]

_SHOWN_PROBLEMS = 20
_CHUNK = 1000

queue_app = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="The persistent work queue.")


@queue_app.command("enqueue")
def enqueue(
    artifact_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One work, by identifier.")] = None,
    body: Annotated[str | None, typer.Argument(metavar="[JSON]", help="What is known of it, as JSON.")] = None,
    input_file: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="FILE", help="A JSON object per line; - reads standard input."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add works to the queue: one by ID, or many from a file.

    Example: contentdownload queue enqueue -i works.jsonl -c corpus.yaml
    """
    if (artifact_id is None) == (input_file is None):
        raise typer.BadParameter("give either an ID (with an optional JSON body) or -i FILE")
    if input_file is not None:
        _import_file(input_file, config, as_json)
    else:
        _import_lines([_given_line(str(artifact_id), body)], config, as_json)


@queue_app.command("import")
def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A JSON object per line; - reads standard input.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add every work of a JSONL file.

    Example: contentdownload queue import works.jsonl -c corpus.yaml
    """
    _import_file(file, config, as_json)


@queue_app.command("stats")
def stats(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show how many jobs are in each state."""
    with _open_queue(config) as queue:
        counts, paused = queue.stats(), queue.ledger.is_paused()
    if as_json:
        typer.echo(json.dumps({**counts, "paused": paused}))
        return
    print_table(("state", "jobs"), [(state, str(n)) for state, n in counts.items() if state != "leased"])
    if paused:
        typer.echo("The queue is paused; `queue resume` goes on.", err=True)


@queue_app.command("list")
def list_jobs(
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 100,
    after: Annotated[int, typer.Option("--after", min=0, help="Only ids above this one: the next page.")] = 0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs by id."""
    with _open_queue(config) as queue:
        records = queue.ledger.list_jobs(_state(state), limit, after)
    if as_json:
        for record in records:
            typer.echo(json.dumps(asdict(record)))
        return
    rows = [
        (str(r.job_id), r.state.value, str(r.attempts), r.artifact_id, r.last_error or r.outcome or "") for r in records
    ]
    print_table(("id", "state", "attempts", "artifact", "note"), rows)


@queue_app.command("show")
def show(job_id: JobArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one job and what happened to it."""
    from DocsToKG.core.clock import utc_iso

    with _open_queue(config) as queue:
        record, history = queue.ledger.job(job_id), queue.ledger.history(job_id)
    if as_json:
        typer.echo(json.dumps({**asdict(record), "history": [asdict(row) for row in history]}))
        return
    print_table(("field", "value"), [(name, str(v)) for name, v in asdict(record).items() if v is not None])
    rows = [(utc_iso(r.at), r.event, r.to_state or "", r.actor, r.reason or "") for r in history]
    print_table(("time", "event", "state", "by", "reason"), rows)


@queue_app.command("retry")
@queue_app.command("retry-failed")
def retry_failed(
    jobs: Annotated[list[int] | None, typer.Argument(metavar="[JOB_ID]...", help="Only these; all by default.")] = None,
    reason: ReasonOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Queue failed jobs again, with their attempts reset."""
    with _open_queue(config) as queue:
        count = queue.ledger.retry_failed(job_ids=jobs or None, reason=reason)
    _say({"retried": count}, f"{count} jobs are queued again", as_json)


@queue_app.command("cancel")
def cancel(
    job_id: JobArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the history.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call a job off. A running one stops at its next heartbeat."""
    with _open_queue(config) as queue:
        canceled = queue.ledger.cancel(job_id, reason)
    _say({"canceled": canceled}, f"job {job_id} is {'canceled' if canceled else 'over already'}", as_json)


@queue_app.command("pause")
def pause(reason: ReasonOption = None, config: ConfigOption = None) -> None:
    """Start no further jobs, in any process, until `resume`. Running jobs go on."""
    with _open_queue(config) as queue:
        queue.ledger.pause(reason=reason)
    typer.echo("paused", err=True)


@queue_app.command("resume")
def resume(reason: ReasonOption = None, config: ConfigOption = None) -> None:
    """Let jobs start again."""
    with _open_queue(config) as queue:
        queue.ledger.resume(reason=reason)
    typer.echo("resumed", err=True)


@queue_app.command("run")
def run(
    config: ConfigOption = None,
    drain: Annotated[bool, typer.Option("--drain", help="Exit when nothing is left to do.")] = False,
) -> None:
    """Work on the queue until interrupted, or until it is empty with --drain.

    Example: contentdownload queue run --drain -c corpus.yaml
    """
    from DocsToKG.ContentDownload.config import load_config
    from DocsToKG.ContentDownload.runner import run_queue

    cfg = load_config(config)
    code = run_queue(cfg, drain=drain)
    _tell_what_is_left(config)
    raise typer.Exit(code)


@queue_app.command("drain")
def drain(config: ConfigOption = None) -> None:
    """Work on the queue until nothing is left to do."""
    run(config, drain=True)


@contextmanager
def _open_queue(config: str | None) -> Iterator[WorkQueue]:
    from DocsToKG.ContentDownload.config import load_config
    from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue

    cfg = load_config(config)
    with WorkQueue(
        cfg.queue.path, wal_mode=cfg.queue.wal_mode, max_attempts=cfg.orchestrator.max_job_attempts
    ) as queue:
        yield queue


def _import_file(file: str, config: str | None, as_json: bool) -> None:
    from DocsToKG.ContentDownload.cli.queue_lines import read_lines

    if file == "-":
        _import_lines(read_lines(sys.stdin.buffer), config, as_json)
        return
    with open(file, "rb") as stream:
        _import_lines(read_lines(stream), config, as_json)


def _import_lines(lines: Iterable[QueueLine], config: str | None, as_json: bool) -> None:
    """Enqueue what is usable and say what is not; anything unusable makes the command fail at its end."""
    from DocsToKG.ContentDownload.errors import InputError

    good = bad = new = 0
    with _open_queue(config) as queue:
        for chunk in _chunks(lines):
            usable = [line for line in chunk if line.artifact is not None]
            new += queue.bulk_import((ln.artifact_id, ln.artifact or {}, ln.resolver_hint) for ln in usable)
            good += len(usable)
            for line in chunk:
                if line.problem is not None:
                    bad += 1
                    if bad <= _SHOWN_PROBLEMS:
                        typer.echo(f"line {line.number}: {printable(line.problem)}", err=True)
    counts = {"new": new, "present": good - new, "invalid": bad}
    _say(counts, f"{new} new, {good - new} already present", as_json)
    if bad:
        raise InputError(f"{bad} {'line was' if bad == 1 else 'lines were'} not usable; the others are queued")


def _chunks(lines: Iterable[QueueLine]) -> Iterator[list[QueueLine]]:
    chunk: list[QueueLine] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) >= _CHUNK:
            yield chunk
            chunk = []
    yield chunk


def _given_line(artifact_id: str, body: str | None) -> QueueLine:
    from DocsToKG.ContentDownload.cli.queue_lines import QueueLine, named_work

    try:
        known = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise typer.BadParameter("the body must be a JSON object")
    return QueueLine(1, *named_work(artifact_id, known))


def _tell_what_is_left(config: str | None) -> None:
    with _open_queue(config) as queue:
        counts, paused = queue.stats(), queue.ledger.is_paused()
    waiting = counts["queued"] + counts["pending"]
    typer.echo(f"done {counts['done']}, skipped {counts['skipped']}, error {counts['error']}, left {waiting}", err=True)
    if paused and waiting:
        typer.echo(f"{waiting} jobs are held back by a pause; `queue resume` lets them start.", err=True)


def _state(word: str | None) -> Any:
    from DocsToKG.ContentDownload.orchestrator.models import JobState

    if word is None:
        return None
    try:
        return JobState("in_progress" if word == "leased" else word)
    except ValueError:
        raise typer.BadParameter(f"{word!r} is no state; use one of {', '.join(JobState)}") from None


def _say(values: Mapping[str, Any], text: str, as_json: bool) -> None:
    typer.echo(json.dumps(values) if as_json else text)
