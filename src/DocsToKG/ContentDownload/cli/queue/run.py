"""`queue run` and `drain` work on the queue; `pause` and `resume` stop and start that, in every process."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.launch import print_metrics_address, stop_signals
from DocsToKG.ContentDownload.cli.options import (
    ConfigOption,
    JsonOption,
    ObservabilityOptions,
    Processes,
    given,
    with_groups,
)
from DocsToKG.ContentDownload.cli.queue.jobs import ReasonOption
from DocsToKG.ContentDownload.cli.queue.opening import open_queue


def _checked(name: str | None) -> str | None:
    from pydantic import ValidationError

    from DocsToKG.ContentDownload.config.models import QueueConfig

    try:
        QueueConfig(node_id=name)
    except ValidationError:
        raise typer.BadParameter("use at most 63 letters, digits, dots, dashes and underscores") from None
    return name


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Who works on the queue, and where the work comes from."""

    processes: Processes = None
    node_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of this machine in the queue and its history.", callback=_checked),
    ] = None
    orchestrator: Annotated[
        str | None, typer.Option(metavar="URL", help="Take the work from this service, with no database of its own.")
    ] = None
    token_file: Annotated[str | None, typer.Option(metavar="FILE", help="The token for --orchestrator.")] = None

    def settings(self) -> dict[str, Any]:
        queue = {"node_id": self.node_id, "orchestrator_url": self.orchestrator, "token_file": self.token_file}
        return given({"orchestrator": {"processes": self.processes}, "queue": queue})


@with_groups
def run(
    *,
    config: ConfigOption = None,
    drain: Annotated[bool, typer.Option("--drain", help="Exit when nothing is left to do.")] = False,
    worker: WorkerOptions,
    observability: ObservabilityOptions,
) -> None:
    """Work on the queue until interrupted, or until it is empty with --drain.

    After Ctrl+C or SIGTERM, running jobs may finish within orchestrator.drain_seconds, and the other jobs go back to
    the queue for other machines. A second signal ends the command immediately.

    Example: contentdownload queue run --drain --processes 4 -c corpus.yaml
    """
    _work(config, drain, worker, observability)


@with_groups
def drain(*, config: ConfigOption = None, worker: WorkerOptions, observability: ObservabilityOptions) -> None:
    """Work on the queue until nothing is left to do.

    Example: contentdownload queue drain -c corpus.yaml
    """
    _work(config, True, worker, observability)


def _work(config: str | None, drain: bool, worker: WorkerOptions, observability: ObservabilityOptions) -> NoReturn:
    from DocsToKG.ContentDownload.config import load_config
    from DocsToKG.ContentDownload.runner import run_queue
    from DocsToKG.core.process import ours_alone

    settings = worker.settings() | observability.settings()
    cfg = load_config(config, settings)
    with ours_alone(), stop_signals(leave_if_asked_again):
        file = None if config is None else str(Path(config).resolve())
        code = run_queue(cfg, drain=drain, on_start=print_metrics_address, config_file=file)
    _tell_what_is_left(config, settings)
    raise typer.Exit(code)


def pause(reason: ReasonOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Start no further jobs, in any process, until `resume`. Running jobs continue.

    Example: contentdownload queue pause --reason 'the disk is being replaced' -c corpus.yaml
    """
    with open_queue(config) as queue:
        queue.ledger.pause(reason=reason)
    typer.echo(json.dumps({"paused": True}) if as_json else "paused", err=not as_json)


def resume(reason: ReasonOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Let jobs start again.

    Example: contentdownload queue resume -c corpus.yaml
    """
    with open_queue(config) as queue:
        queue.ledger.resume(reason=reason)
    typer.echo(json.dumps({"paused": False}) if as_json else "resumed", err=not as_json)


def leave_if_asked_again(times: int) -> None:
    """Exit as if killed: the next process frees the leases, and the worker processes end by themselves."""
    if times > 1:
        os.write(2, b"Stopped at once. Nothing that was stored is lost; the same command continues.\n")
        os._exit(ExitCode.INTERRUPTED)
    os.write(2, b"Stopping: running jobs may finish, the others go back to the queue.\n")


def _tell_what_is_left(config: str | None, settings: dict[str, Any]) -> None:
    with open_queue(config, changes=settings) as queue:
        counts, paused = queue.stats(), queue.ledger.is_paused()
    waiting = counts["queued"] + counts["pending"]
    typer.echo(f"done {counts['done']}, skipped {counts['skipped']}, error {counts['error']}, left {waiting}", err=True)
    if paused and waiting:
        typer.echo(f"{waiting} jobs wait because the queue is paused; `queue resume` lets them start.", err=True)
