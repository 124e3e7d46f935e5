"""`content catalog`: look into the record of a folder. These commands read only.

A command parses, calls, prints. Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import (
    DbOption,
    FormatOption,
    folder_settings,
    names_for,
    open_catalog,
    place_of_files,
    print_unknown,
)
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption, RunOption, WorkOptions, with_groups
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, printable

_ELSEWHERE = "content catalog query lists the works, and --run names another folder"


GroupBy = Literal["tier", "source", "resolver", "license", "year", "reason", "host", "version", "state", "run_id"]


@with_groups
def stats(
    *,
    run: RunOption = Path("."),
    db_path: DbOption = None,
    format: FormatOption = "table",
    group_by: Annotated[GroupBy | None, typer.Option("--group-by", "-g", help="One row per value.")] = None,
    works: WorkOptions,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count works, files and bytes.

    Examples:

      content catalog stats --run my-corpus --group-by tier

      content catalog stats --run my-corpus --group-by host --license cc-by --since 7d
    """
    wanted = works.selection()
    with open_catalog(run, db_path, config) as catalog:
        rows = catalog.stats(group_by, wanted)
        if not any(row["works"] for row in rows):
            print_unknown(catalog, wanted)
    if as_json or format == "json":
        typer.echo(json_text(rows))
    else:
        print_table(list(rows[0]) if rows else ["works"], (row.values() for row in rows))


@with_groups
def query(
    *,
    sql: Annotated[
        str | None, typer.Option("--sql", metavar="SELECT", help="One SELECT statement, instead of the filters.")
    ] = None,
    run: RunOption = Path("."),
    db_path: DbOption = None,
    format: FormatOption = "table",
    works: WorkOptions,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, max=10_000, help="Maximum number of rows.", show_default="50 works")
    ] = None,
    after: Annotated[
        int,
        typer.Option("--after", min=0, metavar="N", help="For the next page: the number that the last page printed."),
    ] = 0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List works that match the filters, page by page, or query the record with read-only SQL.

    Examples:

      content catalog query --run my-corpus --state failed --host .example.org

      content catalog query --run my-corpus --text "deep learning" --year 2020- --json

      content catalog query --run my-corpus --sql "SELECT doc_id FROM catalog_entries WHERE status = 'ok'"
    """
    wants_json = as_json or format == "json"
    if sql is not None:
        if any(asdict(works).values()) or after:
            raise typer.BadParameter("--sql excludes the filters; put the conditions into the statement")
        _ask(run, db_path, config, sql, limit or 1_000, wants_json)
        return
    with open_catalog(run, db_path, config) as catalog:
        wanted = works.selection()
        page = catalog.page(wanted, after=after, limit=limit or 50)
        if not page.works:
            print_unknown(catalog, wanted)
    if wants_json:
        typer.echo(json_text({"works": page.works, "after": page.after}))
        return
    columns = ("doc_id", "state", "year", "license", "resolver", "host", "title")
    print_table(columns, ([work[name] for name in columns] for work in page.works))
    if page.after is not None:
        typer.echo(f"There are more: add --after {page.after} for the next page.", err=True)


def _ask(run: Path, db_path: Path | None, config: str | None, sql: str, limit: int, as_json: bool) -> None:
    from DocsToKG.ContentDownload.errors import InputError, RecordError

    with open_catalog(run, db_path, config) as catalog:
        catalog.runs()  # a record that cannot be read is no fault of the question
        try:
            result = catalog.query(sql, max_rows=limit)
        except RecordError as error:
            raise InputError(str(error)) from error
    if as_json:
        typer.echo(json_text([dict(zip(result.columns, row, strict=True)) for row in result.rows]))
    else:
        print_table(result.columns, result.rows)
    if result.truncated:
        typer.echo(f"Only the first {limit} rows are shown; there are more.", err=True)


def show(
    key: Annotated[str, typer.Argument(metavar="ID", help="A work's id, or the first digits of a file's sha256.")],
    run: RunOption = Path("."),
    db_path: DbOption = None,
    format: FormatOption = "table",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything on record about one work. Example: content catalog show doi:10.1234/abcd --run my-corpus"""
    with open_catalog(run, db_path, config) as catalog:
        history = next((found for name in names_for(key) if (found := catalog.show(name)) is not None), None)
    if history is None:
        typer.echo(f"There is no record of {printable(key)} here; {_ELSEWHERE}.", err=True)
        raise typer.Exit(1)
    parts = {name: getattr(history, name) for name in ("lines", "downloads", "sources", "attempts")}
    if as_json or format == "json":
        typer.echo(json_text({name: [_plain(row) for row in rows] for name, rows in parts.items()}))
        return
    for name, (columns, below) in _SHOWN.items():
        rows = parts[name]
        if rows:
            cells = ([_cell(column, row[column]) for column in columns] for row in rows)
            print_table(columns, cells, title=name, below=below)
    last = history.lines[-1] if history.lines else {}
    if last.get("explanation"):
        typer.echo(f"Why there is no file: {printable(last['explanation'])}")


def where(
    key: Annotated[str, typer.Argument(metavar="ID", help="A work's id, or the first digits of a file's sha256.")],
    run: RunOption = Path("."),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the path of a work's file, one path per line. Exit code 1: there is no file.

    Example: content catalog where 10.1371/journal.pone.0000308 --run my-corpus
    """
    with open_catalog(run, None, config) as catalog:
        found = next((files for name in names_for(key) if (files := catalog.find_files(name))), [])
    from DocsToKG.ContentDownload.bootstrap import open_files

    cfg = folder_settings(run, config=config)
    root, store = place_of_files(cfg), open_files(cfg)
    places = [
        {"doc_id": file.doc_id, "path": f"{root}/{file.path}", "sha256": file.sha256, "exists": store.exists(file.path)}
        for file in found
    ]
    if as_json:
        typer.echo(json_text(places))
    for place in () if as_json else places:
        typer.echo(place["path"] if place["exists"] else f"{place['path']} is gone", err=not place["exists"])
    if not places:
        typer.echo(f"There is no file of {printable(key)} here; {_ELSEWHERE}.", err=True)
    raise typer.Exit(0 if places and all(place["exists"] for place in places) else 1)


_FLAGS = frozenset({"cache_hit", "is_guess", "is_retracted", "from_cache", "revalidated", "corrupt", "damaged"})
_JSON = frozenset({"fallback_chain", "hops", "candidates", "validation"})
# What is shown of each part, and the column that is too long for a table.
_SHOWN: dict[str, tuple[tuple[str, ...], str | None]] = {
    "lines": (("created_at", "doc_id", "status", "reason", "resolver", "tier", "path"), "path"),
    "downloads": (("doc_id", "sha256", "size_bytes", "license", "path"), "path"),
    "sources": (("ts", "tier", "source", "outcome", "reason", "elapsed_ms"), None),
    "attempts": (("ts", "resolver", "verb", "status", "http_status", "reason", "url"), "url"),
}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the database with lists and flags as `manifest.jsonl` has them."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    if name in _FLAGS and isinstance(value, int):
        return bool(value)
    if name not in _JSON or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value  # somebody edited the record


def _cell(column: str, value: Any) -> Any:
    """The moment of a row in the width that a table has for it; --format json has all of it."""
    return value[5:19].replace("T", " ") if column in ("ts", "created_at") and isinstance(value, str) else value
