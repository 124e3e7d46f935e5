"""`content index`: the offline index of open copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import JsonOption, Quiet, parse_size, with_groups
from DocsToKG.ContentDownload.cli.tables import Occasionally, json_text, print_table, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.index.build import Progress, Wanted
    from DocsToKG.ContentDownload.index.engine import Limits
    from DocsToKG.ContentDownload.index.manifest import Manifest
    from DocsToKG.ContentDownload.index.reader import KnownWork

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the index.")]


def _files_of(what: str) -> Any:
    return typer.Option(metavar="FILES", help=f"{what} A file, a folder, a pattern or s3://...")


Files = list[str] | None


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """The public files that an index is built from."""

    openalex: Annotated[Files, _files_of("Works of the OpenAlex snapshot (JSON lines or Parquet).")] = None
    unpaywall: Annotated[Files, _files_of("Unpaywall's dump or feed.")] = None
    crossref: Annotated[Files, _files_of("Crossref's public file.")] = None
    pmc: Annotated[Files, _files_of("Metadata of PMC's cloud bucket.")] = None
    pmc_inventory: Annotated[
        Files, _files_of("PMC's inventory; metadata of articles that it does not list are left out.")
    ] = None
    arxiv: Annotated[Files, _files_of("arXiv's metadata (JSON lines).")] = None
    datacite: Annotated[Files, _files_of("DataCite's public file (tar, or its JSON lines).")] = None
    copies: Annotated[Files, _files_of("Your own table with columns id, url, and license, version, kind.")] = None
    deleted: Annotated[Files, _files_of("Ids of deleted records, like OpenAlex's deleted_ids.csv.")] = None
    bad_lines: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of unreadable records to accept, per source.")
    ] = 0.01

    def wanted(self, *, files: int | None = None) -> Wanted:
        from DocsToKG.ContentDownload.index.build import Wanted

        names = ("openalex", "unpaywall", "crossref", "pmc", "arxiv", "datacite", "copies")
        sources = [(name, address) for name in names for address in getattr(self, name) or ()]
        return Wanted(sources, self.deleted or (), self.pmc_inventory or (), self.bad_lines, files)


Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory for sorting and joining.")]


@dataclass(frozen=True, slots=True)
class SortOptions:
    """What sorting and joining may use."""

    memory: Memory = "2GB"
    threads: Annotated[int, typer.Option(min=0, help="Threads; 0: one for each processor.")] = 0
    spill: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for what does not fit into memory; default: in the index."),
    ] = None

    def limits(self) -> Limits:
        from DocsToKG.ContentDownload.index.engine import Limits

        return Limits(parse_size(self.memory), self.threads, self.spill)


@with_groups
def build(
    *,
    folder: Dir,
    snapshots: SnapshotOptions,
    sorting: SortOptions,
    files: Annotated[int | None, typer.Option(min=1, max=4096, help="Files of the index; default: by size.")] = None,
    quiet: Quiet = False,
    as_json: JsonOption = False,
) -> None:
    """Build an index of open copies from public files. An existing index stays until the new one is complete. After an
    interruption, the same command continues.

    Examples:

      content index build oa --openalex openalex-snapshot/data/jsonl/works --pmc metadata/

      content index build oa --openalex "s3://openalex/data/jsonl/works/updated_date=2026-06-01" --copies mine.csv
    """
    from DocsToKG.ContentDownload.index.build import build as make

    wanted = snapshots.wanted(files=files)
    if not wanted.sources:
        raise typer.BadParameter("name the files of at least one source, such as --openalex works/")
    _make(make, folder, wanted, sorting.limits(), quiet=quiet, as_json=as_json)


@with_groups
def update(
    *,
    folder: Dir,
    snapshots: SnapshotOptions,
    sorting: SortOptions,
    quiet: Quiet = False,
    as_json: JsonOption = False,
) -> None:
    """Update an index with newer files of its sources and with deletions.

    Example: content index update oa --openalex works/updated_date=2026-10-01 --deleted works/deleted_ids.csv
    """
    from DocsToKG.ContentDownload.index.build import update as make

    wanted = snapshots.wanted()
    if not wanted.sources and not wanted.deleted:
        raise typer.BadParameter("name newer files of a source, or --deleted ids")
    _make(make, folder, wanted, sorting.limits(), quiet=quiet, as_json=as_json)


def info(folder: Dir, as_json: JsonOption = False) -> None:
    """Show what an index holds: its sources with their dates, works, open works, size.

    Example: content index info oa
    """
    from DocsToKG.ContentDownload.errors import InputError
    from DocsToKG.ContentDownload.index.manifest import read_manifest

    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder} holds no index; make one with: content index build")
    _print_info(manifest, as_json=as_json)


def lookup(
    folder: Dir,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="DOIs, arXiv ids, PMCIDs, PMIDs, OpenAlex ids.")],
    as_json: JsonOption = False,
) -> None:
    """Show what the index holds on works, offline. Exit code 3: no copy of some work is known.

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


def export(
    folder: Dir,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A .parquet or .csv file.")],
    memory: Memory = "2GB",
) -> None:
    """Write every copy as a row of a table, works without one as a row without an address.

    Example: content index export oa copies.parquet
    """
    from DocsToKG.ContentDownload.index.reader import Index

    with Index(folder, limits=SortOptions(memory).limits()) as index:
        typer.echo(f"{index.export(target)} rows in {target}")


def verify(folder: Dir, quiet: Quiet = False) -> None:
    """Read every file of an index and compare it with its checksum. Exit code 1: a file is damaged or missing.

    Example: content index verify oa
    """
    from DocsToKG.ContentDownload.index.reader import Index

    say = Occasionally(quiet)
    with Index(folder) as index:
        problems = index.verify(lambda done, total: say(f"{done} of {total} files read"))
    for problem in problems:
        typer.echo(problem)
    if problems:
        raise typer.Exit(ExitCode.FAILED)
    typer.echo("Every file is intact.")


def _make(
    make: Callable[..., Manifest], folder: Path, wanted: Wanted, limits: Limits, *, quiet: bool, as_json: bool
) -> None:
    say = Occasionally(quiet)
    try:
        manifest = make(folder, wanted, limits=limits, watch=lambda progress: say(_shown(progress)))
    except KeyboardInterrupt:
        typer.echo("Interrupted; the index is unchanged. The same command continues from here.", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _print_info(manifest, as_json=as_json)


def _shown(progress: Progress) -> str:
    rate = progress.rows / progress.seconds if progress.seconds else 0
    what = ("files read", "works") if progress.step == "reading" else ("files of the index written", "rows")
    left = progress.seconds / progress.done * (progress.total - progress.done)
    done = f"{progress.done} of {progress.total} {what[0]}: {progress.rows:,} {what[1]}"
    return f"{done}, {rate:,.0f} a second, {left:,.0f} s left"


def _print_info(manifest: Manifest, *, as_json: bool) -> None:
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
