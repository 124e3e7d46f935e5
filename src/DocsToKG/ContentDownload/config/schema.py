"""The JSON Schema of everything a configuration file may say.

The model's own schema, plus the other accepted spellings, marked deprecated, so that an editor accepts every
file that `load_config` accepts and points to the canonical key.
"""

from __future__ import annotations

from typing import Any

from DocsToKG.ContentDownload.config.aliases import LONG_NAMES
from DocsToKG.ContentDownload.config.keys import ANY_KEY, TRANSLATED_KEYS
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

_JSON_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}
_DATABASES = ["sqlite", "postgres"]


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), with no default values that could ever hold a secret."""
    schema = ContentDownloadConfig.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["properties"]["artifacts"] = _table("Deployment shape of `storage`.")
    for path, kind in TRANSLATED_KEYS.items():
        _add(schema, path.split("."), kind)
    # A database under `storage` is that of queue and catalog.
    schema["$defs"]["StorageConfig"]["properties"]["backend"]["enum"] += _DATABASES
    resolvers = schema["$defs"]["ResolversConfig"]["properties"]
    resolvers.update({long: resolvers[short] for short, long in LONG_NAMES.items() if long != short})
    _accept_word_lists(schema)
    _accept_empty_sections(schema)
    return schema


def _add(schema: dict[str, Any], path: list[str], kind: type) -> None:
    place = schema
    for key in path[:-1]:
        place = _resolved(schema, place["additionalProperties"] if key == ANY_KEY else place["properties"][key])
    place["properties"][path[-1]] = {
        "type": _JSON_TYPES[kind],
        "deprecated": True,
        "description": "Another spelling; print-config shows the canonical key.",
    }


def _resolved(schema: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in place:
        name = place["$ref"].rsplit("/", 1)[1]
        found: dict[str, Any] = schema["$defs"][name]
        return found
    return place


def _table(description: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "description": description, "properties": {}}


def _accept_word_lists(place: Any) -> None:
    """Lists of texts and numbers may also be written as one text, `a, b`."""
    if isinstance(place, list):
        for item in place:
            _accept_word_lists(item)
    elif isinstance(place, dict):
        if place.get("type") == "array" and place.get("items", {}).get("type") in ("string", "integer"):
            place["type"] = ["array", "string"]
        for item in place.values():
            _accept_word_lists(item)


def _accept_empty_sections(schema: dict[str, Any]) -> None:
    """A section with all its keys commented out is null in YAML."""
    for name, place in list(schema["properties"].items()):
        if "$ref" in place:
            rest = {key: value for key, value in place.items() if key != "$ref"}
            schema["properties"][name] = {**rest, "anyOf": [{"$ref": place["$ref"]}, {"type": "null"}]}
