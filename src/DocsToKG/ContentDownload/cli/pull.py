"""Commands that obtain papers: pull, resume, run, plan, demo.

A command parses, calls, prints. Every one of them drives the same `DownloadRun`.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.inputs import InputLine
    from DocsToKG.ContentDownload.runner import DownloadRun, RunResult

_PATIENCE_S = 900.0

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
    patience: Patience = _PATIENCE_S,
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
    settings = _settings(out, workers=workers, no_robots=no_robots, resolver_order=resolver_order)
    cfg = _load(config, settings)
    run_bytes = _parse_size(max_bytes) if max_bytes else None
    if dry_run:
        _print_plans(cfg, _read(sources, query, max_works), as_json)
        return
    from DocsToKG.ContentDownload.runner import DownloadRun

    with DownloadRun(cfg, max_run_bytes=run_bytes) as run:
        run.folder.remember_settings(_absolute(config), settings)
        lines = _query_lines(run, query, max_works) if query else _read(sources, query, max_works)
        code = _drive(run, lines, retry_failed=not no_retry, patience_s=patience, quiet=quiet, as_json=as_json)
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
    patience: Patience = _PATIENCE_S,
    quiet: Quiet = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted, with the inputs and settings it was started with.

    Examples:

      content resume --run papers

      content resume --run papers --force --filter status=failed
    """
    from DocsToKG.ContentDownload.run_folder import RunFolder
    from DocsToKG.ContentDownload.runner import DownloadRun

    if force != (choose is not None):
        raise typer.BadParameter("--force and --filter go together, for example --force --filter status=failed")
    config_file, settings = RunFolder(run).settings()
    settings |= _settings(run, workers=workers)
    cfg = _load(config_file, settings)
    with DownloadRun(cfg) as download:
        download.take_up(verify=verify, again=_parse_filter(choose) if choose else None)
        code = _drive(download, None, patience_s=patience, quiet=quiet, as_json=as_json)
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
    settings = _settings(out, workers=workers, no_robots=no_robots, resolver_order=resolver_order)
    cfg = _load(config, settings)
    lines = _read(sources, None, None)
    if dry_run:
        _print_plans(cfg, lines, as_json)
        return
    from DocsToKG.ContentDownload.runner import DownloadRun

    with DownloadRun(cfg) as download:
        download.folder.remember_settings(_absolute(config), settings)
        if single_shot:
            code = _finish(download, download.process_single_shot(lines), as_json)
        else:
            code = _drive(download, lines, retry_failed=not no_retry, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


def plan(
    sources: Sources = None, config: ConfigOption = None, resolver_order: Order = None, as_json: JsonOption = False
) -> None:
    """Show where each paper could be had, in the order the copies would be tried, without fetching any.

    Example: content plan 10.1371/journal.pone.0000308
    """
    cfg = _load(config, _settings(None, resolver_order=resolver_order))
    _print_plans(cfg, _read(sources, None, None), as_json)


def demo(
    out: Out = Path("demo-corpus"),
    papers: Annotated[int, typer.Option("--papers", min=1, max=5000, help="How many to pull.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Another small web.")] = 7,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, max=256)] = 16,
    quiet: Quiet = False,
) -> None:
    """Start a small scholarly web on this machine and pull papers from it. Nothing leaves the machine.

    Run it twice: the second time everything is there.
    """
    from DocsToKG.ContentDownload.inputs import read_inputs
    from DocsToKG.ContentDownload.runner import DownloadRun
    from DocsToKG.Sandbox.profile import SandboxServer

    with SandboxServer(works=papers, seed=seed) as sandbox:
        typer.echo(
            f"A small scholarly web of {papers} works answers on 127.0.0.1:{sandbox.port}. "
            f"It grants {sandbox.rate_factor:g} times the rates that real services do, so that this takes seconds.",
            err=True,
        )
        settings = _merge(_merge(sandbox.profile(), _IN_A_HURRY), _settings(out, workers=workers))
        cfg = _load(None, settings, environ={})
        ids = out / "ids.txt"
        out.mkdir(parents=True, exist_ok=True)
        ids.write_text("\n".join(sandbox.identifiers(papers)) + "\n", encoding="utf-8")
        with DownloadRun(cfg) as download:
            code = _drive(download, read_inputs([str(ids)], stdin=sys.stdin), retry_failed=False, quiet=quiet)
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


# The web of the demo recovers from its faults within seconds, so nobody has to wait minutes for another try.
_IN_A_HURRY = {
    "orchestrator": {"retry_backoff_seconds": 1, "jitter_seconds": 1},
    "robots": {"unreachable_seconds": 2},
}


# reading


def _read(sources: list[str] | None, query: str | None, most: int | None) -> Iterator[InputLine]:
    from DocsToKG.ContentDownload.inputs import read_inputs

    if not sources:
        raise typer.BadParameter(
            "nothing to obtain: give identifiers, files, - for standard input" + ("" if query else ", or --query")
        )
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


def _settings(
    out: Path | None,
    *,
    workers: int | None = None,
    no_robots: bool = False,
    resolver_order: str | None = None,
) -> dict[str, Any]:
    """The options of a command as settings, the strongest layer."""
    settings: dict[str, Any] = {}
    if out is not None:
        root = out.expanduser().resolve()
        settings["telemetry"] = {"manifest_path": str(root / "manifest.jsonl")}
        settings["storage"] = {"root_dir": str(root)}
        settings["queue"] = {"path": str(root / "state" / "ledger.sqlite")}
        settings["hishel"] = {"base_path": str(root / "state" / "cache")}
    if workers is not None:
        settings["orchestrator"] = {"max_workers": workers}
    if resolver_order:
        settings["resolvers"] = {"order": [name.strip() for name in resolver_order.split(",") if name.strip()]}
    if no_robots:
        typer.echo("Warning: robots.txt is not read in this run; the record says so.", err=True)
        settings["robots"] = {"enabled": False}
    return settings


def _load(
    config: str | None, settings: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> ContentDownloadConfig:
    from DocsToKG.ContentDownload.config.loader import load_config_verbose
    from DocsToKG.ContentDownload.config.rules import contact_of

    loaded = load_config_verbose(config, settings, environ=environ)
    for warning in loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if contact_of(loaded.config) is not None:
        return loaded.config
    _ask_contact()
    return load_config_verbose(config, settings, environ=environ).config


def _ask_contact() -> None:
    """The services are told who asks; some refuse to answer otherwise."""
    from DocsToKG.ContentDownload.config.loader import set_user_value
    from DocsToKG.ContentDownload.errors import ConfigError

    if not sys.stdin.isatty():
        raise ConfigError(
            "no contact address is set, and the services are told who asks; set it once with: "
            "content config set contact you@your-university.edu"
        )
    typer.echo("The services are told who asks for papers, so that they can write instead of blocking.", err=True)
    address = typer.prompt("Your mail address", err=True)
    typer.echo(f"Kept in {set_user_value('contact', address)}.", err=True)


def _merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB")
    return int(float(match[1]) * 1000 ** ["", "k", "m", "g", "t"].index(match[2].lower()))


def _parse_filter(text: str) -> str:
    key, _, value = text.partition("=")
    if key.strip() != "status" or value.strip() not in ("failed", "ok", "skipped"):
        raise typer.BadParameter(f"--filter {text!r}: write status=failed, status=ok or status=skipped")
    return value.strip()


def _absolute(config: str | None) -> str | None:
    return None if config is None else str(Path(config).resolve())


# running


def _drive(
    run: DownloadRun,
    lines: Iterable[InputLine] | None,
    *,
    retry_failed: bool = True,
    patience_s: float = _PATIENCE_S,
    quiet: bool = False,
    as_json: bool = False,
) -> ExitCode:
    """Enqueue, run with a display, report. Ctrl+C ends it early without losing anything."""
    from DocsToKG.ContentDownload.cli.progress import Progress

    interrupted = False
    with _terminate_like_interrupt():
        try:
            if lines is not None:
                run.enqueue(lines, retry_failed=retry_failed)
            run.start()
            with Progress(quiet=quiet) as watch:
                run.wait(watch, patience_s=patience_s)
        except KeyboardInterrupt:
            interrupted = True
            typer.echo("Stopping: running downloads have a few seconds to finish.", err=True)
        run.stop()
    code = _finish(run, run.result(), as_json)
    if interrupted or run.hit_byte_limit:
        why = "Interrupted" if interrupted else "The byte limit is reached"
        typer.echo(f"{why}. Nothing is lost; go on with: content resume --run {run.folder.root}", err=True)
    return ExitCode.INTERRUPTED if interrupted else code


@contextmanager
def _terminate_like_interrupt() -> Iterator[None]:
    """SIGTERM ends a run as gently as Ctrl+C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _finish(run: DownloadRun, result: RunResult, as_json: bool) -> ExitCode:
    from DocsToKG.ContentDownload.cli.outcome import print_outcome, result_json

    if as_json:
        typer.echo(json.dumps(result_json(result)))
    else:
        print_outcome(result, run.figures())
    return ExitCode.OK if result.complete else ExitCode.INCOMPLETE


def _print_plans(cfg: ContentDownloadConfig, lines: Iterable[InputLine], as_json: bool) -> None:
    from DocsToKG.ContentDownload.bootstrap import open_planner
    from DocsToKG.ContentDownload.cli.outcome import print_plan

    with open_planner(cfg) as pipeline:
        for line in lines:
            if line.work is None:
                typer.echo(f"line {line.line_no}: {line.problem}", err=True)
            elif line.duplicate_of is None:
                plans, trail = pipeline.candidates(line.work)
                print_plan(line.work.work_id, plans, trail, as_json=as_json)
