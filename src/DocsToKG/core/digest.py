"""Digests, and the one JSON form they are taken over."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Sorted, compact UTF-8 JSON: equal values give equal bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
