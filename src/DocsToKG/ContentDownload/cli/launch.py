"""What the commands that download papers share: paths of a folder, the contact address, driving a run.

Knows the order (load, enqueue, run with a display, report) and the exit codes; does not know single commands.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.tables import Occasionally, json_text, printable
from DocsToKG.core.interrupts import wish_noted, wish_over
from DocsToKG.core.streams import nobody_has_to_read

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.inputs import InputLine
    from DocsToKG.ContentDownload.resolvers.openalex_query import WorksQuery
    from DocsToKG.ContentDownload.runner import DownloadRun, RunResult

PATIENCE_S = 900.0
_TOGETHER_S = 0.3  # `timeout` signals the program and then its group: two such signals count as one
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_RUN_ID = "{run_id}"  # in the name of a folder


def paths_in(folder: Path) -> dict[str, Any]:
    """The settings of a run that keeps everything in one folder."""
    from DocsToKG.ContentDownload.catalog.paths import MANIFEST

    root = folder.expanduser().resolve()
    state = root / "state"
    return {
        "telemetry": {"manifest_path": str(root / MANIFEST)},
        "storage": {"root_dir": str(root)},
        "queue": {"path": str(state / "ledger.sqlite")},
        "hishel": {"base_path": str(state / "cache"), "sqlite_path": str(state / "cache.sqlite")},
    }


def print_metrics_address(run: DownloadRun) -> None:
    if run.metrics_address is not None:
        typer.echo(f"Figures of this run: {run.metrics_address}", err=True)


def named(out: Path | None) -> tuple[Path | None, str | None]:
    """The folder, and the run's id where the folder is named after the run."""
    from DocsToKG.core.ids import new_run_id

    if out is None or _RUN_ID not in str(out):
        return out, None
    run_id = new_run_id()
    return Path(str(out).replace(_RUN_ID, run_id)), run_id


def load_settings(
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


@contextmanager
def opened(
    cfg: ContentDownloadConfig, *, max_run_bytes: int | None = None, run_id: str | None = None
) -> Iterator[DownloadRun]:
    """A run of a command that has --out; when the folder is in use, the error suggests another --out."""
    from DocsToKG.ContentDownload.errors import FolderInUse
    from DocsToKG.ContentDownload.runner import DownloadRun

    with ExitStack() as stack:
        try:
            run = stack.enter_context(DownloadRun(cfg, max_run_bytes=max_run_bytes, run_id=run_id))
        except FolderInUse as error:
            more = "or give this run another folder with --out; one run with --processes N uses more of the machine"
            raise FolderInUse(f"{error}, {more}") from None
        yield run


def drive(
    run: DownloadRun,
    lines: Iterable[InputLine] | None,
    *,
    query: WorksQuery | None = None,
    most: int | None = None,
    retry_failed: bool = True,
    patience_s: float = PATIENCE_S,
    quiet: bool = False,
    as_json: bool = False,
    way_on: str | None = None,
) -> ExitCode:
    """Enqueue the lines or the works of the query, run with a display, report. With neither, continue the folder's own
    list. Ctrl+C ends the run early and loses nothing."""
    from DocsToKG.ContentDownload.cli.progress import Progress
    from DocsToKG.core.process import ours_alone

    print_metrics_address(run)
    for repair in run.repairs:
        typer.echo(f"Repaired in the record: {repair}", err=True)
    interrupted = False
    with ours_alone(), stop_signals(lambda times: None):
        try:
            stopped = _fill(run, lines, query, most=most, retry_failed=retry_failed, quiet=quiet)
        except KeyboardInterrupt:
            typer.echo("Interrupted while reading the input. Run the same command again.", err=True)
            return ExitCode.INTERRUPTED
        if not (lines is None and query is None) and (others := run.others()):
            typer.echo(f"{others} papers of earlier pulls into this folder are downloaded as well.", err=True)
        try:
            run.start()
            with Progress(quiet=quiet) as watch:
                run.wait(watch, patience_s=patience_s)
        except KeyboardInterrupt:
            interrupted = True
            typer.echo("Stopping: running downloads have a few seconds to finish.", err=True)
        _stop_or_leave(run)
    result = run.result()
    code = finish(run, result, as_json)
    if interrupted or run.hit_byte_limit:
        why = "Interrupted" if interrupted else "The byte limit is reached"
        way_on = way_on or f"content resume --run {shlex.quote(str(run.folder.root))}"
        left = f"Nothing is lost; continue with: {way_on}" if result.pending else "All papers had ended by then."
        typer.echo(f"{why}. {left}", err=True)
    if stopped is not None:
        typer.echo(f"The query was not listed completely: {stopped}.", err=True)
        code = max(code, ExitCode.INCOMPLETE)
    return ExitCode.INTERRUPTED if interrupted else code


@contextmanager
def stop_signals(wished: Callable[[int], None]) -> Iterator[None]:
    """Within the block, each signal calls `wished` with its number, from 1, and then counts as Ctrl+C."""
    times: list[float] = []

    def hear(*_: object) -> None:
        now = time.monotonic()
        if times and now - times[-1] < _TOGETHER_S:
            return
        times.append(now)
        wish_noted()
        wished(len(times))
        raise KeyboardInterrupt

    # What whoever started us wants ignored stays so, as in the background of a script.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, hear) for number in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)
        wish_over()


def _fill(
    run: DownloadRun,
    lines: Iterable[InputLine] | None,
    query: WorksQuery | None,
    *,
    most: int | None,
    retry_failed: bool,
    quiet: bool,
) -> str | None:
    """Enqueue the works; returns why a listing stopped early."""
    if lines is not None:
        run.enqueue(lines, retry_failed=retry_failed, watch=_reading(quiet))
        return None
    if query is None:
        return run.list_on(watch=_listing(quiet))
    if not quiet:
        typer.echo(f"Asking OpenAlex for works: {printable(query)}", err=True)
    show, listed = _listing(quiet), [0, 0]

    def watch(count: int, total: int | None) -> None:
        listed[:] = [count, total or 0]
        show(count, total)

    stopped = run.enqueue_query(query, most=most, retry_failed=retry_failed, watch=watch)
    if not listed[0] and stopped is None:
        typer.echo(no_hits(listed[1]), err=True)
    return stopped


def no_hits(total: int) -> str:
    """Why a query gave no work; `total` match it, as the service counts."""
    if total:
        return f"Your filters refuse each of the {total} works that match the query."
    return "No work matches the query, which is valid. Try fewer conditions or other words."


def finish(run: DownloadRun, result: RunResult, as_json: bool) -> ExitCode:
    from DocsToKG.ContentDownload.cli.outcome import print_outcome, result_json

    if as_json:
        typer.echo(json_text(result_json(result)))
    else:
        nobody_has_to_read()  # the files and results.csv have it
        print_outcome(result, run.figures())
    return ExitCode.OK if result.complete else ExitCode.INCOMPLETE


def _stop_or_leave(run: DownloadRun) -> None:
    try:
        run.stop()
    except KeyboardInterrupt:
        # Asked twice: leave as if killed. The next run frees what this one held, at once.
        typer.echo("Stopped at once. Nothing that was stored is lost; the same command continues.", err=True)
        os._exit(ExitCode.INTERRUPTED)


def _reading(quiet: bool) -> Callable[[int], None]:
    """Reports now and then how much of a long input has been read."""
    say = Occasionally(quiet, at_once=False)
    return lambda count: say(f"{count} papers read ...")


def _listing(quiet: bool) -> Callable[[int, int | None], None]:
    """Reports with the first page how many works there are, and now and then how many are listed."""
    say = Occasionally(quiet)
    return lambda count, total: say(f"{count} papers listed" + (f" of {total} that match" if total is not None else ""))


def _ask_contact() -> None:
    """Services receive the contact address; some refuse requests without one."""
    from DocsToKG.ContentDownload.config.loader import set_user_value
    from DocsToKG.ContentDownload.errors import ConfigError

    if not sys.stdin.isatty():
        raise ConfigError(
            "no contact address is set, and the services require one; set it once with: "
            "content config set contact you@your-university.edu"
        )
    typer.echo("Services want a contact address, so that they can write to you instead of blocking you.", err=True)
    address = typer.prompt("Your email address", err=True)
    typer.echo(f"Saved in {set_user_value('contact', address)}.", err=True)
