"""`content report`: how a run went, against the service levels.

A command parses, calls, prints. The figures come from the record; nothing is counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.tables import json_text, markdown_table, print_table, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.summary import Figures, Gate

_GROUPS = {
    "failed_by_reason": "Not obtained, by reason",
    "failed_by_cause": "Not obtained, by what stood in the way",
    "by_tier": "By tier",
    "by_evidence": "By what named the file",
    "by_license": "By licence",
    "by_year": "By year",
}
_MOST_SHOWN = 15


class ReportFormat(StrEnum):
    TABLE = "table"
    MD = "md"
    JSON = "json"


def report(
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="The folder of the run.")] = Path("."),
    format: Annotated[ReportFormat, typer.Option("--format", "-f", help="How to print it.")] = ReportFormat.TABLE,
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", help="Only this run of the folder (`last` for the latest).", show_default=False),
    ] = None,
    no_gates: Annotated[bool, typer.Option("--no-gates", help="Exit 0 also when a service level is missed.")] = False,
) -> None:
    """Show what the runs in a folder obtained, and whether the service levels were kept.

    Exit code 4 when one was missed. Example: content report --run my-corpus --format md
    """
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.catalog.summary import gates
    from DocsToKG.ContentDownload.run_folder import record_of

    with Catalog(record_of(run)) as catalog:
        figures = catalog.figures(_chosen(catalog.runs(), run_id))
    judged = gates(figures)
    printer = {ReportFormat.JSON: _print_json, ReportFormat.MD: _print_markdown, ReportFormat.TABLE: _print_tables}
    printer[format](figures, judged)
    if not no_gates and not all(gate.ok for gate in judged):
        broken = ", ".join(
            f"{gate.name} {_number(gate.value)} (wanted {gate.target})" for gate in judged if not gate.ok
        )
        typer.echo(f"Service level missed: {broken}", err=True)
        raise typer.Exit(ExitCode.GATES)


def _chosen(runs: list[str], run_id: str | None) -> str | None:
    if run_id is None:
        return None
    wanted = runs[-1] if run_id == "last" and runs else run_id
    if wanted not in runs:
        raise typer.BadParameter(f"no run {run_id!r} here; there are: {', '.join(runs[-10:]) or 'none'}")
    return wanted


def _facts(figures: Figures) -> list[tuple[str, str]]:
    """The figures in the words of people."""
    return [
        ("works tried", str(figures.attempted)),
        ("obtained", str(figures.obtained)),
        ("already present", str(figures.skipped)),
        ("not obtained", str(figures.failed)),
        *([("skipped, as robots.txt forbids them", str(figures.skipped_robots))] if figures.skipped_robots else []),
        *([("left out by filters", str(figures.left_out))] if figures.left_out else []),
        ("yield", _percent(figures.yield_ratio)),
        ("of the files, from guessed addresses", str(figures.guessed)),
        ("stored", f"{figures.bytes / 1e6:.1f} MB"),
        ("time to a file, median", _seconds(figures.ttfp_p50_s)),
        ("time to a file, 95 %", _seconds(figures.ttfp_p95_s)),
        ("waited for our own limits, 95 %", _seconds(figures.waited_p95_s)),
        ("requests", str(figures.requests)),
        ("answered 429", f"{figures.http_429} ({_percent(figures.ratio_429)})"),
        ("from the cache", _percent(figures.cache_hit_ratio)),
        ("saved by shared files", f"{figures.dedupe_saved_bytes / 1e6:.1f} MB"),
        ("corrupt files", str(figures.corruption)),
        ("duration", _seconds(figures.duration_s)),
    ]


def _gate_row(gate: Gate) -> tuple[str, str, str, str]:
    return gate.name, _number(gate.value), gate.target, "ok" if gate.ok else "MISSED"


def _groups(figures: Figures) -> list[tuple[str, list[tuple[str, str]]]]:
    shown = []
    for name, title in _GROUPS.items():
        counts: dict[str, int] = getattr(figures, name)
        told_already = name == "failed_by_cause" and counts == figures.failed_by_reason
        if counts and not told_already:
            shown.append((title, _most(counts)))
    return shown


def _source_rows(figures: Figures) -> list[tuple[str, ...]]:
    """Every source that was asked: how often, what it delivered, how it failed."""
    return [
        (name, str(one.asked), str(one.files), _percent(one.share), str(one.guesses), str(one.no_good), str(one.errors))
        for name, one in figures.sources.items()
        if one.asked or one.files
    ]


def _delivered_rows(figures: Figures) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (row["source"], row["tier"], row["evidence"] + (" (guess)" if row["is_guess"] else ""), str(row["files"]))
        for row in figures.delivered[:_MOST_SHOWN]
    ]
    rest = figures.delivered[_MOST_SHOWN:]
    cut = (f"and {len(rest)} more", "", "", str(sum(row["files"] for row in rest)))
    return [*rows, cut] if rest else rows


def _source_tables(figures: Figures) -> list[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    tables = [
        ("Sources", ("source", "asked", "files", "share", "guessed", "no good", "errors"), _source_rows(figures)),
        ("Files by source, tier and evidence", ("source", "tier", "evidence", "files"), _delivered_rows(figures)),
    ]
    return [(title, columns, rows) for title, columns, rows in tables if rows]


def _source_notes(figures: Figures) -> list[str]:
    """Sources in trouble, and those that were never asked."""
    notes = [f"failing: {name}: {what}" for name, what in figures.failing.items()]
    skipped = ", ".join(f"{name} ({why})" for name, why in figures.skipped_sources.items())
    return [*notes, f"skipped: {skipped}"] if skipped else notes


def _most(counts: dict[str, int]) -> list[tuple[str, str]]:
    """The first rows of a group; what was cut off is counted in the last."""
    rows = [(key, str(count)) for key, count in list(counts.items())[:_MOST_SHOWN]]
    rest = list(counts.values())[_MOST_SHOWN:]
    return [*rows, (f"and {len(rest)} more", str(sum(rest)))] if rest else rows


def _print_json(figures: Figures, judged: list[Gate]) -> None:
    listed: list[dict[str, Any]] = [
        {"gate": gate.name, "value": gate.value, "target": gate.target, "ok": gate.ok} for gate in judged
    ]
    typer.echo(json_text({**figures.to_dict(), "gates": listed}, indent=2))


def _print_markdown(figures: Figures, judged: list[Gate]) -> None:
    lines = ["# Run report", "", *markdown_table(("figure", "value"), _facts(figures))]
    lines += ["", "## Service levels", "", *markdown_table(("gate", "value", "target", "kept"), map(_gate_row, judged))]
    for title, columns, table in _source_tables(figures):
        lines += ["", f"## {title}", "", *markdown_table(columns, table)]
    lines += ["", *(f"- {printable(note)}" for note in _source_notes(figures))]
    for title, rows in _groups(figures):
        lines += ["", f"## {title}", "", *markdown_table(("", "works"), rows)]
    typer.echo("\n".join(lines))


def _print_tables(figures: Figures, judged: list[Gate]) -> None:
    print_table(("", ""), _facts(figures), title="Run")
    for title, columns, table in _source_tables(figures):
        print_table(columns, table, title=title)
    for note in _source_notes(figures):
        typer.echo(printable(note))
    for title, rows in _groups(figures):
        print_table(("", "works"), rows, title=title)
    missed = [number for number, gate in enumerate(judged) if not gate.ok]
    print_table(("gate", "value", "target", "kept"), map(_gate_row, judged), title="Service levels", loud=missed)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
