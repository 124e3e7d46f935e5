"""How the end of a run, and a plan, are shown to people and to programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from DocsToKG.ContentDownload.cli.progress import size_text
from DocsToKG.ContentDownload.cli.tables import print_table, printable
from DocsToKG.core.urls import mask_url

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.types import DownloadPlan
    from DocsToKG.ContentDownload.catalog.summary import Figures
    from DocsToKG.ContentDownload.fallback.trail import Trail
    from DocsToKG.ContentDownload.runner import RunResult
    from DocsToKG.ContentDownload.telemetry.results import ResultRow

_MOST_SHOWN = 10
_MOST_CHARS = 160


def print_outcome(result: RunResult, figures: Figures) -> None:
    """The report table on standard output, then what was not obtained and where everything is."""
    print_table(("", ""), _facts(result, figures), title="Result")
    _print_missing(result)
    typer.echo(f"Files: {result.files / 'PDF'}")
    typer.echo(f"Every line's result: {result.folder / 'results.csv'}")


def result_json(result: RunResult) -> dict[str, Any]:
    counts = {name: getattr(result, name) for name in ("successful", "already", "failed", "pending", "invalid")}
    return {**counts, "folder": str(result.folder), "results": [asdict(row) for row in result.rows]}


def print_plan(work_id: str, plans: Sequence[tuple[str, DownloadPlan]], trail: Trail, *, as_json: bool) -> None:
    rows = [
        {
            "tier": tier,
            "source": plan.resolver_name,
            "url": mask_url(plan.url),
            "evidence": plan.evidence,
            "version": plan.version,
            "license": plan.license,
            "host_type": plan.host_type,
        }
        for tier, plan in plans
    ]
    if as_json:
        misses = [asdict(tried) for tried in trail.tried]
        typer.echo(json.dumps({"id": work_id, "title": trail.work.title, "candidates": rows, "misses": misses}))
        return
    columns = ("tier", "source", "evidence", "version", "license", "url")
    cells = [[row[name] for name in columns] for row in rows]
    print_table(columns, cells, title=f"{work_id}: {len(rows)} candidates")


def _facts(result: RunResult, figures: Figures) -> list[tuple[str, str]]:
    works = result.successful + result.failed + result.pending
    facts = [
        ("papers asked for", str(works)),
        ("obtained", f"{result.successful} ({result.already} were there already)"),
        ("not obtained", str(result.failed)),
    ]
    if result.pending:
        facts.append(("not finished", str(result.pending)))
    if result.invalid:
        facts.append(("lines that name no paper", str(result.invalid)))
    facts.append(("stored in this run", size_text(figures.bytes)))
    if figures.ttfp_p50_s is not None and figures.ttfp_p95_s is not None:
        facts.append(("time to a paper", f"{figures.ttfp_p50_s:.2f} s half of them, {figures.ttfp_p95_s:.2f} s 95 %"))
    facts.append(("requests", f"{figures.requests}, of them {figures.http_429} answered 429"))
    sources = ", ".join(f"{name} {count}" for name, count in figures.by_resolver.items())
    if sources:
        facts.append(("by source", sources))
    return facts


def _print_missing(result: RunResult) -> None:
    missing = [row for row in result.rows if row.outcome in ("error", "skip", "invalid")]
    if not missing:
        return
    reasons = Counter(_short_reason(row) for row in missing)
    typer.echo("Not obtained: " + ", ".join(f"{printable(reason)} {count}" for reason, count in reasons.most_common()))
    for row in missing[:_MOST_SHOWN]:
        typer.echo(f"  line {row.line}: {_cut(row.input)} - {_cut(row.reason)}")
    if len(missing) > _MOST_SHOWN:
        typer.echo(f"  and {len(missing) - _MOST_SHOWN} more in results.csv")


def _short_reason(row: ResultRow) -> str:
    return "names no paper" if row.outcome == "invalid" else (row.reason or "unknown").partition(":")[0]


def _cut(text: str | None) -> str:
    line = printable(text)
    return line if len(line) <= _MOST_CHARS else line[: _MOST_CHARS - 3] + "..."
