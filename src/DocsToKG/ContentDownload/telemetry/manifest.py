"""The manifest line: how one processing attempt of a work ended, and everything worth knowing of it.

Knows the fields, their order in the file and their form in the database; `manifest.schema.json` publishes them.
Promises: the line is made from the stored row alone, so file and database can be compared byte by byte;
URLs are masked before they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.licences import spdx
from DocsToKG.ContentDownload.api.types import DownloadOutcome, Hop, OutcomeClass, WorkArtifact
from DocsToKG.ContentDownload.telemetry.text import storable, storable_int, storable_json, storable_url

STATUS = {OutcomeClass.SUCCESS: "ok", OutcomeClass.SKIP: "skipped", OutcomeClass.ERROR: "error"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRecord:
    """One line of `manifest.jsonl`. A success names its file and digest.

    `run_id`, `config_hash` and `worker_id` are filled in by the record when left empty; `created_at` always is,
    so that lines stand in time order whoever sent them.
    """

    doc_id: str
    outcome: str  # success | skip | error
    reason: str | None = None
    run_id: str = ""
    stage: str = "fetch"
    url: str | None = None
    canonical_url: str | None = None
    role: str = "artifact"
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

    def __post_init__(self) -> None:
        if self.outcome not in STATUS:
            raise ValueError(f"{self.outcome!r} is not an outcome; use one of {', '.join(STATUS)}")
        if self.status == "ok" and not (self.sha256 and self.path):
            raise ValueError(f"{self.doc_id}: a success needs the path and the sha256 of its file")

    @property
    def status(self) -> str:
        return STATUS[OutcomeClass(self.outcome)]

    @classmethod
    def of(cls, work: WorkArtifact, outcome: DownloadOutcome, **known: Any) -> ManifestRecord:
        """The line of `work` as it ended; fields come from `known`, then the outcome's meta, then the work."""
        told = {
            "title": work.title,
            "year": work.publication_year,
            "license": spdx(work.license),
            "license_raw": work.license,
            "is_retracted": work.is_retracted,
            "oa_status": work.oa_status,
            **{key: value for key, value in outcome.meta.items() if key in FIELDS and _says(key, value)},
            "doc_id": work.work_id,
            "outcome": outcome.classification,
            "reason": outcome.reason,
            "path": outcome.path,
        }
        return cls(**{**told, **known})

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> ManifestRecord:
        """A line read back. Unknown keys are ignored; raises ValueError or TypeError when it is not one."""
        known = {key: line[key] for key in FIELDS if line.get(key) is not None}
        hops = [Hop(str(hop["url"]), int(hop["status"])) for hop in known.pop("hops", ())]
        return replace(cls(**known), hops=hops)


def _says(key: str, value: Any) -> bool:
    """An unknown value leaves what the work says, except that a file's licence is its own or none."""
    return value is not None or key in ("license", "license_raw")


FIELDS = frozenset(field.name for field in fields(ManifestRecord))


def _hops(record: ManifestRecord) -> str:
    return storable_json({"url": storable_url(hop.url), "status": hop.status} for hop in record.hops)


def _candidates(record: ManifestRecord) -> str:
    return storable_json(
        {
            "url": storable_url(candidate.get("url")),
            "source": storable(candidate.get("source")),
            "reason": storable(candidate.get("reason")),
            "http_status": storable_int(candidate.get("http_status")),
            "evidence": storable(candidate.get("evidence")),
            "is_guess": bool(candidate.get("is_guess")),
        }
        for candidate in record.candidates
    )


def _chain(record: ManifestRecord) -> str:
    return storable_json(storable(name) for name in record.fallback_chain)


def _bytes(record: ManifestRecord) -> int | None:
    return storable_int(record.size_bytes if record.bytes is None else record.bytes)


def _text(name: str) -> Callable[[ManifestRecord], Any]:
    return lambda record: storable(getattr(record, name))


def _int(name: str) -> Callable[[ManifestRecord], Any]:
    return lambda record: storable_int(getattr(record, name))


def _url(name: str) -> Callable[[ManifestRecord], Any]:
    return lambda record: storable_url(getattr(record, name))


def _retry_after(record: ManifestRecord) -> float | None:
    return None if record.retry_after_s is None else float(record.retry_after_s)


# Column by column, in the order of the table and of the line.
_STORED: dict[str, Callable[[ManifestRecord], Any]] = {
    "run_id": _text("run_id"),
    "doc_id": _text("doc_id"),
    "stage": _text("stage"),
    "url": _url("url"),
    "canonical_url": _url("canonical_url"),
    "role": _text("role"),
    "status": lambda record: record.status,
    "http_status": _int("http_status"),
    "mime": _text("mime"),
    "size_bytes": _int("size_bytes"),
    "sha256": _text("sha256"),
    "path": _text("path"),
    "attempt": _int("attempt"),
    "duration_ms": _int("duration_ms"),
    "retry_after_s": _retry_after,
    "cache_hit": lambda record: int(record.cache_hit),
    "resolver": _text("resolver"),
    "tier": _text("tier"),
    "fallback_chain": _chain,
    "created_at": _text("created_at"),
    "config_hash": _text("config_hash"),
    "worker_id": _text("worker_id"),
    "outcome": _text("outcome"),
    "reason": _text("reason"),
    "bytes": _bytes,
    "title": _text("title"),
    "year": _int("year"),
    "license": _text("license"),
    "oa_status": _text("oa_status"),
    "version": _text("version"),
    "host_type": _text("host_type"),
    "evidence": _text("evidence"),
    "hops": _hops,
    "dedupe": _text("dedupe"),
    "ttfp_ms": _int("ttfp_ms"),
    "waited_ms": _int("waited_ms"),
    "lease_id": _text("lease_id"),
    "candidates": _candidates,
    "license_raw": _text("license_raw"),
    "doi_seen": _text("doi_seen"),
    "is_retracted": lambda record: None if record.is_retracted is None else int(record.is_retracted),
    "is_guess": lambda record: int(record.is_guess),
    "cause": _text("cause"),
    "explanation": _text("explanation"),
}
COLUMNS = tuple(_STORED)
_JSON_COLUMNS = frozenset({"fallback_chain", "hops", "candidates"})
_FLAGS = ("cache_hit", "is_guess")

INSERT_MANIFEST = (
    f"INSERT INTO manifests ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{name}' for name in COLUMNS)}) "
    "ON CONFLICT (doc_id, lease_id) WHERE lease_id IS NOT NULL DO NOTHING"
)
SELECT_MANIFESTS = f"SELECT id, {', '.join(COLUMNS)} FROM manifests WHERE id > ? ORDER BY id"
INSERT_DOWNLOAD = """
INSERT INTO downloads (doc_id, sha256, size_bytes, path, mime, url, canonical_url, license, oa_status, version, dedupe,
                       run_id, manifest_id, created_at)
VALUES (:doc_id, :sha256, :size_bytes, :path, :mime, :url, :canonical_url, :license, :oa_status, :version, :dedupe,
        :run_id, :manifest_id, :created_at)
ON CONFLICT (doc_id, sha256) DO UPDATE
   SET size_bytes = excluded.size_bytes, path = excluded.path, mime = excluded.mime, url = excluded.url,
       canonical_url = excluded.canonical_url, license = excluded.license, oa_status = excluded.oa_status,
       version = excluded.version, dedupe = excluded.dedupe, run_id = excluded.run_id,
       manifest_id = excluded.manifest_id, created_at = excluded.created_at, corrupt = 0
"""


def manifest_row(record: ManifestRecord) -> dict[str, Any]:
    """The record as the database holds it."""
    return {name: stored(record) for name, stored in _STORED.items()}


def manifest_line(values: Sequence[Any]) -> bytes:
    """The JSONL line of one stored row, values in the order of `COLUMNS`."""
    line = dict(zip(COLUMNS, values, strict=True))
    for name in _JSON_COLUMNS:
        line[name] = orjson.Fragment(line[name] or "[]")
    for name in _FLAGS:
        line[name] = bool(line[name])
    if line["is_retracted"] is not None:
        line["is_retracted"] = bool(line["is_retracted"])
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
