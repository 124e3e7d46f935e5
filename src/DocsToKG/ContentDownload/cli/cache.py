"""`contentdownload cache`: how much the HTTP cache holds, and emptying it. A command parses, calls, prints.

Works on every backend. Machine output (`--json`) goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import folder_settings, is_run_folder
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.tables import print_table

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.net.census import CacheCensus

RunOption = Annotated[Path | None, typer.Option("--run", metavar="DIR", help="The cache of a pull's folder.")]


def stats(config: ConfigOption = None, run: RunOption = None, as_json: JsonOption = False) -> None:
    """Show the number of entries and their size. Example: contentdownload cache stats --run my-corpus"""
    cfg = _settings(config, run)
    census = _census(cfg)
    if as_json:
        typer.echo(json.dumps({"backend": cfg.hishel.backend, "place": _place(cfg), **_plain(census)}))
        return
    rows = [(role, share.entries, share.body_bytes) for role, share in census.by_role.items()]
    print_table(("role", "entries", "bytes"), [*rows, ("all", census.entries, census.body_bytes)])
    typer.echo(f"In {_place(cfg)} ({cfg.hishel.backend}). {_span(census)}", err=True)
    if census.unreadable:
        typer.echo(f"{census.unreadable} entries cannot be read; they count as misses until they expire.", err=True)


def clear(
    config: ConfigOption = None,
    run: RunOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete every entry; stored files stay. Example: contentdownload cache clear --run my-corpus --yes"""
    cfg = _settings(config, run)
    if not yes and not _agreed(f"Delete every entry of the cache in {_place(cfg)}?"):
        raise typer.Exit(1)
    from DocsToKG.ContentDownload import bootstrap

    dropped = 0
    if bootstrap.is_cache_there(cfg):
        with bootstrap.open_cache(cfg) as entries:
            dropped = entries.clear()
    if as_json:
        typer.echo(json.dumps({"backend": cfg.hishel.backend, "place": _place(cfg), "dropped": dropped}))
    else:
        typer.echo(f"{dropped} entries deleted from {_place(cfg)}. Stored files are not affected.")


def _agreed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        typer.echo(err=True)
        raise typer.BadParameter("add --yes where nobody can answer; nothing was deleted") from None


def _settings(config: str | None, run: Path | None) -> ContentDownloadConfig:
    from DocsToKG.ContentDownload.cli.launch import paths_in
    from DocsToKG.ContentDownload.config.loader import load_config

    if run is None:
        return load_config(config)
    if run.is_dir() and (config is not None or not is_run_folder(run)):
        return load_config(config, paths_in(run))
    return folder_settings(run)


def _census(cfg: ContentDownloadConfig) -> CacheCensus:
    from DocsToKG.ContentDownload import bootstrap
    from DocsToKG.ContentDownload.net.census import take_census

    if not bootstrap.is_cache_there(cfg):
        return take_census(())
    with bootstrap.open_cache(cfg) as entries:
        return take_census(entries.walk())


def _place(cfg: ContentDownloadConfig) -> str:
    knobs = cfg.hishel
    if knobs.backend == "s3":
        return f"s3://{knobs.s3_bucket}/{knobs.s3_prefix}"
    return {"file": knobs.base_path, "sqlite": knobs.sqlite_path}.get(knobs.backend, "the server of hishel.redis_url")


def _span(census: CacheCensus) -> str:
    from DocsToKG.core.clock import utc_iso

    if census.oldest is None or census.newest is None:
        return "It is empty."
    return f"Oldest entry {utc_iso(census.oldest)}, newest {utc_iso(census.newest)}."


def _plain(census: CacheCensus) -> dict[str, Any]:
    from DocsToKG.core.clock import utc_iso

    plain = asdict(census)
    for end in ("oldest", "newest"):
        plain[end] = None if plain[end] is None else utc_iso(plain[end])
    return plain
