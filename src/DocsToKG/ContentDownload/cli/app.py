"""The command line `content`, also installed as `contentdownload`: every command, by its noun.

A command lives in the module of its noun, and imports what it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

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

Commands = Mapping[str, Callable[..., None]]

HELP = (
    "Download open research papers: give identifiers, get verified files.\n\n"
    "Start here: content demo. Then: content pull 10.1371/journal.pone.0262026 --out corpus. "
    "contentdownload is the same program."
)


def _version(is_wanted: bool) -> None:
    if is_wanted:
        from DocsToKG.core.product import product_version

        typer.echo(f"DocsToKG ContentDownload {product_version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Read by `CommandGroup`."""


def _group(name: str, commands: Commands, help_text: str, cls: type[CommandGroup] = CommandGroup) -> typer.Typer:
    group = typer.Typer(cls=cls, no_args_is_help=True, rich_markup_mode=None, help=help_text)
    for word, command in commands.items():
        group.command(word)(command)
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
app.callback(help=HELP)(_options)
app.command("pull")(pull.pull)
app.command("resume")(pull.resume)
app.command("plan")(plan.plan)
app.command("report")(report.report)
catalog_app = _group(
    "catalog",
    {
        "stats": works.stats,
        "query": works.query,
        "show": works.show,
        "where": works.where,
        "verify": files.verify,
        "gc": files.gc,
        "dedup-report": files.dedup_report,
        "unproved": unproved.unproved,
        "export": export.export,
        "attest": attest.attest,
    },
    "Inspect, check and export what was downloaded.",
)
_group(
    "audit",
    {"manifest": audit.manifest, "replay-check": audit.replay_check},
    "Prove that a run can be repeated.",
)
_group(
    "takedown",
    {"add": takedown.add, "list": takedown.list_takedowns, "undo": takedown.undo},
    "Remove a work for good: content takedown ID --reason TEXT",
    takedown.TakedownGroup,
)
_group(
    "index",
    {
        "build": index.build,
        "update": index.update,
        "info": index.info,
        "lookup": index.lookup,
        "export": index.export,
        "verify": index.verify,
    },
    "Look up open copies of millions of works offline, in an index built from public snapshots.\n\n"
    "Needs the extra: pip install 'docstokg[bulk]'. Start here: content index build DIR --openalex works/",
)
queue_app = _group(
    "queue",
    {
        "enqueue": imports.enqueue,
        "import": imports.import_file,
        "stats": stats.stats,
        "list": jobs.list_jobs,
        "show": jobs.show,
        "why": jobs.why,
        "retry": jobs.retry,
        "retry-failed": jobs.retry,
        "cancel": cancel.cancel,
        "pause": queue.pause,
        "resume": queue.resume,
        "run": queue.run,
        "drain": queue.drain,
    },
    "The persistent work queue.",
)
_group(
    "cache",
    {"stats": cache.stats, "clear": cache.clear},
    "Inspect and empty the HTTP cache.",
)
_group(
    "config",
    {
        "set": config.set_value,
        "get": config.get_value,
        "path": config.path,
        "show": config.print_config,
        "validate": config.validate_config,
        "schema": config.schema,
        "explain": config.explain,
    },
    "Show, check and change settings.",
)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("sandbox")(sandbox.sandbox)
# Short names, for operators.
app.command("run")(pull.run)
app.command("print-config")(config.print_config)
app.command("validate-config")(config.validate_config)
app.command("explain")(config.explain)
app.command("schema")(config.schema)
