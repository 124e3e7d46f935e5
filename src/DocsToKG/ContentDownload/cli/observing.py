"""Options that show what a run does while it works: figures for Prometheus, and the log."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.runner import DownloadRun


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    OFF = "off"


class LogForm(StrEnum):
    AUTO = "auto"
    HUMAN = "human"
    JSON = "json"


MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=0,
        max=65_535,
        metavar="PORT",
        help="Serve the figures of the run at http://127.0.0.1:PORT/metrics; 0 takes a free port and names it.",
        show_default=False,
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file", metavar="FILE", help="Keep the figures in a file for node_exporter.", show_default=False
    ),
]
LogLevelOption = Annotated[
    LogLevel | None, typer.Option("--log-level", help="Least level that is logged.", show_default=False)
]
LogFormOption = Annotated[
    LogForm | None,
    typer.Option(
        "--log-format", help="auto: for people on a terminal, lines of JSON everywhere else.", show_default=False
    ),
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log-file",
        metavar="FILE",
        help="Append the log to a file; folders that are missing are made.",
        show_default=False,
    ),
]


def observed(
    settings: Mapping[str, Any],
    port: int | None,
    file: Path | None,
    level: LogLevel | None,
    form: LogForm | None,
    log_file: Path | None,
) -> dict[str, Any]:
    """The settings of a command with these options. They are for this once, so `resume` does not know of them. A log
    that is given a file or a form is wanted, also where it is off by default."""
    from DocsToKG.ContentDownload.config.settle import merge

    if level is None and (form is not None or log_file is not None):
        level = LogLevel.INFO
    given = {
        "metrics_port": port,
        "metrics_file": None if file is None else str(file.expanduser().resolve()),
        "log_level": None if level is None else level.value,
        "log_format": None if form is None else form.value,
        "log_file": None if log_file is None else str(log_file.expanduser().resolve()),
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return merge(settings, {"telemetry": chosen}) if chosen else dict(settings)


def tell_address(run: DownloadRun) -> None:
    """Say where the figures are."""
    if run.metrics_address is not None:
        typer.echo(f"Figures of this run: {run.metrics_address}", err=True)
