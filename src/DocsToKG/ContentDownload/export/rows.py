"""Works as rows for other programs: which columns, in which order, of which kind.

Licence and provenance are columns like any other. Promises: the columns are the same in every form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.api.licences import family

# Column by column: its kind, and what it says.
COLUMNS: dict[str, tuple[type, str]] = {
    "doc_id": (str, "The work, with its scheme."),
    "state": (str, "obtained, present, left-out, robots, failed or taken-down."),
    "title": (str, "As the first source that knew it gave it."),
    "year": (int, "Of publication."),
    "license": (str, "SPDX name of the licence of this copy."),
    "license_family": (str, "The licence without version and country, like cc-by."),
    "license_raw": (str, "The licence in the words of the source."),
    "oa_status": (str, "gold, hybrid, bronze, green ..."),
    "version": (str, "publishedVersion, acceptedVersion or submittedVersion."),
    "doi": (str, "The DOI of the work that was asked for."),
    "version_doi": (str, "The DOI of the version that is stored: a preprint has its own."),
    "is_retracted": (bool, "Whether an index calls the work retracted."),
    "path": (str, "The file, below the root of the store."),
    "sha256": (str, "Its digest."),
    "size_bytes": (int, "Its length."),
    "mime": (str, "Its kind."),
    "resolver": (str, "The source that named the copy."),
    "tier": (str, "The group of sources it belongs to."),
    "host": (str, "The host that served it."),
    "host_type": (str, "publisher or repository."),
    "evidence": (str, "What named the link."),
    "is_guess": (bool, "The address was built by a rule."),
    "url": (str, "Where the copy was asked for; secrets masked."),
    "canonical_url": (str, "The same in the form that is compared."),
    "http_status": (int, "Of the answer that had the file."),
    "doi_seen": (str, "The DOI found in the file."),
    "dedupe": (str, "new, duplicate or adopted."),
    "reason": (str, "How it ended, in one token."),
    "cause": (str, "Of a miss: what stood in the way."),
    "explanation": (str, "Of a miss: the same in one sentence."),
    "proof": (str, "How sure it is that the file is the work: proved, probable, unproved ..."),
    "damaged": (bool, "Streams of the file do not decode; it was kept on request."),
    "run_id": (str, "The run that obtained it."),
    "config_hash": (str, "The settings of that run."),
    "created_at": (str, "When, in UTC."),
}


def rows(works: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The works with all columns, in their order."""
    for work in works:
        yield {
            name: _family(work) if name == "license_family" else _kept(work.get(name), kind)
            for name, (kind, _) in COLUMNS.items()
        }


def _family(work: Mapping[str, Any]) -> str | None:
    return family(work.get("license") or work.get("license_raw"))


def _kept(value: Any, kind: type) -> Any:
    """The value when it is of its column's kind: a record that somebody edited may hold anything."""
    return value if isinstance(value, kind) else None
