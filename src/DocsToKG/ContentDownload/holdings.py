"""What a run keeps, opened from the configuration: ledger, record, files and what the cache still holds.

Knows which backend each of them lies on; the optional ones are imported only where they are asked for. Where they meet
is `bootstrap`'s business.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.catalog.paths import DATABASE
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.entries import EntryStore
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue, configured_queue
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.way_out import cache_settings, is_cache_there
from DocsToKG.core.clock import Clock
from DocsToKG.core.ids import new_run_id

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
    from DocsToKG.ContentDownload.maintenance.removal import Removal
    from DocsToKG.ContentDownload.maintenance.review import FileReview
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync
    from DocsToKG.ContentDownload.net.held import CachedAnswers
    from DocsToKG.ContentDownload.storage.bucket import Bucket
    from DocsToKG.ContentDownload.storage.files import StoredFiles

_PATIENCE_S = 120.0  # of a run
_SHORT_PATIENCE_S = 10.0  # of a person


def database_path(cfg: ContentDownloadConfig) -> Path:
    """The catalog. A run cannot do without one; when its sink is off, it is kept out of the user's sight."""
    root = Path(cfg.telemetry.manifest_path).parent
    if cfg.catalog.path is not None:
        return Path(cfg.catalog.path)
    return root / DATABASE if "sqlite" in cfg.telemetry.sinks else root / "state" / "catalog.sqlite"


def open_shared(cfg: ContentDownloadConfig, *, patience_s: float = _PATIENCE_S) -> SharedRecord | None:
    """The record that several machines keep together; None when this machine keeps its own. `patience_s` is how long a
    server that is away is waited for."""
    if cfg.catalog.url is None:
        return None
    try:
        from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
    except ImportError:
        raise ConfigError(
            "catalog.backend: 'postgres' needs a package that is not installed; get it with: "
            "pip install 'docstokg[postgres]'"
        ) from None
    return SharedRecord(
        cfg.catalog.url, schema=cfg.catalog.schema_name, patience_s=patience_s, readers=cfg.catalog.pool_size
    )


def open_catalog(cfg: ContentDownloadConfig, shared: SharedRecord | None = None) -> Catalog:
    """What is on record, to be read; `shared` is closed by whoever opened it."""
    ours = shared or open_shared(cfg, patience_s=_SHORT_PATIENCE_S)
    if ours is None:
        return Catalog(database_path(cfg))
    from DocsToKG.ContentDownload.catalog.shared.catalog import SharedCatalog

    return SharedCatalog(ours, owns=shared is None)


def open_queue(cfg: ContentDownloadConfig, *, clock: Clock | None = None) -> WorkQueue:
    return configured_queue(cfg.queue, max_attempts=cfg.orchestrator.max_job_attempts, clock=clock)


def open_store(cfg: ContentDownloadConfig, *, joining: bool = False) -> LocalStore:
    """Ready to take files; `joining` is for a process of a run that has begun."""
    store = new_store(cfg)
    store.prepare(joining=joining)
    return store


def new_store(cfg: ContentDownloadConfig) -> LocalStore:
    folder, knobs = Path(cfg.storage.root_dir), cfg.storage
    if knobs.backend == "fs":
        return LocalStore(folder, cas_enabled=knobs.cas_enabled, min_free_bytes=knobs.min_free_bytes)
    from DocsToKG.ContentDownload.storage.s3 import BucketStore

    return BucketStore(
        _bucket(cfg),
        staging=folder,
        staging_bytes=knobs.staging_bytes // cfg.orchestrator.processes,  # they share the disk
        largest=2 * cfg.download.max_bytes,  # a file and what was wrapped in it
        min_free_bytes=knobs.min_free_bytes,
    )


def open_files(cfg: ContentDownloadConfig, *, settled_s: float = 0.0) -> StoredFiles:
    """The stored files, wherever they are; in a bucket only those that are at least `settled_s` old are listed."""
    from DocsToKG.ContentDownload.storage.files import LocalFiles

    if cfg.storage.backend == "fs":
        return LocalFiles(Path(cfg.storage.root_dir))
    from DocsToKG.ContentDownload.storage.bucket_files import BucketFiles

    return BucketFiles(_bucket(cfg), settled_s=settled_s)


def _bucket(cfg: ContentDownloadConfig) -> Bucket:
    from DocsToKG.ContentDownload.storage.bucket import Bucket

    return Bucket(cfg.storage.s3_bucket or "", prefix=cfg.storage.s3_prefix)


def open_answers(cfg: ContentDownloadConfig) -> CachedAnswers:
    """What the HTTP cache of these settings still holds, for reading."""
    from DocsToKG.ContentDownload.net.held import CachedAnswers

    return CachedAnswers(_cache_entries(cfg) if cfg.hishel.enabled else None)


def _cache_entries(cfg: ContentDownloadConfig) -> EntryStore | None:
    from DocsToKG.ContentDownload.net.cache import open_entries

    return open_entries(cache_settings(cfg), open_cas=lambda sha256: None) if is_cache_there(cfg) else None


def open_removal(cfg: ContentDownloadConfig, *, clock: Clock, shared: SharedRecord | None = None) -> Removal:
    """What takes works of this folder down; nothing else may be writing there. A record that is `shared` is closed by
    whoever opened it."""
    from DocsToKG.ContentDownload.maintenance.removal import Removal

    def known_work(doc_id: str) -> WorkArtifact | None:
        # A service answers workers, and this is no question of theirs.
        if cfg.queue.orchestrator_url is not None or (cfg.queue.is_file and not Path(cfg.queue.path).is_file()):
            return None
        with open_queue(cfg) as queue:
            job = queue.ledger.find(doc_id)
        return None if job is None else WorkArtifact.from_dict(json.loads(job.artifact_json))

    return Removal(
        Path(cfg.telemetry.manifest_path).parent,
        database=database_path(cfg),
        files=open_files(cfg),
        sinks=(*cfg.telemetry.sinks, "sqlite"),
        clock=clock,
        run_id=new_run_id(),
        known_work=known_work,
        open_cache=lambda: _cache_entries(cfg),
        open_catalog=None if shared is None else lambda: open_catalog(cfg, shared),
        share=shared_takedowns(shared, cfg, clock),
    )


def open_settling(
    cfg: ContentDownloadConfig, catalog: Catalog, *, clock: Clock, shared: SharedRecord | None = None
) -> FileReview:
    """What settles unproved files of this folder; nothing else may be writing there."""
    from DocsToKG.ContentDownload.maintenance.review import FileReview

    return FileReview(
        Path(cfg.telemetry.manifest_path).parent,
        catalog=catalog,
        database=database_path(cfg),
        files=open_files(cfg),
        store=open_store(cfg),
        sinks=(*cfg.telemetry.sinks, "sqlite"),
        clock=clock,
        run_id=new_run_id(),
        share=shared_takedowns(shared, cfg, clock),
    )


def shared_takedowns(shared: SharedRecord | None, cfg: ContentDownloadConfig, clock: Clock) -> TakedownSync | None:
    if shared is None:
        return None
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync

    return TakedownSync(shared, clock=clock, node=cfg.queue.node_id)
