"""Supplements, covers, previews and notices are told from the paper, and a paper is never taken for one."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import Origin
from DocsToKG.ContentDownload.validation.identity.verdict import judge
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, Line, Page
from DocsToKG.ContentDownload.validation.policy import reason_of

DOI = "10.5555/nets.2020.5"
TITLE = "On the shape of very deep networks"
FILE = "https://example.org/nets/5.pdf"
PROSE = "A network that is deep has a shape, and its shape is what this text is about. "


def file(first_page: str, *, pages: int = 1, images: int = 0, is_rest_read: bool = True) -> DocumentText:
    """The text of a first page, line by line, and of other pages that show a number, or what is not read."""
    rows = [line for line in first_page.split("\n") if line]
    lines = tuple(Line(row, 50, 780 - 14 * at, 500, 790 - 14 * at, 10, 0) for at, row in enumerate(rows))
    first = Page(1, 595, 842, lines, sum(len(row) - row.count(" ") for row in rows), images, marks=1 + images)
    number_line = (Line("2", 50, 30, 60, 40, 10, 0),) if is_rest_read else ()
    others = [
        Page(number, 595, 842, number_line, len(number_line)) for number in sorted({2, pages}) if 1 < number <= pages
    ]
    return DocumentText(pages, (first, *others))


def work(title: str | None = TITLE, doi: str = DOI) -> KnownWork:
    return KnownWork.of(dois=[doi], title=title)


def verdict(text: DocumentText, wanted: KnownWork | None = None, url: str = FILE) -> str | None:
    found = judge(wanted or work(), text, Origin(urls=(url,)))
    return reason_of(found.kind) if found.kind is not None else None


@pytest.mark.parametrize(
    ("page", "url"),
    [
        ("Supporting Information\nFigure S1. Depth.\nTable S2. Shape.", FILE),
        ("Supplementary Material for\nOn the shape of very deep networks\nA. Author, B. Author", FILE),
        ("Supplementary Information to: On the Shape of Very Deep Networks", FILE),
        ("J. Nets\nElectronic Supplementary Material\nCurves of depth", "https://example.org/a/nets-supplement.pdf"),
        ("Supplemental Methods\nWe did more.", "https://example.org/a/nets_SI_1.pdf"),
        ("Appendix S1\nFurther curves", "https://example.org/a/supporting-info.pdf"),
        ("J. Nets\nSupporting Information\nOn the Shape of Very Deep Networks\nA. Author", FILE),
        ("Supporting Information\nCurves of depth\nS1", FILE),
        ("Online Appendix\nTable S1 shows more", FILE),
        ("Supporting Information\nTable S1. Summary of strains", FILE),
        ("Supplement of J. Nets\nSupplement of\nOn the shape of very deep networks\nFigure S1", FILE),
        ("", "https://example.org/els-cdn/1-s2.0-S0001-mmc1.pdf"),
        ("", "https://static.example.org/esm/art%3A10.1/MediaObjects/41_2020_5_MOESM1_ESM.pdf"),
        ("", "https://pubs.example.org/doi/suppl/10.5555/nets/suppl_file/nets_si_001.pdf"),
    ],
)
def test_a_supplement_is_not_the_paper(page, url):
    assert verdict(file(page, pages=12), url=url) == Reason.SUPPLEMENT


PAPERS = {
    "a link to the supporting information before the abstract": (
        "Cite This: J. Nets 2020\nSupporting Information\nABSTRACT: " + PROSE + "See Figure S1."
    ),
    "a summary for an abstract": "Supplementary material\nSUMMARY\n" + PROSE + "Figure S1",
    "a spaced abstract": "Supplementary material\nA B S T R A C T\n" + PROSE + "Figure S1",
    "a footnote about supplementary data": TITLE + "\n" + PROSE * 6 + "\nSupplementary data are in Table S1.",
    "a link low on the page, then a running title": PROSE * 3 + "\nSupplementary Material\n" + TITLE,
    "an appendix of its own": TITLE + "\n" + PROSE + "\nAppendix A. Proofs",
    "the word in the title": "Supplementary feeding of deep networks\n" + PROSE + "Table S1",
    "front matter words in running text": TITLE + "\nThe table of contents of nature is short. " + PROSE,
}


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("pages", [1, 12])
def test_a_paper_that_speaks_of_its_supplement_is_kept(name, pages):
    assert verdict(file(PAPERS[name], pages=pages)) is None


def test_a_supplement_issue_is_no_supplement():
    url = "https://example.org/vol-12-supplement-2/5.pdf"
    assert verdict(file(TITLE + "\n" + PROSE, pages=9), url=url) is None
    assert verdict(file("", pages=9), url=url) is None, "an unreadable page and a loose word are no evidence"


def test_a_sure_name_over_a_readable_paper_is_a_slip():
    assert verdict(file(TITLE + "\n" + PROSE, pages=9), url="https://example.org/a-mmc1.pdf") is None


@pytest.mark.parametrize(
    "wanted",
    [
        work("Supplementary Material for: On the shape of very deep networks"),
        work(doi="10.5555/journal.pone.001.s001"),
        work(doi="10.6084/m9.figshare.12345"),
        work("Additional file 1 of On the shape of very deep networks", doi="10.5281/zenodo.12345"),
        work(None, doi="10.5281/zenodo.12345"),
    ],
)
def test_a_supplement_that_was_asked_for_is_kept(wanted):
    assert verdict(file("Supplementary Material\nFigure S1", pages=3), wanted) is None


def test_a_deposited_paper_is_not_its_supplement():
    """A deposit's DOI may stand for a paper or for data; only its title tells."""
    assert verdict(file("Supplementary Material\nFigure S1"), work(doi="10.5281/zenodo.12345")) == Reason.SUPPLEMENT
    assert verdict(file(TITLE + "\n" + PROSE), work(doi="10.5281/zenodo.12345")) is None


@pytest.mark.parametrize(
    "page",
    [
        "Please wait...\nIf this message is not eventually replaced with the proper contents of the document,",
        "Preparing to download ...",
        "Your download will begin in a moment",
        "This is a preview of subscription content, log in to check access.\nAbstract " + PROSE,
        TITLE + "\n" + PROSE * 60 + "\nPurchase this article",
        "Retraction Note: On the shape of very deep networks\nThe editor has retracted this article.",
        "WITHDRAWN: On the shape of very deep networks\nThis article has been withdrawn at the request of the author.",
        "J. Nets\nThis article has been retracted: please see the policy.",
        "Journal of Nets\nFront Matter\nVolume 3",
        "Table of Contents",
        "To cite this version: A. Author. On the shape. HAL is a multi-disciplinary open access archive",
        "Citation for published version (APA)\nTake down policy\nIf you believe that this document breaches",
    ],
)
def test_a_page_in_place_of_the_paper_is_a_stub(page):
    assert verdict(file(page)) == Reason.STUB


@pytest.mark.parametrize(
    "page",
    [
        "Retraction Note: On the shape of very deep networks",
        "This is a preview of subscription content",
        "Table of Contents",
        "To cite this version: A. Author. HAL is a multi-disciplinary open access archive",
    ],
)
def test_the_same_page_before_a_paper_is_part_of_it(page):
    """Repositories put a cover before the paper; publishers a notice before a retracted one."""
    assert verdict(file(page, pages=2, is_rest_read=False)) is None


@pytest.mark.parametrize(
    ("title", "page"),
    [
        ("Erratum to: On the shape of very deep networks", "Erratum\nThis article has been retracted in part."),
        ("Retraction: On the shape of very deep networks", "Retraction\nThis article has been retracted."),
        ("WITHDRAWN: On the shape of very deep networks", "WITHDRAWN: On the shape\nThis article has been withdrawn."),
        ("Front Matter", "Front Matter"),
        ("A Preview of Selected Articles", "A Preview of Selected Articles\nThis is a preview of what is to come."),
    ],
)
def test_a_notice_that_was_asked_for_is_kept(title, page):
    assert verdict(file(page), work(title)) is None


@pytest.mark.parametrize(
    "page",
    [
        TITLE + "\n" + PROSE * 40,
        TITLE + "\nAbstract. This manuscript has been removed from a drawer and found to be true.",
        TITLE + "\n" + PROSE * 35 + "\nThis article has been withdrawn from sale by its publisher, which we regret.",
        "RETRACTED ARTICLE\n" + TITLE + "\n" + PROSE,
        "Letter to the Editor\nThe authors have retracted their claim, and we thank them.",
        TITLE + "\nThis is a poster of one page.",
        "",
    ],
)
def test_a_paper_of_one_page_is_kept(page):
    assert verdict(file(page)) is None


def test_what_is_not_read_may_be_the_paper():
    """A stamp over a scan: a doubt is decided for the file."""
    stamp = "To cite this version: A. Author. HAL is a multi-disciplinary open access archive"
    assert verdict(file(stamp, images=1)) is None
    assert verdict(file("Supporting Information\nFigure S1", pages=9, images=1)) is None


def test_without_a_title_to_compare_with_a_notice_is_kept():
    assert verdict(file("Retraction\nThis article has been retracted."), work(None)) is None
