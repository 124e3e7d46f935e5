"""`content sandbox`: serve the scholarly web of the demo on loopback until Ctrl+C, and say how to use it; and what to
do with a run whose small web is gone."""

from __future__ import annotations

import json
import math
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from DocsToKG.core.streams import nobody_has_to_read

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.Sandbox.world import World

Fault = Annotated[
    list[str] | None, typer.Option("--fault", metavar="NAME=SHARE", help="Set the share of one fault; may be repeated.")
]
Rendering = Annotated[
    list[str] | None,
    typer.Option("--rendering", metavar="NAME=SHARE", help="Set the share of one rendering of PDFs; may be repeated."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Start from plain PDFs without covers.")]
NoFaults = Annotated[bool, typer.Option("--no-faults", help="Start without faults.")]
RateFactor = Annotated[
    float, typer.Option("--rate-factor", help="How many times higher the rate limits are than those of real services.")
]
Size = Annotated[int, typer.Option("--size", min=1, help="Mean size of a PDF in bytes.")]
ProfileFile = Annotated[
    Path | None, typer.Option("--profile", help="Write the client's configuration here (.json or .yaml).")
]

_LOOK_S = 2.0


def sandbox(
    doing: Annotated[
        Literal["serve", "snapshot"],
        typer.Argument(metavar="[serve|snapshot]", help="Serve it, or write its works as bulk files to --out."),
    ] = "serve",
    works: Annotated[int, typer.Option("--works", min=1, help="Number of works.")] = 500,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same works.")] = 7,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free port.")] = 0,
    fault: Fault = None,
    no_faults: NoFaults = False,
    rendering: Rendering = None,
    plain: Plain = False,
    rate_factor: RateFactor = 20.0,
    size: Size = 60_000,
    profile: ProfileFile = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="With snapshot: where the files go.")] = None,
) -> None:
    """Serve a small scholarly web on this machine: index services, publishers and archives, with faults. Or write its
    works as the files that OpenAlex, Crossref, PMC and arXiv publish in bulk, with the truth about them.

    Examples:

      content sandbox --works 200 --fault slow=0.1 --profile sandbox.yaml

      content sandbox snapshot --works 200 --out snapshot
    """
    import asyncio

    from DocsToKG.Sandbox.faults import Faults
    from DocsToKG.Sandbox.files import Files
    from DocsToKG.Sandbox.limits import Limits
    from DocsToKG.Sandbox.router import Router
    from DocsToKG.Sandbox.running import run_until_stopped
    from DocsToKG.Sandbox.world import World

    if (doing == "snapshot") != (out is not None):
        raise typer.BadParameter("snapshot and --out go together: content sandbox snapshot --works 200 --out snapshot")
    if not (math.isfinite(rate_factor) and rate_factor > 0):
        raise typer.BadParameter(f"--rate-factor {rate_factor} is not a number above 0")
    if profile is not None and (profile.is_dir() or not os.access(profile.absolute().parent, os.W_OK)):
        raise typer.BadParameter(f"--profile {profile} cannot be written; name a file in a folder of yours")
    try:
        faults = (Faults.none() if no_faults else Faults()).with_settings(fault or [])
        files = (Files.plain() if plain else Files()).with_settings(rendering or [])
        world = World(seed=seed, count=works, size_bytes=size, faults=faults, files=files)
        router = Router(world=world, limits=Limits(rate_factor=rate_factor))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if out is not None:
        _write_snapshot(world, out)
        return

    nobody_has_to_read()  # it serves also where nobody is told

    def ready(at: int) -> None:
        _announce(world, at, rate_factor, profile)

    try:
        asyncio.run(run_until_stopped(router, port=port, ready=ready))
    except OSError as error:
        raise typer.BadParameter(f"cannot serve on port {port}: {error.strerror}") from error


def refuse_gone_sandbox(cfg: ContentDownloadConfig) -> None:
    """A run over a sandbox cannot continue without it: every remaining work would be unreachable."""
    from DocsToKG.ContentDownload.errors import RunError

    at = urlsplit(cfg.http.connect_to.get("*", ""))
    if at.hostname is None or at.port is None:
        return
    try:
        socket.create_connection((at.hostname, at.port), timeout=_LOOK_S).close()
    except OSError:
        raise RunError(
            f"this run uses the sandbox at {at.netloc}, and nothing answers there: continue a demo with the same "
            f"`content demo` command, and another run after starting `content sandbox --port {at.port}` again"
        ) from None


def _write_snapshot(world: World, out: Path) -> None:
    from DocsToKG.Sandbox.snapshot import write_snapshot

    counts = write_snapshot(world, out, watch=lambda count: typer.echo(f"{count} works written ...", err=True))
    typer.echo(f"In {out}: " + ", ".join(f"{count} records of {name}" for name, count in counts.items()))
    files = " ".join(f"--{name} {out / name}" for name in counts)
    typer.echo(f"Make an index of them with: content index build oa {files}")


def _announce(world: Any, port: int, rate_factor: float, profile: Path | None) -> None:
    from DocsToKG.Sandbox.examples import curl_examples
    from DocsToKG.Sandbox.profile import sandbox_profile

    typer.echo(f"A scholarly web of {world.count} works answers on http://127.0.0.1:{port}/  (Ctrl+C ends it)\n")
    for example in curl_examples(world, port):
        typer.echo(example)
    settings = sandbox_profile(port, rate_factor)
    if profile is None:
        typer.echo("\nTo point a client at it, start again with --profile sandbox.yaml, or configure:\n")
        typer.echo(json.dumps(settings, indent=2))
        return
    _write(profile, settings)
    ids = f"curl -s 'http://127.0.0.1:{port}/ids.txt?n={min(world.count, 200)}&mix=1'"
    typer.echo(f"\nThe client's configuration is in {profile}. Try:\n")
    typer.echo(f"{ids} > ids.txt && content pull ids.txt --config {profile} --out corpus")


def _write(path: Path, settings: dict[str, Any]) -> None:
    if path.suffix == ".json":
        text = json.dumps(settings, indent=2) + "\n"
    else:
        import yaml

        text = yaml.safe_dump(settings, sort_keys=False)
    path.write_text(text, encoding="utf-8")
