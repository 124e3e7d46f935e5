"""A corpus as an RO-Crate (version 1.1): the files, and one JSON-LD document that describes each of them.

Knows which words of schema.org say what is known of a paper, its licence, its source and the run that obtained it.
Streams the description; only the paths of the files and the names of their runs are held.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import orjson

from DocsToKG.ContentDownload.export.copying import Copied, copy_file, new_folder
from DocsToKG.ContentDownload.storage.files import StoredFiles

METADATA = "ro-crate-metadata.json"
_PROFILE = "https://w3id.org/ro/crate/1.1"
# Version 1.1 of the context has no word for a digest; schema.org does.
_CONTEXT = [f"{_PROFILE}/context", {"sha256": "https://schema.org/sha256"}]
_SOFTWARE = "#docstokg"
_TERMS = "#terms"
_LICENCE_CHARS = 200  # of one that has no name of its own; an entity of each id is there once
_SPDX = "https://spdx.org/licenses/"


def write_crate(
    rows: Iterable[dict[str, Any]],
    files: StoredFiles,
    place: Path,
    *,
    now: str,
    name: str,
    program: str,
    version: str,
    runs: dict[str, tuple[str | None, str | None]],
) -> Copied:
    """The crate at `place`. `runs` gives start and end of each run, `now` the moment of publication."""
    copied = Copied()
    with new_folder(place) as folder:
        listed: dict[str, str] = {}  # path to the run that obtained it
        licences: set[tuple[str, str]] = set()
        kept = folder / ".entities"
        with kept.open("wb") as out:
            for row in _with_files(rows, files, folder, copied, listed):
                for entity in _entities_of(row):
                    out.write(orjson.dumps(entity, option=orjson.OPT_APPEND_NEWLINE))
                licences.add(_licence_of(row))
        with (folder / METADATA).open("wb") as out, kept.open("rb") as entities:
            head = [_descriptor(), _root(name, now, listed), _terms(), _program(program, version)]
            head += [_licence(*licence) for licence in sorted(licences)]
            head += _runs(listed, runs)
            _write_graph(out, head, entities)
        kept.unlink()
    return copied


def _with_files(
    rows: Iterable[dict[str, Any]], files: StoredFiles, folder: Path, copied: Copied, listed: dict[str, str]
) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row["path"] not in listed and copy_file(files, row, folder, copied):
            listed[row["path"]] = row["run_id"] or "unknown"
            yield row


def _write_graph(out: IO[bytes], head: list[dict[str, Any]], entities: Iterable[bytes]) -> None:
    out.write(b'{"@context": ' + json.dumps(_CONTEXT).encode() + b',\n "@graph": [\n')
    out.write(b",\n".join(orjson.dumps(entity) for entity in head))
    for line in entities:
        out.write(b",\n" + line.rstrip(b"\n"))
    out.write(b"\n]}\n")


def _descriptor() -> dict[str, Any]:
    return {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": _PROFILE},
        "about": {"@id": "./"},
    }


def _root(name: str, now: str, listed: dict[str, str]) -> dict[str, Any]:
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": name,
        "description": "Research papers that are openly reachable, each with its licence, its source and its digest.",
        "datePublished": now,
        "license": {"@id": _TERMS},
        "hasPart": [{"@id": _file_id(path)} for path in listed],
        "mentions": [{"@id": f"#run-{run_id}"} for run_id in sorted(set(listed.values()))],
    }


def _terms() -> dict[str, Any]:
    said = "Each file is under the licence that its entity names; the collection adds none."
    return {"@id": _TERMS, "@type": "CreativeWork", "name": "Terms of the collection", "description": said}


def _program(name: str, version: str) -> dict[str, Any]:
    return {"@id": _SOFTWARE, "@type": "SoftwareApplication", "name": name, "softwareVersion": version}


def _licence(licence_id: str, name: str) -> dict[str, Any]:
    known = {"identifier": name, "url": licence_id} if licence_id.startswith(_SPDX) else {}
    return {"@id": licence_id, "@type": "CreativeWork", "name": name, **known}


def _licence_of(row: dict[str, Any]) -> tuple[str, str]:
    """The licence of a file as an entity: its id and its name."""
    if row["license"]:
        return f"{_SPDX}{quote(row['license'])}", row["license"]
    said = (row["license_raw"] or "No licence is known")[:_LICENCE_CHARS]
    return f"#licence-{quote(said, safe='')}", said


def _runs(listed: dict[str, str], times: dict[str, tuple[str | None, str | None]]) -> Iterator[dict[str, Any]]:
    """The runs, each with the files that it has made."""
    made: dict[str, list[dict[str, str]]] = {}
    for path, run_id in listed.items():
        made.setdefault(run_id, []).append({"@id": _file_id(path)})
    for run_id in sorted(made):
        started, ended = times.get(run_id, (None, None))
        yield {
            "@id": f"#run-{run_id}",
            "@type": "CreateAction",
            "name": f"Download run {run_id}",
            "instrument": {"@id": _SOFTWARE},
            "result": made[run_id],
            **_known({"startTime": started, "endTime": ended}),
        }


def _entities_of(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The file, and the paper that it is a copy of."""
    work_id = f"#{quote(row['doc_id'], safe=':/.-')}"
    facts = {
        "name": row["title"] or row["path"],
        "sha256": row["sha256"],
        "contentSize": str(row["size_bytes"]) if row["size_bytes"] is not None else None,
        "encodingFormat": row["mime"],
        "license": {"@id": _licence_of(row)[0]},
        "url": row["url"],
        "dateCreated": row["created_at"],
        "creativeWorkStatus": row["version"],
        "conditionsOfAccess": row["oa_status"],
        "description": f"Named by {row['resolver']}" if row["resolver"] else None,
        "about": {"@id": work_id},
    }
    yield {"@id": _file_id(row["path"]), "@type": "File", **_known(facts)}
    article = {
        "name": row["title"],
        "identifier": row["doc_id"],
        "datePublished": str(row["year"]) if row["year"] is not None else None,
        "sameAs": f"https://doi.org/{row['doc_id'][4:]}" if row["doc_id"].startswith("doi:") else None,
    }
    yield {"@id": work_id, "@type": "ScholarlyArticle", **_known(article)}


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value is not None}


def _file_id(path: str) -> str:
    return quote(path, safe="/")
