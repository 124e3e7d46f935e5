"""`content catalog`: look into the record of a folder. Reads only.

A command parses, calls, prints. Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import CommandGroup
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.store import Catalog

catalog_app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None, help="Look into what was obtained."
)


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


class GroupBy(StrEnum):
    TIER = "tier"
    RESOLVER = "resolver"
    LICENSE = "license"
    YEAR = "year"
    REASON = "reason"


RunOption = Annotated[Path, typer.Option("--run", metavar="DIR", help="The folder of the run.")]
DbOption = Annotated[
    Path | None,
    typer.Option("--db-path", metavar="FILE", help="The record itself, instead of --run.", show_default=False),
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", "-f", help="For people or for programs.")]


@catalog_app.command("stats")
def stats(
    run: RunOption = Path("."),
    db_path: DbOption = None,
    format: FormatOption = OutputFormat.TABLE,
    group_by: Annotated[
        GroupBy | None, typer.Option("--group-by", "-g", help="One row per value.", show_default=False)
    ] = None,
) -> None:
    """Count works, files and bytes. Example: content catalog stats --run my-corpus --group-by tier"""
    with _open(run, db_path) as catalog:
        rows = catalog.stats(group_by.value if group_by else None)
    if format is OutputFormat.JSON:
        typer.echo(json_text(rows))
    else:
        print_table(list(rows[0]) if rows else ["works"], (row.values() for row in rows))


@catalog_app.command("query")
def query(
    sql: Annotated[str, typer.Option("--sql", metavar="SELECT", help="One SELECT statement.")],
    run: RunOption = Path("."),
    db_path: DbOption = None,
    format: FormatOption = OutputFormat.TABLE,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many rows.")] = 1_000,
) -> None:
    """Ask the record with SQL; only reading is possible.

    Example: content catalog query --run my-corpus --sql "SELECT doc_id FROM catalog_entries WHERE status = 'ok'"
    """
    with _open(run, db_path) as catalog:
        result = catalog.query(sql, max_rows=limit)
    if format is OutputFormat.JSON:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        typer.echo(json_text(rows))
    else:
        print_table(result.columns, result.rows)
    if result.truncated:
        typer.echo(f"Only the first {limit} rows are shown; there are more.", err=True)


@catalog_app.command("show")
def show(
    key: Annotated[str, typer.Argument(metavar="ID", help="A work's id, or the first digits of a file's sha256.")],
    run: RunOption = Path("."),
    db_path: DbOption = None,
    format: FormatOption = OutputFormat.TABLE,
) -> None:
    """Tell everything about one work. Example: content catalog show doi:10.1234/abcd --run my-corpus"""
    with _open(run, db_path) as catalog:
        history = next((found for name in _names(key) if (found := catalog.show(name)) is not None), None)
    if history is None:
        typer.echo(f"Nothing is known of {printable(key)} here.", err=True)
        raise typer.Exit(1)
    parts = {name: getattr(history, name) for name in ("lines", "downloads", "sources", "attempts")}
    if format is OutputFormat.JSON:
        typer.echo(json_text(parts))
        return
    for name, (columns, below) in _SHOWN.items():
        rows = parts[name]
        if rows:
            cells = ([_cell(column, row[column]) for column in columns] for row in rows)
            print_table(columns, cells, title=name, below=below)
    last = history.lines[-1] if history.lines else {}
    if last.get("explanation"):
        typer.echo(f"Why there is no file: {printable(last['explanation'])}")


# What is shown of each part, and the column that is too long for a table.
_SHOWN: dict[str, tuple[tuple[str, ...], str | None]] = {
    "lines": (("created_at", "doc_id", "status", "reason", "resolver", "tier", "path"), "path"),
    "downloads": (("doc_id", "sha256", "size_bytes", "license", "path"), "path"),
    "sources": (("ts", "tier", "source", "outcome", "reason", "elapsed_ms"), None),
    "attempts": (("ts", "resolver", "verb", "status", "http_status", "reason", "url"), "url"),
}


def _cell(column: str, value: Any) -> Any:
    """The moment of a row in the width that a table has for it; --format json has all of it."""
    return value[5:19].replace("T", " ") if column in ("ts", "created_at") and isinstance(value, str) else value


def _names(key: str) -> tuple[str, ...]:
    """What the record may know a work by: its id, whatever the spelling, the preprint whose version it is, and the text
    as given."""
    from DocsToKG.ContentDownload.resolvers.ids import BadIdentifier, parse_identifier, to_work

    try:
        work = to_work(parse_identifier(key))
    except BadIdentifier:
        return (key,)
    preprint = (f"arxiv:{work.arxiv_id}",) if work.arxiv_id else ()
    return (work.work_id, *preprint, key)


def _open(run: Path, db_path: Path | None) -> Catalog:
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.run_folder import record_of

    return Catalog(db_path or record_of(run))
