"""Read works for the queue: one JSON object (or identifier in quotes) per line.

Knows the shapes a line may have and how an artifact id is derived from it. Does not know the queue.
Promises: equal lines give equal ids, an id carries its scheme, a line is bounded in length, and what it says of a
work can be read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, BinaryIO

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier, to_work, work_of

MAX_LINE_BYTES = 1024 * 1024
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:\S.*", re.DOTALL)
_IDENTIFIERS = {
    "doi": "doi",
    "arxiv_id": "arxiv",
    "pmcid": "pmcid",
    "pmid": "pmid",
    "openalex_id": "openalex",
    "url": "url",
}
_KINDS: dict[str, tuple[Any, str]] = {
    "publication_year": (int | None, "a whole number"),
    "landing_urls": (list | tuple | None, "a list of texts"),
    "pdf_urls": (list | tuple | None, "a list of texts"),
    "metadata": (dict | None, "an object"),
}


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A line of input: a work to enqueue, or the reason why not."""

    number: int
    artifact_id: str = ""
    artifact: dict[str, Any] | None = None
    resolver_hint: str | None = None
    problem: str | None = None


def read_lines(stream: BinaryIO) -> Iterator[QueueLine]:
    """Every line that is not blank, in order."""
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            _skip_rest(stream, raw)
            yield QueueLine(number, problem=f"longer than {MAX_LINE_BYTES} bytes")
        elif raw.strip():
            yield _read_line(number, raw)


def _skip_rest(stream: BinaryIO, part: bytes) -> None:
    while part and not part.endswith(b"\n"):
        part = stream.readline(MAX_LINE_BYTES)


def _read_line(number: int, raw: bytes) -> QueueLine:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return QueueLine(number, problem="not JSON; an identifier stands in quotes")
    try:
        if isinstance(value, str):
            return QueueLine(number, *named_work(value, {}))
        if isinstance(value, dict):
            return _read_object(number, value)
    except InputError as error:
        return QueueLine(number, problem=str(error))
    return QueueLine(number, problem="neither a JSON object nor an identifier in quotes")


def _read_object(number: int, value: dict[str, Any]) -> QueueLine:
    hint = value.pop("resolver_hint", None)
    given = value.pop("artifact_id", None) or value.get("work_id")
    body = value.get("artifact", value)
    if not isinstance(body, dict) or not isinstance(hint, str | None):
        raise InputError("artifact must be an object and resolver_hint a text")
    if given is not None:
        return QueueLine(number, *named_work(str(given), body), hint)
    return QueueLine(number, *_derived_work(body), hint)


def named_work(name: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id and the work for a name that was given; a name in a scheme of its own stands as it is."""
    try:
        work = to_work(parse_identifier(name))
    except BadIdentifier:
        if not _SCHEME.fullmatch(name):
            raise
        return name, _checked({**body, "work_id": name})
    return work.work_id, _checked({**work.to_dict(), **body, "work_id": work.work_id})


def _derived_work(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    texts = [(scheme, body[key]) for key, scheme in _IDENTIFIERS.items() if body.get(key)]
    texts += [("url", url) for key in ("landing_urls", "pdf_urls") for url in _texts(body.get(key))]
    if not texts:
        raise InputError(f"no identifier; give artifact_id, work_id or one of {', '.join(_IDENTIFIERS)}")
    work = work_of([parse_identifier(f"{scheme}:{text}") for scheme, text in texts])
    return work.work_id, _checked({**body, **work.to_dict()})


def _checked(work: dict[str, Any]) -> dict[str, Any]:
    """The work, when what it says of known fields can be used: a job is read again long after it was enqueued."""
    for field in fields(WorkArtifact):
        kind, words = _KINDS.get(field.name, (str | None, "a text"))
        value = work.get(field.name)
        if not isinstance(value, kind) or (isinstance(value, list) and len(_texts(value)) < len(value)):
            raise InputError(f"{field.name} must be {words}")
    return work


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
