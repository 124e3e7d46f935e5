"""What the commands share: options, settings, the ledger to look into, errors in a line, tables.

Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from DocsToKG.core.streams import heard

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
    from DocsToKG.Orchestrator.settings import ServerSettings

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


class Program(TyperGroup):
    """The outermost group of commands, whose output may lose its reader, or have had none."""

    def main(self, *args: Any, **options: Any) -> Any:
        with heard():
            return super().main(*args, **options)


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


@contextmanager
def said_plainly() -> Iterator[None]:
    """Errors of the service in a line each, and what to install where it is missing."""
    from DocsToKG.Orchestrator.errors import LedgerError
    from DocsToKG.Orchestrator.settings import BadSettings

    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("DocsToKG", "psycopg"):
            raise
        typer.echo("Error: this needs the server extra: pip install 'docstokg[server]'", err=True)
        raise typer.Exit(1) from None
    except (LedgerError, BadSettings, ValueError) as error:
        typer.echo(f"Error: {printable(str(error))}", err=True)
        raise typer.Exit(1) from None


def print_columns(rows: Iterable[Sequence[str]]) -> None:
    lines = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def printable(text: str) -> str:
    # Errors may quote what a server sent; that must not steer the reader's terminal.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
