"""The command line `content`, also installed as `contentdownload`: every command, by its noun.

A command lives in the module of its noun, and imports what it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from DocsToKG.ContentDownload.cli import (
    audit,
    cache,
    config,
    demo,
    doctor,
    index,
    plan,
    pull,
    report,
    sandbox,
    takedown,
)
from DocsToKG.ContentDownload.cli.catalog import attest, export, files, unproved, works
from DocsToKG.ContentDownload.cli.group import EXIT_CODES_HELP, CommandGroup
from DocsToKG.ContentDownload.cli.queue import cancel, imports, jobs, stats
from DocsToKG.ContentDownload.cli.queue import run as queue
from DocsToKG.Orchestrator.cli.options import root_options

Command = Callable[..., None]

HELP = (
    "Download open research papers: give identifiers, get verified files.\n\n"
    "Start here: content demo. Then: content pull 10.1371/journal.pone.0262026 --out corpus. "
    "contentdownload is the same program."
)


def _name(command: Command) -> str:
    """Of a function: `replay_check` is `replay-check`, and `list_` is `list`."""
    return command.__name__.rstrip("_").replace("_", "-")


def _group(
    name: str, commands: Sequence[Command], help_text: str, cls: type[CommandGroup] = CommandGroup
) -> typer.Typer:
    group = typer.Typer(cls=cls, no_args_is_help=True, rich_markup_mode=None, help=help_text)
    for command in commands:
        group.command(_name(command))(command)
    app.add_typer(group, name=name)
    return group


app = typer.Typer(
    name="content",
    cls=CommandGroup,
    no_args_is_help=True,
    epilog=EXIT_CODES_HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the decorated one takes longer than everything else together
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(help=HELP)(root_options)
for _command in (pull.pull, pull.resume, plan.plan, report.report):
    app.command(_name(_command))(_command)
catalog_app = _group(
    "catalog",
    [
        *(works.stats, works.query, works.show, works.where),
        *(files.verify, files.gc, files.dedup_report, unproved.unproved, export.export, attest.attest),
    ],
    "Inspect, check and export what was downloaded.",
)
_group("audit", [audit.manifest, audit.replay_check], "Prove that a run can be repeated.")
_group(
    "takedown",
    [takedown.add, takedown.list_, takedown.undo],
    "Remove a work for good: content takedown ID --reason TEXT",
    takedown.TakedownGroup,
)
_group(
    "index",
    [index.build, index.update, index.info, index.lookup, index.export, index.verify],
    "Look up open copies of millions of works offline, in an index built from public snapshots.\n\n"
    "Needs the extra: pip install 'docstokg[bulk]'. Start here: content index build DIR --openalex works/",
)
queue_app = _group(
    "queue",
    [
        *(imports.enqueue, imports.import_, stats.stats, jobs.list_, jobs.show, jobs.why, jobs.retry),
        *(cancel.cancel, queue.pause, queue.resume, queue.run, queue.drain),
    ],
    "The persistent work queue.",
)
queue_app.command("retry-failed")(jobs.retry)
_group("cache", [cache.stats, cache.clear], "Inspect and empty the HTTP cache.")
_group(
    "config",
    [config.set_, config.get, config.path, config.show, config.validate, config.schema, config.explain],
    "Show, check and change settings.",
)
for _command in (doctor.doctor, demo.demo, sandbox.sandbox):
    app.command(_name(_command))(_command)
# Short names, for operators.
app.command("run")(pull.run)
app.command("print-config")(config.show)
app.command("validate-config")(config.validate)
app.command("explain")(config.explain)
app.command("schema")(config.schema)
