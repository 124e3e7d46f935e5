"""Which version of the paper is the file that was stored, and under which DOI does that version go?

A preprint and its published paper are two works with two DOIs, and one often stands in for the other. Pure: reads what
is known of the copy; says nothing where nothing is known.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.types import DownloadPlan, StoredCopy, WorkArtifact
from DocsToKG.ContentDownload.resolvers.ids.addresses import doi_of_address, identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import arxiv_base, normalize_doi
from DocsToKG.ContentDownload.validation.dois import PREPRINTS, same_doi

_PREPRINT = "submittedVersion"
_PUBLISHED = "publishedVersion"
_REVIEWED_THERE = ("10.12688/",)  # their versions are published ones


def asked_doi(work: WorkArtifact) -> str | None:
    """The DOI of the requested work. A request by arXiv id means the preprint, not the paper that it became."""
    scheme, _, name = work.work_id.partition(":")
    if scheme == "doi":
        return normalize_doi(name) or work.doi
    return _arxiv_doi(name) if scheme == "arxiv" else work.doi


def stored_version(work: WorkArtifact, plan: DownloadPlan, copy: StoredCopy) -> tuple[str | None, str | None]:
    """The version of the file and its DOI; None for what is not known."""
    doi = _version_doi(work, plan, copy)
    if plan.version is not None or doi is None:
        return plan.version, doi
    return (_PREPRINT if _is_preprint(doi) else None), doi


def _version_doi(work: WorkArtifact, plan: DownloadPlan, copy: StoredCopy) -> str | None:
    wanted = asked_doi(work)
    for address in (plan.url, copy.stream.final_url):
        named = identifier_in_url(address)
        if named is not None and named.scheme == "arxiv":
            return _arxiv_doi(named.value)
        if (doi := doi_of_address(address)) is not None and _is_preprint(doi):
            return doi
    for said in (copy.facts.get("doi_seen"), plan.page_doi):
        if isinstance(said, str) and wanted is not None and same_doi(said, wanted):
            # A manuscript may print the DOI of the paper that it became.
            return wanted if plan.version != _PREPRINT or _is_preprint(wanted) else None
        if isinstance(said, str) and _is_preprint(said):
            return said
    return wanted if plan.version == _PUBLISHED else None


def _is_preprint(doi: str) -> bool:
    return doi.startswith(PREPRINTS) and not doi.startswith(_REVIEWED_THERE)


def _arxiv_doi(arxiv_id: str) -> str:
    return f"10.48550/arxiv.{arxiv_base(arxiv_id)}".lower()
