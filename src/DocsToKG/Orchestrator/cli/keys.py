"""Keys from the command line: `docstokg-orchestrator audit keys`. Private keys are never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from DocsToKG.Orchestrator.cli.audit import Keys, folder_of, now
from DocsToKG.Orchestrator.cli.options import JsonOption, ServedOption, ServerFile, settings_of

app = typer.Typer(no_args_is_help=True, help="Signing keys, and trusted keys.")

_DAY_S = 86_400.0
Days = Annotated[
    float | None, typer.Option("--days", min=0.01, max=36_500, help="Days until the key expires.", show_default="365")
]
Forever = Annotated[bool, typer.Option("--no-expiry", help="The key does not expire.")]


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is, such as operations.")],
    days: Days = None,
    forever: Forever = False,
    keys: Keys = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key (Ed25519). Give NAME.ID.pub.json to those who should trust it, and NAME.ID.key to nobody.

    Example: docstokg-orchestrator audit keys new operations
    """
    from DocsToKG.Orchestrator.signing.keyring import record_of

    folder, made_at = folder_of(settings_of(ledger, config, signing_keys=keys)), now()
    key = folder.new(name, made_at, _end(made_at, days, forever))
    if as_json:
        typer.echo(json.dumps(record_of(key)))
        return
    typer.echo(f"{key.key_id}  {key.name}  {key.span}")
    typer.echo(f"Give {folder.path}/{key.name}.{key.key_id[:16]}.pub.json to those who should trust it.", err=True)


@app.command("list")
def list_(
    keys: Keys = None, ledger: ServedOption = None, config: ServerFile = None, as_json: JsonOption = False
) -> None:
    """List your own keys, and which of them can still sign.

    Example: docstokg-orchestrator audit keys list
    """
    from DocsToKG.Orchestrator.signing.keyring import record_of

    folder = folder_of(settings_of(ledger, config, signing_keys=keys))
    for key in folder.all():
        able = folder.can_sign(key) and key.is_good_at(now())
        if as_json:
            typer.echo(json.dumps({**record_of(key), "signs": able}))
        else:
            typer.echo(f"{key.key_id[:16]}  {key.name}  {'signs' if able else 'retired'}  {key.span}")


@app.command("rotate")
def rotate(
    name: Annotated[str, typer.Argument(metavar="NAME|ID", help="The key to replace.")],
    days: Days = None,
    forever: Forever = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the old private key.")] = False,
    keys: Keys = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Create a new key of the same name, signed by the old key, and delete the old private key.

    Those who trust the old key add the .rotation.dsse.json file with `audit keys trust`.

    Example: docstokg-orchestrator audit keys rotate operations
    """
    from DocsToKG.Orchestrator.signing.rotation import rotate as follow

    folder, made_at = folder_of(settings_of(ledger, config, signing_keys=keys)), now()
    key, statement = follow(folder, name, made_at, _end(made_at, days, forever), keep=keep)
    typer.echo(f"{key.key_id}  {key.name}  {key.span}")
    typer.echo(f"Give {statement} to those who trust the old key.", err=True)


@app.command("trust")
def trust(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Public keys, or rotations signed by a trusted key.")
    ],
    into: Annotated[
        Path, typer.Option("--trust", metavar="FILE", help="The trust file to change; created if missing.")
    ],
    remove: Annotated[bool, typer.Option("--remove", help="Remove these keys instead.")] = False,
) -> None:
    """Add keys to a trust file, or remove them. Compare the printed ids with those that the owners give you.

    Example: docstokg-orchestrator audit keys trust operations.*.pub.json --trust trust.json
    """
    from DocsToKG.Orchestrator.signing.keyring import read_trust, trust_file, write_trust
    from DocsToKG.Orchestrator.signing.rotation import is_rotation, vouched

    known = trust_file(into)
    for file in files:
        added = vouched(file, known, now()) if is_rotation(file) else read_trust(file)
        ids = {key.key_id for key in added}
        known = [key for key in known if key.key_id not in ids] if remove else [*known, *added]
        for key in added:
            typer.echo(f"{'removed' if remove else 'trusted'}  {key.key_id}  {key.name}  {key.span}")
    write_trust(into, known)


def _end(made_at: float, days: float | None, forever: bool) -> float | None:
    if forever and days is not None:
        raise typer.BadParameter("--days and --no-expiry exclude each other")
    return None if forever else made_at + (days or 365) * _DAY_S
