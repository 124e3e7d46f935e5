"""One entry of an input, whatever its format, and the work it names.

Knows the names that columns, keys and fields go by. An entry with several identifiers is one work with all of them; one
that cannot be read is a problem as long as none of the others can.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, identifiers_of, parse_identifier, work_of
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import Identifier, normalize_url
from DocsToKG.ContentDownload.resolvers.record import title_of, year_of

_NAMES = {
    "doi": ("doi", "articledoi", "doiurl", "doinumber", "digitalobjectidentifier"),
    "arxiv": ("arxiv", "arxivid", "eprint"),
    "pmcid": ("pmcid", "pmc", "pmcids"),
    "pmid": ("pmid", "pubmedid", "pubmed"),
    "openalex": ("openalex", "openalexid", "openalexurl"),
    "any": ("id", "ids", "identifier", "identifiers", "workid", "paperid", "articleid", "artifactid"),
    "url": ("url", "urls", "link", "links", "uri", "landingurl", "landingurls", "landingpageurl", "openaccessurl"),
    "pdf": ("pdfurl", "pdfurls", "pdf", "oapdf", "oapdfurl", "urlforpdf"),
    "title": ("title", "articletitle", "displayname"),
    "year": ("year", "publicationyear", "pubyear", "publisheddate", "publicationdate", "issued", "date"),
    "license": ("license", "licence"),
    "oa_status": ("oastatus",),
}
_KIND = {name: kind for kind, names in _NAMES.items() for name in names}
IDENTIFYING = ("doi", "arxiv", "pmcid", "pmid", "openalex", "any", "url")
_MAX_VALUES = 20
_MAX_MARKERS = 3
_MARKER = re.compile(r"\s*(?:\[[^\[\]/]{0,20}\]\s*|\(?\d{1,6}\)\s*|\d{1,6}[.:]\s+|[-*+\u2022\u2013\u2014]\s+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """`fields` are the values by kind (`doi`, `title`, ...); None means that `text` is the identifier itself."""

    line_no: int
    text: str
    fields: Mapping[str, list[str]] | None = None
    problem: str | None = None
    metadata: Mapping[str, Any] | None = None
    work_id: str | None = None


def kind_of_field(name: str) -> str | None:
    """`DOI`, `arXiv ID`, `Publication Year` and the like: the kind of value a column or key of that name holds."""
    return _KIND.get(re.sub(r"[^a-z0-9]+", "", name.lower()[:80]))


def identifies(name: str) -> bool:
    return kind_of_field(name) in (*IDENTIFYING, "pdf")


def without_marker(text: str) -> str:
    """`[1] `, `1. `, `- `, `- [ ] ` and the like taken off when an identifier is left, else the text as it is."""
    bare = text
    for _ in range(_MAX_MARKERS):
        marker = _MARKER.match(bare)
        if marker is None or identifier_in(bare) is not None:
            break
        bare = bare[marker.end() :]
    return bare if bare is text or identifier_in(bare) is not None else text


def identifier_in(text: str) -> Identifier | None:
    try:
        return parse_identifier(text)
    except BadIdentifier:
        return None


def entry_of_mapping(line_no: int, text: str, data: Mapping[str, Any]) -> Entry:
    """An entry from an object with the usual keys, such as `WorkArtifact.to_dict()` or a CSL item."""
    fields: dict[str, list[str]] = {}
    for name, value in data.items():
        kind = kind_of_field(name) if isinstance(name, str) else None
        if kind is not None:
            fields.setdefault(kind, []).extend(_texts(value))
    metadata = data.get("metadata")
    given = data.get("work_id")
    return Entry(
        line_no,
        text,
        fields,
        metadata=metadata if isinstance(metadata, Mapping) else None,
        work_id=given if isinstance(given, str) else None,
    )


def work_of_entry(entry: Entry) -> WorkArtifact:
    """The work an entry names; raises `BadIdentifier` when it names none."""
    if entry.fields is None:
        return work_of(identifiers_of(entry.text))
    identifiers, first_problem = _identifiers(entry.fields)
    files = tuple(url for value in _values(entry.fields, "pdf") if (url := normalize_url(value)) is not None)
    if not identifiers and not files:
        raise first_problem or BadIdentifier(
            entry.text, "no identifier in this entry", "fill in one of doi, arxiv, pmcid, pmid, openalex, url"
        )
    work = work_of(
        identifiers,
        title=next((title for value in _values(entry.fields, "title") if (title := title_of(value))), None),
        publication_year=next((year for value in _values(entry.fields, "year") if (year := year_of(value))), None),
        pdf_urls=files,
        license=next(_values(entry.fields, "license"), None),
        oa_status=next(_values(entry.fields, "oa_status"), None),
        metadata=entry.metadata,
    )
    return _keep_name(work, entry.work_id)


def _identifiers(fields: Mapping[str, list[str]]) -> tuple[list[Identifier], BadIdentifier | None]:
    found: list[Identifier] = []
    first_problem: BadIdentifier | None = None
    for kind in IDENTIFYING:
        for value in _values(fields, kind):
            try:
                found.extend(identifiers_of(value if kind in ("any", "url") else f"{kind}:{value}"))
            except BadIdentifier as problem:
                first_problem = first_problem or BadIdentifier(value, problem.why, problem.hint)
    return found, first_problem


def _values(fields: Mapping[str, list[str]], kind: str) -> Iterator[str]:
    for value in fields.get(kind, ())[:_MAX_VALUES]:
        if value.strip():
            yield value.strip()


def _texts(value: object) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(item) for item in value[:_MAX_VALUES] if isinstance(item, str | int)]
    if isinstance(value, Mapping):
        # CSL writes dates as {"date-parts": [[2019, 4, 22]]}.
        return [str(part) for part in value.values()][:1]
    return [str(value)] if isinstance(value, str | int) and not isinstance(value, bool) else []


def _keep_name(work: WorkArtifact, given: str | None) -> WorkArtifact:
    """A work that came with its `work_id` keeps it when that is one of its own names."""
    if given is None or given == work.work_id:
        return work
    own = {
        f"{scheme}:{value}"
        for scheme, value in (
            ("arxiv", work.arxiv_id),
            ("arxiv", f"{work.arxiv_id}{work.metadata.get('arxiv_version')}"),
            ("pmcid", work.pmcid),
            ("pmid", work.pmid),
            ("openalex", work.openalex_id),
        )
    }
    return replace(work, work_id=given) if given in own else work
