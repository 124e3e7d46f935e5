"""`content index`: the offline index of open copies."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.index.build import Progress, Wanted
    from DocsToKG.ContentDownload.index.engine import Limits
    from DocsToKG.ContentDownload.index.manifest import Manifest
    from DocsToKG.ContentDownload.index.reader import KnownWork

index_app = typer.Typer(
    no_args_is_help=True,
    help="Know open copies of millions of works without asking anyone: an index made of public snapshots.\n\n"
    "Needs the extra: pip install 'docstokg[bulk]'. Start here: content index build DIR --openalex works/",
)

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the index.")]


def _files_of(what: str) -> Any:
    return typer.Option(metavar="FILES", help=f"{what} A file, a folder, a pattern or s3://...", show_default=False)


OpenAlex = Annotated[list[str] | None, _files_of("Works of the OpenAlex snapshot (JSON lines or Parquet).")]
Unpaywall = Annotated[list[str] | None, _files_of("Unpaywall's dump or feed.")]
Crossref = Annotated[list[str] | None, _files_of("Crossref's public file.")]
Pmc = Annotated[list[str] | None, _files_of("Metadata of PMC's cloud bucket.")]
Inventory = Annotated[list[str] | None, _files_of("PMC's inventory; metadata that it does not name are left out.")]
Arxiv = Annotated[list[str] | None, _files_of("arXiv's metadata (JSON lines).")]
Datacite = Annotated[list[str] | None, _files_of("DataCite's public file (tar, or its JSON lines).")]
Copies = Annotated[list[str] | None, _files_of("Your own table with columns id, url, and license, version, kind.")]
Deleted = Annotated[list[str] | None, _files_of("Ids of deleted records, like OpenAlex's deleted_ids.csv.")]
BadLines = Annotated[
    float, typer.Option("--bad-lines", min=0, max=1, metavar="SHARE", help="Unreadable records of a source to accept.")
]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory for sorting and joining.")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="Threads; 0: one for each processor.")]
Spill = Annotated[
    Path | None,
    typer.Option("--spill", metavar="DIR", help="Folder for what does not fit into memory; default: in the index."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@index_app.command()
def build(
    folder: Dir,
    openalex: OpenAlex = None,
    unpaywall: Unpaywall = None,
    crossref: Crossref = None,
    pmc: Pmc = None,
    pmc_inventory: Inventory = None,
    arxiv: Arxiv = None,
    datacite: Datacite = None,
    copies: Copies = None,
    deleted: Deleted = None,
    bad_lines: BadLines = 0.01,
    memory: Memory = "2GB",
    threads: Threads = 0,
    spill: Spill = None,
    files: Annotated[
        int | None,
        typer.Option("--files", min=1, max=4096, help="Files of the index; default: by size.", show_default=False),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make an index of open copies from public files. An index that is there stays until the new one is whole; the same
    command goes on where it was interrupted.

    Examples:

      content index build oa --openalex openalex-snapshot/data/jsonl/works --pmc metadata/

      content index build oa --openalex "s3://openalex/data/jsonl/works/updated_date=2026-06-01" --copies mine.csv
    """
    from DocsToKG.ContentDownload.index.build import Wanted
    from DocsToKG.ContentDownload.index.build import build as make

    sources = _sources(openalex, unpaywall, crossref, pmc, arxiv, datacite, copies)
    if not sources:
        raise typer.BadParameter("name the files of at least one source, such as --openalex works/")
    wanted = Wanted(sources, deleted or (), pmc_inventory or (), bad_lines, files)
    _make(make, folder, wanted, _limits(memory, threads, spill), quiet=quiet, as_json=as_json)


@index_app.command()
def update(
    folder: Dir,
    openalex: OpenAlex = None,
    unpaywall: Unpaywall = None,
    crossref: Crossref = None,
    pmc: Pmc = None,
    pmc_inventory: Inventory = None,
    arxiv: Arxiv = None,
    datacite: Datacite = None,
    copies: Copies = None,
    deleted: Deleted = None,
    bad_lines: BadLines = 0.01,
    memory: Memory = "2GB",
    threads: Threads = 0,
    spill: Spill = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Bring an index up to date with newer files of its sources and with deletions.

    Example: content index update oa --openalex works/updated_date=2026-10-01 --deleted works/deleted_ids.csv
    """
    from DocsToKG.ContentDownload.index.build import Wanted
    from DocsToKG.ContentDownload.index.build import update as make

    sources = _sources(openalex, unpaywall, crossref, pmc, arxiv, datacite, copies)
    if not sources and not deleted:
        raise typer.BadParameter("name newer files of a source, or --deleted ids")
    wanted = Wanted(sources, deleted or (), pmc_inventory or (), bad_lines)
    _make(make, folder, wanted, _limits(memory, threads, spill), quiet=quiet, as_json=as_json)


@index_app.command()
def info(folder: Dir, as_json: AsJson = False) -> None:
    """What an index holds: its sources with their dates, works, open works, size.

    Example: content index info oa
    """
    from DocsToKG.ContentDownload.errors import InputError
    from DocsToKG.ContentDownload.index.manifest import read_manifest

    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder} holds no index; make one with: content index build")
    _print_info(manifest, as_json=as_json)


@index_app.command()
def lookup(
    folder: Dir,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="DOIs, arXiv ids, PMCIDs, PMIDs, OpenAlex ids.")],
    as_json: AsJson = False,
) -> None:
    """What the index knows of works, without asking anyone. Exit code 3 when no copy of a work is known.

    Example: content index lookup oa 10.1371/journal.pone.0000308 PMC553680
    """
    from DocsToKG.ContentDownload.index.joining import names_of
    from DocsToKG.ContentDownload.index.reader import Access, Index
    from DocsToKG.ContentDownload.resolvers.ids.identifier import parse_identifier, to_work

    names = [str(parse_identifier(text)) for text in ids]
    with Index(folder) as index:
        works = [to_work(parse_identifier(text)) for text in ids]
        found = index.lookup([next(iter(names_of(work)), work.work_id) for work in works])
    for name, work in zip(names, found, strict=True):
        _print_work(name, work, as_json=as_json)
    if any(work.access is not Access.OPEN for work in found):
        raise typer.Exit(ExitCode.INCOMPLETE)


@index_app.command()
def export(
    folder: Dir,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A .parquet or .csv file.")],
    memory: Memory = "2GB",
) -> None:
    """Write every copy as a row of a table, works without one as a row without an address.

    Example: content index export oa copies.parquet
    """
    from DocsToKG.ContentDownload.index.reader import Index

    with Index(folder, limits=_limits(memory, 0, None)) as index:
        typer.echo(f"{index.export(target)} rows in {target}")


@index_app.command()
def verify(folder: Dir, quiet: Quiet = False) -> None:
    """Read every file of an index and compare it with what was written. Exit code 1 when something is wrong.

    Example: content index verify oa
    """
    from DocsToKG.ContentDownload.index.reader import Index

    say = _Now(quiet)
    with Index(folder) as index:
        problems = index.verify(lambda done, total: say(f"{done} of {total} files read"))
    for problem in problems:
        typer.echo(problem)
    if problems:
        raise typer.Exit(ExitCode.FAILED)
    typer.echo("Every file is what was written.")


def _sources(*given: list[str] | None) -> list[tuple[str, str]]:
    names = ("openalex", "unpaywall", "crossref", "pmc", "arxiv", "datacite", "copies")
    return [(name, address) for name, addresses in zip(names, given, strict=True) for address in addresses or ()]


def _limits(memory: str, threads: int, spill: Path | None) -> Limits:
    from DocsToKG.ContentDownload.cli.options import parse_size
    from DocsToKG.ContentDownload.index.engine import Limits

    return Limits(parse_size(memory), threads, spill)


def _make(
    make: Callable[..., Manifest], folder: Path, wanted: Wanted, limits: Limits, *, quiet: bool, as_json: bool
) -> None:
    say = _Now(quiet)
    try:
        manifest = make(folder, wanted, limits=limits, watch=lambda progress: say(_shown(progress)))
    except KeyboardInterrupt:
        typer.echo("Interrupted; the index is as it was. The same command goes on from here.", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _print_info(manifest, as_json=as_json)


class _Now:
    """Says something now and then."""

    def __init__(self, quiet: bool, every_s: float = 2.0) -> None:
        self._quiet = quiet
        self._every_s = every_s
        self._said = 0.0

    def __call__(self, text: str) -> None:
        if not self._quiet and time.monotonic() - self._said > self._every_s:
            self._said = time.monotonic()
            typer.echo(text, err=True)


def _shown(progress: Progress) -> str:
    rate = progress.rows / progress.seconds if progress.seconds else 0
    what = ("files read", "works") if progress.step == "reading" else ("files of the index written", "rows")
    left = progress.seconds / progress.done * (progress.total - progress.done)
    done = f"{progress.done} of {progress.total} {what[0]}: {progress.rows:,} {what[1]}"
    return f"{done}, {rate:,.0f} a second, {left:,.0f} s left"


def _print_info(manifest: Manifest, *, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        told = asdict(manifest) | {"files": len(manifest.files), "size_bytes": manifest.size_bytes}
        typer.echo(json_text(told))
        return
    rows = [
        (name, f"{info.records:,}", info.newest or "", info.read_at or "", str(info.bad_lines))
        for name, info in manifest.sources.items()
    ]
    print_table(("source", "records", "newest record", "read at", "bad lines"), rows, title="Sources")
    for info in manifest.sources.values():
        for reason, (count, example) in info.bad.items():
            typer.echo(f"  {count} times {reason}, as {example}")
    typer.echo(
        f"{manifest.works:,} works: {manifest.open_works:,} open with {manifest.copies:,} copies, "
        f"{manifest.closed_works:,} closed; {size_text(manifest.size_bytes)} in {len(manifest.files)} files, "
        f"built at {manifest.built_at}"
    )


def _print_work(name: str, work: KnownWork, *, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        typer.echo(json_text({"id": name, **asdict(work)}))
        return
    said = {"open": f"open, {len(work.copies)} copies", "closed": "closed", "unknown": "unknown to the index"}
    title = f": {work.title[:80]}" if work.title else ""
    columns = ("source", "kind", "version", "license", "host_type", "evidence", "url")
    heading = f"{name}{title} ({said[work.access]})"
    if work.copies:
        print_table(columns, [[copy[column] for column in columns] for copy in work.copies], title=heading, below="url")
    else:
        typer.echo(heading)
