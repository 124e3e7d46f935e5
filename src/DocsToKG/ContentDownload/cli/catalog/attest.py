"""`content catalog attest`, and the check of a copy against what was signed. A command parses, calls, prints."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import folder_settings, how_to_mend, looked_at, open_catalog
from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption, FileThreads, JsonOption, RunOption
from DocsToKG.ContentDownload.cli.tables import json_text, printable, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.attestation.attesting import Attested
    from DocsToKG.ContentDownload.attestation.checking import Compared

DEFAULT_NAME = "corpus.intoto.jsonl"
DEFAULT_KEYS = Path("state/keys")  # where `docstokg-orchestrator audit keys` has them by default
_SHOWN = 50

AttestationOption = Annotated[
    Path | None, typer.Option("--attestation", metavar="FILE", help="Compare the files with this attestation.")
]
ThresholdOption = Annotated[int, typer.Option("--threshold", min=1, help="How many of these keys must have signed.")]
AtOption = Annotated[
    datetime | None,
    typer.Option(
        "--at",
        metavar="TIME",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
        help="Accept keys that were valid at this time, in UTC; for --attestation.",
        show_default="now",
    ),
]


def attest(
    run: RunOption = Path("."),
    keys: Annotated[Path, typer.Option("--keys", metavar="DIR", help="Folder of your own keys.")] = DEFAULT_KEYS,
    signer: Annotated[
        list[str] | None,
        typer.Option("--signer", metavar="NAME", help="Sign with this key.", show_default="the newest of every name"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write.", show_default=f"{DEFAULT_NAME} in the folder"
        ),
    ] = None,
    threads: FileThreads = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hash every file of a corpus and sign the list: digest, works, source, licence and time of each.

    Anyone with a copy can check it with `catalog verify --attestation`. The command signs nothing while a file is
    damaged or missing. Make a key once with `docstokg-orchestrator audit keys new`.

    Example: content catalog attest --run my-corpus --keys state/keys
    """
    from DocsToKG.ContentDownload.attestation.attesting import attest as sign_all
    from DocsToKG.ContentDownload.bootstrap import open_files
    from DocsToKG.ContentDownload.telemetry.snapshots import replacing
    from DocsToKG.core.clock import utc_iso
    from DocsToKG.core.product import product_version
    from DocsToKG.Orchestrator.signing.keyring import KeyFolder

    cfg, folder = folder_settings(run, config=config), looked_at(run, config)
    place, now = out or folder / DEFAULT_NAME, time.time()
    signers = KeyFolder(keys).signers(now, signer or ())
    with open_catalog(run, None, config) as catalog, replacing(place) as file:
        done = sign_all(
            catalog.files(),
            open_files(cfg),
            file,
            name=folder.resolve().name,
            at=utc_iso(now),
            tool=f"docstokg {product_version()}",
            signers=signers,
            threads=threads or os.cpu_count() or 2,
        )
        if done.spoiled or not done.files:
            _tell(done, place, [one.key.shown for one in signers], as_json)
            raise typer.Exit(ExitCode.FAILED)  # `replacing` then keeps nothing
    _tell(done, place, [one.key.shown for one in signers], as_json)


def check_copy(
    root: Path,
    attestation: Path | None,
    trust: Path | None,
    threshold: int,
    at: datetime | None,
    threads: int,
    as_json: bool,
) -> ExitCode:
    """Compare a folder with an attestation, and say what differs."""
    if attestation is None or trust is None:
        raise typer.BadParameter("--attestation and --trust go together: what was signed, and whom one believes")
    from DocsToKG.ContentDownload.attestation.checking import check
    from DocsToKG.ContentDownload.errors import InputError
    from DocsToKG.Orchestrator.signing.keyring import read_trust
    from DocsToKG.Orchestrator.signing.keys import Trust

    if not root.is_dir():
        raise InputError(f"{root} is not a folder; name the copy with --run")
    then = time.time() if at is None else at.replace(tzinfo=UTC).timestamp()
    believed = Trust(read_trust(trust), then, threshold)
    try:
        with attestation.open("rb") as file:
            found = check(file, root, believed, threads=threads)
    except FileNotFoundError:
        raise InputError(f"there is no attestation at {attestation}") from None
    _show(found, as_json)
    return ExitCode.OK if found.is_good else ExitCode.FAILED


def _tell(done: Attested, place: Path, signers: list[str], as_json: bool) -> None:
    is_good = bool(done.files) and not done.spoiled
    if as_json:
        spoiled = [{"path": path, "found": found} for path, found in done.spoiled]
        told = {"ok": is_good, "files": done.files, "bytes": done.bytes, "parts": done.parts, "spoiled": spoiled}
        typer.echo(json_text({**told, "attestation": str(place) if is_good else None, "signers": signers}))
    elif is_good:
        typer.echo(f"{done.files} files, {size_text(done.bytes)}, signed by {', '.join(signers)}: {printable(place)}")
    for path, found in [] if as_json else done.spoiled[:_SHOWN]:
        typer.echo(f"{found}: {printable(path)}")
    if done.spoiled:
        typer.echo(
            f"Nothing was signed: {len(done.spoiled)} files are not what the record says; "
            f"{how_to_mend({found for _, found in done.spoiled})}.",
            err=True,
        )
    elif not done.files:
        typer.echo("Nothing was signed: no file is on the record.", err=True)


def _show(found: Compared, as_json: bool) -> None:
    corpus = found.corpus
    assert corpus is not None  # an attestation without a part is refused before
    lists = {"changed": found.changed, "missing": found.missing, "extra": found.extra, "unreadable": found.unreadable}
    if as_json:
        told = {"ok": found.is_good, "corpus": corpus.name, "attested_at": corpus.attested_at, "tool": corpus.tool}
        typer.echo(json_text({**told, "files": found.files, "bytes": found.bytes, **lists}))
        return
    for what, names in lists.items():
        for name in names:
            typer.echo(f"{what}: {printable(name)}")
    counts = ", ".join(f"{len(names)} {what}" for what, names in lists.items() if names or what != "unreadable")
    typer.echo(
        f"{printable(corpus.name)}, attested {printable(corpus.attested_at)}: {found.files} files, "
        f"{size_text(found.bytes)} compared: {counts}."
    )
