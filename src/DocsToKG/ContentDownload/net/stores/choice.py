"""Opens the place for cache entries that the settings name; a driver is imported only when it is asked for."""

from __future__ import annotations

from pathlib import Path

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.stores.base import Backend

BACKENDS = ("file", "sqlite", "redis", "s3")


def open_backend(
    name: str,
    *,
    base_path: Path,
    sqlite_path: Path,
    redis_url: str | None,
    s3_bucket: str | None,
    s3_prefix: str,
    ttl_s: float,
) -> Backend:
    """Raises `ConfigError` when the driver is missing or the place cannot be used."""
    if name == "file":
        from DocsToKG.ContentDownload.net.stores.file import FileBackend

        return FileBackend(base_path)
    if name == "sqlite":
        from DocsToKG.ContentDownload.net.stores.sqlite import SqliteBackend

        return SqliteBackend(sqlite_path)
    if name == "redis" and redis_url:
        from DocsToKG.ContentDownload.net.stores.redis import RedisBackend

        return RedisBackend(redis_url, ttl_s=ttl_s)
    if name == "s3" and s3_bucket:
        from DocsToKG.ContentDownload.net.stores.s3 import S3Backend

        return S3Backend(s3_bucket, prefix=s3_prefix)
    if name in BACKENDS:
        raise ConfigError(f"hishel.backend: {name!r} needs {'redis_url' if name == 'redis' else 's3_bucket'}")
    raise ConfigError(f"hishel.backend: {name!r} is not available here; available: {', '.join(BACKENDS)}")
