"""PubMed Central: the files of an open article in PMC's bucket, by PMCID.

Lists the versions, then fetches the metadata of the newest, and of older ones while the newer is an author's
manuscript, retracted or another paper's. A page address at PMC gives the PMCID. The retired OA service and the article
pages, which serve nothing to programs, are never requested. Files are named as
`s3://pmc-oa-opendata/PMC1.1/PMC1.1.pdf?md5=<hex>`; one outside its version's own folder is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, Supplement, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers.base import (
    MALFORMED,
    NO_PDF,
    NOT_IN_INDEX,
    ResolverSettings,
    in_order,
    only_note,
    unique_plans,
    wrong_article,
)
from DocsToKG.ContentDownload.resolvers.idconv import IdConverter
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_pmcid
from DocsToKG.ContentDownload.resolvers.ids.repositories import copies_named_by
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import is_pmc_page
from DocsToKG.ContentDownload.resolvers.record import Record, read_record, year_of

DEFAULT_BASE_URL = "https://pmc-oa-opendata.s3.amazonaws.com"
_NO_PMCID = "no_pmcid"
# Nearly every article has one version; a few journals with open review have several.
_MOST_VERSIONS = 3
_MOST_MEDIA = 100
_BUCKET = "s3://pmc-oa-opendata/"
_FIGURES = (".jpg", ".jpeg", ".gif", ".png", ".tif", ".tiff")
_FILE = re.compile(r"(?P<key>[^?#\s]{1,500})(?:\?md5=(?P<md5>[0-9a-fA-F]{32}))?")
# "Journal. 2019 Apr 22; 14(4)": the year follows the journal, whose name may hold a number of its own.
_CITED = re.compile(r"\.\s+((?:1[5-9]|20)\d\d)\b")


class PmcResolver:
    name = "pmc"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._converter = IdConverter(settings=ResolverSettings(email=settings.email))

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _pmcid_of(work) is not None or _can_be_converted(work) else _NO_PMCID

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if (why_not := self.applies_to(work)) is not None:
            return only_note(why_not)
        pmcid = _pmcid_of(work) or await self._convert(work, client, call)
        if pmcid is None:
            return only_note(NOT_IN_INDEX)
        address = f"{self._base}/?list-type=2&prefix={pmcid}.&delimiter=/"
        versions, note = _listed(await client.fetch(address, Role.METADATA, call), pmcid)
        if not versions:
            return only_note(note, WorkArtifact(work.work_id, pmcid=pmcid))
        articles, notes = await self._articles(versions, pmcid, work, client, call)
        return self._result(articles, pmcid, work) if articles else ResolverResult(notes=notes)

    async def _convert(self, work: WorkArtifact, client: Client, call: Call) -> str | None:
        said = (await self._converter.resolve(work, client, call)).work
        is_ours = said is not None and (work.doi is None or said.doi in (None, work.doi))
        return said.pmcid if said is not None and is_ours else None

    async def _articles(
        self, versions: list[int], pmcid: str, work: WorkArtifact, client: Client, call: Call
    ) -> tuple[list[Article], tuple[str, ...]]:
        """The versions from the newest on, up to the first that is the publisher's and stands; why there are none."""
        found: list[Article] = []
        notes: list[str] = []
        for number in versions[:_MOST_VERSIONS]:
            try:
                page = await client.fetch(f"{self._base}/metadata/{pmcid}.{number}.json", Role.METADATA, call)
            except (CandidateRejected, TransientFailure):
                if not found:
                    raise
                break
            article = _read(page, pmcid, number, work)
            if isinstance(article, str):
                notes.append(article)
                continue
            found.append(article)
            if article.pdf and not (article.is_manuscript or article.is_retracted):
                break
        return found, tuple(dict.fromkeys(notes))

    def _result(self, articles: list[Article], pmcid: str, work: WorkArtifact) -> ResolverResult:
        ranked = sorted(articles, key=lambda article: article.is_retracted is True)
        plans = unique_plans(in_order(plan for article in ranked for plan in self._plans(article)))
        media = ranked[0].media if plans else ()
        others = tuple(
            Supplement(f"{self._base}/{file.path}", file.path.rpartition("/")[2], self.name, checksum=file.checksum)
            for file in media
        )
        # The newest version speaks first; a retraction of any counts.
        first = WorkArtifact(work.work_id, pmcid=pmcid)
        learned = reduce(WorkArtifact.learn, (article.as_work() for article in articles), first)
        return ResolverResult(plans, () if plans else (NO_PDF,), learned, others)

    def _plans(self, article: Article) -> Iterator[DownloadPlan]:
        files = ((article.pdf, "application/pdf", "pdf_url"), (article.xml, "application/xml", "xml_url"))
        for file, mime, evidence in files:
            if file is not None:
                yield DownloadPlan(
                    f"{self._base}/{file.path}",
                    self.name,
                    expected_mime=mime,
                    version="acceptedVersion" if article.is_manuscript else "publishedVersion",
                    license=article.record.text("license_code"),
                    host_type="repository",
                    evidence=evidence,
                    checksum=file.checksum,
                )


@dataclass(frozen=True, slots=True)
class BucketFile:
    """A file by its key, escaped for a path, and its published digest."""

    path: str
    checksum: str | None


class Article:
    """One version of an article, whose files lie in `folder` (`PMC1.1/`)."""

    def __init__(self, record: Record, folder: str) -> None:
        self.record = record
        self.is_manuscript = record.is_true("is_manuscript")
        self.is_retracted = record.truth("is_retracted")
        self.pdf = _file(record.text("pdf_url"), folder)
        self.xml = _file(record.text("xml_url"), folder)
        media = (_file(address, folder) for address in record.texts("media_urls", at_most=_MOST_MEDIA))
        # Figures and films of the text are left out.
        self.media = tuple(file for file in media if file and not file.path.lower().endswith(_FIGURES))

    def as_work(self) -> WorkArtifact:
        cited = _CITED.search((self.record.text("citation") or "")[:300])
        return WorkArtifact(
            work_id="",
            title=self.record.title("title"),
            publication_year=year_of(cited[1]) if cited is not None else None,
            doi=self.record.doi("doi"),
            pmid=self.record.pmid("pmid"),
            license=self.record.text("license_code"),
            is_retracted=self.is_retracted,
        )


def versions_in(listing: bytes, pmcid: str) -> list[int] | None:
    """The versions listed for `pmcid`, newest first; None when the answer is no listing."""
    if b"ListBucketResult" not in listing[:4096]:
        return None
    found = re.findall(rb"<Prefix>\s*%s\.(\d{1,4})/\s*</Prefix>" % pmcid.encode(), listing)
    return sorted({int(number) for number in found}, reverse=True)


def _file(address: str | None, folder: str) -> BucketFile | None:
    match = _FILE.fullmatch((address or "").removeprefix(_BUCKET))
    if match is None or not (address or "").startswith(_BUCKET + folder) or ".." in match["key"]:
        return None
    # S3 reads a plain "+" as a blank.
    checksum = f"md5:{match['md5'].lower()}" if match["md5"] else None
    return BucketFile(path=quote(match["key"], safe="/%"), checksum=checksum)


def _pmcid_of(work: WorkArtifact) -> str | None:
    known = normalize_pmcid(work.pmcid) if work.pmcid is not None else None
    return known or copies_named_by((*work.landing_urls, *work.pdf_urls))[1]


def _can_be_converted(work: WorkArtifact) -> bool:
    """A page at PMC that names no PMCID says that there is one; only then a look-up is worth its request."""
    has_page = any(is_pmc_page(url) for url in (*work.landing_urls, *work.pdf_urls))
    return has_page and (work.doi is not None or work.pmid is not None)


def _status_note(page: Page) -> str:
    # The bucket says 403 for some names that it does not hold.
    return NOT_IN_INDEX if page.status in (403, 404) else f"http-status: {page.status}"


def _listed(page: Page, pmcid: str) -> tuple[list[int], str]:
    if page.status != 200:
        return [], _status_note(page)
    versions = versions_in(page.body, pmcid)
    return versions or [], MALFORMED if versions is None else NOT_IN_INDEX


def _read(page: Page, pmcid: str, number: int, work: WorkArtifact) -> Article | str:
    """The article, or why there is none."""
    if page.status != 200:
        return _status_note(page)
    record = read_record(page)
    if record is None:
        return MALFORMED
    said, doi = record.pmcid("pmcid"), record.doi("doi")
    if said not in (None, pmcid):
        return wrong_article(said)
    if work.doi is not None and doi not in (None, work.doi):
        return f"wrong-article: {pmcid}.{number} is {doi}"
    return Article(record, f"{pmcid}.{number}/")
