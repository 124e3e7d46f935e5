"""RIS: the tags DO, UR, AN, ID and C2 name the paper, TI and PY describe it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from DocsToKG.ContentDownload.inputs.entries import Entry
from DocsToKG.ContentDownload.inputs.lines import Line

_TAG = re.compile(r"\s{0,3}([A-Z][A-Z0-9])\s{1,2}-(?:\s(.*))?")
_KINDS = {
    "DO": "doi",
    "DI": "doi",
    "UR": "url",
    "L1": "url",
    "L2": "url",
    "LK": "url",
    "C2": "pmcid",
    "ID": "any",
    "TI": "title",
    "T1": "title",
    "PY": "year",
    "Y1": "year",
    "DA": "year",
}
_MAX_VALUES = 20


def read_ris(lines: Iterable[Line]) -> Iterator[Entry]:
    started: int | None = None
    fields: dict[str, list[str]] = {}
    for line in lines:
        match = _TAG.fullmatch(line.text)
        if match is None:
            continue
        tag, value = match[1], (match[2] or "").strip()
        if tag in ("TY", "ER") and started is not None:
            yield _entry(started, fields)
            started, fields = None, {}
        if tag != "ER":
            started = started or line.number
            _add(fields, tag, value)
    if started is not None:
        yield _entry(started, fields)


def _add(fields: dict[str, list[str]], tag: str, value: str) -> None:
    kind = _KINDS.get(tag, f"ris:{tag}" if tag in ("AN", "DB", "DP") else None)
    if kind is not None and value and len(fields.setdefault(kind, [])) < _MAX_VALUES:
        fields[kind].append(value)


def _entry(number: int, fields: dict[str, list[str]]) -> Entry:
    database = " ".join(fields.get("ris:DB", []) + fields.get("ris:DP", [])).lower()
    for value in fields.get("ris:AN", []):
        # An accession number is a PMID where the database says so; elsewhere a bare number could be anything.
        is_pmid = value.isdigit() and any(name in database for name in ("pubmed", "medline", "nlm"))
        fields.setdefault("pmid" if is_pmid else "any", []).append(value)
    named = [value for kind in ("doi", "any", "url", "title") for value in fields.get(kind, [])]
    return Entry(number, named[0] if named else "a RIS record without identifiers", fields)
