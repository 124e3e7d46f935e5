"""`content catalog verify`, `gc` and `dedup-report`: are the stored files whole, and is every one of them needed?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.catalog.attest import (
    AtOption,
    AttestationOption,
    ThresholdOption,
    check_copy,
)
from DocsToKG.ContentDownload.cli.catalog.folder import (
    catalog_of,
    folder_settings,
    how_to_mend,
    looked_at,
    open_catalog,
    place_of_files,
    shared_record,
)
from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption, FileThreads, JsonOption, Quiet, RunOption, TrustOption
from DocsToKG.ContentDownload.cli.tables import Occasionally, json_text, print_table, printable, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.store import Catalog, Download
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.maintenance.verification import Findings

_SHOWN = 50


def verify(
    run: RunOption = Path("."),
    repair: Annotated[bool, typer.Option("--repair", help="Download damaged and missing files again.")] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Start over instead of continuing an interrupted check.")
    ] = False,
    threads: FileThreads = None,
    quiet: Quiet = False,
    attestation: AttestationOption = None,
    trust: TrustOption = None,
    threshold: ThresholdOption = 1,
    at: AtOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hash every stored file again, and report what is damaged, what is missing and what no record names.

    An interrupted check continues where it stopped. Exit code 1: files are damaged or missing; 3, with --repair: some
    could not be downloaded again. With --attestation the folder may be a copy on any machine: the command compares it
    with what was signed, and needs neither a record nor a network.

    Examples:

      content catalog verify --run my-corpus

      content catalog verify --run my-corpus --repair

      content catalog verify --run a-copy --attestation corpus.intoto.jsonl --trust trust.json
    """
    if attestation is not None or trust is not None:
        if repair or afresh or config is not None:
            raise typer.BadParameter("with --attestation the command only reads the copy", param_hint="--repair")
        raise typer.Exit(check_copy(run, attestation, trust, threshold, at, threads or os.cpu_count() or 2, as_json))
    cfg, run = folder_settings(run, config=config), looked_at(run, config)
    findings = _check(cfg, run, threads or os.cpu_count() or 2, afresh=afresh, quiet=quiet)
    _note(cfg, run, findings)
    lost = _repair(run, findings.works, quiet=quiet, config=config) if repair and findings.works else None
    _show(findings, lost, as_json)
    if lost is None:
        raise typer.Exit(ExitCode.OK if findings.is_good else ExitCode.FAILED)
    raise typer.Exit(ExitCode.INCOMPLETE if lost or findings.unreadable else ExitCode.OK)


def gc(
    run: RunOption = Path("."),
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove the objects; without it they are only listed.")
    ] = False,
    other_run: Annotated[
        list[Path] | None, typer.Option("--other-run", metavar="DIR", help="Another run that uses the same store.")
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="No other run or record uses the store.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the objects of the store that no record names, and remove them with --delete.

    A file whose work was obtained again with other bytes is one of them, and so is one in quarantine whose work was
    obtained elsewhere. In a bucket only those are that are older
    than an hour, and machines may work on meanwhile.

    Examples:

      content catalog gc --run my-corpus

      content catalog gc --run my-corpus --delete

      content catalog gc -c prod.yaml --delete --alone
    """
    from DocsToKG.ContentDownload.bootstrap import open_files
    from DocsToKG.ContentDownload.maintenance.cleanup import left_in_quarantine, superseded_names, unnamed
    from DocsToKG.ContentDownload.storage.bucket import SETTLED_S

    cfg, catalogs = folder_settings(run, config=config), [open_catalog(run, None, config)]
    run = looked_at(run, config)
    is_own = cfg.storage.backend == "fs" and Path(cfg.storage.root_dir).resolve() == run.resolve()
    if delete and not is_own and not other_run and not alone:
        raise typer.BadParameter(
            f"the store {place_of_files(cfg)} is not this run's own: name every other run that uses it with"
            " --other-run, or say --alone when there is none"
        )
    # In a bucket a young object may be another machine's that is about to record it.
    files = open_files(cfg, settled_s=SETTLED_S)
    catalogs += [open_catalog(one) for one in other_run or ()]
    with ExitStack() as opened:
        if cfg.storage.backend == "fs":
            _hold(opened, run, *(other_run or ()))
        for catalog in catalogs:
            opened.enter_context(catalog)
        found = [*unnamed(files, _named_by(catalogs)), *superseded_names(files, catalogs)]
        found += left_in_quarantine(files, catalogs)
        removed = sum(files.delete(file.key) for file in found) if delete else 0
    total = sum(file.size for file in found)
    if as_json:
        listed = [{"key": file.key, "size_bytes": file.size} for file in found]
        typer.echo(json_text({"unnamed": listed, "bytes": total, "removed": removed}))
        return
    for file in found[:_SHOWN]:
        typer.echo(printable(file.key))
    if not found:
        typer.echo("Every object of the store is on record.", err=True)
        return
    more = f" ({len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
    way_on = f"{removed} removed" if delete else "nothing was removed; --delete removes them"
    typer.echo(f"Objects that no record names: {len(found)}{more}, {size_text(total)}: {way_on}.", err=True)


def _hold(opened: ExitStack, *runs: Path) -> None:
    """No run may store a file between the look and the removal."""
    from DocsToKG.ContentDownload.run_folder import RunFolder

    for folder in {run.resolve(): run for run in runs if run.is_dir() or run == runs[0]}.values():
        opened.enter_context(RunFolder(folder))


def dedup_report(
    run: RunOption = Path("."),
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Files shown.")] = 20,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the files that several works share, and the bytes that this saves.

    Example: content catalog dedup-report --run my-corpus
    """
    with open_catalog(run, None, config) as catalog:
        totals, shared = catalog.duplicates(limit=limit)
    if as_json:
        typer.echo(json_text({**totals, "shared": shared}))
        return
    columns = ("sha256", "works", "size_bytes", "bytes_saved", "doc_ids")
    if shared:
        print_table(columns, [[row["sha256"][:16], *_cells(row)] for row in shared])
    typer.echo(
        f"{totals['works']} works, {totals['files']} files; {totals['shared_files']} of them serve several works. "
        f"{size_text(totals['bytes_stored'])} stored, {size_text(totals['bytes_saved'])} saved."
    )


def _cells(row: dict[str, Any]) -> list[Any]:
    shown = ", ".join(row["doc_ids"][:4]) + (" ..." if row["works"] > 4 else "")
    return [row["works"], row["size_bytes"], row["bytes_saved"], shown]


def _check(cfg: ContentDownloadConfig, run: Path, threads: int, *, afresh: bool, quiet: bool) -> Findings:
    from DocsToKG.ContentDownload.bootstrap import open_files
    from DocsToKG.ContentDownload.maintenance.verification import Verifier

    with catalog_of(cfg, run) as catalog:
        beside = list(catalog.supplements())

        def on_record(prefix: str) -> Iterable[Download]:
            return chain(catalog.files(prefix), (file for file in beside if file.sha256.startswith(prefix)))

        verifier = Verifier(
            open_files(cfg),
            on_record=on_record,
            waiting={file.sha256 for file in catalog.unproved()},
            checkpoint=run / "state" / "verify.json",
            threads=threads,
            has_cas=cfg.storage.cas_enabled,
            progress=_progress(quiet),
        )
        return verifier.run(afresh=afresh)


def _note(cfg: ContentDownloadConfig, run: Path, findings: Findings) -> None:
    """Mark the findings in the record, so that the report counts them and the next run repairs them."""
    from DocsToKG.ContentDownload.maintenance.verification import mark, mark_shared
    from DocsToKG.ContentDownload.run_folder import record_of
    from DocsToKG.core.clock import SystemClock

    with shared_record(cfg) as shared:
        if shared is not None:
            mark_shared(shared, findings, clock=SystemClock())
        elif not mark(record_of(run), findings, clock=SystemClock()):
            typer.echo("The record cannot be written: a report will not count what was found.", err=True)


def _progress(quiet: bool) -> Callable[[Findings], None]:
    from DocsToKG.ContentDownload.maintenance.verification import PARTS

    began, say = time.monotonic(), Occasionally(quiet, at_once=False)

    def tell(findings: Findings) -> None:
        share, speed = len(findings.parts) / PARTS, findings.bytes / max(0.001, time.monotonic() - began)
        say(f"{share:.0%}: {findings.files} files, {size_text(speed)}/s")

    return tell


def _repair(run: Path, works: list[str], *, quiet: bool, config: str | None) -> list[str]:
    """Download the works again, as any run does; returns those that could not be obtained."""
    from DocsToKG.ContentDownload.cli.launch import PATIENCE_S
    from DocsToKG.ContentDownload.cli.progress import Progress
    from DocsToKG.ContentDownload.runner import DownloadRun

    with DownloadRun(folder_settings(run, asking=True, config=config)) as download:
        download.repair(works)
        download.start()
        with Progress(quiet=quiet) as watch:
            download.wait(watch, patience_s=PATIENCE_S)
        download.stop()
        download.result()
        return download.lacking(works)


def _show(findings: Findings, lost: list[str] | None, as_json: bool) -> None:
    if as_json:
        # How far the check has come is the business of the next one, should this be cut off.
        listed = {key: value for key, value in findings.to_dict().items() if key != "parts"}
        told = {"ok": findings.is_good, **listed}
        typer.echo(json_text(told if lost is None else {**told, "not_repaired": lost}))
        return
    for what, found in (("damaged", findings.damaged), ("missing", findings.missing)):
        for file in found:
            typer.echo(f"{what}: {printable(file['key'])} ({', '.join(file['doc_ids']) or 'of no work'})")
    for key in findings.unreadable:
        typer.echo(f"unreadable: {printable(key)}")
    for key in findings.foreign:
        typer.echo(f"foreign: {printable(key)}")
    counts = f"{len(findings.damaged)} damaged, {len(findings.missing)} missing, {len(findings.foreign)} foreign"
    typer.echo(f"{findings.files} files, {size_text(findings.bytes)} hashed: {counts}.")
    if lost is not None:
        typer.echo(f"{len(findings.works) - len(lost)} works repaired, {len(lost)} not.", err=True)
    elif findings.works or findings.unreadable:
        typer.echo(f"{how_to_mend(['unreadable'] if findings.unreadable else [])}.", err=True)


def _named_by(catalogs: list[Catalog]) -> Callable[[str], bool]:
    """Whether any of the records names a digest."""
    named = {bytes.fromhex(file.sha256) for catalog in catalogs for file in catalog.files()}
    named |= {bytes.fromhex(file.sha256) for catalog in catalogs for file in catalog.unproved()}
    named |= {bytes.fromhex(file.sha256) for catalog in catalogs for file in catalog.supplements()}
    return lambda digest: _raw(digest) in named


def _raw(digest: str) -> bytes:
    try:
        return bytes.fromhex(digest)
    except ValueError:
        return b""
