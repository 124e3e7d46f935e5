"""Recognise equal links, and links that differ in their version alone.

Pure. Links that differ only in a session token are equal; the token stays in the address that is requested. Of the
versions of one paper the newest comes first. Promises: linear time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from DocsToKG.core.urls import BadUrl, index_url

_PATH_TOKEN = re.compile(
    r";(?:jsessionid|phpsessid|sid|sessionid)=[^;/?#]{1,200}|(?<=/)\([SA]\([a-z0-9]{10,64}\)\)/", re.IGNORECASE
)
_TOKEN = re.compile(
    r"jsessionid|phpsessid|asp(?:\.net_)?sessionid\w{0,20}|(?:php|http)?sess(?:ion)?[-_]?id|cfid|cftoken|x-(?:amz|goog)-[\w-]{1,40}"
    r"|signature|expires|key-pair-id|policy|googleaccessid|awsaccesskeyid|_gl|_ga",
    re.IGNORECASE,
)
# Of a file that its path names; elsewhere they may be all that names it.
_TOKEN_OF_A_FILE = re.compile(r"token|sid|hash|tid|ua|rr|cc", re.IGNORECASE)
_VERSION = re.compile(
    r"(?:(?<=\d)v|(?<=/)v|(?<=[._-])v|(?<=[?&]version=))(?P<number>\d{1,3})(?=$|[/?&#]|\.full|\.pdf)", re.IGNORECASE
)
_Item = TypeVar("_Item")


def link_key(url: str) -> str:
    """Equal for two spellings of one link, session tokens aside; raises `BadUrl`."""
    return without_session(index_url(url))


def without_session(url: str) -> str:
    """The address without session tokens and signatures."""
    path, _, query = url.partition("?")
    if ";" in path or "/(" in path:
        path = _PATH_TOKEN.sub("", path)
    if not query:
        return path
    is_file = path.lower().endswith(".pdf")
    kept = [pair for pair in query.split("&") if not _is_token(pair.partition("=")[0], is_file)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def newest_first(items: Sequence[_Item], address: Callable[[_Item], str]) -> list[_Item]:
    """The items in their order, but versions of one link are sorted among their positions, the newest first."""
    if len(items) < 2:
        return list(items)
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if (family := _family(address(item))) is not None:
            places[family].append(place)
    ordered = list(items)
    for taken in (each for each in places.values() if len(each) > 1):
        members = sorted((items[place] for place in taken), key=lambda item: -_version(address(item)))
        for place, member in zip(taken, members, strict=True):
            ordered[place] = member
    return ordered


def unique_links(items: Iterable[_Item], address: Callable[[_Item], str]) -> list[_Item]:
    """Each link once, whatever its spelling; unusable addresses are left out."""
    kept: dict[str, _Item] = {}
    for item in items:
        try:
            kept.setdefault(link_key(address(item)), item)
        except BadUrl:
            continue
    return newest_first(list(kept.values()), address)


def _is_token(name: str, is_file: bool) -> bool:
    if len(name) > 60:
        return False
    return _TOKEN.fullmatch(name) is not None or (is_file and _TOKEN_OF_A_FILE.fullmatch(name) is not None)


def _family(url: str) -> str | None:
    found = list(_VERSION.finditer(url))
    if not found:
        return None
    last = found[-1]
    return f"{url[: last.start('number')]}*{url[last.end('number') :]}"


def _version(url: str) -> int:
    found = list(_VERSION.finditer(url))
    return int(found[-1]["number"]) if found else 0
