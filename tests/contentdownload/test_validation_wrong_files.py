"""Whole files that are not the paper are refused, and papers that look a little like them are kept.

Every file is a real PDF that goes through the whole proof of a candidate.
"""

from __future__ import annotations

import io
from pathlib import Path

import pikepdf
import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import HTML, PDF, XML
from DocsToKG.ContentDownload.validation.report import PdfFacts
from DocsToKG.Sandbox.pdf import Paper, make_pdf

DOI = "10.1234/abc.2020.1"
OTHER = "10.1234/abc.2021.77"
TITLE = "Some Very Interesting Study of Enzymes in Yeast Cells"
STRANGER = "Growth of barley in dry alpine meadows of the north"
FILE = "https://example.org/f.pdf"
PROSE = "The meadows of the north are dry, and the barley that is grown on them by farmers is short for its age. "
OWN_PROSE = "The enzymes of yeast are of interest to us, and the cells that we grew for this were many. "
# Both are of one language; the wanted title's words are in the second one alone.


def pdf(*lines: str, pages: int = 3, doi: str | None = None, title: str | None = None, content: bytes = b"") -> bytes:
    """A PDF that shows the lines on its first page and numbers on the others."""
    made = pikepdf.new()
    for number in range(pages):
        shown = lines if number == 0 else (f"page {number}",)
        page = made.add_blank_page(page_size=(595, 842))
        page.obj.Contents = made.make_stream(content or b"BT /F1 11 Tf 14 TL 50 780 Td\n" + _strings(shown) + b"ET")
    made.docinfo["/Producer"] = "nobody's press"
    if title:
        made.docinfo["/Title"] = title
    if doi:
        made.docinfo["/doi"] = doi
    made.Root.Pad = made.make_stream(bytes(range(256)) * 20)
    out = io.BytesIO()
    made.save(out)
    made.close()
    return out.getvalue()


def _strings(lines: tuple[str, ...]) -> bytes:
    raw = (line.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") for line in lines)
    return b"".join(b"(" + line + b") Tj T*\n" for line in raw)


def work(title: str | None = TITLE, doi: str = DOI, **more: str) -> WorkArtifact:
    return WorkArtifact(work_id=f"doi:{doi}", doi=doi, title=title, **more)  # type: ignore[arg-type]


def proved(folder: Path, data: bytes, wanted: WorkArtifact | None = None, url: str = FILE) -> PdfFacts:
    path = folder / "candidate"
    path.write_bytes(data)
    came = ReceivedFile(file=path, md5="", sha256="", url=url, headers={})
    facts = prove(PDF, DownloadPlan(url, "test"), wanted or work(), came, min_pdf_bytes=0)
    assert isinstance(facts, PdfFacts)
    return facts


def verdict(folder: Path, data: bytes, wanted: WorkArtifact | None = None, url: str = FILE) -> str | None:
    try:
        proved(folder, data, wanted, url)
    except CandidateRejected as error:
        return error.reason
    return None


COPERNICUS = "10.5194/acp-20-1-2020"
COPERNICUS_PAGE = (
    "Supplement of Atmos. Chem. Phys., 20, 1-10, 2020",
    f"https://doi.org/{COPERNICUS}-supplement",
    "Supplement of",
    TITLE,
    "A. Author et al.",
    "The copyright of individual parts of the supplement might differ",
)
PLOS = "10.1371/journal.pone.0000308"
SUPPLEMENTS = {
    "by its file's name": (COPERNICUS, pdf(*COPERNICUS_PAGE), "https://example.org/acp-20-1-2020-supplement.pdf"),
    "by the DOI it prints": (COPERNICUS, pdf(*COPERNICUS_PAGE), FILE),
    "by the DOI it declares": (PLOS, pdf("Text S1", "Details of the model", doi=f"{PLOS}.s001"), FILE),
    "by the DOI in its address": (PLOS, pdf("Text S1", "Details"), f"https://example.org/file?id={PLOS}.s001&type=x"),
    "with a summary of strains": (DOI, pdf("Supporting Information", TITLE, "Table S1. Summary of strains"), FILE),
    "its reviews": (DOI, pdf("Peer Review File", f"Manuscript Title: {TITLE}", "The introduction is too long"), FILE),
    "its reviews with its DOI": (DOI, pdf("Peer review report", "Referee 1", f"Review of {TITLE}", f"doi {DOI}"), FILE),
    "its answers": (DOI, pdf("Response to the reviewers", TITLE, "We thank the reviewers."), FILE),
    "a summary of the study": (DOI, pdf("nature portfolio", "Reporting Summary", "Statistics"), FILE),
    "of a deposited paper": ("10.5281/zenodo.55", pdf("Supplementary Information", "Figure S1. foo"), FILE),
}


@pytest.mark.parametrize("name", SUPPLEMENTS)
def test_a_part_of_the_paper_is_not_the_paper(tmp_path, name):
    doi, data, url = SUPPLEMENTS[name]
    assert verdict(tmp_path, data, work(doi=doi), url) == Reason.SUPPLEMENT


ORIGINAL = f"The original article can be found online at https://doi.org/{DOI}"
STRANGERS = {
    "an erratum with its own DOI declared": pdf(
        f"Erratum to: {TITLE}", f"Erratum to: J Things 3:4. https://doi.org/{DOI}", doi=OTHER, pages=1
    ),
    "an erratum with its own DOI printed": pdf(f"https://doi.org/{OTHER}", f"Erratum to: {TITLE}", ORIGINAL, pages=6),
    "an erratum that prints the wanted DOI": pdf(f"Erratum to: {TITLE}", "A. Author", ORIGINAL, pages=1),
    "an erratum by its title": pdf("J Things", ORIGINAL, title=f"Author Correction: {TITLE}", pages=2),
    "an erratum without the title": pdf("J Things", "Corrigendum", "Figure 3 of the paper by A. Author was wrong."),
    "a comment without a DOI": pdf(f'Comment on "{TITLE}"', "B. Critic", "Abstract", "We disagree.", pages=4),
    "a reply": pdf("J Things", f"Reply to the comment on: {TITLE}", "A. Author", pages=2),
    "a paper that cites it and declares its own DOI": pdf(
        STRANGER, "Abstract", *[PROSE] * 4, f"[12] A. Author, doi:{DOI}", doi=OTHER
    ),
    "another paper by a full first page": pdf(STRANGER, "B. Else", *[PROSE] * 30),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_paper_about_it_or_about_other_things_is_another_article(tmp_path, name):
    assert verdict(tmp_path, STRANGERS[name]) == Reason.WRONG_ARTICLE


STUBS = {
    "a picture": pdf("Graphical abstract", pages=1),
    "not for download": pdf("We are sorry, this paper is not available for download.", pages=1),
    "a login": pdf("Access denied", "Please sign in to view this document", pages=1),
    "front matter": pdf("Front Matter", "Pages i-xv", pages=15),
    "an issue's contents": pdf("Journal of Things", "Volume 3 Issue 4", "Table of Contents", "Paper A", pages=4),
    "contents with the paper's entry": pdf("Contents", f"{TITLE} .... 1", "Paper B .... 20", pages=4),
    "a form": pdf("Copyright transfer agreement", f"The author of {TITLE} hereby", pages=1),
    "empty paper": pdf(pages=1),
    "proceedings": pdf("Proceedings of the 5th Workshop", "Editors: X", "Contents", pages=120),
}


@pytest.mark.parametrize("name", STUBS)
def test_a_file_in_place_of_the_paper_is_a_stub(tmp_path, name):
    assert verdict(tmp_path, STUBS[name]) == Reason.STUB


def test_a_refusal_needs_no_title_to_be_known(tmp_path):
    assert verdict(tmp_path, STUBS["a login"], work(None)) == Reason.STUB


LONG = (*[OWN_PROSE] * 4,)
PAPERS = {
    "in capitals": (TITLE, pdf(TITLE.upper(), "Abstract", *[PROSE] * 4)),
    "hyphenated over lines": (TITLE, pdf("Some Very Inter-", "esting Study of En-", "zymes in Yeast Cells", *LONG)),
    "letter by letter": (TITLE, pdf(*TITLE, "Abstract", *[PROSE] * 4)),
    "without its subtitle": (f"{TITLE}: a cohort of bakeries in Uppsala", pdf(TITLE, "Abstract", *[PROSE] * 4)),
    "with markup in the index": (
        "Role of <i>Saccharomyces</i> H<sub>2</sub>O<sub>2</sub> transport for $\\alpha$-factor secretion &amp; mating",
        pdf("Role of Saccharomyces H2O2 transport for a-factor secretion and mating", "Abstract", *[PROSE] * 4),
    ),
    "with accents of its own": (
        "The Poincar\\'e conjecture for Schr\u00f6dinger manifolds of positive curvature",
        pdf("The Poincar\u00e9 conjecture for Schrodinger manifolds of positive curvature", "Abstract", *[PROSE] * 4),
    ),
    "with lost ligatures": (
        "Efficient classification of waffle profiles in affluent offices",
        pdf("E\x0ecient classi\x0ccation of wa\x0fe pro\x0cles in a\x0fuent o\x0eces", "Abstract", *[PROSE] * 4),
    ),
    "as a preprint under a changed title": (TITLE, pdf("Yeast enzymes revisited", "Abstract", *LONG, *[PROSE] * 3)),
    "with a template's title": (TITLE, pdf(TITLE, "Abstract", PROSE, title="Title of the paper in the style of ours")),
    "with a file's name for a title": (
        TITLE,
        pdf(TITLE, "Abstract", title="Microsoft Word - growth of the barley.doc"),
    ),
    "translated": (
        TITLE,
        pdf(
            "Estudio de las levaduras en la industria", "Resumen", *["El crecimiento de las levaduras en la masa. "] * 9
        ),
    ),
    "asked for by a Spanish title": (
        "Estudio de las enzimas en las levaduras para la industria panadera",
        pdf("A study of baking", "Abstract", *[PROSE] * 4),
    ),
    "asked for in another script": (
        "酵母細胞における酵素の興味深い研究",
        pdf("A study of baking", "Abstract", *[PROSE] * 4),
    ),
    "in a font of its own": (TITLE, pdf("7KLV LV WKH WLWOH", *["DQG WKLV LV WKH WHAW RI WKH ILUVW SDJH"] * 30)),
    "under a short title": ("Editorial", pdf("From the editors", "Abstract", *[PROSE] * 4)),
    "under a title the index has wrong": (TITLE, pdf(STRANGER, f"doi:{DOI}", "Abstract", *[PROSE] * 4)),
    "with its DOI declared": (TITLE, pdf(STRANGER, "Abstract", *[PROSE] * 4, doi=DOI)),
    "with another's DOI left in its fields": (TITLE, pdf(TITLE, f"https://doi.org/{DOI}", "Abstract", doi=OTHER)),
    "with another's DOI and its own citation": (
        TITLE,
        pdf(TITLE, f"A. Author (2020) doi:{DOI}", "Abstract", doi=OTHER),
    ),
    "behind a cover": (TITLE, pdf("University repository", TITLE, f"doi:{DOI}", "Accepted manuscript", *[PROSE] * 3)),
    "behind a cover without its title": (
        TITLE,
        pdf("Cover sheet of the repository of the north", *[PROSE] * 30, title="Cover sheet of the repository north"),
    ),
    "behind its erratum": (TITLE, pdf(f"Erratum to: {TITLE}", "Figure 3 was wrong.", pages=12)),
    "below another's erratum": (TITLE, pdf("Erratum", "In the last issue a name was wrong.", TITLE, PROSE, pages=2)),
    "in a section of comments": (TITLE, pdf("Comment", TITLE, "A. Author", PROSE, pages=2)),
    "marked as retracted": (TITLE, pdf("RETRACTED ARTICLE", TITLE, "A. Author", PROSE, pages=2)),
    "with its supplement bound in": (TITLE, pdf(TITLE, "Abstract", PROSE, "Supplementary Information: Figure S1")),
    "with its own contents": (TITLE, pdf(TITLE, "Contents", "1 Aims .... 1", "2 Means .... 4", pages=9)),
    "behind its picture": (TITLE, pdf("Graphical abstract", pages=8)),
    "that prints the DOI of its supplement": (TITLE, pdf(TITLE, f"S1 Text. doi:{DOI}.s001", "Abstract", PROSE)),
    "an abstract of one page": (TITLE, pdf(TITLE, "A. Author", "We grew yeast.", pages=1)),
    "a paper that speaks of logins": (TITLE, pdf(TITLE, "Please sign in, said the page, and we did.", pages=1)),
    "a chapter of a thesis": (TITLE, pdf("Chapter 4", TITLE, *[PROSE] * 30)),
    "a long book of abstracts with it": (TITLE, pdf("Abstracts of the 5th Workshop", "Editors: X", TITLE, pages=120)),
    "on supplementary things": (
        "Supplementary cementitious materials for the concrete of bridges",
        pdf("Supplementary cementitious materials for the concrete of bridges", PROSE, "Table S1"),
    ),
    "a comment that was asked for": (f"Comment on: {TITLE}", pdf(f"Comment on: {TITLE}", "B. Critic", "We disagree.")),
    "an erratum that was asked for": (f"Erratum to: {TITLE}", pdf(f"Erratum to: {TITLE}", ORIGINAL, pages=1)),
    "an erratum whose index has the bare title": (TITLE, pdf(f"Erratum to: {TITLE}", "Figure 3.", doi=DOI, pages=1)),
    "on corrections": (
        "Attenuation in surveys of yeast bakeries and enzymes",
        pdf("Correction for attenuation in surveys of yeast and enzymes", "Abstract", *LONG),
    ),
    "on responses": (
        "Drought and maize roots in the fields of Kenya",
        pdf("Response to drought of maize roots in Kenya", "Abstract", title="Response to drought of maize in Kenya"),
    ),
    "on peer review": (
        "Peer review reports and the quality of published science",
        pdf("Peer review reports and the quality of published science", "A. Author", PROSE),
    ),
    "on copyright": (
        "Copyright transfer agreements in small journals of the north",
        pdf("Copyright transfer agreements in small journals of the north", PROSE, pages=2),
    ),
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_paper_is_kept(tmp_path, name):
    title, data = PAPERS[name]
    assert verdict(tmp_path, data, work(title)) is None


def test_a_part_that_was_asked_for_is_kept(tmp_path):
    data = pdf("Text S1", "Details of the model", doi=f"{PLOS}.s001")
    assert verdict(tmp_path, data, work(doi=f"{PLOS}.s001")) is None
    deposited = pdf("Supplementary Information", "Figure S1. foo")
    assert verdict(tmp_path, deposited, work(f"Supplementary data for {TITLE}", doi="10.5281/zenodo.55")) is None
    assert verdict(tmp_path, deposited, work(doi="10.6084/m9.figshare.55")) is None


def test_an_old_doi_with_angle_brackets_is_its_own(tmp_path):
    sici = "10.1002/(SICI)1097-4679(199911)55:11<1353::AID-JCLP5>3.0.CO;2-C"
    assert verdict(tmp_path, pdf(STRANGER, f"doi:{sici}", "Abstract", *[PROSE] * 4), work(doi=sici)) is None


def test_the_stamp_of_an_archive_names_the_paper(tmp_path):
    """Authors rename their preprints; the number in the margin stays."""
    data = make_pdf(Paper(STRANGER, ("A. Author",), 2020, None, "arXiv:2101.00001v1"), size_bytes=4000, key="k")
    assert verdict(tmp_path, data, work(arxiv_id="2101.00001")) is None


@pytest.mark.parametrize(
    "content",
    [
        b"q 500 0 0 700 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q",
        b"0 0 m 10 10 l 20 5 l f",
        b"0 0 m 10 10 l S",
    ],
)
def test_a_page_without_text_that_shows_something_is_kept(tmp_path, content):
    """A scan, letters drawn as outlines: nothing is read, so nothing is judged."""
    assert verdict(tmp_path, pdf(pages=1, content=content)) is None


def test_an_empty_first_page_before_others_is_kept(tmp_path):
    assert verdict(tmp_path, pdf(pages=2)) is None


UNPROVED = {
    "a comment with its own DOI": pdf("On enzymes", "Abstract", f"We comment on doi:{DOI}", doi=OTHER),
    "another paper by its own title": pdf(STRANGER, "Abstract", title=STRANGER),
    "another paper by half a page": pdf(STRANGER, "B. Else", "Abstract", *[PROSE] * 4),
    "a volume": pdf("Proceedings of the 5th Workshop on Yeast and its Enzymes", pages=120),
    "an empty first page": pdf(pages=2),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_a_file_with_too_little_to_compare_is_marked_unproved(tmp_path, name):
    assert proved(tmp_path, UNPROVED[name]).record()["proof"] == "unproved"


def test_without_a_title_no_title_is_compared(tmp_path):
    assert verdict(tmp_path, pdf(STRANGER, "Abstract", *[PROSE] * 4, title=STRANGER), work(None)) is None


@pytest.mark.parametrize("own", [f"Erratum to: {TITLE}", f"Comment on '{TITLE}'"])
def test_a_notice_in_another_form_is_another_article(tmp_path, own):
    text = "Words of it that go on and on, and then some more of the words. " * 40
    page = f"<html><head><meta name='citation_title' content=\"{own}\"></head><body><h2>Introduction</h2><p>{text}</p>"
    page += f"<h2>Results</h2><p>{text}</p></body></html>"
    article = f"<article><front><article-meta><title-group><article-title>{own}</article-title></title-group>"
    article += f"</article-meta></front><body><p>{text}</p></body></article>"
    for form, data in ((HTML, page), (XML, article)):
        path = tmp_path / form.name
        for title, wrong in ((TITLE, True), (own, False)):
            path.write_text(data, encoding="utf-8")
            came = ReceivedFile(file=path, md5="", sha256="", url=FILE, headers={})
            if wrong:
                with pytest.raises(CandidateRejected, match="wrong-article"):
                    prove(form, DownloadPlan(FILE, "test"), work(title), came, min_pdf_bytes=0)
            else:
                prove(form, DownloadPlan(FILE, "test"), work(title), came, min_pdf_bytes=0)
