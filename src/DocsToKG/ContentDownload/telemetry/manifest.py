"""The manifest line: how one processing attempt of a work ended, and everything worth knowing of it.

Knows the fields, their order in the file and their form in the database; `manifest.schema.json` publishes them.
Promises: the line is made from the stored row alone, so file and database can be compared byte by byte;
URLs are masked before they are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter, itemgetter
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.licences import spdx
from DocsToKG.ContentDownload.api.types import DownloadOutcome, Hop, OutcomeClass, WorkArtifact
from DocsToKG.ContentDownload.telemetry.schema import Insert
from DocsToKG.ContentDownload.telemetry.text import (
    are_plain,
    are_storable_ints,
    json_lines,
    storable,
    storable_int,
    storable_json,
    storable_object,
    storable_object_json,
    storable_url,
)

STATUS: Mapping[str, str] = {OutcomeClass.SUCCESS: "ok", OutcomeClass.SKIP: "skipped", OutcomeClass.ERROR: "error"}


Url = str | None  # secrets are masked before it is stored


# Not frozen, because one is made for every work and making a frozen one of so many fields takes many times as long.
@dataclass(slots=True, kw_only=True)
class ManifestRecord:
    """One line of `manifest.jsonl`, its fields in the order of the line. A success names its file and digest.

    `run_id`, `config_hash` and `worker_id` are filled in by the record when left empty; `created_at` always is,
    so that lines stand in time order whoever sent them.
    """

    run_id: str = ""
    doc_id: str
    stage: str = "fetch"
    url: Url = None
    canonical_url: Url = None
    role: str = "artifact"  # `status` follows
    http_status: int | None = None
    mime: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    path: str | None = None
    attempt: int = 1
    duration_ms: int | None = None
    retry_after_s: float | None = None
    cache_hit: bool = False
    resolver: str | None = None
    tier: str | None = None
    fallback_chain: Sequence[str] = ()
    created_at: str = ""
    config_hash: str = ""
    worker_id: str = ""
    outcome: str  # success | skip | error
    reason: str | None = None
    bytes: int | None = None  # received for this work; the size of the file when not told
    title: str | None = None
    year: int | None = None
    license: str | None = None  # the SPDX name, where there is one
    oa_status: str | None = None
    version: str | None = None
    host_type: str | None = None
    evidence: str | None = None
    hops: Sequence[Hop] = ()
    dedupe: str | None = None  # new | duplicate | adopted
    ttfp_ms: int | None = None
    waited_ms: int | None = None
    lease_id: str | None = None
    candidates: Sequence[Mapping[str, Any]] = ()  # every copy that was no good: where, who named it, and why
    license_raw: str | None = None  # the licence in the words of the source
    doi_seen: str | None = None  # in the file
    is_retracted: bool | None = None
    is_guess: bool = False  # the address was built by a rule; no source named it
    cause: str | None = None  # of a miss, in one token
    explanation: str | None = None  # of a miss, in one sentence
    proof: str | None = None  # how sure it is that the file is the work
    damaged: bool = False  # kept on request
    validation: Mapping[str, Any] | None = None  # what was read of the file, and the evidence
    doi: str | None = None  # of the work that was asked for
    version_doi: str | None = None  # of the version that is stored: a preprint has its own
    supplements: Sequence[Mapping[str, Any]] = ()  # files beside the paper, and why some are missing

    def __post_init__(self) -> None:
        status = STATUS.get(self.outcome)
        if status is None:
            raise ValueError(f"{self.outcome!r} is not an outcome; use one of {', '.join(STATUS)}")
        if status == "ok" and not (self.sha256 and self.path):
            raise ValueError(f"{self.doc_id}: a success needs the path and the sha256 of its file")

    @property
    def status(self) -> str:
        return STATUS[self.outcome]

    @classmethod
    def of(cls, work: WorkArtifact, outcome: DownloadOutcome, **known: Any) -> ManifestRecord:
        """The line of `work` as it ended; fields come from `known`, then the outcome's meta, then the work.

        An unknown value leaves what the work says, except that a file's licence is its own or none.
        """
        reason = outcome.reason
        told = {
            "title": work.title,
            "year": work.publication_year,
            "license": spdx(work.license) if work.license else None,
            "license_raw": work.license,
            "is_retracted": work.is_retracted,
            "oa_status": work.oa_status,
            **{
                key: value
                for key, value in outcome.meta.items()
                if key in FIELDS and (value is not None or key in _THE_FILES_OWN)
            },
            "doc_id": work.work_id,
            "outcome": str(outcome.classification),
            "reason": None if reason is None else str(reason),
            "path": outcome.path,
            **known,
        }
        return cls(**told)

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> ManifestRecord:
        """A line read back. Unknown keys are ignored; raises ValueError or TypeError when it is not one."""
        known = {key: line[key] for key in FIELDS if line.get(key) is not None}
        hops = [Hop(str(hop["url"]), int(hop["status"])) for hop in known.pop("hops", ())]
        return replace(cls(**known), hops=hops)


_THE_FILES_OWN = ("license", "license_raw")
FIELDS = frozenset(field.name for field in fields(ManifestRecord))


def _hops(record: ManifestRecord) -> str:
    return storable_json([{"url": storable_url(hop.url), "status": hop.status} for hop in record.hops])


def _candidates(record: ManifestRecord) -> str:
    return storable_json(map(_candidate, record.candidates))


def _candidate(candidate: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        "url": storable_url(candidate.get("url")),
        "source": storable(candidate.get("source")),
        "reason": storable(candidate.get("reason")),
        "http_status": storable_int(candidate.get("http_status")),
        "evidence": storable(candidate.get("evidence")),
        "is_guess": bool(candidate.get("is_guess")),
    }
    waiting = candidate.get("quarantine")
    return told | {"quarantine": storable_object(waiting)} if waiting else told


def _validation(record: ManifestRecord) -> str | None:
    """What says something."""
    if record.validation is None:
        return None
    told = {name: value for name, value in record.validation.items() if value}
    return storable_object_json(told)


def _supplements(record: ManifestRecord) -> str:
    return storable_json(
        {
            "name": storable(file.get("name")),
            "url": storable_url(file.get("url")),
            "path": storable(file.get("path")),
            "sha256": storable(file.get("sha256")),
            "size_bytes": storable_int(file.get("size_bytes")),
            "mime": storable(file.get("mime")),
            "source": storable(file.get("source")),
            "reason": storable(file.get("reason")),
        }
        for file in record.supplements
    )


def _chain(record: ManifestRecord) -> str:
    chain = record.fallback_chain
    return storable_json(chain if are_plain(chain) else map(storable, chain))


_KINDS = {  # by the type of the field; anything else is a list
    "str": "text",
    "str | None": "text",
    "Url": "url",
    "int": "int",
    "int | None": "int",
    "float | None": "real",
    "bool": "flag",
    "bool | None": "flag",
    "Mapping[str, Any] | None": "object",
}
_KIND_OF = {field.name: _KINDS.get(str(field.type), "json") for field in fields(ManifestRecord)}
_names = tuple(_KIND_OF)
COLUMNS = (*_names[: _names.index("role") + 1], "status", *_names[_names.index("role") + 1 :])
JSON_COLUMNS = frozenset(name for name, kind in _KIND_OF.items() if kind == "json")
VALIDATION = "validation"  # an object, or null
WHOLE_COLUMNS = frozenset(name for name, kind in _KIND_OF.items() if kind in ("int", "flag"))
AT = {name: place for place, name in enumerate(COLUMNS)}
_FLAGS = ("cache_hit", "is_guess", "damaged")
_all_of = attrgetter(*COLUMNS)
_PLACES = {kind: tuple(AT[name] for name, of in _KIND_OF.items() if of == kind) for kind in set(_KIND_OF.values())}
_texts_of, _ints_of = itemgetter(*_PLACES["text"]), itemgetter(*_PLACES["int"])
_JSON = (
    (AT["fallback_chain"], _chain),
    (AT["hops"], _hops),
    (AT["candidates"], _candidates),
    (AT["supplements"], _supplements),
)

_ONCE = "ON CONFLICT (doc_id, lease_id) WHERE lease_id IS NOT NULL DO NOTHING"
insert_manifests = Insert("manifests", COLUMNS, _ONCE)
SELECT_MANIFESTS = f"SELECT id, {', '.join(COLUMNS)} FROM manifests WHERE id > ? ORDER BY id"
# The files of the rows after a given one.
INSERT_DOWNLOADS = """
INSERT INTO downloads (doc_id, sha256, size_bytes, path, mime, url, canonical_url, license, oa_status, version, dedupe,
                       proof, damaged, version_doi, run_id, manifest_id, created_at)
SELECT doc_id, sha256, size_bytes, path, mime, url, canonical_url, license, oa_status, version, dedupe,
       proof, damaged, version_doi, run_id, id, created_at
  FROM manifests WHERE id > ? AND status = 'ok' ORDER BY id
ON CONFLICT (doc_id, sha256) DO UPDATE
   SET size_bytes = excluded.size_bytes, path = excluded.path, mime = excluded.mime, url = excluded.url,
       canonical_url = excluded.canonical_url, license = excluded.license, oa_status = excluded.oa_status,
       version = excluded.version, dedupe = excluded.dedupe, proof = excluded.proof, damaged = excluded.damaged,
       version_doi = excluded.version_doi, run_id = excluded.run_id, manifest_id = excluded.manifest_id,
       created_at = excluded.created_at, corrupt = 0
"""


def manifest_values(record: ManifestRecord) -> list[Any]:
    """The record as the database holds it, in the order of `COLUMNS`."""
    values: list[Any] = list(_all_of(record))
    if not are_plain(_texts_of(values)):
        for place in _PLACES["text"]:
            values[place] = storable(values[place])
    if not are_storable_ints(_ints_of(values)):
        for place in _PLACES["int"]:
            values[place] = storable_int(values[place])
    for place in _PLACES["url"]:
        values[place] = storable_url(values[place])
    for place in _PLACES["flag"]:
        values[place] = None if values[place] is None else int(values[place])
    for place in _PLACES["real"]:
        values[place] = None if values[place] is None else float(values[place])
    for place, text_of in _JSON:
        values[place] = text_of(record) if values[place] else "[]"
    values[AT[VALIDATION]] = _validation(record)
    if record.bytes is None:
        values[AT["bytes"]] = values[AT["size_bytes"]]
    return values


def manifest_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """The JSONL lines of stored rows, values in the order of `COLUMNS`."""
    return json_lines(map(_line, rows))


def _line(values: Sequence[Any]) -> dict[str, Any]:
    line = dict(zip(COLUMNS, values, strict=True))
    for name in JSON_COLUMNS:
        line[name] = orjson.Fragment(line[name] or "[]")
    line[VALIDATION] = orjson.Fragment(line[VALIDATION] or "null")
    for name in _FLAGS:
        line[name] = bool(line[name])
    if line["is_retracted"] is not None:
        line["is_retracted"] = bool(line["is_retracted"])
    return line
