"""What an index can be built from: each source's files, columns and how its records become rows.

A source is data: its columns with their types, and a statement in `sql/` that projects them. Knows the shapes that the
providers publish; does not know where files are or what becomes of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.index.engine import Database, filled, listed, mapped_errors, quoted, statement

_LOCATION = (
    "STRUCT(id VARCHAR, is_oa BOOLEAN, landing_page_url VARCHAR, pdf_url VARCHAR, license VARCHAR, version VARCHAR, "
    "source STRUCT(type VARCHAR))"
)
_OA_LOCATION = (
    "STRUCT(url VARCHAR, url_for_pdf VARCHAR, url_for_landing_page VARCHAR, version VARCHAR, license VARCHAR, "
    "host_type VARCHAR, is_best BOOLEAN, pmh_id VARCHAR)"
)
_PERSONS = "STRUCT(family VARCHAR, given VARCHAR)[]"
_UPDATE = 'STRUCT("DOI" VARCHAR, type VARCHAR)[]'


@dataclass(frozen=True, slots=True)
class Source:
    """`tells_access`: its records say of every work whether it is open. `needed` are columns a part must have."""

    name: str
    columns: Mapping[str, str]
    needed: tuple[str, ...]
    tells_access: bool = False
    other_names: Mapping[str, str] = field(default_factory=dict)


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source(
            "openalex",
            {
                "id": "VARCHAR",
                "doi": "VARCHAR",
                "title": "VARCHAR",
                "display_name": "VARCHAR",
                "publication_year": "BIGINT",
                "type": "VARCHAR",
                "is_retracted": "BOOLEAN",
                "updated_date": "VARCHAR",
                "ids": "STRUCT(doi VARCHAR, pmid VARCHAR, pmcid VARCHAR)",
                "authorships": "STRUCT(author STRUCT(display_name VARCHAR))[]",
                "biblio": "STRUCT(first_page VARCHAR, last_page VARCHAR)",
                "open_access": "STRUCT(oa_status VARCHAR, oa_url VARCHAR)",
                "best_oa_location": _LOCATION,
                "locations": f"{_LOCATION}[]",
            },
            needed=("id", "locations"),
            tells_access=True,
        ),
        Source(
            "unpaywall",
            {
                "doi": "VARCHAR",
                "title": "VARCHAR",
                "year": "BIGINT",
                "genre": "VARCHAR",
                "is_oa": "BOOLEAN",
                "oa_status": "VARCHAR",
                "updated": "VARCHAR",
                "z_authors": _PERSONS,
                "oa_locations": f"{_OA_LOCATION}[]",
            },
            needed=("doi", "oa_locations"),
            tells_access=True,
        ),
        Source(
            "crossref",
            {
                "DOI": "VARCHAR",
                "title": "VARCHAR[]",
                "type": "VARCHAR",
                "author": _PERSONS,
                "page": "VARCHAR",
                "issued": 'STRUCT("date-parts" BIGINT[][])',
                "indexed": 'STRUCT("date-time" VARCHAR)',
                "license": 'STRUCT("URL" VARCHAR, "content-version" VARCHAR, start STRUCT("date-time" VARCHAR))[]',
                "link": 'STRUCT("URL" VARCHAR, "content-type" VARCHAR, "content-version" VARCHAR)[]',
                "resource": 'STRUCT("primary" STRUCT("URL" VARCHAR))',
                "updated-by": _UPDATE,
                "update-to": _UPDATE,
            },
            needed=("DOI",),
        ),
        Source(
            "pmc",
            {
                "pmcid": "VARCHAR",
                "version": "VARCHAR",
                "pmid": "VARCHAR",
                "doi": "VARCHAR",
                "title": "VARCHAR",
                "license_code": "VARCHAR",
                "is_manuscript": "BOOLEAN",
                "is_retracted": "BOOLEAN",
                "pdf_url": "VARCHAR",
                "xml_url": "VARCHAR",
            },
            needed=("pmcid",),
        ),
        Source(
            "arxiv",
            {
                "id": "VARCHAR",
                "doi": "VARCHAR",
                "title": "VARCHAR",
                "license": "VARCHAR",
                "authors": "VARCHAR",
                "update_date": "VARCHAR",
                "versions": "STRUCT(version VARCHAR, created VARCHAR)[]",
            },
            needed=("id",),
        ),
        Source(
            "datacite",
            {
                "attributes": "STRUCT(doi VARCHAR, url VARCHAR, contentUrl JSON, updated VARCHAR, "
                "publicationYear BIGINT, creators STRUCT(name VARCHAR)[], titles STRUCT(title VARCHAR)[], "
                "types STRUCT(resourceTypeGeneral VARCHAR), "
                "rightsList STRUCT(rights VARCHAR, rightsUri VARCHAR, rightsIdentifier VARCHAR)[])"
            },
            needed=("attributes",),
        ),
        Source(
            "copies",
            {
                "id": "VARCHAR",
                "url": "VARCHAR",
                "license": "VARCHAR",
                "version": "VARCHAR",
                "kind": "VARCHAR",
                "host_type": "VARCHAR",
                "evidence": "VARCHAR",
                "checksum": "VARCHAR",
                "title": "VARCHAR",
                "year": "VARCHAR",
            },
            needed=("id", "url"),
            other_names={"licence": "license", "doi": "id", "pdf_url": "url"},
        ),
    )
}


def rows_of(source: Source, relation: str, *, buckets: int, today: date, inventory: str | None = None) -> str:
    """The query that turns the records of a relation into rows of the index. `inventory` is a table of PMC's names."""
    among = f"pmcid IS NULL OR pmcid_of(pmcid) || coalesce('.' || version, '') IN (SELECT name FROM {inventory})"
    records = filled(
        statement(source.name),
        parts=relation,
        today=today.isoformat(),
        listed=among if inventory is not None else "true",
    )
    return filled(statement("rows"), records=records, buckets=str(buckets), source=source.name)


def relation_of(db: Database, source: Source, files: Sequence[Path], form: str) -> str:
    """The records of some files with the source's columns, and `file`. Columns that a table has not are NULL."""
    if form in ("jsonl", "json"):
        return _json(source, files, form)
    reader = _PARQUET if form == "parquet" else _CSV
    alike: dict[str, list[Path]] = {}
    for file in files:
        with mapped_errors(f"{file} cannot be read"):
            described = db.execute(f"DESCRIBE SELECT * FROM {filled(reader, files=quoted(file))}").fetchall()
        alike.setdefault(_picked(source, [str(row[0]) for row in described], file), []).append(file)
    tables = (f"SELECT {picked} FROM {filled(reader, files=listed(some))}" for picked, some in alike.items())
    return f"({' UNION ALL '.join(tables)})"


_PARQUET = "read_parquet({files}, filename=true)"
_CSV = "read_csv({files}, header=true, all_varchar=true, ignore_errors=true, filename=true)"


def _json(source: Source, files: Sequence[Path], form: str) -> str:
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in source.columns.items())
    shape = "'newline_delimited', ignore_errors=true" if form == "jsonl" else "'unstructured'"
    options = f"format={shape}, columns={{{columns}}}, maximum_object_size=33554432, filename=true"
    return f"(SELECT *, filename AS file FROM read_json({listed(files)}, {options}))"


def _picked(source: Source, found: Sequence[str], file: Path) -> str:
    """The select list that fits a table of these columns; an `InputError` when needed ones lack."""
    there = {name.lower(): name for name in found}
    for other, name in source.other_names.items():
        if other in there:
            there.setdefault(name, there[other])
    missing = [name for name in source.needed if name.lower() not in there]
    if missing:
        raise InputError(
            f"{file}: no column {missing[0]!r}, which files of {source.name} have; it has {', '.join(found[:12])}"
        )
    columns = {name: there.get(name.lower()) for name in source.columns}
    picked = (f"CAST({_named(column)} AS {source.columns[name]}) AS {_named(name)}" for name, column in columns.items())
    return ", ".join((*picked, "filename AS file"))


def _named(column: str | None) -> str:
    return "NULL" if column is None else '"' + column.replace('"', '""') + '"'
