"""Zenodo, and other repositories that run InvenioRDM: the files of a record, with their sizes and checksums.

Asked when a DOI of Zenodo's or the page of a record names one; the others are known by their hosts. A DOI that stands
for all versions leads to the newest.
Closed and embargoed records have no open copy; a token that may read them is the user's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import JsonSource, embargo_note, only_note, result_of, wrong_article
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_url
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.repositories.deposits import about_another, file_plans, named_page
from DocsToKG.ContentDownload.resolvers.repositories.file_choice import DepositedFile, other_files, papers_among

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
# Where a repository answers under `www.` alone.
_WWW = {"openaccessrepository.it": "www.openaccessrepository.it"}


class ZenodoResolver(JsonSource[tuple[str, str]]):
    """A query is the repository's address and the number of a record."""

    name = "zenodo"
    service = "Zenodo"
    base_url = "https://zenodo.org"
    check = "check resolvers.zenodo.api_key: the record may be restricted, or the token is wrong"
    nothing_to_ask = "not_mine"

    def queries(self, work: WorkArtifact) -> Sequence[tuple[str, str]]:
        if (named := _DOI.fullmatch(work.doi or "") or named_page(work, PAGE)) is not None:
            return [(self.base, named["id"])]
        other = named_page(work, _INVENIO)
        return [(f"https://{_WWW.get(other['host'], other['host'])}", other["id"])] if other is not None else []

    def address(self, query: tuple[str, str]) -> str:
        return "{}/api/records/{}".format(*query)

    def read(self, work: WorkArtifact, query: tuple[str, str], record: Record) -> ResolverResult:
        base, number = query
        if (another := _another(work, number, record)) is not None:
            return only_note(another)
        learned, metadata = _learned(work, record), record.object("metadata")
        access = metadata.text("access_right") or _access_to_files(record)
        if access not in (None, "open"):
            return only_note(_why_closed(access, record), learned)
        files, kind = list(_files(base, number, record)), metadata.object("resource_type")
        papers = _asked_for(work, number, files) or papers_among(
            files, title=metadata.title("title") or work.title, is_text=kind.text("type") in _TEXTS
        )
        plans = file_plans(
            papers,
            self.name,
            "record_file",
            version=_VERSIONS.get(kind.text("subtype") or ""),
            license=learned.license,
            page_doi=record.doi("doi"),
        )
        return result_of(plans, learned, supplements=other_files(papers, files, self.name))


def _files(base: str, record_id: str, record: Record) -> Iterator[DepositedFile]:
    newest = _id_of(record) or record_id
    for file in _entries(record):
        name = file.text("key")
        if name is None:
            continue
        built = f"{base}/api/records/{newest}/files/{quote(name, safe='')}/content"
        address = normalize_url(file.object("links").text("content", "self") or built)
        if address is not None:
            yield DepositedFile(name, address, file.size("size"), file.digest("md5", "checksum"))


def _entries(record: Record) -> list[Record]:
    """A list of files, as Zenodo answers, or the entries of an object, by name or as a list."""
    held = record.object("files").get("entries")
    if isinstance(held, dict):
        held = list(islice(held.values(), _MOST_FILES))
    return record.objects("files") or Record({"entries": held}).objects("entries")


def _id_of(record: Record) -> str | None:
    """A number at Zenodo, letters and digits elsewhere."""
    named = record.text("id") or ""
    return record.number("id") or (named if re.fullmatch(r"[a-z0-9-]{3,20}", named) else None)


def _access_to_files(record: Record) -> str | None:
    """`public` of InvenioRDM is what `open` is of Zenodo."""
    said = record.object("access").text("files", "status")
    return {"public": "open"}.get(said or "", said)


def _why_closed(access: str, record: Record) -> str:
    """An embargo has an end, which both kinds of record may tell."""
    embargo = record.object("access", "embargo")
    if access == "embargoed" or embargo.is_true("active"):
        return embargo_note(record.object("metadata").text("embargo_date") or embargo.text("until"))
    return f"no_open_copy: the record is {access[:40]}"


def _asked_for(work: WorkArtifact, record_id: str, files: list[DepositedFile]) -> tuple[DepositedFile, ...]:
    """The very file that a link of the work names: then there is nothing to choose."""
    named = named_page(work, _FILE)
    if named is None or named["id"] != record_id:
        return ()
    return tuple(file for file in files if file.name == named["name"])


def _another(work: WorkArtifact, record_id: str, record: Record) -> str | None:
    numbers = {_id_of(record), record.number("conceptrecid")} - {None}
    if numbers and record_id not in numbers:
        return wrong_article(f"record {min(numbers, key=str)}")
    # A record may bear the publisher's DOI in place of Zenodo's; its number is then what was asked for.
    if numbers and _DOI.fullmatch(work.doi or ""):
        return None
    metadata = record.object("metadata")
    related = metadata.objects("related_identifiers")
    same = [item.text("identifier") for item in related if item.text("relation") in _SAME_PAPER]
    dois = [record.text("doi") or metadata.text("doi"), record.text("conceptdoi"), *same]
    return about_another(work, dois=dois, title=metadata.title("title"), own=("10.5281/",))


def _learned(work: WorkArtifact, record: Record) -> WorkArtifact:
    metadata = record.object("metadata")
    return WorkArtifact(
        work_id=work.work_id,
        title=metadata.title("title") or record.title("title"),
        publication_year=metadata.year("publication_date"),
        doi=work.doi or record.doi("doi"),
        license=metadata.object("license").text("id") or metadata.text("license"),
    )
