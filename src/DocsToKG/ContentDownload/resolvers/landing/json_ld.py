"""What a page says of itself in JSON-LD: the files of the paper, and whether it may be read for free.

Looks at a bounded number of nodes, in `@graph` and below `mainEntity` too. Every field may be of any type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage, scripts_of

_MAX_NODES = 500
_MAX_MEMBERS = 100
_MEDIA_KEYS = ("encoding", "associatedMedia", "distribution")
_ROOMS = ("@graph", "mainEntity")
_FORMATS = {
    "application/pdf": "application/pdf",
    "pdf": "application/pdf",
    ".pdf": "application/pdf",
    "application/xml": "application/xml",
    "text/xml": "application/xml",
    "application/jats+xml": "application/xml",
}


def media_of(page: HtmlPage) -> Iterator[tuple[str, str]]:
    """Address as written and media type of each file the page declares."""
    for node in _nodes(page, (*_ROOMS, *_MEDIA_KEYS)):
        link = node.get("contentUrl") or node.get("url")
        kind = _format(node, link)
        if isinstance(link, str) and kind is not None:
            yield link, kind


def is_free(page: HtmlPage) -> bool | None:
    """What `isAccessibleForFree` says of the paper; None when nothing does. Parts of the page may be less free."""
    said = {value for node in _nodes(page, _ROOMS) if (value := _truth(node.get("isAccessibleForFree"))) is not None}
    return None if not said else True in said


def _nodes(page: HtmlPage, below: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    queue: list[Any] = list(scripts_of(page, "application/ld+json"))[:_MAX_MEMBERS]
    for _ in range(_MAX_NODES):
        if not queue:
            return
        node = queue.pop(0)
        if isinstance(node, list):
            queue.extend(node[:_MAX_MEMBERS])
        elif isinstance(node, dict):
            yield node
            queue.extend(node[key] for key in below if key in node)


def _format(node: Mapping[str, Any], link: object) -> str | None:
    named = node.get("encodingFormat") or node.get("fileFormat")
    if isinstance(named, str):
        return _FORMATS.get(named.strip().lower())
    is_media = node.get("@type") in ("MediaObject", "DataDownload")
    ends_in_pdf = isinstance(link, str) and link.partition("?")[0].lower().endswith(".pdf")
    return "application/pdf" if is_media and ends_in_pdf else None


def _truth(value: object) -> bool | None:
    """Written as a truth value, a word, or the address of schema.org's."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    return {"true": True, "false": False}.get(value.strip().lower().rpartition("/")[2])
