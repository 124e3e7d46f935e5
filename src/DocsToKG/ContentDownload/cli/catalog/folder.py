"""What the commands of the catalog share: how the folder of a run leads to its settings and its record.

Imports the rest when a command runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from DocsToKG.ContentDownload.cli.tables import printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.selection import Selection
    from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig


PATIENCE_S = 10.0  # for a server that does not answer
DbOption = Annotated[
    Path | None, typer.Option("--db-path", metavar="FILE", help="The record itself, instead of --run.")
]
FormatOption = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="For people or for programs.")]


def print_unknown(catalog: Catalog, wanted: Selection) -> None:
    """Nothing was found: say which of the names that were given no work of the record carries."""
    for column, names in (("tier", wanted.tiers), ("resolver", wanted.sources), ("run_id", (wanted.run_id,))):
        given = [name for name in names if name]
        if not given:
            continue
        there = [
            str(row[0]) for row in catalog.query(f"SELECT DISTINCT {column} FROM manifests ORDER BY 1").rows if row[0]
        ]
        for name in (name for name in given if name not in there):
            option = {"resolver": "--source", "run_id": "--run-id"}.get(column, f"--{column}")
            typer.echo(
                f"{option} {printable(name)}: none here; there are {', '.join(there) or 'none at all'}.", err=True
            )


def how_to_mend(found: Collection[str]) -> str:
    """What to do about files of which this was found."""
    if "unreadable" not in found:
        return "content catalog verify --repair fetches them again"
    return (
        "see to the disk and to who may read what is unreadable, or remove it; "
        "content catalog verify --repair fetches again what is missing or damaged"
    )


def open_catalog(run: Path, db_path: Path | None = None, config: str | None = None) -> Catalog:
    """The record of a folder; the one that several machines share, where its settings or those in `config` say so."""
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.run_folder import record_of

    cfg = shared_settings(run, config) if db_path is None else None
    if cfg is None:
        return Catalog(db_path or record_of(looked_at(run, config)))
    from DocsToKG.ContentDownload.bootstrap import open_catalog as open_shared_catalog

    return open_shared_catalog(cfg)


def open_report_catalog(run: Path, config: str | None) -> Catalog:
    """As `open_catalog`, of the folder that was named whatever the settings say of folders."""
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.run_folder import record_of

    cfg = None if run.is_file() else shared_settings(run, config)
    return Catalog(record_of(run)) if cfg is None else catalog_of(cfg, run)


def catalog_of(cfg: ContentDownloadConfig, run: Path) -> Catalog:
    """The record that these settings of a folder lead to."""
    from DocsToKG.ContentDownload.bootstrap import open_catalog as open_shared_catalog
    from DocsToKG.ContentDownload.catalog.store import Catalog
    from DocsToKG.ContentDownload.run_folder import record_of

    return open_shared_catalog(cfg) if cfg.catalog.url is not None else Catalog(record_of(run))


def looked_at(run: Path, config: str | None) -> Path:
    """The folder that is meant: the one that the settings name, where they are given."""
    if config is None:
        return run
    from DocsToKG.ContentDownload.config.loader import load_config

    return Path(load_config(config).telemetry.manifest_path).parent


def shared_settings(run: Path, config: str | None) -> ContentDownloadConfig | None:
    """The settings, where they say that the record is shared by several machines; None when the folder holds it."""
    from DocsToKG.ContentDownload.config.loader import load_config
    from DocsToKG.ContentDownload.errors import ConfigError, RecordError
    from DocsToKG.ContentDownload.run_folder import RunFolder

    if config is not None:
        cfg = load_config(config)
        return cfg if cfg.catalog.url is not None else None
    if not (run / "state" / "run.json").is_file():
        return None
    try:
        saved = RunFolder(run).saved()
        cfg = load_config(saved.config_file, saved.overrides)
    except (ConfigError, RecordError):
        return None  # the folder's own record can still be read
    return cfg if cfg.catalog.url is not None else None


def folder_settings(run: Path, *, asking: bool = False, config: str | None = None) -> ContentDownloadConfig:
    """The settings of the last run in a folder; a folder that has none keeps everything in itself. With `asking`,
    services are called, so there must be a contact address. `config` replaces the folder's settings."""
    from DocsToKG.ContentDownload.cli.launch import load_settings, paths_in
    from DocsToKG.ContentDownload.config.loader import load_config
    from DocsToKG.ContentDownload.config.merge import merge
    from DocsToKG.ContentDownload.errors import RecordError
    from DocsToKG.ContentDownload.run_folder import RunFolder

    if config is not None:
        return load_settings(config, {}) if asking else load_config(config)
    if not run.is_dir():
        raise RecordError(f"{run} is not the folder of a run; name the one given to `content pull --out`")
    if not is_run_folder(run):
        raise RecordError(f"{run} is not the folder of a run: it holds no record; name the right one with --run")
    file, settings = None, paths_in(run)
    if (run / "state" / "run.json").exists():
        saved = RunFolder(run).saved()
        file, settings = saved.config_file, merge(saved.overrides, settings if saved.movable else {})
    return load_settings(file, settings) if asking else load_config(file, settings)


@contextmanager
def shared_record(cfg: ContentDownloadConfig) -> Iterator[SharedRecord | None]:
    """The record that other machines share, if any do."""
    from DocsToKG.ContentDownload.bootstrap import open_shared

    shared = open_shared(cfg, patience_s=PATIENCE_S)
    try:
        yield shared
    finally:
        if shared is not None:
            shared.close()


@contextmanager
def locked(cfg: ContentDownloadConfig) -> Iterator[ContentDownloadConfig]:
    """The folder, locked so that no run writes to it at the same time. When a worker has locked it and neither record
    nor files are in it, another folder serves: the worker reads the takedown from the record within seconds."""
    from DocsToKG.ContentDownload.catalog.paths import MANIFEST
    from DocsToKG.ContentDownload.errors import FolderInUse
    from DocsToKG.ContentDownload.run_folder import RunFolder

    with ExitStack() as stack:
        try:
            stack.enter_context(RunFolder(Path(cfg.telemetry.manifest_path).parent))
        except FolderInUse:
            if cfg.catalog.url is None or cfg.storage.backend == "fs":
                raise
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="takedown-")))
            elsewhere = cfg.telemetry.model_copy(update={"manifest_path": str(folder / MANIFEST)})
            catalog = cfg.catalog.model_copy(update={"path": None})
            cfg = cfg.model_copy(update={"telemetry": elsewhere, "catalog": catalog})
            stack.enter_context(RunFolder(folder))
        yield cfg


def is_run_folder(run: Path) -> bool:
    """Whether the folder holds the files of a run; commands write into no other folder."""
    from DocsToKG.ContentDownload.catalog.paths import DATABASE, LAST, MANIFEST

    names = ("state/run.json", MANIFEST, DATABASE, LAST, "takedowns.json")
    return any((run / name).exists() for name in names)


def place_of_files(cfg: ContentDownloadConfig) -> str:
    """The folder or the bucket of the stored files, as people name it."""
    if cfg.storage.backend == "s3":
        return f"s3://{cfg.storage.s3_bucket}/{cfg.storage.s3_prefix.strip('/')}".rstrip("/")
    return str(Path(cfg.storage.root_dir).resolve())


def names_for(key: str) -> tuple[str, ...]:
    """The names under which the record may have a work: its canonical id, the preprint that it is a version of, and the
    text as given."""
    from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier, to_work

    try:
        work = to_work(parse_identifier(key))
    except BadIdentifier:
        return (key,)
    preprint = (f"arxiv:{work.arxiv_id}",) if work.arxiv_id else ()
    return (work.work_id, *preprint, key)
