"""Load the configuration from everywhere it may be set.

From weakest to strongest: shipped defaults, the user's file, the given file, environment (usual names of
credentials, `DTKG_*`, `DOCSTOKG_CONTENT_*`), overrides. Promises: one readable `ConfigError` that lists every
problem with its key, its origin and the nearest valid key; no value of a setting in an error.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from DocsToKG.ContentDownload.config.environment import (
    CONFIG_VARIABLES,
    NEW_PREFIX,
    OLD_PREFIX,
    Variable,
    known_variables,
    nearest_variable,
    parse_value,
    prefixed_variables,
    user_file_path,
)
from DocsToKG.ContentDownload.config.files import read_settings, write_settings
from DocsToKG.ContentDownload.config.keys import find_node, keys_beside, leaves, nearest_key, unknown_keys
from DocsToKG.ContentDownload.config.merge import SettingsClash, merge
from DocsToKG.ContentDownload.config.messages import setting_message
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig, HttpConfig
from DocsToKG.ContentDownload.config.translate import apply_connect_cap, translate
from DocsToKG.ContentDownload.errors import ConfigError

_OVERRIDES = "command line"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, what was odd about its sources, and where each dotted key was set (absent: shipped)."""

    config: ContentDownloadConfig
    warnings: tuple[str, ...]
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Settings of one origin. `prefix` is set when it is an environment variable, `lenient` when it may be odd."""

    origin: str
    settings: Mapping[str, Any]
    prefix: str | None = None
    lenient: bool = False


@dataclass(slots=True)
class _Reading:
    """What has been gathered so far."""

    merged: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def load_config(
    path: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> ContentDownloadConfig:
    """The configuration from defaults, files, environment and overrides. Raises `ConfigError`."""
    return load_config_verbose(path, overrides, environ=environ, user_file=user_file).config


def load_config_verbose(
    path: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Loaded:
    """As `load_config`, with warnings and origins."""
    environ = os.environ if environ is None else environ
    reading = _Reading()
    for layer in _file_layers(path, environ, user_file):
        _add(reading, layer)
    for layer in _environment_layers(environ, reading):
        _add(reading, layer)
    _add(reading, _Layer(_OVERRIDES, _expanded(overrides or {})))
    config = _validated(reading)
    return Loaded(config, tuple(reading.warnings), dict(reading.origins))


def set_user_value(
    key: str, text: str, *, environ: Mapping[str, str] | None = None, user_file: Path | None = None
) -> Path:
    """Write one setting to the user's file, once the file with it is known to be good. Returns the file."""
    target = user_file or user_file_path(os.environ if environ is None else environ)
    if target is None:
        raise ConfigError("no home directory is known; set XDG_CONFIG_HOME, or give the setting in a file with -c")
    path = tuple(key.split("."))
    node = find_node(path)
    if node is not None and (node.children or node.is_section):
        raise ConfigError(f"{key} is a group of settings; set one of: {', '.join(keys_beside((*path, '')))}")
    settings = _with_value(read_settings(target) if target.exists() else {}, path, _parsed(key, path, text))
    reading = _Reading()
    _add(reading, _Layer("config set", settings))
    _validated(reading)
    write_settings(target, settings)
    return target


def _file_layers(path: str | Path | None, environ: Mapping[str, str], user_file: Path | None) -> Iterator[_Layer]:
    own = user_file or user_file_path(environ)
    if own is not None and own.exists():
        yield _Layer(str(own), read_settings(own))
    given = path or next((environ[name] for name in CONFIG_VARIABLES if environ.get(name)), None)
    if given is not None:
        yield _Layer(str(given), read_settings(Path(given).expanduser()))


def _environment_layers(environ: Mapping[str, str], reading: _Reading) -> Iterator[_Layer]:
    for variable in known_variables(environ):
        yield _Layer(variable.name, variable.settings())
    for prefix in (OLD_PREFIX, NEW_PREFIX):
        for variable in prefixed_variables(environ, prefix):
            if variable.problem is None:
                yield _Layer(variable.name, variable.settings(), prefix, lenient=prefix == OLD_PREFIX)
            else:
                _complain(reading, variable, lenient=prefix == OLD_PREFIX)


def _complain(reading: _Reading, variable: Variable, *, lenient: bool) -> None:
    (reading.warnings if lenient else reading.problems).append(variable.problem or "")


def _add(reading: _Reading, layer: _Layer) -> None:
    """Put a layer on top of what is there."""
    settings = copy.deepcopy(dict(layer.settings))
    for path in list(unknown_keys(settings)):
        (reading.warnings if layer.lenient else reading.problems).append(_unknown_line(path, layer))
        _drop(settings, path)
    try:
        translated = translate(settings)
    except SettingsClash as clash:
        reading.problems.append(f"{layer.origin}: {clash}")
        return
    reading.merged = merge(reading.merged, translated)
    reading.origins.update((leaf, layer.origin) for leaf in leaves(translated))


def _validated(reading: _Reading) -> ContentDownloadConfig:
    apply_connect_cap(reading.merged, HttpConfig().timeout_connect_s)
    config = None
    try:
        config = ContentDownloadConfig.model_validate(reading.merged)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        reading.problems.extend(
            _problem_line(problem["loc"], setting_message(problem), reading.origins) for problem in found
        )
    if config is None or reading.problems:
        # Raised outside the handler: a chained ValidationError would bring its text along.
        raise ConfigError(_one_message(reading.problems))
    return config


def _one_message(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} settings are wrong:\n" + "\n".join(f"  {line}" for line in problems)


def _problem_line(loc: tuple[int | str, ...], text: str, origins: Mapping[str, str]) -> str:
    key = ".".join(str(part) for part in loc if part != "[key]")
    origin = next((origins[key[:end]] for end in _prefix_ends(key) if key[:end] in origins), None)
    named = f"{key}: {text}" if key else text
    return f"{named} (set by {origin})" if origin else named


def _prefix_ends(key: str) -> Iterator[int]:
    """Ends of the key and of every section above it, longest first."""
    yield len(key)
    yield from (place for place in range(len(key) - 1, 0, -1) if key[place] == ".")


def _unknown_line(path: tuple[str, ...], layer: _Layer) -> str:
    if layer.prefix is not None:
        variable = nearest_variable(path, layer.prefix)
        return f"{layer.origin} is not a setting" + (f"; did you mean {variable}?" if variable else "")
    near = nearest_key(path)
    hint = f"did you mean {near}?" if near else f"known here: {', '.join(keys_beside(path))}"
    return f"{layer.origin}: {'.'.join(path)} is not a setting; {hint}"


def _drop(settings: Any, path: tuple[str, ...]) -> None:
    """Take the key out, so that it is reported once."""
    for key in path[:-1]:
        settings = settings[int(key)] if isinstance(settings, list) else _entry(settings, key)[1]
    if isinstance(settings, dict):
        del settings[_entry(settings, path[-1])[0]]


def _entry(table: Mapping[Any, Any], key: str) -> tuple[Any, Any]:
    """The entry whose key reads like `key`: YAML keys may be numbers or booleans."""
    return next((own, value) for own, value in table.items() if str(own) == key)


def _expanded(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides may be nested or dotted; None means that the option was not given."""
    nested: dict[str, Any] = {}
    for key, value in overrides.items():
        if value is not None:
            nested = merge(nested, Variable(_OVERRIDES, tuple(key.split(".")), value).settings())
    return nested


def _parsed(key: str, path: tuple[str, ...], text: str) -> Any:
    try:
        return parse_value(path, text)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from None


def _with_value(settings: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return merge(settings, Variable("", path, value).settings())
