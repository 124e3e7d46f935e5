"""Commands on the persistent work queue. A command parses, calls, prints.

Machine output (`--json`) goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json

import typer

from DocsToKG.ContentDownload.cli import queue_cancel, queue_import, queue_jobs, queue_stats
from DocsToKG.ContentDownload.cli.group import CommandGroup
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.queue_jobs import ReasonOption
from DocsToKG.ContentDownload.cli.queue_open import open_queue

queue_app = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="The persistent work queue.")
queue_app.command("enqueue")(queue_import.enqueue)
queue_app.command("import")(queue_import.import_file)
queue_app.command("stats")(queue_stats.stats)
queue_app.command("list")(queue_jobs.list_jobs)
queue_app.command("show")(queue_jobs.show)
queue_app.command("why")(queue_jobs.why)
queue_app.command("retry")(queue_jobs.retry)
queue_app.command("retry-failed")(queue_jobs.retry)
queue_app.command("cancel")(queue_cancel.cancel)


@queue_app.command("pause")
def pause(reason: ReasonOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Start no further jobs, in any process, until `resume`. Running jobs go on.

    Example: contentdownload queue pause --reason 'the disk is being replaced' -c corpus.yaml
    """
    with open_queue(config) as queue:
        queue.ledger.pause(reason=reason)
    _say_paused(True, as_json)


@queue_app.command("resume")
def resume(reason: ReasonOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Let jobs start again.

    Example: contentdownload queue resume -c corpus.yaml
    """
    with open_queue(config) as queue:
        queue.ledger.resume(reason=reason)
    _say_paused(False, as_json)


def _say_paused(paused: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"paused": paused}))
    else:
        typer.echo("paused" if paused else "resumed", err=True)
