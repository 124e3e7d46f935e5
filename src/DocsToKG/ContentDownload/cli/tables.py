"""Text and tables for a terminal.

Values may come from outside: nothing printed here carries markup or control codes to the reader's terminal. Imports
its library when something is printed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_UNBOUNDED = 100_000  # characters; a table takes only what it needs


def printable(value: Any) -> str:
    """The value in one printable line; None is empty, bytes are counted."""
    text = "" if value is None else f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """The value as JSON that every reader takes: a number that is none (infinite, undefined) is null."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=False, default=printable, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def print_table(
    columns: Sequence[str],
    rows: Iterable[Iterable[Any]],
    *,
    title: str = "",
    loud: Collection[int] = (),
    below: str | None = None,
) -> None:
    """Print a table. Without named columns there is no header; rows numbered in `loud` are highlighted. The values of
    the column `below` follow the table, each on a line of its own that can be copied."""
    console = _console()
    if below is None:
        console.print(new_table(columns, rows, title=title, loud=loud))
        return
    place = columns.index(below)
    cells = [[printable(cell) for cell in row] for row in rows]
    kept = [[str(number), *row[:place], *row[place + 1 :]] for number, row in enumerate(cells, start=1)]
    console.print(new_table(("", *columns[:place], *columns[place + 1 :]), kept, title=title, loud=loud))
    width = len(str(len(cells)))
    for number, row in enumerate(cells, start=1):
        if row[place]:
            console.print(f"{number:>{width}}  {row[place]}", markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    from rich.console import Console

    console = Console()
    # Whoever reads from a pipe wants whole words to search and to copy, whatever the width of the screen.
    return console if console.is_terminal else Console(width=_UNBOUNDED)


def new_table(
    columns: Sequence[str], rows: Iterable[Iterable[Any]], *, title: str = "", loud: Collection[int] = ()
) -> Table:
    """The same table, not printed yet."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=printable(title) or None, title_justify="left", show_header=any(columns))
    for column in columns:
        table.add_column(Text(printable(column)), overflow="fold")
    for number, row in enumerate(rows):
        table.add_row(*(Text(printable(cell)) for cell in row), style="bold red" if number in loud else None)
    return table


def size_text(count: float) -> str:
    """A number of bytes for people: `950 B`, `1.2 MB`, `340 MB`, `4.2 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def span_text(seconds: float) -> str:
    """A length of time in the two largest units that say something: `4 s`, `3 min 20 s`, `2 h 5 min`, `6 d`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next(place for place, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a Markdown table."""
    cells = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(printable(cell).replace("|", "\\|") for cell in row) + " |" for row in cells]


class Occasionally:
    """Prints to standard error what it is given, at most every few seconds."""

    def __init__(self, quiet: bool = False, *, at_once: bool = True, every_s: float = 2.0) -> None:
        self._quiet = quiet
        self._every_s = every_s
        self._printed_at = -math.inf if at_once else time.monotonic()

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._printed_at >= self._every_s:
            self._printed_at = now
            typer.echo(text, err=True)
