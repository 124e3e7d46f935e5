"""What is done with a file after its verdict: kept, kept aside, or refused.

Pure. A file is unproved when something is known of the work and the file gives too little to compare: a scan, a file
without references, one that could not be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason
from DocsToKG.ContentDownload.validation.dois import normal_doi, same_doi

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.validation.identity.kinds import Kind
    from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
    from DocsToKG.ContentDownload.validation.identity.verdict import Verdict


class Decision(StrEnum):
    KEEP = "keep"
    QUARANTINE = "quarantine"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class ValidationRules:
    """The settings of a validation; as in the section `proof` of the configuration."""

    unproved: str = "by-evidence"  # by-evidence | keep | quarantine | refuse
    streams: str = "all"  # all | sample | none
    keep_damaged: bool = False
    pages: int = 2
    last_pages: int = 1
    max_letters: int = 20_000
    workers: int = 0  # processes that read; 0: one for each processor, at most four
    timeout_s: float = 20.0  # of one file
    memory_bytes: int = 1 << 30  # of one process


# Sources whose links come from a web page that a program read, not from a record about the work.
_PAGE_SOURCES = frozenset({"landing", "doi_redirect", "wayback"})
# Links by which a page names the file of the paper that it is about.
_PAGE_RECORDS = frozenset({"citation_pdf_url", "bepress_citation_pdf_url", "eprints.document_url", "given"})


def reason_of(kind: Kind) -> Reason:
    """The token of a refusal; what stands in a paper's place is a `stub`."""
    from DocsToKG.ContentDownload.validation.identity.kinds import Kind

    match kind:
        case Kind.ANOTHER_ARTICLE | Kind.CORRECTION | Kind.REPLY | Kind.THESIS | Kind.PROTOCOL:
            return Reason.WRONG_ARTICLE
        case Kind.PART | Kind.SUPPLEMENT | Kind.REVIEW_REPORT:
            return Reason.SUPPLEMENT
        case _:
            return Reason.STUB


def is_in_record(plan: DownloadPlan, known: KnownWork) -> bool:
    """The address stands in a record about the work, as an index or the user gave it. A page is such a record when it
    says that it is about the work's DOI and names its file by the tag that is made for that."""
    if plan.is_guess:
        return False
    if plan.resolver_name not in _PAGE_SOURCES or plan.evidence == "given":
        return True
    about = normal_doi(plan.page_doi)
    is_about = about is not None and any(same_doi(about, doi) for doi in known.dois)
    return is_about and plan.evidence in _PAGE_RECORDS


def decide(verdict: Verdict, plan: DownloadPlan, known: KnownWork, unproved: str) -> Decision:
    """What becomes of the file. Only an unproved one depends on the setting."""
    from DocsToKG.ContentDownload.validation.identity.verdict import Proof

    if verdict.proof is Proof.REFUSED:
        return Decision.REFUSE
    if verdict.proof is not Proof.UNPROVED:
        return Decision.KEEP
    if unproved == "by-evidence":
        return Decision.KEEP if is_in_record(plan, known) else Decision.QUARANTINE
    return Decision(unproved)
