"""Commands that obtain papers: pull, resume, run.

A command parses, calls, prints. Every one of them drives the same `DownloadRun`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import open_catalog, print_unknown
from DocsToKG.ContentDownload.cli.console import Console, console_of
from DocsToKG.ContentDownload.cli.launch import PATIENCE_S, drive, finish, load_settings, named, opened, paths_in
from DocsToKG.ContentDownload.cli.options import (
    ConfigOption,
    FetchOptions,
    JsonDocument,
    JsonOfPull,
    ObservabilityOptions,
    Out,
    OutAsConfigured,
    PaperOptions,
    Processes,
    Quiet,
    Sources,
    Workers,
    given,
    parse_size,
    with_groups,
)
from DocsToKG.ContentDownload.cli.plan import print_plans
from DocsToKG.ContentDownload.cli.sandbox import refuse_gone_sandbox

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.types import WorkArtifact
    from DocsToKG.ContentDownload.inputs import InputLine

Most = Annotated[
    int | None,
    typer.Option(
        "--max",
        min=1,
        metavar="N",
        help="At most N works. Works that your filters refuse before they are looked up do not count.",
    ),
]
NoRetry = Annotated[bool, typer.Option("--no-retry", help="Do not retry works that failed in an earlier run.")]
Patience = Annotated[
    float,
    typer.Option("--patience", min=0, metavar="SECONDS", help="How long to wait for papers that can be retried later."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show where each paper is available; download no file.")]


def _refuse_settings(file: str | None) -> None:
    if file is not None:
        raise typer.BadParameter(
            "a run continues with its own settings, which its folder keeps; to use other settings, run the original "
            "`content pull` again with -c"
        )


@with_groups
def pull(
    *,
    sources: Sources = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "-q",
            metavar="TEXT",
            help="Works that OpenAlex lists for a filter (is_oa:true,publication_year:2024), for search words, or for "
            "a URL copied from openalex.org.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="With --query: published since this year or day.")
    ] = None,
    out: Out = Path("papers"),
    max_works: Most = None,
    papers: PaperOptions,
    fetch: FetchOptions,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Start no more papers once this much is stored, like 2GB; running downloads finish.",
        ),
    ] = None,
    config: ConfigOption = None,
    no_retry: NoRetry = False,
    patience: Patience = PATIENCE_S,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: JsonOfPull = False,
    console: Console = False,
    observability: ObservabilityOptions,
) -> None:
    """Download papers: one verified file for every identifier that is openly available.

    The same command, run again, continues where it stopped and retries what failed.

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
    works_query = read_query(query[0], since=since) if query else None
    folder, run_id = named(out)
    settings = _settings(folder, papers, fetch)
    run_bytes = parse_size(max_bytes) if max_bytes else None
    cfg = load_settings(config, _both(settings, observability))
    # A missing file is found before a folder is made.
    lines = read(sources, max_works, Filters.of(cfg.filters).refuses_work) if works_query is None else None
    if dry_run:
        print_plans(cfg, lines, query=works_query, most=max_works, as_json=as_json)
        return
    with opened(cfg, max_run_bytes=run_bytes, run_id=run_id) as run, console_of(cfg, console):
        run.remember(_absolute(config), settings)
        code = drive(
            run,
            lines,
            query=works_query,
            most=max_works,
            retry_failed=not no_retry,
            patience_s=patience,
            quiet=quiet,
            as_json=as_json,
        )
    raise typer.Exit(code)


@with_groups
def resume(
    *,
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="The folder of the run.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every stored file again and replace damaged ones.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Repeat the works that --filter selects, also finished ones.")
    ] = False,
    choose: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Which works: status=failed, ok or skipped; or source, tier, host, year, license, version, state, "
            "since, until, text, run-id as in `catalog query`. Repeat the option to narrow the choice.",
        ),
    ] = None,
    workers: Workers = None,
    processes: Processes = None,
    patience: Patience = PATIENCE_S,
    quiet: Quiet = False,
    as_json: JsonDocument = False,
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", hidden=True, callback=_refuse_settings)
    ] = None,
    console: Console = False,
    observability: ObservabilityOptions,
) -> None:
    """Continue a run with the inputs and settings it was started with: works that are not finished, and works that
    were missed while a service was unavailable. Other failed works stay as they are, unless you add --force.

    Examples:

      content resume --run papers

      content resume --run papers --force --filter status=failed

      content resume --run papers --force --filter source=arxiv --filter year=2020-
    """
    from DocsToKG.ContentDownload.config.merge import merge
    from DocsToKG.ContentDownload.run_folder import RunFolder
    from DocsToKG.ContentDownload.runner import DownloadRun
    from DocsToKG.ContentDownload.runner.again import Again

    if force != bool(choose):
        raise typer.BadParameter("--force and --filter go together, for example --force --filter status=failed")
    again = Again.read(choose, now=time.time()) if choose else None
    saved = RunFolder(run).saved()
    # A folder that holds everything may have been moved; any other is still where it was.
    settings = merge(saved.overrides, paths_in(run) if saved.movable else {})
    settings = merge(settings, given({"orchestrator": {"max_workers": workers, "processes": processes}}))
    cfg = load_settings(saved.config_file, _both(settings, observability))
    refuse_gone_sandbox(cfg)
    with DownloadRun(cfg) as download, console_of(cfg, console):
        download.take_up(verify=verify, again=again)
        if again is not None:
            typer.echo(f"Works to repeat: {download.repeated}", err=True)
            if again.chosen is not None and not download.repeated:
                with open_catalog(run) as catalog:
                    print_unknown(catalog, again.chosen)
        code = drive(download, None, patience_s=patience, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


@with_groups
def run(
    *,
    sources: Sources = None,
    config: ConfigOption = None,
    out: OutAsConfigured = None,
    papers: PaperOptions,
    fetch: FetchOptions,
    dry_run: DryRun = False,
    single_shot: Annotated[
        bool, typer.Option("--single-shot", help="One work after another, without the queue: for debugging.")
    ] = False,
    queue_run: Annotated[bool, typer.Option("--queue-run", help="Use the queue; this is the default.")] = False,
    no_retry: NoRetry = False,
    quiet: Quiet = False,
    as_json: JsonOfPull = False,
    observability: ObservabilityOptions,
) -> None:
    """Download the given works to the paths of the configuration.

    Example: contentdownload run ids.txt -c corpus.yaml
    """
    if single_shot and queue_run:
        raise typer.BadParameter("--single-shot and --queue-run exclude each other")
    folder, run_id = named(out)
    settings = _settings(folder, papers, fetch)
    cfg = load_settings(config, _both(settings, observability))
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


def _settings(folder: Path | None, papers: PaperOptions, fetch: FetchOptions) -> dict[str, Any]:
    """The options as settings: what a run keeps for `resume`."""
    from DocsToKG.ContentDownload.config.merge import merge

    paths = {} if folder is None else paths_in(folder)
    return merge(merge(paths, papers.settings()), fetch.settings())


def _both(settings: dict[str, Any], observability: ObservabilityOptions) -> dict[str, Any]:
    from DocsToKG.ContentDownload.config.merge import merge

    return merge(settings, observability.settings())


def read(
    sources: list[str] | None,
    most: int | None = None,
    refuses: Callable[[WorkArtifact], str | None] = lambda work: None,
) -> Iterator[InputLine]:
    """The entries of the input, up to `most` works; works that a filter `refuses` before look-up do not count."""
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
