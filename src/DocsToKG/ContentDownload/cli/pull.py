"""Commands that obtain papers: pull, resume, run.

A command parses, calls, prints. Every one of them drives the same `DownloadRun`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from DocsToKG.ContentDownload.cli.catalog_open import open_catalog, tell_unknown
from DocsToKG.ContentDownload.cli.console import Console, console_of
from DocsToKG.ContentDownload.cli.launch import PATIENCE_S, drive, finish, load_settings, named, opened, option_settings
from DocsToKG.ContentDownload.cli.observing import (
    LogFile,
    LogFormOption,
    LogLevelOption,
    MetricsFile,
    MetricsPort,
    observed,
)
from DocsToKG.ContentDownload.cli.options import (
    ConfigOption,
    Formats,
    IndexDir,
    License,
    OaStatus,
    Order,
    Out,
    OutAsConfigured,
    Processes,
    PullJson,
    ResumeJson,
    Retracted,
    Sources,
    Supplements,
    Version,
    Year,
    parse_size,
)
from DocsToKG.ContentDownload.cli.plan import filter_words, print_plans
from DocsToKG.ContentDownload.cli.sandbox import refuse_gone_sandbox

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.types import WorkArtifact
    from DocsToKG.ContentDownload.inputs import InputLine

Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, max=1024, help="Papers worked on at once.", show_default=False)
]
NoRobots = Annotated[bool, typer.Option("--no-robots", help="Do not read robots.txt. Only for hosts you may ask so.")]
Query = Annotated[
    list[str] | None,
    typer.Option(
        "--query",
        "-q",
        metavar="TEXT",
        help="Works of an OpenAlex filter (is_oa:true,publication_year:2024), of search words, or of an address "
        "copied from openalex.org.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DAY", help="With --query: published since, 2024 or a day.", show_default=False),
]
Most = Annotated[
    int | None,
    typer.Option(
        "--max",
        min=1,
        metavar="N",
        help="At most N works. Those that your filters refuse by what is known before a work is looked up do not "
        "count.",
        show_default=False,
    ),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        help="Begin no more papers once this much was stored, like 2GB; those under way are finished.",
        show_default=False,
    ),
]
NoRetry = Annotated[bool, typer.Option("--no-retry", help="Leave works that failed in an earlier run as they are.")]
Patience = Annotated[
    float,
    typer.Option("--patience", min=0, metavar="SECONDS", help="How long to wait for papers that may be had later."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress display.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show where each paper could be had; fetch no file.")]


def _refuse_settings(file: str | None) -> None:
    if file is not None:
        raise typer.BadParameter(
            "a run is gone on with by its own settings, which its folder remembers; for others run the original "
            "`content pull` again, with -c"
        )


Unwanted = Annotated[str | None, typer.Option("--config", "-c", metavar="FILE", hidden=True, callback=_refuse_settings)]


def pull(
    sources: Sources = None,
    query: Query = None,
    since: Since = None,
    out: Out = Path("papers"),
    max_works: Most = None,
    license_names: License = None,
    oa_status: OaStatus = None,
    version: Version = None,
    year: Year = None,
    retracted: Retracted = None,
    formats: Formats = None,
    supplements: Supplements = False,
    index: IndexDir = None,
    max_bytes: MaxBytes = None,
    workers: Workers = None,
    processes: Processes = None,
    no_robots: NoRobots = False,
    resolver_order: Order = None,
    config: ConfigOption = None,
    no_retry: NoRetry = False,
    patience: Patience = PATIENCE_S,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: PullJson = False,
    console: Console = False,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    log_level: LogLevelOption = None,
    log_format: LogFormOption = None,
    log_file: LogFile = None,
) -> None:
    """Obtain papers: one verified file for every identifier that is openly reachable.

    Running the same command again goes on where it stopped, and tries again what failed.

    Examples:

      content pull 10.1371/journal.pone.0000308 arXiv:2111.07624 --out papers

      content pull references.bib --out review

      content pull dois.txt --index oa --out papers

      cat dois.txt | content pull - --max 100

      content pull --query "deep learning" --since 2024 --license cc-by,cc0 --max 500 --out review

      content pull ids.txt --out "runs/content/{run_id}"
    """
    from DocsToKG.ContentDownload.config.filters import Filters
    from DocsToKG.ContentDownload.resolvers.openalex_query import read_query

    if bool(sources) == bool(query):
        raise typer.BadParameter("give identifiers, files, - for standard input, or --query: one of them")
    if since is not None and not query:
        raise typer.BadParameter("--since goes with --query; for given papers use --year 2024-")
    if query and len(query) > 1:
        raise typer.BadParameter("--query is given twice; join filters with commas, or pull one after the other")
    asked = read_query(query[0], since=since) if query else None
    filters = filter_words(license_names, oa_status, version, year, retracted)
    folder, run_id = named(out)
    settings = option_settings(
        folder,
        workers=workers,
        processes=processes,
        no_robots=no_robots,
        resolver_order=resolver_order,
        filters=filters,
        formats=formats,
        supplements=supplements,
        index=index,
    )
    run_bytes = parse_size(max_bytes) if max_bytes else None
    shown = observed(settings, metrics_port, metrics_file, log_level, log_format, log_file)
    cfg = load_settings(config, shown)
    # A missing file is found before a folder is made.
    given = read(sources, max_works, Filters.of(cfg.filters).refuses_work) if asked is None else None
    if dry_run:
        print_plans(cfg, given, query=asked, most=max_works, as_json=as_json)
        return
    with opened(cfg, max_run_bytes=run_bytes, run_id=run_id) as run, console_of(cfg, console):
        run.remember(_absolute(config), settings)
        code = drive(
            run,
            given,
            query=asked,
            most=max_works,
            retry_failed=not no_retry,
            patience_s=patience,
            quiet=quiet,
            as_json=as_json,
        )
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
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Which works: status=failed, ok or skipped; or source, tier, host, year, license, version, state, "
            "since, until, text, run-id as in `catalog query`. Give several to narrow it.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    processes: Processes = None,
    patience: Patience = PATIENCE_S,
    quiet: Quiet = False,
    as_json: ResumeJson = False,
    config: Unwanted = None,
    console: Console = False,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    log_level: LogLevelOption = None,
    log_format: LogFormOption = None,
    log_file: LogFile = None,
) -> None:
    """Go on with a run, with the inputs and settings it was started with: works that were not finished, and works that
    were missed while a service was away. Other works that failed stay as they are, unless you say --force.

    Examples:

      content resume --run papers

      content resume --run papers --force --filter status=failed

      content resume --run papers --force --filter source=arxiv --filter year=2020-
    """
    from DocsToKG.ContentDownload.config.settle import merge
    from DocsToKG.ContentDownload.run_folder import RunFolder
    from DocsToKG.ContentDownload.runner import DownloadRun
    from DocsToKG.ContentDownload.runner.again import Again

    if force != bool(choose):
        raise typer.BadParameter("--force and --filter go together, for example --force --filter status=failed")
    again = Again.read(choose, now=time.time()) if choose else None
    saved = RunFolder(run).saved()
    # A folder that holds everything may have been moved; one that does not is where it was.
    settings = merge(
        saved.overrides, option_settings(run if saved.movable else None, workers=workers, processes=processes)
    )
    shown = observed(settings, metrics_port, metrics_file, log_level, log_format, log_file)
    cfg = load_settings(saved.config_file, shown)
    refuse_gone_sandbox(cfg)
    with DownloadRun(cfg) as download, console_of(cfg, console):
        download.take_up(verify=verify, again=again)
        if again is not None:
            typer.echo(f"Works to be done again: {download.repeated}", err=True)
            if again.chosen is not None and not download.repeated:
                with open_catalog(run) as catalog:
                    tell_unknown(catalog, again.chosen)
        code = drive(download, None, patience_s=patience, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


def run(
    sources: Sources = None,
    config: ConfigOption = None,
    out: OutAsConfigured = None,
    workers: Workers = None,
    processes: Processes = None,
    resolver_order: Order = None,
    license_names: License = None,
    oa_status: OaStatus = None,
    version: Version = None,
    year: Year = None,
    retracted: Retracted = None,
    formats: Formats = None,
    supplements: Supplements = False,
    index: IndexDir = None,
    no_robots: NoRobots = False,
    dry_run: DryRun = False,
    single_shot: Annotated[
        bool, typer.Option("--single-shot", help="One work after another, without the queue: for debugging.")
    ] = False,
    queue_run: Annotated[bool, typer.Option("--queue-run", help="Through the queue; this is the default.")] = False,
    no_retry: NoRetry = False,
    quiet: Quiet = False,
    as_json: PullJson = False,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    log_level: LogLevelOption = None,
    log_format: LogFormOption = None,
    log_file: LogFile = None,
) -> None:
    """Obtain the given works with the paths of the configuration.

    Example: contentdownload run ids.txt -c corpus.yaml
    """
    if single_shot and queue_run:
        raise typer.BadParameter("--single-shot and --queue-run exclude each other")
    filters = filter_words(license_names, oa_status, version, year, retracted)
    folder, run_id = named(out)
    settings = option_settings(
        folder,
        workers=workers,
        processes=processes,
        no_robots=no_robots,
        resolver_order=resolver_order,
        filters=filters,
        formats=formats,
        supplements=supplements,
        index=index,
    )
    shown = observed(settings, metrics_port, metrics_file, log_level, log_format, log_file)
    cfg = load_settings(config, shown)
    lines = read(sources)
    if dry_run:
        print_plans(cfg, lines, as_json=as_json)
        return
    with opened(cfg, run_id=run_id) as download:
        download.remember(_absolute(config), settings)
        if single_shot:
            code = finish(download, download.process_single_shot(lines), as_json)
        else:
            code = drive(download, lines, retry_failed=not no_retry, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


def read(
    sources: list[str] | None,
    most: int | None = None,
    refuses: Callable[[WorkArtifact], str | None] = lambda work: None,
) -> Iterator[InputLine]:
    """The entries of what was given, up to `most` works, those not counted that a filter `refuses` as they stand."""
    from DocsToKG.ContentDownload.errors import InputError
    from DocsToKG.ContentDownload.inputs import read_inputs

    if not sources:
        raise typer.BadParameter("nothing to obtain: give identifiers, files, or - for standard input")
    lines = read_inputs(sources, stdin=sys.stdin)
    first = next(lines, None)
    if first is None:
        named = " and ".join("standard input" if source == "-" else source for source in sources[:3])
        raise InputError(f"nothing is in {named}; write one identifier per line")
    lines = chain((first,), lines)
    return _first_works(lines, most, refuses) if most else lines


def _first_works(
    lines: Iterable[InputLine], most: int, refuses: Callable[[WorkArtifact], str | None]
) -> Iterator[InputLine]:
    """Up to `most` works; rubbish, duplicates and what is left out before the last one are passed on to be reported."""
    works = 0
    for line in lines:
        fresh = line.work is not None and line.duplicate_of is None and refuses(line.work) is None
        if fresh and works == most:
            return
        works += fresh
        yield line


def _absolute(config: str | None) -> str | None:
    return None if config is None else str(Path(config).resolve())
