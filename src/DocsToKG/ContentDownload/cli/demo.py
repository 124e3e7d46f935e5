"""`content demo`: a small scholarly web on this machine, and a pull from it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from DocsToKG.ContentDownload.cli.console import Console, console_of
from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.launch import drive, load_settings, opened, paths_in
from DocsToKG.ContentDownload.cli.options import Out, Quiet


def demo(
    out: Out = Path("demo-corpus"),
    papers: Annotated[int, typer.Option("--papers", min=1, max=5000, help="Number of papers to pull.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives another small web.")] = 7,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, max=256, help="Papers worked on at once.")] = 16,
    quiet: Quiet = False,
    console: Console = False,
) -> None:
    """Start a small scholarly web on this machine and pull papers from it. Nothing leaves the machine.

    Run it twice: the second time every paper is already there. Some papers are missing on purpose; the exit code is 0.

    Example: content demo --papers 20 --out first-corpus
    """
    from DocsToKG.ContentDownload.config.merge import merge
    from DocsToKG.ContentDownload.inputs import read_inputs
    from DocsToKG.Sandbox.profile import SandboxServer

    with SandboxServer(works=papers, seed=seed) as sandbox:
        typer.echo(
            f"A small scholarly web of {papers} works answers on 127.0.0.1:{sandbox.port}. "
            f"It grants {sandbox.rate_factor:g} times the rates that real services do, so that this takes seconds.",
            err=True,
        )
        settings = merge(sandbox.profile(), {**paths_in(out), "orchestrator": {"max_workers": workers}})
        cfg = load_settings(None, settings, environ={})
        ids = out / "ids.txt"
        out.mkdir(parents=True, exist_ok=True)
        ids.write_text("\n".join(sandbox.identifiers(papers)) + "\n", encoding="utf-8")
        with opened(cfg) as download, console_of(cfg, console):
            download.remember(None, settings)
            lines = read_inputs([str(ids)], stdin=sys.stdin)
            again = f"content demo --papers {papers} --seed {seed} --out {shlex.quote(str(out))}"
            code = drive(download, lines, retry_failed=False, quiet=quiet, way_on=again)
        if code == ExitCode.INTERRUPTED:
            raise typer.Exit(code)
        counters = sandbox.counters()
        typer.echo(
            f"The small web answered {counters['requests']} requests; politeness violations it counted: "
            f"{len(sandbox.violations())}.",
            err=True,
        )
    if code == ExitCode.INCOMPLETE:
        typer.echo("Some of its papers are not openly reachable on purpose; results.csv has each reason.", err=True)
        code = ExitCode.OK
    raise typer.Exit(code)
