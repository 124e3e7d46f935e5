"""arXiv: the PDF of a preprint, from its id alone.

Needs no request to make the plan. With the option `metadata` it also asks the export API for title and year; that is
off by default, because every request to arXiv costs three seconds.
"""

from __future__ import annotations

from lxml import etree

from DocsToKG.ContentDownload.api.ports import Call, Client, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import MALFORMED, NOT_IN_INDEX, ResolverSettings, only_note
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    arxiv_base,
    arxiv_of_doi,
    arxiv_version,
    normalize_arxiv,
    normalize_doi,
)
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import ARXIV_PROGRAMS_HOST
from DocsToKG.ContentDownload.resolvers.links.classify import preprint_plan
from DocsToKG.ContentDownload.resolvers.record import MAX_ANSWER_BYTES, title_of, year_of

_MAIN_HOST = "https://arxiv.org"
_NO_ID = "no_arxiv_id"
_ATOM = {"atom": "http://www.w3.org/2005/Atom", "arxiv": "http://arxiv.org/schemas/atom"}


class ArxivResolver:
    name = "arxiv"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(ARXIV_PROGRAMS_HOST)
        self._asks_metadata = bool(settings.options.get("metadata", False))

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if _id_of(work) is not None else _NO_ID

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        arxiv_id = _id_of(work)
        if arxiv_id is None:
            return only_note(_NO_ID)
        learned = WorkArtifact(work_id=work.work_id, arxiv_id=arxiv_base(arxiv_id))
        if not self._asks_metadata:
            return ResolverResult(plans=self._plans(arxiv_id), work=learned)
        page = await client.fetch(f"{self._base}/api/query?id_list={arxiv_id}&max_results=1", Role.METADATA, call)
        entry, note = _read(page)
        return ResolverResult(
            plans=() if note == NOT_IN_INDEX else self._plans(arxiv_id),
            notes=(note,) if note is not None else (),
            work=learned.learn(entry) if entry is not None else learned,
        )

    def _plans(self, arxiv_id: str) -> tuple[DownloadPlan, ...]:
        """One file at two hosts: the host for programs, then the main one, whose crawl delay is longer."""
        bases = (self._base, _MAIN_HOST) if self._base == ARXIV_PROGRAMS_HOST else (self._base,)
        return tuple(preprint_plan(arxiv_id, source=self.name, evidence="arxiv_id", base=base) for base in bases)


def _id_of(work: WorkArtifact) -> str | None:
    """The id to ask for, with the version that was asked for, if any."""
    given = normalize_arxiv(work.arxiv_id) if work.arxiv_id else arxiv_of_doi(work.doi or "")
    if given is None:
        return None
    version = arxiv_version(given) or str(work.metadata.get("arxiv_version") or "")
    return normalize_arxiv(arxiv_base(given) + version) or arxiv_base(given)


def _read(page: Page) -> tuple[WorkArtifact | None, str | None]:
    """The entry of the feed, or a note when there is none."""
    # Atom from outside: no entities, no network, no huge trees.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False)
    try:
        feed = etree.fromstring(page.body[:MAX_ANSWER_BYTES], parser)
    except etree.XMLSyntaxError:
        return None, MALFORMED
    entry = feed.find("atom:entry", _ATOM)
    if entry is None or page.status != 200 or "/api/errors" in entry.findtext("atom:id", "", _ATOM):
        return None, NOT_IN_INDEX
    learned = WorkArtifact(
        work_id="",
        title=title_of(entry.findtext("atom:title", None, _ATOM)),
        publication_year=year_of(entry.findtext("atom:published", None, _ATOM)),
        doi=normalize_doi(entry.findtext("arxiv:doi", "", _ATOM)),
        authors=_authors(entry),
    )
    return learned, None


def _authors(entry: etree._Element) -> tuple[str, ...]:
    names = (" ".join((node.text or "").split()) for node in entry.findall("atom:author/atom:name", _ATOM)[:50])
    return tuple(name[:120] for name in names if name)
