"""Read and write the files that settings come from.

Knows YAML and JSON, bounded: at most 1 MiB, no key twice, no anchors (a few lines of them can grow to
gigabytes). Promises: errors name the file and the place, never a value; a written file is whole and 0600.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from DocsToKG.ContentDownload.errors import ConfigError

MAX_FILE_BYTES = 1_048_576
_HEADER = "# Settings of the `content` command for this user. Change them with: content config set KEY VALUE\n"


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader, minus anchors and keys given twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(None, None, "anchors and aliases are not supported", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float | bool | None) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {str(key)[:80]} is there twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, str | int | float | bool | None) else id(key_node))
        return super().construct_mapping(node, deep)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a YAML or JSON file; an empty file has none."""
    text = _read_text(path)
    try:
        data = _parse_json(text) if path.suffix.lower() == ".json" else parse_yaml(text)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must hold settings as `key: value`, not a single value or a list")
    return data


def parse_yaml(text: str) -> Any:
    """The value written as YAML. Raises ValueError saying where it is wrong, without showing the text."""
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"not valid YAML{_place(error)}") from None
    except RecursionError:
        raise ValueError("not valid YAML: nested too deeply") from None
    except (ValueError, OverflowError, TypeError):
        raise ValueError("not valid YAML: a number or date in it makes no sense") from None


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Replace the file as a whole, readable by its owner alone."""
    text = _HEADER + yaml.safe_dump(dict(settings), sort_keys=True, allow_unicode=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        way_out = "check who may write there, or name another folder with XDG_CONFIG_HOME"
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); {way_out}") from None


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; check the path") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check who may read it") from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than 1 MiB, which no settings file is")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None


def _parse_json(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("not valid JSON: nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:80]} is there twice")
    return table


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number we can use")


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
    problem = getattr(error, "problem", None) or ""
    # PyYAML quotes what it found, which may be half of a password; only unquoted problems are passed on.
    return f"{where}: {problem}" if problem and "'" not in problem and '"' not in problem else where
