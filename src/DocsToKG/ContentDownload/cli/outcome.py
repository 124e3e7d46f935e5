"""How the end of a run is shown to people and to programs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from DocsToKG.ContentDownload.cli.tables import print_table, printable, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.summary import Figures
    from DocsToKG.ContentDownload.runner import RunResult
    from DocsToKG.ContentDownload.telemetry.snapshots import ResultRow

OUT_OF_REACH = "No host could be reached; content doctor finds the cause."
_MOST_SHOWN = 10
_MOST_CHARS = 160
_SKIPS = {
    "robots": "skipped: robots.txt forbids them",
    "filtered": "left out by your filters",
    "taken-down": "refused: taken down here",
    "already-present": "skipped: their files were there already",
    "not-modified": "skipped: their files have not changed",
}


def print_outcome(result: RunResult, figures: Figures) -> None:
    """The report table on standard output, then what was not obtained and where everything is."""
    print_table(("", ""), _facts(result, figures), title="Result")
    _print_missing(result)
    _print_unproved(result)
    _print_later(result)
    if _is_out_of_reach(result, figures):
        typer.echo(OUT_OF_REACH)
    folders = [name for name in ("PDF", "XML", "HTML") if (result.files / name).is_dir()]
    if str(result.files).startswith("s3://"):
        folders = ["cas"]
    if folders:
        typer.echo(f"Files: {', '.join(str(result.files / name) for name in folders)}")
    typer.echo(f"Every line's result: {result.folder / 'results.csv'}")


def result_json(result: RunResult) -> dict[str, Any]:
    counted = ("successful", "already", "left_out", "taken_down", "pending", "invalid", "failed", "skipped")
    return {
        **{name: getattr(result, name) for name in counted},
        "folder": str(result.folder),
        "results": [asdict(row) for row in result.rows],
    }


def _facts(result: RunResult, figures: Figures) -> list[tuple[str, str]]:
    works = result.total_processed + result.left_out + result.taken_down + result.pending
    facts = [
        ("papers requested", str(works)),
        ("obtained", f"{result.successful} ({result.already} were there already)"),
        ("not obtained", str(result.failed)),
    ]
    skips = Counter(_skip_words(row) for row in result.rows if row.outcome == "skip")
    facts += [(words, str(count)) for words, count in skips.most_common()]
    if result.pending:
        facts.append(("not finished", str(result.pending)))
    if result.invalid:
        facts.append(("lines that name no paper", str(result.invalid)))
    facts.append(("stored in this run", size_text(figures.bytes)))
    if figures.ttfp_p50_s is not None and figures.ttfp_p95_s is not None:
        within = f"half within {figures.ttfp_p50_s:.2f} s, 95 % within {figures.ttfp_p95_s:.2f} s"
        facts.append(("time to a paper", within))
    facts.append(("requests", f"{figures.requests}, of them {figures.http_429} answered 429"))
    sources = ", ".join(f"{name} {count}" for name, count in figures.by_resolver.items())
    if sources:
        facts.append(("by source", sources))
    return facts


def _print_missing(result: RunResult) -> None:
    from DocsToKG.ContentDownload.runner.status import is_left_out, is_taken_down

    taken_down = [row for row in result.rows if is_taken_down(row)]
    for row in taken_down[:_MOST_SHOWN]:
        typer.echo(f"Taken down: line {row.line}: {_cut(row.input)} - {_cut((row.reason or '').partition(': ')[2])}")
    left_out = Counter(_which_filter(row.reason or "") for row in result.rows if is_left_out(row))
    if left_out:
        typer.echo("Left out: " + ", ".join(f"{printable(why)} {count}" for why, count in left_out.most_common(5)))
    wanted = [row for row in result.rows if not is_left_out(row) and not is_taken_down(row)]
    missing = [row for row in wanted if row.outcome in ("error", "skip", "invalid")]
    if not missing:
        return
    reasons = Counter(_short_reason(row) for row in missing)
    typer.echo("Not obtained: " + ", ".join(f"{printable(reason)} {count}" for reason, count in reasons.most_common()))
    for row in missing[:_MOST_SHOWN]:
        typer.echo(f"  line {row.line}: {_cut(row.input)} - {_cut(row.reason)}")
    if len(missing) > _MOST_SHOWN:
        typer.echo(f"  and {len(missing) - _MOST_SHOWN} more in results.csv")


def _print_unproved(result: RunResult) -> None:
    """Files that a person should look at: kept ones are marked, and misses may wait in quarantine."""
    kept = sum("unproved" in (row.mark or "") for row in result.rows)
    waiting = sum("(unproved)" in (row.reason or "") for row in result.rows if row.outcome == "error")
    if kept or waiting:
        counts = f"{kept} kept, {waiting} works whose files wait in quarantine"
        typer.echo(f"Unproved: {counts}; content catalog unproved --run {result.folder} lists and settles them.")


def _print_later(result: RunResult) -> None:
    """Works that were tried and are retried later; works that have not started are not listed."""
    from DocsToKG.ContentDownload.runner.rows import LATER

    later = [row for row in result.rows if row.outcome == "pending" and (row.reason or "").startswith(LATER)]
    for row in later[:_MOST_SHOWN]:
        typer.echo(f"Not finished: line {row.line}: {_cut(row.input)} - {_cut(row.reason)}")
    if len(later) > _MOST_SHOWN:
        typer.echo(f"  and {len(later) - _MOST_SHOWN} more in results.csv")


def _is_out_of_reach(result: RunResult, figures: Figures) -> bool:
    """Whether every request failed to reach its host. A connection that fails at once is not counted as a request."""
    from DocsToKG.ContentDownload.api.types import Reason

    was_asked = figures.requests or any(f"({Reason.CONN_ERROR})" in (row.reason or "") for row in result.rows)
    return bool(was_asked) and not result.successful and figures.answer_p50_ms is None


def _skip_words(row: ResultRow) -> str:
    """Why a work was not tried or its file not taken, in words; one that was taken down comes before any filter."""
    from DocsToKG.ContentDownload.runner.status import is_taken_down

    word = "taken-down" if is_taken_down(row) else (row.reason or "").partition(":")[0]
    return _SKIPS.get(word, f"skipped ({word or 'unknown'})")


def _which_filter(reason: str) -> str:
    """What left a work out; of several filters that left out its copies, one that says more than `unknown`."""
    named = [work or copy for work, copy in re.findall(r"your filters(?:: (.+?)\.?$| \(([^()]+)\))", reason)]
    return next((why for why in named if not why.endswith(" unknown")), named[0] if named else reason)


def _short_reason(row: ResultRow) -> str:
    return "names no paper" if row.outcome == "invalid" else (row.reason or "unknown").partition(":")[0]


def _cut(text: str | None) -> str:
    line = printable(text)
    return line if len(line) <= _MOST_CHARS else line[: _MOST_CHARS - 3] + "..."
