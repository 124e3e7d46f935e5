"""`content catalog unproved`: files in which nothing shows that they are the paper, and what a person says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import (
    folder_settings,
    locked,
    names_for,
    open_catalog,
    place_of_files,
    shared_record,
)
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption, RunOption
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.unproved import UnprovedFile
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

_DIGITS = 6  # of a digest


def unproved(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Works, or the first digits of a file's sha256.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Keep the files: they are the papers.")] = False,
    reject: Annotated[
        bool, typer.Option("--reject", help="Remove the files, and never accept them again for these works.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="With --accept or --reject: every file listed.")] = False,
    run: RunOption = Path("."),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the files that are not proved to be the paper, and accept or reject them.

    A file is unproved when it has too little to compare, like a scan without text. A file whose URL is in the work's
    own metadata is kept; a file from a guess or from a page's link waits in quarantine, and its work counts as not
    obtained. Look at the file, then accept or reject it. No run may use the folder at the same time.

    Examples:

      content catalog unproved --run my-corpus

      content catalog unproved doi:10.1234/abcd --accept --run my-corpus

      content catalog unproved 3f9c0a71 --reject --run my-corpus
    """
    is_settling = _check(keys or [], accept, reject, everything)
    with open_catalog(run, None, config) as catalog:
        found = _meant(catalog.unproved(), keys or [])
    cfg = folder_settings(run, config=config)
    if accept:
        _refuse_several(found)
    if is_settling:
        found = _settle(cfg, [(file.doc_id, file.sha256) for file in found], accept=accept)
    root = place_of_files(cfg)
    if as_json:
        listed = [_plain(file, root) for file in found]
        typer.echo(json_text({"accepted" if accept else "rejected": listed} if is_settling else listed))
    elif is_settling:
        for file in found:
            typer.echo(f"{printable(file.doc_id)}: {'accepted' if accept else 'rejected'} {file.sha256[:16]}")
        again = "" if accept else " `content pull` or `content resume` looks for other copies."
        typer.echo(f"Files settled: {len(found)}.{again}", err=True)
    else:
        _show(found, root)


def _check(keys: Sequence[str], accept: bool, reject: bool, everything: bool) -> bool:
    """Whether files are to be settled."""
    if accept and reject:
        raise typer.BadParameter("a file is accepted or rejected", param_hint="--accept")
    is_settling = accept or reject
    if everything and (keys or not is_settling):
        raise typer.BadParameter("it goes with --accept or --reject, and without an ID", param_hint="--all")
    if is_settling and not keys and not everything:
        raise typer.BadParameter("name the files that are meant, or all of them with --all", param_hint="ID")
    return is_settling


def _refuse_several(files: Sequence[UnprovedFile]) -> None:
    """A work is one paper."""
    several = {file.doc_id for file in files if sum(file.doc_id == other.doc_id for other in files) > 1}
    if several:
        named = printable(", ".join(sorted(several)[:3]))
        raise typer.BadParameter(f"several files wait for {named}; name one by its sha256", param_hint="--accept")


def _meant(files: Sequence[UnprovedFile], keys: Sequence[str]) -> list[UnprovedFile]:
    """The files that the keys name, or all; a key that names none ends the command."""
    if not keys:
        return list(files)
    found: dict[tuple[str, str], UnprovedFile] = {}
    for key in keys:
        names = names_for(key)
        named = [file for file in files if file.doc_id in names or _is_digest(key, file)]
        if not named:
            typer.echo(f"No unproved file is known of {printable(key)}; without an ID all are listed.", err=True)
            raise typer.Exit(1)
        found |= {(file.doc_id, file.sha256): file for file in named}
    return list(found.values())


def _is_digest(key: str, file: UnprovedFile) -> bool:
    return len(key) >= _DIGITS and file.sha256.startswith(key.lower())


def _settle(cfg: ContentDownloadConfig, chosen: Sequence[tuple[str, str]], *, accept: bool) -> list[UnprovedFile]:
    """Accept or reject the chosen files that are still unproved once the folder is locked."""
    from DocsToKG.ContentDownload.holdings import open_catalog, open_settling
    from DocsToKG.core.clock import SystemClock

    done = []
    with locked(cfg) as own, shared_record(own) as shared, open_catalog(own, shared) as catalog:
        settling = open_settling(own, catalog, clock=SystemClock(), shared=shared)
        for file in catalog.unproved():
            if (file.doc_id, file.sha256) not in chosen:
                continue
            if accept:
                settling.accept(file)
            else:
                settling.reject(file)
            done.append(file)
    return done


def _plain(file: UnprovedFile, root: str) -> dict[str, Any]:
    return {**file.to_dict(), "file": f"{root}/{file.path}"}


def _show(files: Sequence[UnprovedFile], root: str) -> None:
    if not files:
        typer.echo("No file is unproved.", err=True)
        return
    columns = ("doc_id", "state", "sha256", "source", "why", "file")
    rows = [
        [file.doc_id, file.state, file.sha256[:12], file.source, _why(file), f"{root}/{file.path}"] for file in files
    ]
    print_table(columns, rows, below="file")
    waiting = sum(file.state == "quarantined" for file in files)
    typer.echo(
        f"{len(files)} unproved files, {waiting} of them in quarantine; --accept or --reject settles them.", err=True
    )


def _why(file: UnprovedFile) -> str:
    """What the file lacks, in the words of the verdict."""
    evidence = file.validation.get("evidence") or ["nothing to compare"]
    return "; ".join(str(note).removeprefix("not-proved: ") for note in evidence[:2])
