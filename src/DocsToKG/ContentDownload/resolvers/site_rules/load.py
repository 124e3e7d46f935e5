"""Read site rules from YAML, the shipped ones and a user's own.

Promises: a file with a wrong key, pattern or selector is refused as a whole, with the rule's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.resolvers.site_rules.css_selectors import parse_selector
from DocsToKG.ContentDownload.resolvers.site_rules.rules import (
    PDF,
    Example,
    FileRule,
    Measured,
    PageRule,
    PrefixRule,
    SiteRules,
    Where,
)

_MAX_FILE_BYTES = 1024 * 1024
_MAX_DEPTH = 50
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LISTS = ("files", "pages", "prefixes")
_KEYS = {
    "files": {"name", "hosts", "from", "to", "shows", "sure", "host_type", "measured", "example"},
    "pages": {
        "name", "hosts", "url", "generator", "stage", "mime", "select", "attribute", "words", "text", "script",
        "rewrite", "own", "single", "example",
    },
    "prefixes": {"name", "doi", "to", "open", "terms", "upper", "host_type", "measured", "example"},
}  # fmt: skip
_Rule = TypeVar("_Rule")


@cache
def shipped_rules() -> SiteRules:
    """The rules of the product."""
    place = files("DocsToKG.ContentDownload.resolvers.site_rules") / "site_rules.yaml"
    return parse_rules(place.read_text(encoding="utf-8"), "site_rules.yaml")


def rules_with(path: str | Path | None) -> SiteRules:
    """The shipped rules, and before them those of the file at `path`, if one is given."""
    if not path:
        return shipped_rules()
    try:
        with Path(path).expanduser().open("rb") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
        if len(text) > _MAX_FILE_BYTES:
            raise ConfigError(f"site rules {path}: larger than {_MAX_FILE_BYTES} bytes")
        return shipped_rules().plus(parse_rules(text.decode("utf-8"), str(path)))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"site rules {path}: cannot be read: {error}") from error


def parse_rules(text: str, name: str) -> SiteRules:
    """Raises `ConfigError` that names the file and the rule."""
    try:
        if _is_deep(text):
            raise ConfigError(f"site rules {name}: nested too deeply")
        data = yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"site rules {name}: not YAML: {str(error)[:300]}") from error
    if not isinstance(data, dict) or set(data) - set(_LISTS):
        raise ConfigError(f"site rules {name}: expected lists named {', '.join(_LISTS)}")
    return SiteRules(
        files=_each(name, "files", data, _file_rule),
        pages=_each(name, "pages", data, _page_rule),
        prefixes=_each(name, "prefixes", data, _prefix_rule),
    )


def _is_deep(text: str) -> bool:
    """Whether the text is nested so deeply that the recursion of the C loader would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            return True
    return False


def _each(
    name: str, kind: str, data: Mapping[str, Any], build: Callable[[Mapping[str, Any]], _Rule]
) -> tuple[_Rule, ...]:
    entries = data.get(kind) or []
    if not isinstance(entries, list):
        raise ConfigError(f"site rules {name}: {kind} must be a list")
    built = []
    for number, entry in enumerate(entries, start=1):
        called = entry.get("name", f"number {number}") if isinstance(entry, dict) else f"number {number}"
        try:
            built.append(build(_checked(kind, entry)))
        except (KeyError, ValueError, TypeError, AttributeError, re.error) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ConfigError(f"site rules {name}: {kind}, {called}: {why}") from error
    return tuple(built)


def _checked(kind: str, entry: Any) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError("a rule is a mapping")
    if unknown := set(map(str, entry)) - _KEYS[kind]:
        raise ValueError(f"unknown key {', '.join(sorted(unknown))}; known: {', '.join(sorted(_KEYS[kind]))}")
    if not isinstance(entry["name"], str) or not re.fullmatch(r"[a-z0-9_]{2,60}", entry["name"]):
        raise ValueError("a name is made of small letters, digits and _")
    return entry


def _file_rule(entry: Mapping[str, Any]) -> FileRule:
    return FileRule(
        name=entry["name"],
        where=_where(entry),
        pattern=re.compile(entry["from"]),
        to=_text(entry, "to"),
        shows=_one_of(entry.get("shows", "page"), "file", "page"),
        sure=bool(entry.get("sure", False)),
        example=_example(entry),
        host_type=_one_of(entry.get("host_type"), "publisher", "repository", None),
        measured=_measured(entry),
    )


def _page_rule(entry: Mapping[str, Any]) -> PageRule:
    if sum(key in entry for key in ("select", "text", "script")) != 1:
        raise ValueError("a rule for pages has one of select, text and script")
    script = entry.get("script") or {}
    rewrite = entry.get("rewrite")
    return PageRule(
        name=entry["name"],
        where=_where(entry),
        example=_example(entry),
        stage=_one_of(entry.get("stage", "site"), "viewer", "site"),
        mime=_one_of(entry.get("mime", PDF), PDF, "application/xml", "text/html"),
        generator=_pattern(entry, "generator"),
        select=parse_selector(entry["select"]) if "select" in entry else None,
        attribute=str(entry.get("attribute", "href")),
        words=_pattern(entry, "words"),
        text=_pattern(entry, "text"),
        script={name: str(script[name]) for name in ("type", "at", "form")} if script else {},
        rewrite=(re.compile(rewrite["from"]), str(rewrite["to"])) if rewrite else None,
        own=bool(entry.get("own", False)),
        single=bool(entry.get("single", False)),
    )


def _prefix_rule(entry: Mapping[str, Any]) -> PrefixRule:
    pattern = re.compile(entry["doi"])
    return PrefixRule(
        name=entry["name"],
        pattern=pattern,
        to=_text(entry, "to"),
        example=_example(entry),
        open=_one_of(entry.get("open", "some"), "all", "some"),
        terms={str(key): str(value) for key, value in (entry.get("terms") or {}).items()},
        upper=_upper(entry.get("upper", False), pattern),
        host_type=_one_of(entry.get("host_type", "publisher"), "publisher", "repository"),
        measured=_measured(entry),
    )


def _where(entry: Mapping[str, Any]) -> Where:
    hosts = entry.get("hosts") or []
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise ValueError("hosts must be a list of names")
    return Where(tuple(host.lower() for host in hosts), _pattern(entry, "url"))


def _example(entry: Mapping[str, Any]) -> Example:
    example = entry["example"]
    gives = example["gives"]
    return Example(
        gives=tuple(map(str, gives)) if isinstance(gives, list) else (str(gives),),
        url=str(example.get("url", "")),
        html=str(example.get("html", "")),
        doi=str(example.get("doi", "")),
    )


def _upper(given: Any, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """`true` for all groups of the pattern, or a list of their names."""
    if isinstance(given, bool):
        return tuple(pattern.groupindex) if given else ()
    if not isinstance(given, list) or not set(given) <= set(pattern.groupindex):
        raise ValueError("upper is true, or a list of groups of the pattern")
    return tuple(given)


def _measured(entry: Mapping[str, Any]) -> Measured | None:
    """`measured: [right, judged]`; a rule without it is used whatever share is asked for."""
    if (given := entry.get("measured")) is None:
        return None
    if not isinstance(given, list) or len(given) != 2 or any(type(number) is not int for number in given):
        raise ValueError("measured is two numbers: right, and judged")
    right, judged = given
    if not 0 <= right <= judged:
        raise ValueError("measured: not more can be right than were judged")
    return Measured(right, judged)


def _pattern(entry: Mapping[str, Any], name: str) -> re.Pattern[str] | None:
    return re.compile(entry[name], re.IGNORECASE) if entry.get(name) else None


def _text(entry: Mapping[str, Any], name: str) -> str:
    if not isinstance(entry[name], str):
        raise ValueError(f"{name} must be a text")
    return str(entry[name])


def _one_of(value: Any, *known: str | None) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(filter(None, known))}")
    return value
