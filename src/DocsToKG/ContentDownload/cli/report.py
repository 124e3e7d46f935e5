"""`content report`: how a run went, against the service levels.

A command parses, calls, prints. The figures come from the record; nothing is counted here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption
from DocsToKG.ContentDownload.cli.tables import json_text, markdown_table, print_table, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.catalog.summary import Figures
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.report.sections import Report

_MOST_MISSED = 50


ReportFormat = Literal["table", "md", "html", "json"]
_ENDINGS: dict[str, ReportFormat] = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".txt": "table"}


def report(
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="The folder of the run.")] = Path("."),
    format: Annotated[
        ReportFormat | None, typer.Option("--format", "-f", help="Default: as --out ends, else table.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", help="Only this run of the folder (`last` for the latest).")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only from then on: 2026-03-01 or 7d (ago).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the report to this file; a missing folder is created. `.html` is one self-contained page.",
        ),
    ] = None,
    config: ConfigOption = None,
    no_gates: Annotated[bool, typer.Option("--no-gates", help="Exit 0 also when a service level is missed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: the same as --format json.")] = False,
) -> None:
    """Show what the runs in a folder obtained, and whether they met the service levels.

    Exit code 4: a level was missed. The levels are settings: `slo.yield_min` and others.

    Examples:

      content report --run my-corpus --format md

      content report --run my-corpus --out report.html
    """
    from DocsToKG.ContentDownload.cli.catalog.folder import open_report_catalog
    from DocsToKG.ContentDownload.report.sections import number

    chosen = _form(format, out, as_json)
    with open_report_catalog(run, config) as catalog:
        told = _read(catalog, run, run_id=_chosen(catalog.runs(), run_id), since=since, config=config)
    is_new = out is not None and not out.parent.is_dir()
    with _output(out):
        _PRINTERS[chosen](told)
    if out is not None:
        typer.echo(f"The report is in {out}{', in a new folder' if is_new else ''}.", err=True)
    if since is not None and not (told.figures.runs or told.figures.attempted):
        typer.echo(f"No work has ended here since {printable(since)}.", err=True)
    if told.broken and not no_gates:
        broken = ", ".join(f"{gate.name} {number(gate.value)} (wanted {gate.target})" for gate in told.broken)
        typer.echo(f"Service level missed: {broken}", err=True)
        raise typer.Exit(ExitCode.GATES)


def _form(format: ReportFormat | None, out: Path | None, as_json: bool) -> ReportFormat:
    """The format that was named, or that the file's name asks for."""
    if as_json and format not in (None, "json"):
        raise typer.BadParameter(f"--json is another form than --format {format}")
    if as_json or format is not None or out is None:
        return format or ("json" if as_json else "table")
    found = _ENDINGS.get(out.suffix.lower())
    if found is None:
        names = ", ".join(_ENDINGS)
        raise typer.BadParameter(
            f"{printable(out)} does not say which form is meant (by {names}); name it with --format", param_hint="--out"
        )
    return found


def _read(catalog: Catalog, run: Path, *, run_id: str | None, since: str | None, config: str | None) -> Report:
    from dataclasses import replace

    from DocsToKG.ContentDownload.api.types import Reason
    from DocsToKG.ContentDownload.catalog.selection import read_selection
    from DocsToKG.ContentDownload.catalog.slo import judge_by
    from DocsToKG.ContentDownload.report.sections import Report
    from DocsToKG.core.clock import SystemClock, utc_iso

    now = SystemClock().now()
    chosen = read_selection(states=("failed", "robots"), since=since, run_id=run_id, now=now)
    figures = catalog.figures(run_id, since=chosen.since)
    settings = _settings(run, config)
    workers = settings.orchestrator.max_workers * settings.orchestrator.processes
    missed = figures.failed + figures.skipped_robots
    ended = replace(chosen, states=("failed",), reasons=(Reason.ENDED_WORKER,))
    return Report(
        name=run.resolve().name or "corpus",
        figures=figures,
        gates=judge_by(settings.slo, workers=workers)(figures),
        missed=catalog.page(chosen, limit=_MOST_MISSED).works if missed else [],
        ended=catalog.page(ended, limit=_MOST_MISSED).works if Reason.ENDED_WORKER in figures.failed_by_reason else [],
        written_at=f"{utc_iso(now)[:16].replace('T', ' ')} UTC",
    )


def _settings(run: Path, config: str | None) -> ContentDownloadConfig:
    """The settings that hold for a folder: those given, else those its last run was started with, else the usual."""
    from DocsToKG.ContentDownload.config.loader import load_config
    from DocsToKG.ContentDownload.errors import ConfigError, RecordError
    from DocsToKG.ContentDownload.run_folder import RunFolder

    if config is not None or run.is_file():
        return load_config(config)
    try:
        saved = RunFolder(run).saved()
        return load_config(saved.config_file, saved.overrides)
    except RecordError:
        return load_config()
    except ConfigError as error:
        typer.echo(f"Warning: the settings of the run cannot be read, so the default levels apply: {error}", err=True)
        return load_config()


def _chosen(runs: list[str], run_id: str | None) -> str | None:
    if run_id is None:
        return None
    wanted = runs[-1] if run_id == "last" and runs else run_id
    if wanted not in runs:
        raise typer.BadParameter(f"no run {run_id!r} here; there are: {', '.join(runs[-10:]) or 'none'}")
    return wanted


@contextlib.contextmanager
def _output(out: Path | None) -> Iterator[None]:
    """What is printed goes into the file, whole or not at all."""
    if out is None:
        yield
        return
    import io

    from DocsToKG.ContentDownload.telemetry.snapshots import replacing

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        yield
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as file:
        file.write(printed.getvalue().encode("utf-8", "replace"))


def _print_json(told: Report) -> None:
    listed = [gate.to_dict() for gate in told.gates]
    keys = ("doc_id", "title", "cause", "explanation")
    missed, ended = ([{key: work.get(key) for key in keys} for work in works] for works in (told.missed, told.ended))
    said = {**told.figures.to_dict(), "gates": listed, "missed": missed, "ended_worker": ended}
    print(json_text(said, indent=2))


def _print_markdown(told: Report) -> None:
    from DocsToKG.ContentDownload.report import sections

    figures = told.figures
    lines = ["# Run report", "", *_scope_lines(figures), *markdown_table(("figure", "value"), sections.facts(figures))]
    levels = markdown_table(("gate", "value", "target", "kept"), map(sections.gate_row, told.gates))
    lines += ["", "## Service levels", "", *levels]
    for title, columns, table in sections.tables(figures):
        lines += ["", f"## {title}", "", *markdown_table(columns, table)]
    lines += ["", *(f"- {printable(note)}" for note in sections.notes(figures))]
    if told.ended:
        lines += [
            "",
            f"## {sections.ENDED_TITLE}",
            "",
            *(f"- {printable(line)}" for line in sections.ended_lines(told)),
        ]
    for title, rows in sections.groups(figures):
        lines += ["", f"## {title}", "", *markdown_table(("", "works"), rows)]
    print("\n".join(lines))


def _scope_lines(figures: Figures) -> list[str]:
    parts = ([f"run {figures.run_id}"] if figures.run_id else []) + (
        [f"since {figures.since}"] if figures.since else []
    )
    return [printable(", ".join(parts)), ""] if parts else []


def _print_tables(told: Report) -> None:
    from DocsToKG.ContentDownload.report import sections

    for title, rows in sections.fact_groups(told.figures):
        print_table(("", ""), rows, title=title)
    for title, columns, table in sections.tables(told.figures):
        print_table(columns, table, title=title)
    for note in sections.notes(told.figures):
        print(printable(note))
    for line in sections.ended_lines(told):
        print(printable(f"{sections.ENDED_TITLE}: {line}"))
    for title, rows in sections.groups(told.figures):
        print_table(("", "works"), rows, title=title)
    missed = [number for number, gate in enumerate(told.gates) if not gate.ok]
    print_table(
        ("gate", "value", "target", "kept"), map(sections.gate_row, told.gates), title="Service levels", loud=missed
    )


def _print_html(told: Report) -> None:
    from DocsToKG.ContentDownload.report.page import html_page

    sys.stdout.write(html_page(told))


_PRINTERS = {"json": _print_json, "md": _print_markdown, "table": _print_tables, "html": _print_html}
