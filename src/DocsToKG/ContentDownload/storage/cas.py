"""Same bytes, same path.

Knows the layout `cas/sha256/<2 hex>/<62 hex>` and what a digest looks like. Touches no disk.
Promises: a path below the root for every valid digest, and `ValueError` for anything else.
"""

from __future__ import annotations

import re
from pathlib import Path

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def cas_key(sha256: str) -> str:
    """The object's place relative to any root, with `/` between the parts; the same on disk and in a bucket."""
    # A digest may come from a record that somebody edited: only the exact form may become a path.
    if not _SHA256.fullmatch(sha256):
        raise ValueError(f"not a lower-case SHA-256: {sha256[:80]!r}")
    return f"cas/sha256/{sha256[:2]}/{sha256[2:]}"


def cas_path(root: Path, sha256: str) -> Path:
    """Where the object with this digest lives below `root`, whether or not it is there."""
    return root / cas_key(sha256)
