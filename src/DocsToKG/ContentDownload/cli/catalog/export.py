"""`content catalog export`: the works of a folder in the forms that other programs and archives take."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import (
    folder_settings,
    how_to_mend,
    open_catalog,
    print_unknown,
)
from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption, RunOption, WorkOptions, with_groups
from DocsToKG.ContentDownload.cli.tables import printable, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.export.copying import Copied
    from DocsToKG.ContentDownload.export.warc import Written


ExportFormat = Literal["csv", "jsonl", "parquet", "bagit", "ro-crate", "warc"]
_ENDINGS: dict[str, ExportFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".warc": "warc",
}
_WITH_FILES = ("bagit", "ro-crate")


@with_groups
def export(
    *,
    run: RunOption = Path("."),
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, jsonl, parquet: a table. bagit, ro-crate, warc: with files. Default: as --out ends, else csv.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="File, or folder of a package; - is standard output."),
    ] = None,
    works: WorkOptions,
    config: ConfigOption = None,
) -> None:
    """Export works with their licence and source. Without --state: works whose file was obtained.

    Examples:

      content catalog export --run my-corpus --format csv > works.csv

      content catalog export --run my-corpus --format parquet --out works.parquet --state obtained,failed

      content catalog export --run my-corpus --format bagit --out my-bag --license cc-by,cc0

      content catalog export --run my-corpus --out my-corpus.warc.gz
    """
    from DocsToKG.ContentDownload.catalog.selection import STATES
    from DocsToKG.ContentDownload.export.rows import rows

    to_stdout = out is None or str(out) == "-"
    format = format or ("csv" if to_stdout or out is None else _ending(out))
    if format in _WITH_FILES and works.state not in (None, ["obtained"]):
        raise typer.BadParameter("a package holds files, so --state must be obtained", param_hint="--state")
    if to_stdout and format not in ("csv", "jsonl"):
        raise typer.BadParameter(f"{format} needs a file or folder; name it with --out", param_hint="--out")
    states = [*STATES] if works.state == ["any"] else works.state or ["obtained"]
    wanted = replace(works, state=states).selection()
    with open_catalog(run, None, config) as catalog:
        found = _begun(rows(catalog.each(wanted)))
        if format in _WITH_FILES:
            assert out is not None
            raise typer.Exit(_package(catalog, found, format, run, out, config))
        if format == "warc":
            assert out is not None
            raise typer.Exit(_warc(catalog, found, run, out, config))
        count = _table(found, format, None if to_stdout else out)
        if not count:
            print_unknown(catalog, wanted)
    typer.echo(f"{count} works exported{'' if to_stdout else f' to {printable(out)}'}.", err=True)


def _ending(out: Path) -> ExportFormat:
    """The format that a file's name asks for."""
    found = _ENDINGS.get(Path(out.name.lower().removesuffix(".gz")).suffix)
    if found is None:
        names = ", ".join(_ENDINGS)
        raise typer.BadParameter(
            f"{printable(out)} does not say which form is meant (by {names}); name it with --format", param_hint="--out"
        )
    return found


def _begun(works: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same works, after the first was read: a record that cannot be read is reported before anything is written."""
    first = list(islice(works, 1))
    return chain(first, works)


def _table(works: Iterable[dict[str, Any]], format: ExportFormat, out: Path | None) -> int:
    from DocsToKG.ContentDownload.export.tables import need_parquet, write_csv, write_jsonl, write_parquet
    from DocsToKG.ContentDownload.telemetry.snapshots import replacing

    if format == "parquet":
        need_parquet()
    writers = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}
    with replacing(out) if out is not None else nullcontext(sys.stdout.buffer) as file:
        return writers[format](works, file)


def _package(
    catalog: Catalog, works: Iterable[dict[str, Any]], format: ExportFormat, run: Path, out: Path, config: str | None
) -> ExitCode:
    from DocsToKG.ContentDownload.bootstrap import open_files
    from DocsToKG.ContentDownload.export.bagit import write_bag
    from DocsToKG.ContentDownload.export.ro_crate import write_crate
    from DocsToKG.core.clock import utc_iso
    from DocsToKG.core.product import product_version

    files = open_files(folder_settings(run, config=config))
    now, number = utc_iso(time.time()), product_version()
    if format == "bagit":
        copied = write_bag(works, files, out, day=now[:10], made_by=f"DocsToKG {number}")
    else:
        name = f"Papers in {run.resolve().name}"
        copied = write_crate(
            works, files, out, now=now, name=name, program="DocsToKG", version=number, runs=catalog.run_times()
        )
    return _tell(copied, out)


def _warc(catalog: Catalog, works: Iterable[dict[str, Any]], run: Path, out: Path, config: str | None) -> ExitCode:
    from DocsToKG.ContentDownload.bootstrap import open_answers, open_files
    from DocsToKG.ContentDownload.export.warc import need_warc, write_warc
    from DocsToKG.ContentDownload.telemetry.snapshots import replacing
    from DocsToKG.core.clock import utc_iso
    from DocsToKG.core.product import product_version

    need_warc()
    cfg = folder_settings(run, config=config)
    info = {
        "date": utc_iso(time.time()),
        "software": f"DocsToKG {product_version()}",
        "format": "WARC File Format 1.1",
        "isPartOf": run.resolve().name,
    }
    with open_answers(cfg) as answers, replacing(out) as file:
        written = write_warc(
            works,
            file,
            files=open_files(cfg),
            answers=answers,
            tries_of=catalog.tries_of,
            compressed=out.name.lower().endswith(".gz"),
            info=info,
        )
    typer.echo(f"{written.works} works, {written.responses} answers with their heads.", err=True)
    return _tell(written, out)


def _tell(copied: Copied | Written, out: Path) -> ExitCode:
    typer.echo(f"{copied.files} files, {size_text(copied.bytes)}, in {printable(out)}.", err=True)
    for path, what in copied.spoiled[:20]:
        typer.echo(f"Left out: {printable(path)} is {what}.", err=True)
    if copied.spoiled:
        advice = how_to_mend({found for _, found in copied.spoiled})
        typer.echo(f"{len(copied.spoiled)} files were left out; {advice}.", err=True)
    return ExitCode.INCOMPLETE if copied.spoiled else ExitCode.OK
