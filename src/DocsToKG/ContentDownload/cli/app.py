"""The two command lines, put together.

`content_app` is for people: pull, resume, plan, report, index, catalog, audit, takedown, queue, cache, config, doctor,
demo, sandbox.
`app` is for operators of the engine: the same, and run, print-config, validate-config, explain, schema. Both hold the
same functions. Every command lives in the module of its task and imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from DocsToKG.ContentDownload.cli import (
    audit,
    cache,
    catalog,
    config,
    demo,
    doctor,
    index,
    plan,
    pull,
    queue,
    queue_run,
    report,
    sandbox,
    takedown,
)
from DocsToKG.ContentDownload.cli.group import EXIT_CODES_HELP, CommandGroup

queue_app = queue.queue_app
queue_app.command("run")(queue_run.run)
queue_app.command("drain")(queue_run.drain)


def _version(asked: bool) -> None:
    if asked:
        from DocsToKG.core.product import product_version

        typer.echo(f"DocsToKG ContentDownload {product_version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Read by `CommandGroup`."""


def _new_app(name: str, help_text: str) -> typer.Typer:
    new = typer.Typer(
        name=name,
        cls=CommandGroup,
        no_args_is_help=True,
        help=help_text,
        epilog=EXIT_CODES_HELP,
        pretty_exceptions_enable=False,
        # Plain help: the decorated one costs more time than everything else together.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    new.callback(help=help_text)(_options)
    new.command("pull")(pull.pull)
    new.command("resume")(pull.resume)
    new.command("plan")(plan.plan)
    new.command("report")(report.report)
    new.add_typer(catalog.catalog_app, name="catalog")
    new.add_typer(audit.audit_app, name="audit")
    new.add_typer(takedown.takedown_app, name="takedown")
    new.add_typer(index.index_app, name="index")
    new.add_typer(queue_app, name="queue")
    new.add_typer(cache.cache_app, name="cache")
    new.add_typer(config.config_app, name="config")
    new.command("doctor")(doctor.doctor)
    new.command("demo")(demo.demo)
    new.command("sandbox")(sandbox.sandbox)
    return new


content_app = _new_app(
    "content",
    "Give identifiers of open research papers, get back the verified files, politely and exactly once.\n\n"
    "Start here: content demo. Then: content pull 10.1371/journal.pone.0262026 --out corpus",
)

app = _new_app(
    "contentdownload",
    "The download engine, for operators.\n\n"
    "Start here: contentdownload explain. Then: contentdownload run ids.txt -c corpus.yaml",
)
app.command("run")(pull.run)
app.command("print-config")(config.print_config)
app.command("validate-config")(config.validate_config)
app.command("explain")(config.explain)
app.command("schema")(config.schema)
