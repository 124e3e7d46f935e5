"""The client and its token bucket under their promised names; the code is in `net` and `core`."""

from __future__ import annotations

from DocsToKG.ContentDownload.net.client import RateRetryClient
from DocsToKG.core.bucket import TokenBucket

__all__ = ["RateRetryClient", "TokenBucket"]
