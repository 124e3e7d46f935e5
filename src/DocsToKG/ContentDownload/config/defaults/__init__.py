"""The default tiers, policies and host limits, read from the data files in this package.

Promises: read once, on first use, never at import; callers get their own copy.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml


def default_settings() -> dict[str, Any]:
    """`version`, `tiers`, `policies` and `limits` as they are before anybody sets anything."""
    return copy.deepcopy(_read())


@lru_cache(maxsize=1)
def _read() -> dict[str, Any]:
    folder = files("DocsToKG.ContentDownload.config.defaults")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    tiers = yaml.load((folder / "tiers.yaml").read_text(encoding="utf-8"), Loader=loader)
    limits = yaml.load((folder / "limits.yaml").read_text(encoding="utf-8"), Loader=loader)
    return {**tiers, "limits": limits}
