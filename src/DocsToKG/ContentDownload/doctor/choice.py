"""Which checks do the settings ask for? One place that knows all of them.

Every backend is looked at once for each purpose; a backend that is not configured is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.doctor.base import Check
from DocsToKG.ContentDownload.doctor.folders import FolderCheck
from DocsToKG.ContentDownload.doctor.machine import CollectorCheck, MachineCheck, NamesCheck, ProxyCheck
from DocsToKG.ContentDownload.doctor.nats import NatsCheck
from DocsToKG.ContentDownload.doctor.postgres import ListenCheck, PostgresCheck
from DocsToKG.ContentDownload.doctor.redis import RedisCheck
from DocsToKG.ContentDownload.doctor.s3 import BucketCheck
from DocsToKG.ContentDownload.doctor.service import ServiceCheck
from DocsToKG.ContentDownload.doctor.settings import MannersCheck, SecretsCheck, TogetherCheck
from DocsToKG.ContentDownload.doctor.sqlite import SqliteCheck
from DocsToKG.ContentDownload.doctor.tables import QueueTables, RecordTables
from DocsToKG.ContentDownload.runner.node import node_id

_QUEUE_ADDRESS = "queue.connection_string"
_SPARE_FILES = 128  # ledgers, logs, drivers, the interpreter itself
_WEB = ("doi.org", "api.openalex.org", "api.crossref.org")


def checks_for(cfg: ContentDownloadConfig, *, origins: Mapping[str, str], environ: Mapping[str, str]) -> list[Check]:
    """In the order in which they are shown."""
    found: list[Check] = [MachineCheck(_open_files(cfg), node_id(cfg))]
    found += _queue(cfg)
    found += _signal(cfg)
    found += _catalog(cfg)
    found += _storage(cfg)
    found += _limits(cfg)
    found += _cache(cfg)
    found += _folders(cfg)
    found += _ways(cfg, environ)
    return [*found, MannersCheck(cfg), SecretsCheck(cfg, origins, environ), TogetherCheck(cfg)]


def _open_files(cfg: ContentDownloadConfig) -> int:
    return cfg.http.max_connections + 2 * cfg.orchestrator.max_workers + _SPARE_FILES


def _queue(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.queue.orchestrator_url is not None:
        yield ServiceCheck("queue", cfg.queue.orchestrator_url, cfg.queue.token_file)
    elif cfg.queue.url is not None:
        yield PostgresCheck("queue", cfg.queue.url, _QUEUE_ADDRESS, QueueTables(_QUEUE_ADDRESS))
    else:
        yield SqliteCheck("queue", Path(cfg.queue.path), wal=cfg.queue.wal_mode)


def _signal(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.queue.orchestrator_url is not None:
        return  # whoever works for a service asks it about once a second
    kind = cfg.queue.signal or ("pg_notify" if cfg.queue.url is not None else "local")
    address = cfg.queue.signal_address or ""
    if kind == "pg_notify":
        url = cfg.queue.listen_url or cfg.queue.url or address
        setting = "queue.listen_connection_string" if cfg.queue.listen_url else _QUEUE_ADDRESS
        yield ListenCheck("wake-ups", url, setting)
    elif kind == "redis":
        yield RedisCheck("wake-ups", address, "queue.signal_url", "wake-ups", needed=False)
    elif kind == "nats":
        yield NatsCheck("wake-ups", address, "queue.signal_url", cfg.queue.signal_channel)


def _catalog(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.catalog.url is not None:
        tables = RecordTables(cfg.catalog.schema_name)
        yield PostgresCheck("record", cfg.catalog.url, "catalog.connection_string", tables)


def _storage(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.storage.backend == "s3":
        yield BucketCheck("files", cfg.storage.s3_bucket or "", cfg.storage.s3_prefix, "storage.s3_bucket")


def _limits(cfg: ContentDownloadConfig) -> Iterator[Check]:
    address = cfg.rate_limit.redis_url
    if cfg.rate_limit.backend == "redis" and address is not None:
        yield RedisCheck("limits", address.get_secret_value(), "rate_limit.redis_url", "limits")


def _cache(cfg: ContentDownloadConfig) -> Iterator[Check]:
    """A cache that is away costs requests, and stops nothing but a start."""
    if not cfg.hishel.enabled:
        return
    address = cfg.hishel.redis_url
    if cfg.hishel.backend == "redis" and address is not None:
        yield RedisCheck("cache", address.get_secret_value(), "hishel.redis_url", "cache", needed=False)
    if cfg.hishel.backend == "s3":
        yield BucketCheck("cache", cfg.hishel.s3_bucket or "", cfg.hishel.s3_prefix, "hishel.s3_bucket", needed=False)


def _folders(cfg: ContentDownloadConfig) -> Iterator[Check]:
    """Each folder once, with all that is kept there."""
    roles: dict[Path, list[str]] = {}
    for role, path in _places(cfg):
        roles.setdefault(path.absolute(), []).append(role)
    files = Path(cfg.storage.root_dir).absolute()
    staging = cfg.storage.staging_bytes if cfg.storage.backend == "s3" else 0
    for path, kept in roles.items():
        here = path == files
        need = cfg.storage.min_free_bytes if here else 0
        yield FolderCheck(f"folder of {', '.join(kept)}", path, need, need + staging if here else 0)


def _places(cfg: ContentDownloadConfig) -> Iterator[tuple[str, Path]]:
    yield "the record", Path(cfg.telemetry.manifest_path).parent
    yield ("files on their way" if cfg.storage.backend == "s3" else "files"), Path(cfg.storage.root_dir)
    yield ("the queue" if cfg.queue.is_file else "living workers"), Path(cfg.queue.path).parent
    if cfg.hishel.enabled and cfg.hishel.backend == "file":
        yield "the cache", Path(cfg.hishel.base_path)
    if cfg.hishel.enabled and cfg.hishel.backend == "sqlite":
        yield "the cache", Path(cfg.hishel.sqlite_path).parent


def _ways(cfg: ContentDownloadConfig, environ: Mapping[str, str]) -> Iterator[Check]:
    proxies = cfg.http.proxy.mapping()
    has_proxy = bool(proxies.keys() - {"no_proxy"})
    if has_proxy:
        yield ProxyCheck(proxies)
    # A proxy, a sandbox or fixed answers look names up by themselves.
    if not has_proxy and "*" not in cfg.http.connect_to and "*" not in cfg.http.names:
        yield NamesCheck(_WEB)
    collector = cfg.telemetry.otlp_endpoint or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if collector:
        yield CollectorCheck(collector)
