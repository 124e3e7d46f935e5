"""`content plan` and `--dry-run`: where each paper is available, and the size of the download."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.launch import load_settings, no_hits
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonLines, PaperOptions, Sources, with_groups
from DocsToKG.ContentDownload.cli.outcome import OUT_OF_REACH
from DocsToKG.ContentDownload.cli.plan_index import plan_from_index
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, printable, size_text
from DocsToKG.core.urls import mask_url

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
    from DocsToKG.ContentDownload.config.filters import Filters
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.fallback.search_state import SearchState
    from DocsToKG.ContentDownload.inputs import InputLine
    from DocsToKG.ContentDownload.resolvers.openalex_query import WorksQuery

TYPICAL_BYTES = 1_500_000  # of a paper as PDF; used where no source announces a size
_COLUMNS = ("tier", "source", "evidence", "version", "license", "host_type", "size", "remark", "url")


@dataclass(slots=True)
class _Sum:
    works: int = 0
    found: int = 0
    candidates: int = 0
    size_bytes: int = 0
    estimated: int = 0
    unusable: int = 0
    unknown: int = 0  # works without any candidate, wanted or not
    out_of_reach: int = 0  # of these, works of which no service could be asked


@with_groups
def plan(
    *,
    sources: Sources = None,
    config: ConfigOption = None,
    papers: PaperOptions,
    ask: Annotated[
        bool, typer.Option("--ask", help="With an index: also ask services, and show the copies of each work.")
    ] = False,
    as_json: JsonLines = False,
) -> None:
    """Show where each paper is available, in the order in which a pull tries the copies, and download none.

    Exit code 3: no copy of some paper is known, or no service could be reached.

    Examples:

      content plan 10.1371/journal.pone.0000308

      content plan references.bib --license cc-by,cc0

      content plan dois.parquet --index oa
    """
    from DocsToKG.ContentDownload.cli.pull import read
    from DocsToKG.ContentDownload.config.loader import load_config
    from DocsToKG.ContentDownload.runner.planning import joined_with_index, with_planning_cache

    settings = papers.settings()
    cfg = load_config(config, settings)
    if cfg.index.path is None or ask:
        cfg = with_planning_cache(load_settings(config, settings))
        print_plans(cfg, joined_with_index(cfg, read(sources)), as_json=as_json)
        return
    if "filters" in settings or "download" in settings:
        raise typer.BadParameter("filters and formats are judged work by work: give --ask with them")
    if not sources:
        raise typer.BadParameter("nothing to plan: give identifiers, files, or - for standard input")
    plan_from_index(cfg, sources, as_json=as_json)


def print_plans(
    cfg: ContentDownloadConfig,
    lines: Iterable[InputLine] | None,
    *,
    query: WorksQuery | None = None,
    most: int | None = None,
    as_json: bool,
) -> None:
    """The candidates of every work of the lines or of the query, then what they come to. Writes no record."""
    from DocsToKG.ContentDownload.bootstrap import open_planning
    from DocsToKG.ContentDownload.config.filters import Filters
    from DocsToKG.ContentDownload.runner.planning import looked_up
    from DocsToKG.ContentDownload.runner.query_pages import QueryPages

    filters, total = Filters.of(cfg.filters), _Sum()
    with open_planning(cfg) as (pipeline, network):
        if query is not None:
            pages = QueryPages.of(cfg, pipeline, network)
            works: Iterator[WorkArtifact] = islice(pages.works(query), most)
        else:
            works = _usable(lines or (), total)
        for work, (plans, state) in looked_up(pipeline, works):
            rows = [_row(tier, plan, state.work, filters) for tier, plan in plans]
            _add(total, rows)
            total.unknown += not rows and state.refused is None
            total.out_of_reach += not rows and _is_out_of_reach(state)
            _print_one(work.work_id, rows, state, as_json=as_json)
    if query is not None and not total.works:
        typer.echo(no_hits(pages.matching), err=True)
    typer.echo(_sum_text(total), err=as_json)
    if total.works and total.out_of_reach == total.works:
        typer.echo(OUT_OF_REACH, err=True)
    if total.unusable or total.unknown:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _usable(lines: Iterable[InputLine], total: _Sum) -> Iterator[WorkArtifact]:
    for line in lines:
        if line.work is None:
            total.unusable += 1
            typer.echo(f"line {line.line_no}: {printable(line.problem)}", err=True)
        elif line.duplicate_of is None:
            yield line.work


def _row(tier: str, plan: DownloadPlan, work: WorkArtifact, filters: Filters) -> dict[str, Any]:
    return {
        "tier": tier,
        "source": plan.resolver_name,
        "url": mask_url(plan.url),
        "evidence": plan.evidence,
        "version": plan.version,
        "license": plan.license,
        "host_type": plan.host_type,
        "mime": plan.expected_mime,
        "size_bytes": plan.size_bytes,
        "is_guess": plan.is_guess,
        "left_out": filters.refuses_plan(plan, work),
    }


def _add(total: _Sum, rows: Sequence[Mapping[str, Any]]) -> None:
    """One file is kept of a work: the first wanted copy whose size is known gives it, else a paper's usual size."""
    wanted = [row for row in rows if row["left_out"] is None]
    total.works += 1
    total.candidates += len(wanted)
    if not wanted:
        return
    size = next((row["size_bytes"] for row in wanted if row["size_bytes"] is not None), None)
    total.found += 1
    total.estimated += size is None
    total.size_bytes += TYPICAL_BYTES if size is None else size


def _print_one(work_id: str, rows: Sequence[Mapping[str, Any]], state: SearchState, *, as_json: bool) -> None:
    if as_json:
        misses = [asdict(tried) for tried in state.failures]
        told = {"id": work_id, "title": state.work.title, "year": state.work.publication_year}
        why = None if rows else _why_none(state)
        typer.echo(json_text({**told, "candidates": list(rows), "misses": misses, "explanation": why}))
        return
    titled = f": {state.work.title[:80]}" if state.work.title else ""
    title = f"{work_id}{titled} ({_count(len(rows), 'candidate')})"
    if rows:
        print_table(_COLUMNS, [[_cells(row)[name] for name in _COLUMNS] for row in rows], title=title, below="url")
        return
    typer.echo(printable(f"{title}. {_why_none(state)}"))
    if state.failures:
        missed = [(tried.source, tried.reason, tried.http_status, tried.detail) for tried in state.failures_in_order()]
        print_table(("source", "why not", "status", "detail"), missed)


def _is_out_of_reach(state: SearchState) -> bool:
    from DocsToKG.ContentDownload.api.types import Reason

    return bool(state.failures) and all(tried.reason == Reason.CONN_ERROR for tried in state.failures)


def _why_none(state: SearchState) -> str:
    from DocsToKG.ContentDownload.fallback.failure_reason import failure_reason

    if state.refused is not None:
        if state.refused.startswith("taken down"):
            return f"{state.refused[:1].upper()}{state.refused[1:]}."
        return f"Left out by your filters: {state.refused}."
    return failure_reason(state, now=time.time()).sentence


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    size = "" if row["size_bytes"] is None else size_text(row["size_bytes"])
    remarks = ["guess"] if row["is_guess"] else []
    if row["mime"] not in (None, "application/pdf"):
        remarks.append(str(row["mime"]).rpartition("/")[2])
    if row["left_out"] is not None:
        remarks.append(f"left out: {row['left_out']}")
    version = (row["version"] or "").removesuffix("Version")
    return {**row, "size": size, "remark": ", ".join(remarks), "version": version}


def _sum_text(total: _Sum) -> str:
    """`3 works, 2 with 7 candidates in all; about 3.0 MB (estimate: ...)`."""
    works = f"{_count(total.works, 'work')}, {total.found} with {_count(total.candidates, 'candidate')} in all"
    if not total.found:
        return works
    if not total.estimated:
        return f"{works}; {size_text(total.size_bytes)} as announced"
    rule = f"{total.estimated} of {total.found} announce no size and are taken as {size_text(TYPICAL_BYTES)}"
    return f"{works}; about {size_text(total.size_bytes)} (estimate: one file per work, {rule})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
