"""Translate other shapes of the configuration into the nested one.

Knows the deployment shape (`workers`, `artifacts.*`, a database under `storage`, `http.timeout`,
`http.cache_*`) and what each of its keys means here. Works on one layer at a time, so that precedence
between layers stays as it is. Shapes it does not understand are left to validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from DocsToKG.ContentDownload.config.keys import Node, find_node, key_tree, leaves
from DocsToKG.ContentDownload.config.merge import SettingsClash, one_spelling

# Not a setting: the merged connect timeout is lowered to it when everything is known.
CONNECT_CAP = "timeout_connect_cap_s"
_DATABASES = ("sqlite", "postgres")


def translate(layer: Mapping[str, Any]) -> dict[str, Any]:
    """The layer in the nested form; empty sections are left out."""
    given = _without_empty_sections(layer, key_tree())
    nested: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in given.items()}
    # The database leaves `storage.backend` before the file store of the same layer moves in.
    _database(nested)
    _bucket(nested)
    _artifacts(nested)
    _workers(nested)
    _http(nested)
    return one_spelling(nested)


def canonical_keys(path: tuple[str, ...]) -> list[str]:
    """The dotted settings that a key of another shape means; empty for a key that is no other spelling."""
    node = find_node(path)
    if node is None or node.children:
        return []
    sample: Any = "x" if node.is_text else 1
    for key in reversed(path):
        sample = {key: sample}
    found = [tuple(leaf.split(".")) for leaf in leaves(translate(sample)) if not leaf.endswith(CONNECT_CAP)]
    # The section that the key has left is empty now.
    return [".".join(leaf) for leaf in found if leaf != path[: len(leaf)]]


def apply_connect_cap(merged: dict[str, Any], default_connect_s: float) -> None:
    """One timeout for all never means a longer wait for the connection."""
    http = merged.get("http")
    if not isinstance(http, dict) or CONNECT_CAP not in http:
        return
    cap, own = http.pop(CONNECT_CAP), http.get("timeout_connect_s", default_connect_s)
    if isinstance(cap, int | float) and isinstance(own, int | float):
        http["timeout_connect_s"] = min(cap, own)


def _workers(nested: dict[str, Any]) -> None:
    if "workers" in nested:
        _put(nested, "workers", nested.pop("workers"), "orchestrator", "max_workers")


def _bucket(nested: dict[str, Any]) -> None:
    storage = nested.get("storage")
    root = storage.get("root_dir") if isinstance(storage, dict) else None
    if isinstance(storage, dict) and isinstance(root, str) and root.startswith("s3://"):
        del storage["root_dir"]
        _put_bucket(nested, "storage.root_dir", root)


def _put_bucket(nested: dict[str, Any], spelling: str, root: str) -> None:
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    _put(nested, spelling, "s3", "storage", "backend")
    _put(nested, spelling, bucket, "storage", "s3_bucket")
    _put(nested, spelling, prefix, "storage", "s3_prefix")


def _artifacts(nested: dict[str, Any]) -> None:
    artifacts = nested.get("artifacts")
    if not isinstance(artifacts, Mapping):
        return
    del nested["artifacts"]
    root = artifacts.get("root")
    if isinstance(root, str) and root.startswith("s3://"):
        _put_bucket(nested, "artifacts.root", root)
    elif root is not None:
        _put(nested, "artifacts.root", "fs", "storage", "backend")
        _put(nested, "artifacts.root", root, "storage", "root_dir")
    if "cas_enabled" in artifacts:
        _put(nested, "artifacts.cas_enabled", artifacts["cas_enabled"], "storage", "cas_enabled")
    if "cas_backend" in artifacts:
        backend = {"local": "fs"}.get(artifacts["cas_backend"], artifacts["cas_backend"])
        _put(nested, "artifacts.cas_backend", backend, "storage", "backend")


def _database(nested: dict[str, Any]) -> None:
    storage = nested.get("storage")
    if not isinstance(storage, dict):
        return
    if storage.get("backend") in _DATABASES:
        backend = storage.pop("backend")
        _put(nested, "storage.backend", backend, "catalog", "backend")
        _put(nested, "storage.backend", backend, "queue", "backend")
    if "connection_string" in storage:
        address = storage.pop("connection_string")
        _put(nested, "storage.connection_string", address, "catalog", "connection_string")
        _put(nested, "storage.connection_string", address, "queue", "connection_string")
    for key in ("path", "pool_size"):
        if key in storage:
            _put(nested, f"storage.{key}", storage.pop(key), "catalog", key)


def _http(nested: dict[str, Any]) -> None:
    http = nested.get("http")
    if not isinstance(http, dict):
        return
    for key, target in (("cache_enabled", "enabled"), ("cache_backend", "backend")):
        if key in http:
            _put(nested, f"http.{key}", http.pop(key), "hishel", target)
    if "timeout" in http:
        timeout = http.pop("timeout")
        _put(nested, "http.timeout", timeout, "http", "timeout_read_s")
        http[CONNECT_CAP] = timeout


def _put(nested: dict[str, Any], spelling: str, value: Any, section: str, key: str) -> None:
    table = nested.setdefault(section, {})
    if not isinstance(table, dict):
        return
    if key in table and table[key] != value:
        raise SettingsClash(f"{spelling} and {section}.{key} are the same setting and disagree; keep one")
    table[key] = value


def _without_empty_sections(layer: Mapping[Any, Any], node: Node) -> dict[str, Any]:
    """A section whose keys are all commented out reads as null in YAML."""
    kept: dict[str, Any] = {}
    for key, value in layer.items():
        child = node.child(str(key))
        if child is not None and child.is_section and value is None:
            continue
        inner = isinstance(value, Mapping) and child is not None
        kept[str(key)] = _without_empty_sections(value, child) if inner and child is not None else value
    return kept
