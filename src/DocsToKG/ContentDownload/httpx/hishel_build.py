"""The builders of the cached client under their promised names; the code is in `net`."""

from __future__ import annotations

from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings, build_cache_transport

__all__ = ["CacheSettings", "HttpStack", "build_cache_transport", "build_http_stack"]
