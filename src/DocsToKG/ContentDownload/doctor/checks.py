"""Which checks do the settings ask for? One place that knows all of them.

Every backend is looked at once for each purpose; a backend that is not configured is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from DocsToKG.ContentDownload.catalog.shared.check import check_record
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.doctor.machine import check_collector, check_machine, check_names, check_proxies
from DocsToKG.ContentDownload.doctor.settings import check_manners, check_secrets, check_together
from DocsToKG.ContentDownload.orchestrator.queue import token_in
from DocsToKG.ContentDownload.runner.node import node_id
from DocsToKG.ContentDownload.storage.check import check_bucket, check_folder
from DocsToKG.core.checks import Check
from DocsToKG.Orchestrator.client.check import check_service
from DocsToKG.Orchestrator.ledger.drivers.postgres.check import check_listen, check_queue
from DocsToKG.Orchestrator.ledger.drivers.sqlite.check import check_file
from DocsToKG.Orchestrator.notifications.check_nats import check_nats
from DocsToKG.Orchestrator.notifications.check_redis import check_redis

_QUEUE_ADDRESS = "queue.connection_string"
_SPARE_FILES = 128  # ledgers, logs, drivers, the interpreter itself
_WEB = ("doi.org", "api.openalex.org", "api.crossref.org")


def checks_for(cfg: ContentDownloadConfig, *, origins: Mapping[str, str], environ: Mapping[str, str]) -> list[Check]:
    """In the order in which they are shown."""
    found: list[Check] = [Check("this machine", partial(check_machine, _open_files(cfg), node_id(cfg)))]
    found += _queue(cfg)
    found += _signal(cfg)
    found += _catalog(cfg)
    found += _storage(cfg)
    found += _limits(cfg)
    found += _cache(cfg)
    found += _folders(cfg)
    found += _ways(cfg, environ)
    return [
        *found,
        Check("manners", partial(check_manners, cfg)),
        Check("secrets", partial(check_secrets, cfg, origins, environ)),
        Check("together", partial(check_together, cfg)),
    ]


def _open_files(cfg: ContentDownloadConfig) -> int:
    return cfg.http.max_connections + 2 * cfg.orchestrator.max_workers + _SPARE_FILES


def _queue(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.queue.orchestrator_url is not None:
        service = partial(check_service, cfg.queue.orchestrator_url, cfg.queue.token_file, token_in)
        yield Check("queue", service, needed=True)
    elif cfg.queue.url is not None:
        yield Check("queue", partial(check_queue, cfg.queue.url, _QUEUE_ADDRESS), needed=True)
    else:
        yield Check("queue", partial(check_file, Path(cfg.queue.path), wal=cfg.queue.wal_mode), needed=True)


def _signal(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.queue.orchestrator_url is not None:
        return  # whoever works for a service asks it about once a second
    kind = cfg.queue.signal or ("pg_notify" if cfg.queue.url is not None else "local")
    address = cfg.queue.signal_address or ""
    if kind == "pg_notify":
        url = cfg.queue.listen_url or cfg.queue.url or address
        setting = "queue.listen_connection_string" if cfg.queue.listen_url else _QUEUE_ADDRESS
        yield Check("wake-ups", partial(check_listen, url, setting))
    elif kind == "redis":
        yield Check("wake-ups", partial(check_redis, address, "queue.signal_url", "wake-ups"))
    elif kind == "nats":
        yield Check("wake-ups", partial(check_nats, address, "queue.signal_url", cfg.queue.signal_channel))


def _catalog(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.catalog.url is not None:
        record = partial(check_record, cfg.catalog.url, "catalog.connection_string", cfg.catalog.schema_name)
        yield Check("record", record, needed=True)


def _storage(cfg: ContentDownloadConfig) -> Iterator[Check]:
    if cfg.storage.backend == "s3":
        bucket = partial(check_bucket, cfg.storage.s3_bucket or "", cfg.storage.s3_prefix, "storage.s3_bucket")
        yield Check("files", bucket, needed=True)


def _limits(cfg: ContentDownloadConfig) -> Iterator[Check]:
    address = cfg.rate_limit.redis_url
    if cfg.rate_limit.backend == "redis" and address is not None:
        redis = partial(check_redis, address.get_secret_value(), "rate_limit.redis_url", "limits")
        yield Check("limits", redis, needed=True)


def _cache(cfg: ContentDownloadConfig) -> Iterator[Check]:
    """A cache that is away costs requests, and stops nothing but a start."""
    if not cfg.hishel.enabled:
        return
    address = cfg.hishel.redis_url
    if cfg.hishel.backend == "redis" and address is not None:
        yield Check("cache", partial(check_redis, address.get_secret_value(), "hishel.redis_url", "cache"))
    if cfg.hishel.backend == "s3":
        bucket = partial(check_bucket, cfg.hishel.s3_bucket or "", cfg.hishel.s3_prefix, "hishel.s3_bucket")
        yield Check("cache", bucket)


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
        folder = partial(check_folder, path, need, need + staging if here else 0)
        yield Check(f"folder of {', '.join(kept)}", folder, needed=True)


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
        yield Check("proxy", partial(check_proxies, proxies))
    # A proxy, a sandbox or fixed answers look names up by themselves.
    if not has_proxy and "*" not in cfg.http.connect_to and "*" not in cfg.http.names:
        yield Check("names (DNS)", partial(check_names, _WEB))
    collector = cfg.telemetry.otlp_endpoint or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if collector:
        yield Check("traces", partial(check_collector, collector))
