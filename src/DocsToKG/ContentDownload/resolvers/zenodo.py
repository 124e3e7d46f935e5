"""Zenodo, and other repositories that run InvenioRDM: the files of a record, with their sizes and checksums.

Asked when a DOI of Zenodo's or the page of a record names one; the others are known by their hosts. A DOI that stands
for all versions leads to the newest.
Closed and embargoed records have no open copy; a token that may read them is the user's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import AskOnce, ResolverSettings, embargo_note, unique_plans
from DocsToKG.ContentDownload.resolvers.deposits import (
    about_another,
    digest_of,
    named_page,
    number_of,
    size_of,
)
from DocsToKG.ContentDownload.resolvers.file_choice import DepositedFile, other_files, papers_among
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.records.fields import object_of, objects_of, text_of, title_of, year_of

DEFAULT_BASE_URL = "https://zenodo.org"
_MOST_FILES = 100
_DOI = re.compile(r"10\.5281/zenodo\.(?P<id>\d{1,12})")
PAGE = re.compile(
    r"zenodo\.org/(?:(?:api/)?records?|deposit|doi/10\.5281|badge/doi/10\.5281)/(?:zenodo\.)?(?P<id>\d{1,12})(?:[/.].*)?"
)
# Repositories on the same software, whose records have the same addresses and answers.
_INVENIO = re.compile(
    r"(?P<host>openaccessrepository\.it|data\.caltech\.edu|authors\.library\.caltech\.edu|rodare\.hzdr\.de"
    r"|researchdata\.tuwien\.(?:ac\.)?at|repository\.tugraz\.at|ultraviolet\.library\.nyu\.edu|works\.hcommons\.org"
    r"|knowledge\.uchicago\.edu|prism\.northwestern\.edu|sandbox\.zenodo\.org)"
    r"/records?/(?P<id>[a-z0-9]{1,5}-[a-z0-9]{1,5}|\d{1,12})(?:[/.].*)?"
)
_FILE = re.compile(r"zenodo\.org/(?:api/)?records?/(?P<id>\d{1,12})/files/(?P<name>[^/]+)(?:/content)?")
_TEXTS = frozenset({None, "publication", "poster", "presentation", "lesson", "other"})
_SAME_PAPER = frozenset({"isIdenticalTo", "isVersionOf", "isVariantFormOf", "isAlternateIdentifier"})
_VERSIONS = {"preprint": "submittedVersion", "workingpaper": "submittedVersion"}


class ZenodoResolver(AskOnce[tuple[str, str]]):
    name = "zenodo"
    service = "Zenodo"
    check = "check resolvers.zenodo.api_key: the record may be restricted, or the token is wrong"
    nothing_to_ask = "not_mine"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)

    def _named(self, work: WorkArtifact) -> tuple[str, str] | None:
        """Whose record, and which."""
        if (named := _DOI.fullmatch(work.doi or "") or named_page(work, PAGE)) is not None:
            return self._base, named["id"]
        other = named_page(work, _INVENIO)
        return (f"https://{_WWW.get(other['host'], other['host'])}", other["id"]) if other is not None else None

    def _address(self, named: tuple[str, str]) -> str:
        return "{}/api/records/{}".format(*named)

    def _read(self, work: WorkArtifact, named: tuple[str, str], record: Mapping[str, Any]) -> ResolverResult:
        base, number = named
        if (another := _another(work, number, record)) is not None:
            return ResolverResult(notes=(another,))
        learned = _learned(work, record)
        access = text_of(object_of(record, "metadata"), "access_right") or _access_to_files(record)
        if access not in (None, "open"):
            return ResolverResult(notes=(_why_closed(access, record),), work=learned)
        files = list(_files(base, number, record))
        papers = _papers(work, number, record, files)
        plans, others = self._plans(papers, record), other_files(papers, files, self.name)
        return ResolverResult(plans, () if plans else ("no_oa_pdf",), learned, others)

    def _plans(self, papers: Iterable[DepositedFile], record: Mapping[str, Any]) -> tuple[DownloadPlan, ...]:
        metadata = object_of(record, "metadata")
        kind = object_of(metadata, "resource_type")
        return unique_plans(
            DownloadPlan(
                url=file.url,
                resolver_name=self.name,
                version=_VERSIONS.get(text_of(kind, "subtype") or ""),
                license=_license(metadata),
                host_type="repository",
                evidence="record_file",
                checksum=file.checksum,
                size_bytes=file.size_bytes,
                page_doi=normalize_doi(text_of(record, "doi") or ""),
            )
            for file in papers
        )


def _papers(
    work: WorkArtifact, record_id: str, record: Mapping[str, Any], files: list[DepositedFile]
) -> tuple[DepositedFile, ...]:
    metadata = object_of(record, "metadata")
    is_text = text_of(object_of(metadata, "resource_type"), "type") in _TEXTS
    title = title_of(metadata.get("title")) or work.title
    return _asked_for(work, record_id, files) or papers_among(files, title=title, is_text=is_text)


# Where a repository answers under `www.` alone.
_WWW = {"openaccessrepository.it": "www.openaccessrepository.it"}


def _files(base: str, record_id: str, record: Mapping[str, Any]) -> Iterator[DepositedFile]:
    newest = _id_of(record) or record_id
    for file in _entries(record):
        name = text_of(file, "key")
        if name is None:
            continue
        built = f"{base}/api/records/{newest}/files/{quote(name, safe='')}/content"
        links = object_of(file, "links")
        address = normalize_url(text_of(links, "content") or text_of(links, "self") or built)
        if address is not None:
            yield DepositedFile(name, address, size_of(file, "size"), digest_of("md5", file.get("checksum")))


def _entries(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A list of files, as Zenodo answers, or the entries of an object, by name or as a list."""
    listed = objects_of(record, "files")
    held = object_of(record, "files").get("entries")
    if isinstance(held, dict):
        held = list(islice(held.values(), _MOST_FILES))
    return listed or objects_of({"entries": held}, "entries")


def _id_of(record: Mapping[str, Any]) -> str | None:
    """A number at Zenodo, letters and digits elsewhere."""
    named = text_of(record, "id") or ""
    return number_of(record, "id") or (named if re.fullmatch(r"[a-z0-9-]{3,20}", named) else None)


def _access_to_files(record: Mapping[str, Any]) -> str | None:
    """`public` of InvenioRDM is what `open` is of Zenodo."""
    access = object_of(record, "access")
    said = text_of(access, "files") or text_of(access, "status")
    return {"public": "open"}.get(said or "", said)


def _why_closed(access: str, record: Mapping[str, Any]) -> str:
    """An embargo has an end, which both kinds of record may tell."""
    embargo = object_of(object_of(record, "access"), "embargo")
    until = text_of(object_of(record, "metadata"), "embargo_date") or text_of(embargo, "until")
    if access == "embargoed" or embargo.get("active") is True:
        return embargo_note(until)
    return f"no_open_copy: the record is {access[:40]}"


def _asked_for(work: WorkArtifact, record_id: str, files: list[DepositedFile]) -> tuple[DepositedFile, ...]:
    """The very file that a link of the work names: then there is nothing to choose."""
    named = named_page(work, _FILE)
    if named is None or named["id"] != record_id:
        return ()
    return tuple(file for file in files if file.name == named["name"])


def _another(work: WorkArtifact, record_id: str, record: Mapping[str, Any]) -> str | None:
    numbers = {_id_of(record), number_of(record, "conceptrecid")} - {None}
    if numbers and record_id not in numbers:
        return f"wrong-article: the answer is about record {min(numbers, key=str)}"
    # A record may bear the publisher's DOI in place of Zenodo's; its number is then what was asked for.
    if numbers and _DOI.fullmatch(work.doi or ""):
        return None
    metadata = object_of(record, "metadata")
    dois = [text_of(record, "doi") or text_of(metadata, "doi"), text_of(record, "conceptdoi")]
    related = objects_of(metadata, "related_identifiers")
    dois += [text_of(item, "identifier") for item in related if text_of(item, "relation") in _SAME_PAPER]
    return about_another(work, dois=dois, title=title_of(metadata.get("title")), own=("10.5281/",))


def _license(metadata: Mapping[str, Any]) -> str | None:
    return text_of(object_of(metadata, "license"), "id") or text_of(metadata, "license")


def _learned(work: WorkArtifact, record: Mapping[str, Any]) -> WorkArtifact:
    metadata = object_of(record, "metadata")
    return WorkArtifact(
        work_id=work.work_id,
        title=title_of(metadata.get("title")) or title_of(record.get("title")),
        publication_year=year_of(metadata.get("publication_date")),
        doi=work.doi or normalize_doi(text_of(record, "doi") or ""),
        license=_license(metadata),
    )
