"""Commands that obtain papers: pull, resume, run, plan.

A command parses, calls, prints. Every one of them drives the same `DownloadRun`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.launch import PATIENCE_S, drive, finish, load_settings, option_settings
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.inputs import InputLine
    from DocsToKG.ContentDownload.runner import DownloadRun

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID|FILE|-...",
        help="Identifiers (DOI, arXiv, PMCID, PMID, OpenAlex, URL), files of them (text, CSV, JSONL, BibTeX, RIS), "
        "or - for standard input.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the corpus and of its record.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, max=1024, help="Papers worked on at once.", show_default=False)
]
Order = Annotated[
    str | None,
    typer.Option("--resolver-order", metavar="A,B,...", help="Sources to ask first, in order.", show_default=False),
]
NoRobots = Annotated[bool, typer.Option("--no-robots", help="Do not read robots.txt. Only for hosts you may ask so.")]
Query = Annotated[
    str | None,
    typer.Option("--query", "-q", metavar="TEXT", help="Works of an OpenAlex search or filter.", show_default=False),
]
Most = Annotated[int | None, typer.Option("--max", min=1, metavar="N", help="At most N works.", show_default=False)]
MaxBytes = Annotated[
    str | None,
    typer.Option("--max-bytes", metavar="SIZE", help="Stop after this much was stored, like 2GB.", show_default=False),
]
NoRetry = Annotated[bool, typer.Option("--no-retry", help="Leave works that failed in an earlier run as they are.")]
Patience = Annotated[
    float,
    typer.Option("--patience", min=0, metavar="SECONDS", help="How long to wait for papers that may be had later."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress display.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show where each paper could be had; fetch no file.")]


def pull(
    sources: Sources = None,
    query: Query = None,
    out: Out = Path("papers"),
    max_works: Most = None,
    max_bytes: MaxBytes = None,
    workers: Workers = None,
    no_robots: NoRobots = False,
    resolver_order: Order = None,
    config: ConfigOption = None,
    no_retry: NoRetry = False,
    patience: Patience = PATIENCE_S,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: JsonOption = False,
) -> None:
    """Obtain papers: one verified file for every identifier that is openly reachable.

    Running the same command again goes on where it stopped, and tries again what failed.

    Examples:

      content pull 10.1371/journal.pone.0000308 arXiv:2111.07624 --out papers

      content pull references.bib --out review

      cat dois.txt | content pull - --max 100
    """
    if bool(sources) == (query is not None):
        raise typer.BadParameter("give identifiers, files, - for standard input, or --query: one of them")
    settings = option_settings(out, workers=workers, no_robots=no_robots, resolver_order=resolver_order)
    run_bytes = _parse_size(max_bytes) if max_bytes else None
    cfg = load_settings(config, settings)
    if dry_run:
        if query is not None:
            raise typer.BadParameter("--dry-run shows where given papers could be had; it does not go with --query")
        _print_plans(cfg, _read(sources, max_works), as_json)
        return
    from DocsToKG.ContentDownload.runner import DownloadRun

    given = _read(sources, max_works) if query is None else None  # a missing file is found before a folder is made
    with DownloadRun(cfg, max_run_bytes=run_bytes) as run:
        run.remember(_absolute(config), settings)
        lines = given if given is not None else _query_lines(run, query or "", max_works)
        code = drive(run, lines, retry_failed=not no_retry, patience_s=patience, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


def resume(
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="Folder of the run.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every stored file again; fetch damaged ones anew.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Repeat works chosen with --filter, also finished ones.")
    ] = False,
    choose: Annotated[
        str | None, typer.Option("--filter", metavar="KEY=VALUE", help="status=failed|ok|skipped", show_default=False)
    ] = None,
    workers: Workers = None,
    patience: Patience = PATIENCE_S,
    quiet: Quiet = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted, with the inputs and settings it was started with.

    Examples:

      content resume --run papers

      content resume --run papers --force --filter status=failed
    """
    from DocsToKG.ContentDownload.config.settle import merge
    from DocsToKG.ContentDownload.run_folder import RunFolder
    from DocsToKG.ContentDownload.runner import DownloadRun

    if force != (choose is not None):
        raise typer.BadParameter("--force and --filter go together, for example --force --filter status=failed")
    saved = RunFolder(run).saved()
    # A folder that holds everything may have been moved; one that does not is where it was.
    settings = merge(saved.overrides, option_settings(run if saved.movable else None, workers=workers))
    cfg = load_settings(saved.config_file, settings)
    with DownloadRun(cfg) as download:
        download.take_up(verify=verify, again=_parse_filter(choose) if choose else None)
        code = drive(download, None, patience_s=patience, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


def run(
    sources: Sources = None,
    config: ConfigOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Default: as configured.", show_default=False)
    ] = None,
    workers: Workers = None,
    resolver_order: Order = None,
    no_robots: NoRobots = False,
    dry_run: DryRun = False,
    single_shot: Annotated[
        bool, typer.Option("--single-shot", help="One work after another, without the queue: for debugging.")
    ] = False,
    queue_run: Annotated[bool, typer.Option("--queue-run", help="Through the queue; this is the default.")] = False,
    no_retry: NoRetry = False,
    quiet: Quiet = False,
    as_json: JsonOption = False,
) -> None:
    """Obtain the given works with the paths of the configuration.

    Example: contentdownload run ids.txt -c corpus.yaml
    """
    if single_shot and queue_run:
        raise typer.BadParameter("--single-shot and --queue-run exclude each other")
    settings = option_settings(out, workers=workers, no_robots=no_robots, resolver_order=resolver_order)
    cfg = load_settings(config, settings)
    lines = _read(sources, None)
    if dry_run:
        _print_plans(cfg, lines, as_json)
        return
    from DocsToKG.ContentDownload.runner import DownloadRun

    with DownloadRun(cfg) as download:
        download.remember(_absolute(config), settings)
        if single_shot:
            code = finish(download, download.process_single_shot(lines), as_json)
        else:
            code = drive(download, lines, retry_failed=not no_retry, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


def plan(
    sources: Sources = None, config: ConfigOption = None, resolver_order: Order = None, as_json: JsonOption = False
) -> None:
    """Show where each paper could be had, in the order the copies would be tried, without fetching any.

    Example: content plan 10.1371/journal.pone.0000308
    """
    cfg = load_settings(config, option_settings(None, resolver_order=resolver_order))
    _print_plans(cfg, _read(sources, None), as_json)


def _read(sources: list[str] | None, most: int | None) -> Iterator[InputLine]:
    from DocsToKG.ContentDownload.inputs import read_inputs

    if not sources:
        raise typer.BadParameter("nothing to obtain: give identifiers, files, or - for standard input")
    lines = read_inputs(sources, stdin=sys.stdin)
    return _first_works(lines, most) if most else lines


def _first_works(lines: Iterable[InputLine], most: int) -> Iterator[InputLine]:
    """Up to `most` works; rubbish and duplicates before the last one are passed on to be reported."""
    works = 0
    for line in lines:
        fresh = line.work is not None and line.duplicate_of is None
        if fresh and works == most:
            return
        works += fresh
        yield line


def _query_lines(run: DownloadRun, query: str, most: int | None) -> Iterator[InputLine]:
    found = run.search(query, most=most)
    typer.echo(f"{query!r}: asking OpenAlex for works ...", err=True)
    return found


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB")
    if float(match[1]) == 0:
        raise typer.BadParameter("a limit of nothing leaves nothing to do")
    return int(float(match[1]) * 1000 ** ["", "k", "m", "g", "t"].index(match[2].lower()))


def _parse_filter(text: str) -> str:
    key, _, value = text.partition("=")
    if key.strip() != "status" or value.strip() not in ("failed", "ok", "skipped"):
        raise typer.BadParameter(f"--filter {text!r}: write status=failed, status=ok or status=skipped")
    return value.strip()


def _absolute(config: str | None) -> str | None:
    return None if config is None else str(Path(config).resolve())


def _print_plans(cfg: ContentDownloadConfig, lines: Iterable[InputLine], as_json: bool) -> None:
    from DocsToKG.ContentDownload.bootstrap import open_planner
    from DocsToKG.ContentDownload.cli.outcome import print_plan

    unusable = 0
    with open_planner(cfg) as pipeline:
        for line in lines:
            if line.work is None:
                unusable += 1
                typer.echo(f"line {line.line_no}: {line.problem}", err=True)
            elif line.duplicate_of is None:
                plans, trail = pipeline.candidates(line.work)
                print_plan(line.work.work_id, plans, trail, as_json=as_json)
    if unusable:
        raise typer.Exit(ExitCode.INCOMPLETE)
