"""What becomes of a file after its verdict, by where its address came from and by the setting."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason
from DocsToKG.ContentDownload.validation.identity.kinds import Kind
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.verdict import Proof, Verdict
from DocsToKG.ContentDownload.validation.policy import Decision, decide, is_in_record, reason_of

DOI = "10.1234/a.1"
KNOWN = KnownWork.of(dois=[DOI])
URL = "https://example.org/a.pdf"


@pytest.mark.parametrize(
    ("plan", "is_record"),
    [
        (DownloadPlan(URL, "unpaywall", evidence="url_for_pdf"), True),
        (DownloadPlan(URL, "landing", evidence="given"), True),
        (DownloadPlan(URL, "landing", evidence="citation_pdf_url", page_doi=DOI), True),
        (DownloadPlan(URL, "landing", evidence="citation_pdf_url", page_doi="10.1234/b"), False),
        (DownloadPlan(URL, "landing", evidence="citation_pdf_url"), False),
        (DownloadPlan(URL, "landing", evidence="anchor", page_doi=DOI), False),
        (DownloadPlan(URL, "unpaywall", evidence="url_for_pdf", is_guess=True), False),
    ],
)
def test_an_unproved_file_is_kept_where_a_record_names_its_address(plan, is_record):
    assert is_in_record(plan, KNOWN) is is_record
    unproved = Verdict(Proof.UNPROVED)
    assert decide(unproved, plan, KNOWN, "by-evidence") is (Decision.KEEP if is_record else Decision.QUARANTINE)
    for setting in ("keep", "quarantine", "refuse"):
        assert decide(unproved, plan, KNOWN, setting) == setting


@pytest.mark.parametrize("setting", ["by-evidence", "keep", "quarantine", "refuse"])
def test_the_setting_is_for_unproved_files_alone(setting):
    plan = DownloadPlan(URL, "doi_redirect", is_guess=True)
    for proof in (Proof.PROVED, Proof.PROVED_VARIANT, Proof.PROBABLE, Proof.NOT_JUDGED):
        assert decide(Verdict(proof), plan, KNOWN, setting) is Decision.KEEP
    assert decide(Verdict(Proof.REFUSED, Kind.REPLY), plan, KNOWN, setting) is Decision.REFUSE


def test_every_kind_has_a_reason():
    assert {reason_of(kind) for kind in Kind} == {Reason.WRONG_ARTICLE, Reason.SUPPLEMENT, Reason.STUB}
