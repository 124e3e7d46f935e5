"""Commands that work on the queue: run and drain. A command parses, calls, prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.observing import (
    LogFile,
    LogFormOption,
    LogLevelOption,
    MetricsFile,
    MetricsPort,
    observed,
    tell_address,
)
from DocsToKG.ContentDownload.cli.options import ConfigOption, Processes
from DocsToKG.ContentDownload.cli.queue_open import open_queue
from DocsToKG.ContentDownload.cli.stopping import heeding


def _checked(name: str | None) -> str | None:
    from pydantic import ValidationError

    from DocsToKG.ContentDownload.config.models import QueueConfig

    try:
        QueueConfig(node_id=name)
    except ValidationError:
        raise typer.BadParameter("use at most 63 letters, digits, dots, dashes and underscores") from None
    return name


NodeOption = Annotated[
    str | None,
    typer.Option(
        "--node-id",
        metavar="NAME",
        help="Name of this machine in the queue and its history.",
        show_default=False,
        callback=_checked,
    ),
]


ServiceOption = Annotated[
    str | None,
    typer.Option(
        "--orchestrator",
        metavar="URL",
        help="Take the work from this service, with no database of its own.",
        show_default=False,
    ),
]
TokenOption = Annotated[
    str | None, typer.Option("--token-file", metavar="FILE", help="The token for --orchestrator.", show_default=False)
]


def run(
    config: ConfigOption = None,
    drain: Annotated[bool, typer.Option("--drain", help="Exit when nothing is left to do.")] = False,
    processes: Processes = None,
    node_id: NodeOption = None,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    log_level: LogLevelOption = None,
    log_format: LogFormOption = None,
    log_file: LogFile = None,
    orchestrator: ServiceOption = None,
    token_file: TokenOption = None,
) -> None:
    """Work on the queue until interrupted, or until it is empty with --drain.

    Ctrl+C or SIGTERM lets running jobs finish for orchestrator.drain_seconds and gives the rest back at once, so that
    other machines go on with it; a second one ends at once.

    Example: contentdownload queue run --drain --processes 4 -c corpus.yaml
    """
    from DocsToKG.ContentDownload.config import load_config
    from DocsToKG.ContentDownload.runner import run_queue
    from DocsToKG.core.process import ours_alone

    settings: dict[str, Any] = {} if processes is None else {"orchestrator": {"processes": processes}}
    queue = {"node_id": node_id, "orchestrator_url": orchestrator, "token_file": token_file}
    if given := {name: value for name, value in queue.items() if value is not None}:
        settings["queue"] = given
    settings = observed(settings, metrics_port, metrics_file, log_level, log_format, log_file)
    cfg = load_config(config, settings)
    with ours_alone(), heeding(leave_if_asked_again):
        file = None if config is None else str(Path(config).resolve())
        code = run_queue(cfg, drain=drain, on_start=tell_address, config_file=file)
    _tell_what_is_left(config, settings)
    raise typer.Exit(code)


def drain(
    config: ConfigOption = None,
    processes: Processes = None,
    node_id: NodeOption = None,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    log_level: LogLevelOption = None,
    log_format: LogFormOption = None,
    log_file: LogFile = None,
    orchestrator: ServiceOption = None,
    token_file: TokenOption = None,
) -> None:
    """Work on the queue until nothing is left to do.

    Example: contentdownload queue drain -c corpus.yaml
    """
    run(
        config, True, processes, node_id, metrics_port, metrics_file, log_level, log_format, log_file, orchestrator,
        token_file,
    )  # fmt: skip


def leave_if_asked_again(times: int) -> None:
    """As if killed: what was held is freed by whoever comes next, and processes that worked for this one end by
    themselves."""
    if times > 1:
        os.write(2, b"Left at once. Nothing that was stored is lost; the same command goes on.\n")
        os._exit(ExitCode.INTERRUPTED)
    os.write(2, b"Stopping: running jobs may finish, the rest is given back.\n")


def _tell_what_is_left(config: str | None, settings: dict[str, Any]) -> None:
    with open_queue(config, changes=settings) as queue:
        counts, paused = queue.stats(), queue.ledger.is_paused()
    waiting = counts["queued"] + counts["pending"]
    typer.echo(f"done {counts['done']}, skipped {counts['skipped']}, error {counts['error']}, left {waiting}", err=True)
    if paused and waiting:
        typer.echo(f"{waiting} jobs are held back by a pause; `queue resume` lets them start.", err=True)
