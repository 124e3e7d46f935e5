"""Settings from environment variables.

Knows the two prefixes, the short names and the usual names of credentials and proxies. Reads the given mapping, never
the process. An empty variable counts as not set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.config.aliases import UnknownSource, long_source
from DocsToKG.ContentDownload.config.files import parse_yaml
from DocsToKG.ContentDownload.config.keys import find_node, nearest_key

NEW_PREFIX = "DOCSTOKG_CONTENT_"
OLD_PREFIX = "DTKG_"
CONFIG_VARIABLES = (NEW_PREFIX + "CONFIG", OLD_PREFIX + "CONFIG")

SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "workers": ("workers",),
    "timeout": ("http", "timeout"),
    "robots_obey": ("robots", "enabled"),
    "cache_enabled": ("hishel", "enabled"),
}
KNOWN_VARIABLES: dict[str, tuple[str, ...]] = {
    "http_proxy": ("http", "proxy", "http"),
    "HTTP_PROXY": ("http", "proxy", "http"),
    "https_proxy": ("http", "proxy", "https"),
    "HTTPS_PROXY": ("http", "proxy", "https"),
    "no_proxy": ("http", "proxy", "no_proxy"),
    "NO_PROXY": ("http", "proxy", "no_proxy"),
    "UNPAYWALL_EMAIL": ("resolvers", "unpaywall", "email"),
    "CORE_API_KEY": ("resolvers", "core", "api_key"),
    "S2_API_KEY": ("resolvers", "semantic_scholar", "api_key"),
    "DOAJ_API_KEY": ("resolvers", "doaj", "api_key"),
    "OPENALEX_API_KEY": ("resolvers", "openalex", "api_key"),
}


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable that sets something: the path it means, and its value or what is wrong with it."""

    name: str
    path: tuple[str, ...]
    value: Any = None
    problem: str | None = None

    def settings(self) -> dict[str, Any]:
        nested: Any = self.value
        for key in reversed(self.path):
            nested = {key: nested}
        return dict(nested)


def known_variables(environ: Mapping[str, str]) -> Iterator[Variable]:
    """Credentials and proxies under the names other programs use for them too."""
    for name, path in KNOWN_VARIABLES.items():
        if environ.get(name):
            yield Variable(name, path, environ[name])


def prefixed_variables(environ: Mapping[str, str], prefix: str) -> Iterator[Variable]:
    """Settings under a prefix, in an order that lets the full name of a setting beat its short one."""
    names = [name for name in environ if name.startswith(prefix) and environ[name] and name not in CONFIG_VARIABLES]
    for name in sorted(names, key=lambda name: ("__" in name, name)):
        yield _variable(name, name.removeprefix(prefix).lower(), environ[name])


def nearest_variable(path: tuple[str, ...], prefix: str) -> str | None:
    """The variable that was probably meant by one that sets nothing."""
    if short := get_close_matches(path[0], SHORT_NAMES, n=1, cutoff=0.8) if len(path) == 1 else None:
        return variable_name((short[0],), prefix)
    near = nearest_key(path)
    return variable_name(tuple(near.split(".")), prefix) if near else None


def variable_name(path: tuple[str, ...], prefix: str) -> str:
    """How a setting is written as a variable."""
    return prefix + "__".join(path).upper()


def user_file_path(environ: Mapping[str, str]) -> Path | None:
    """The user's own settings; None when the environment names no home."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return Path(base) / "docstokg" / "content.yaml"
    if home := environ.get("HOME"):
        return Path(home) / ".config" / "docstokg" / "content.yaml"
    return None


def parse_value(path: tuple[str, ...], text: str) -> Any:
    """The text as the setting wants it: texts and secrets as they are, all else as YAML."""
    node = find_node(path)
    return text if node is None or node.is_text else parse_yaml(text)


def _variable(name: str, rest: str, text: str) -> Variable:
    if rest.startswith("rate_limit_") and "__" not in rest:
        return _source_rate(name, rest.removeprefix("rate_limit_"), text)
    path = SHORT_NAMES.get(rest) or tuple(rest.split("__"))
    try:
        return Variable(name, path, parse_value(path, text))
    except ValueError as error:
        return Variable(name, path, problem=f"{name}: {error}")


def _source_rate(name: str, source: str, text: str) -> Variable:
    try:
        return Variable(name, ("policies", long_source(source), "rate_limit"), text)
    except UnknownSource as error:
        return Variable(name, (), problem=f"{name}: {error}")
