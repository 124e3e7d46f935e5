"""`content takedown`: remove a work for good and refuse it from then on; list takedowns; undo one.

A command parses, calls, prints. `content takedown ID` is short for `content takedown add ID`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import folder_settings, locked, shared_record
from DocsToKG.ContentDownload.cli.group import CommandGroup, ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption, RunOption
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
    from DocsToKG.ContentDownload.maintenance.removal import Removal
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync
    from DocsToKG.ContentDownload.maintenance.takedowns import Takedown


class TakedownGroup(CommandGroup):
    """What is none of the commands is the work that is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["add", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        short = self.commands["add"]
        told = [record for param in short.get_params(ctx) if (record := param.get_help_record(ctx)) is not None]
        with formatter.section("Options of content takedown ID"):
            formatter.write_dl([record for record in told if "--help" not in record[0]])


Key = Annotated[str, typer.Argument(metavar="ID", help="A work's id, or the first digits of its file's sha256.")]


def add(
    key: Key,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the record.")],
    run: RunOption = Path("."),
    ticket: Annotated[str | None, typer.Option("--ticket", metavar="TEXT", help="Reference of the request.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the bytes of a work from the store, the readable folders and the cache, and refuse it from then on.

    Bytes that another work shares stay, and the command names that work. The record keeps a line about the takedown. An
    identifier that the record does not know can be refused in advance. Exit code 3: no file was on record.

    Example: content takedown doi:10.1234/abcd --run my-corpus --reason "asked by the author" --ticket 4711
    """
    if not reason.strip():
        raise typer.BadParameter("it is empty; the record keeps why a work was removed", param_hint="--reason")
    with _open(run, config) as removal:
        before = len(removal.list.entries)
        is_known = removal.knows(key)
        entry = removal.take_down(key, reason=_one_line(reason), ticket=_one_line(ticket) if ticket else None)
        is_new = len(removal.list.entries) > before
    if as_json:
        typer.echo(json_text({**asdict(entry), "new": is_new, "known": is_known}))
    elif is_new:
        _tell(entry)
    else:
        typer.echo(f"{printable(entry.doc_id)} was {printable(entry.sentence)} already.")
    if is_new and not entry.sha256:
        what = "no file of it was on record" if is_known else "this folder has no such work"
        typer.echo(f"Warning: {what}, so nothing was removed. Did you mean another work, or another --run?", err=True)
        raise typer.Exit(ExitCode.INCOMPLETE)


def _tell(entry: Takedown) -> None:
    count = len(entry.sha256)
    had = f"is taken down; files of it on record: {count}." if count else "is refused in advance."
    typer.echo(f"{printable(entry.doc_id)} {had}")
    typer.echo(f"Refused from now on: {printable(', '.join(entry.identifiers))}")
    if entry.kept_for:
        typer.echo(f"The bytes stay, because these works share them: {printable(', '.join(entry.kept_for))}", err=True)


def list_(
    run: RunOption = Path("."),
    everything: Annotated[bool, typer.Option("--all", help="Also takedowns that were undone.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what was taken down here. Example: content takedown list --run my-corpus"""
    from DocsToKG.ContentDownload.maintenance.takedowns import Takedowns

    cfg = folder_settings(run, config=config)
    with shared_record(cfg) as shared:
        known = Takedowns.read(Path(cfg.telemetry.manifest_path).parent, share=_share(shared))
        known.learn()
    entries = known.entries
    shown = [entry for entry in entries if everything or entry.stands]
    if as_json:
        typer.echo(json_text([asdict(entry) for entry in shown]))
        return
    columns = ("taken_at", "doc_id", "reason", "ticket", "undone_at")
    print_table(columns, [[getattr(entry, name) for name in columns] for entry in shown])


def undo(key: Key, run: RunOption = Path("."), config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Undo a takedown; the next pull downloads the work.

    Example: content takedown undo doi:10.1234/abcd --run my-corpus
    """
    with _open(run, config) as removal:
        entry = removal.undo(key)
    if entry is None:
        typer.echo(f"{printable(key)} is not taken down here.", err=True)
        raise typer.Exit(ExitCode.FAILED)
    if as_json:
        typer.echo(json_text(asdict(entry)))
    else:
        typer.echo(f"{printable(entry.doc_id)} is no longer refused; content pull downloads it.")


def _share(shared: SharedRecord | None) -> TakedownSync | None:
    if shared is None:
        return None
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync
    from DocsToKG.core.clock import SystemClock

    return TakedownSync(shared, clock=SystemClock())


@contextmanager
def _open(run: Path, config: str | None) -> Iterator[Removal]:
    from DocsToKG.ContentDownload.bootstrap import open_removal
    from DocsToKG.core.clock import SystemClock

    cfg = folder_settings(run, config=config)
    with locked(cfg) as own, shared_record(own) as shared:
        yield open_removal(own, clock=SystemClock(), shared=shared)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())[:500]
