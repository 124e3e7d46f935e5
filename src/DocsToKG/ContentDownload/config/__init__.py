"""The configuration: what can be set, where it is set, and what follows from it.

`load_config` is the way in. Names are imported on first use, so that asking for help costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.loader import Loaded, load_config, load_config_verbose
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig, config_hash, to_printable

__all__ = ["ContentDownloadConfig", "Loaded", "config_hash", "load_config", "load_config_verbose", "to_printable"]


def __getattr__(name: str) -> Any:
    if name in ("Loaded", "load_config", "load_config_verbose"):
        from DocsToKG.ContentDownload.config import loader as home
    elif name in ("ContentDownloadConfig", "config_hash", "to_printable"):
        from DocsToKG.ContentDownload.config import models as home  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(home, name)
