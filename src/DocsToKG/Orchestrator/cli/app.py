"""The root of `docstokg-orchestrator`: its commands and their files."""

from __future__ import annotations

import typer

from DocsToKG.Orchestrator.cli import audit, events, jobs, keys, service, tokens
from DocsToKG.Orchestrator.cli.options import CommandGroup, root_options

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="The job ledger. Start here: docstokg-orchestrator serve. Then: docs/howto/serve-the-ledger.md",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("status")(jobs.status)
app.command("history")(jobs.history)
app.command("serve")(service.serve)
app.command("call")(service.call)
app.add_typer(jobs.app, name="jobs")
app.add_typer(tokens.app, name="token")
app.add_typer(events.app, name="events")
audit.app.add_typer(keys.app, name="keys")
app.add_typer(audit.app, name="audit")
app.callback()(root_options)
