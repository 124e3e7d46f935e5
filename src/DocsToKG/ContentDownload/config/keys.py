"""Which keys exist, under which names, and which one was probably meant.

Knows the model tree and the other accepted spellings. Pure: no file, no environment.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from DocsToKG.ContentDownload.config.aliases import LONG_NAMES
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

# Spellings that are translated (see `translate`), as paths with the type of their value.
TRANSLATED_KEYS: dict[str, Any] = {
    "workers": int,
    "artifacts.root": str,
    "artifacts.cas_enabled": bool,
    "artifacts.cas_backend": str,
    "storage.path": str,
    "storage.connection_string": str,
    "storage.pool_size": int,
    "http.timeout": float,
    "http.cache_enabled": bool,
    "http.cache_backend": str,
    "policies.*.timeout_ms": int,
    "policies.*.retries_max": int,
    "policies.*.robots_respect": bool,
    "resolvers.unpaywall.mailto": str,
    "resolvers.crossref.mailto": str,
    "resolvers.pmc.mailto": str,
}
ANY_KEY = "*"


@dataclass(slots=True)
class Node:
    """A node of the key tree: a section with children, or a value. `ANY_KEY` matches keys that the user chooses."""

    children: dict[str, Node] = field(default_factory=dict)
    is_text: bool = False
    is_section: bool = False

    def child(self, key: str) -> Node | None:
        return self.children.get(key) or self.children.get(ANY_KEY)


@lru_cache(maxsize=1)
def key_tree() -> Node:
    """Every key that a file or the environment may set."""
    root = _section(ContentDownloadConfig)
    for path, kind in TRANSLATED_KEYS.items():
        _plant(root, path.split("."), kind)
    resolvers = root.children["resolvers"].children
    resolvers.update({long: resolvers[short] for short, long in LONG_NAMES.items()})
    return root


def find_node(path: tuple[str, ...]) -> Node | None:
    node: Node | None = key_tree()
    for key in path:
        node = node.child(key) if node is not None else None
    return node


def unknown_keys(layer: Any) -> Iterator[tuple[str, ...]]:
    """Paths of keys in `layer` that do not exist; below an unknown key nothing more is reported."""
    yield from _unknown(layer, key_tree(), ())


def nearest_key(path: tuple[str, ...]) -> str | None:
    """The existing key that was probably meant by an unknown one, dotted."""
    parent = find_node(path[:-1])
    siblings = [key for key in parent.children if key != ANY_KEY] if parent is not None else []
    if close := get_close_matches(path[-1], siblings, n=1, cutoff=0.7):
        return ".".join((*path[:-1], close[0]))
    every = list(_paths(key_tree(), ()))
    same_name = [".".join(known) for known in every if known[-1] == path[-1]]
    if same_name:
        return same_name[0]
    close = get_close_matches(".".join(path), [".".join(known) for known in every], n=1, cutoff=0.75)
    return close[0] if close else None


def keys_beside(path: tuple[str, ...]) -> list[str]:
    """The keys that exist where the unknown one was written."""
    parent = find_node(path[:-1])
    return sorted(key for key in parent.children if key != ANY_KEY) if parent is not None else []


def leaves(settings: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """The dotted keys that a layer sets."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}"


def _unknown(layer: Any, node: Node, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not node.children:
        return
    items = layer.items() if isinstance(layer, Mapping) else enumerate(layer) if isinstance(layer, list) else ()
    for key, value in items:
        path, child = (*at, str(key)), node.child(str(key))
        if child is None:
            yield path
        else:
            yield from _unknown(value, child, path)


def _paths(node: Node, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, child in node.children.items():
        if key == ANY_KEY or (at == ("resolvers",) and key not in LONG_NAMES and key != "order"):
            continue
        yield (*at, key)
        yield from _paths(child, (*at, key))


def _section(model: type[BaseModel]) -> Node:
    children = {name: _node(info.annotation) for name, info in model.model_fields.items()}
    return Node(children=children, is_section=True)


def _node(annotation: Any) -> Node:
    kind = _bare(annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _section(kind)
    if get_origin(kind) is dict:
        return Node(children={ANY_KEY: _node(get_args(kind)[1])})
    if get_origin(kind) is tuple and isinstance(get_args(kind)[0], type) and issubclass(get_args(kind)[0], BaseModel):
        return Node(children={ANY_KEY: _section(get_args(kind)[0])})
    return Node(is_text=kind in (str, SecretStr))


def _bare(annotation: Any) -> Any:
    """The type inside `Annotated` and `X | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _bare(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return _bare(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _plant(root: Node, path: list[str], kind: Any) -> None:
    node = root
    for key in path[:-1]:
        node = node.children.setdefault(key, Node(is_section=True))
    node.children[path[-1]] = Node(is_text=kind is str)
