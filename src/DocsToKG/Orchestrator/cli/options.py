"""What the commands share: options, errors as messages, settings, the ledger to read, columns.

Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from DocsToKG.core.streams import heard

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
    from DocsToKG.Orchestrator.settings import ServerSettings

INTERRUPTED = 130  # Ctrl+C, as the shell writes it
_SERVER_EXTRA = ("fastapi", "joserfc", "starlette", "strawberry", "uvicorn", "websockets")
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output.")]
ServedOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH|DSN",
        help="SQLite file, folder of a queue or a pull, or postgresql://... of the ledger.",
        show_default="that of this folder",
    ),
]
ServerFile = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="Settings of the service (YAML or JSON).")
]


def _print_version(ctx: typer.Context, is_wanted: bool) -> None:
    if is_wanted:
        from DocsToKG.core.product import product_version

        typer.echo(f"DocsToKG {getattr(ctx.command, 'title', '')} {product_version()}")
        raise typer.Exit


def root_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options before the command; `CommandGroup` reads them."""


class CommandFailed(Exception):
    """The command cannot do what it was told. The message says why, and what to do."""


class CommandGroup(TyperGroup):
    """Commands of a program. An error is one message on standard error and an exit code, without a traceback and
    without a value that could be a secret; lost output is `core.streams`' business."""

    title: ClassVar[str] = "Orchestrator"
    # Errors of the standard library whose text is written by us.
    shown_errors: ClassVar[tuple[type[Exception], ...]] = (ValueError,)

    def main(self, *args: Any, **options: Any) -> Any:
        with heard():
            return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        # Only the outermost group prints; inner groups let the error pass.
        if ctx.parent is not None:
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # for whoever sees to the streams
            raise
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise
            if ctx.params.get("debug"):
                typer.echo("".join(traceback.format_exception(error)), err=True, nl=False)
            else:
                message = "\n".join(printable(line) for line in self.message(error).splitlines())
                typer.echo(f"Error: {message}", err=True)
            raise typer.Exit(self.exit_code(error)) from None

    def exit_code(self, error: Exception) -> int:
        return 1

    def message(self, error: Exception) -> str:
        if type(error).__module__.startswith("DocsToKG.") or isinstance(error, self.shown_errors):
            return str(error)
        if isinstance(error, OSError):
            return _system_error(error)
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _SERVER_EXTRA:
            return "this needs the server extra: pip install 'docstokg[server]'"
        # The text of an unforeseen error may hold anything, so only its kind is shown.
        return f"unexpected {type(error).__name__}. Run again with --debug before the command to see where"


_ADVICE = {
    errno.EACCES: "check who may read and write there, or name another folder",
    errno.EPERM: "check who may read and write there, or name another folder",
    errno.EROFS: "name a folder that can be written",
    errno.ENOSPC: "free some space, then run the same command again",
    errno.EDQUOT: "free some space, then run the same command again",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "part of the path is a file; check the path",
    errno.EISDIR: "it is a folder; name a file",
    errno.EEXIST: "choose another name",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.EMFILE: "allow more open files with `ulimit -n 4096`, or use fewer --workers",
    errno.ENFILE: "close other programs, or use fewer --workers",
    errno.EIO: "the disk reports an error; check it, then run the same command again",
    errno.EADDRINUSE: "another program has that port; choose another",
}


def _system_error(error: OSError) -> str:
    """The system's message, the file it is about, and what to do."""
    said = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{said}; {_ADVICE.get(error.errno or 0, 'run again with --debug before the command to see where')}"


def settings_of(ledger: str | None, config: Path | None, **more: object) -> ServerSettings:
    from DocsToKG.Orchestrator.settings import load_settings

    changes = {name: value for name, value in more.items() if value is not None}
    if ledger is not None:
        on_server = ledger.startswith(("postgresql://", "postgres://"))
        found = ledger if on_server else str(ledger_in(Path(ledger)) if Path(ledger).is_dir() else ledger)
        changes["connection_string" if on_server else "ledger"] = found
    elif config is None:
        changes["ledger"] = str(ledger_in(Path()))
    return load_settings(config, changes)


def ledger_in(folder: Path) -> Path:
    """The ledger of a folder: that of its queue, or that of the pull that was made there."""
    from DocsToKG.Orchestrator.settings import DEFAULT_LEDGER

    places = (DEFAULT_LEDGER, DEFAULT_LEDGER.with_name("ledger.sqlite"))
    return next((folder / place for place in places if (folder / place).is_file()), folder / DEFAULT_LEDGER)


@contextmanager
def ledger_of(settings: ServerSettings) -> Iterator[DatabaseLedger]:
    """The ledger for looking into it, which must not make one where there is none."""
    from DocsToKG.Orchestrator.errors import LedgerUnusable
    from DocsToKG.Orchestrator.ledger.opening import open_ledger

    if settings.ledger_url is None and not settings.ledger.is_file():
        raise LedgerUnusable(f"there is no ledger at {settings.ledger}; name it with --ledger")
    with open_ledger(settings.ledger, url=settings.ledger_url, listen_url=settings.listen_url, wal=None) as ledger:
        yield ledger


def print_columns(rows: Iterable[Sequence[str]]) -> None:
    lines = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def printable(text: str) -> str:
    # Errors may quote what a server sent; that must not steer the reader's terminal.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
