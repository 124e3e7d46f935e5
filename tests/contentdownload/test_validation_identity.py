"""Is this file the work? Impostors are never proved, papers are never refused, whatever producer made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from tests.contentdownload.pdf_writers import WRITERS, Made, Text, reportlab_pdf, scan_pdf

from DocsToKG.ContentDownload.validation.identity.kinds import Kind
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import Origin
from DocsToKG.ContentDownload.validation.identity.verdict import Proof
from DocsToKG.ContentDownload.validation.identity.wholeness import Whole
from DocsToKG.ContentDownload.validation.pdf.examination import Examination
from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine

DOI = "10.1234/jthings.2020.0042"
OTHER = "10.1234/jthings.2019.0007"
TITLE = "Seasonal growth of barley in southern alpine meadows"
STRANGER = "Enzyme kinetics of yeast cells under pressure"
AUTHORS = ("Jürgen Müller", "Anna Smith", "Li Wei")
KNOWN = KnownWork.of(
    dois=[DOI], title=TITLE, authors=AUTHORS, year=2020, first_page="101", last_page="106", journal="Journal of Things"
)
SENTENCE = "The plants that we looked at in this work were short for their age and the soil was dry in most years."
REFERENCES = (
    Text("References", 12, 16),
    *(f"[{n}] Smith J, Else B. On matter number {n}. J Matters {2000 + n};{n}:1-9." for n in range(1, 9)),
)


def prose(lines: int = 24) -> tuple[str, ...]:
    return (SENTENCE,) * lines


@dataclass(frozen=True)
class Paper:
    """A paper's parts. What is None is left out."""

    title: str | Sequence[str] = TITLE
    doi: str | None = DOI
    doi_line: str = "https://doi.org/{}"
    authors: str | None = "Jürgen Müller1, Anna Smith2* and Li Wei1,2"
    header: str | None = "Journal of Things 12 (2020) 101-106"
    above: Sequence[str | Text] = ()
    abstract: bool = True
    references: bool = True
    pages: int = 6
    title_size: float = 17
    covers: Sequence[Sequence[str | Text]] = ()
    extra: Sequence[str | Text] = field(default=())

    def made(self) -> Made:
        titles = [self.title] if isinstance(self.title, str) else list(self.title)
        first: list[str | Text] = [Text(self.header, 8)] if self.header else []
        first += self.above
        first += [Text(line, self.title_size, 18 if n == 0 else 2) for n, line in enumerate(titles)]
        first += [Text(self.authors, 11, 14)] if self.authors else []
        first += [Text(self.doi_line.format(self.doi), 8, 12)] if self.doi else []
        first += [Text("Abstract", 12, 16)] if self.abstract else []
        first += [*self.extra, *prose(14)]
        pages: list[Sequence[str | Text]] = [*self.covers, first]
        pages += [(Text("2. Methods", 12), *prose())] * (self.pages - 2)
        pages.append((*prose(10), *(REFERENCES if self.references else ())))
        return Made(pages)


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    with TextEngine(PoolLimits(workers=1)) as engine:
        yield engine


def look(engine: TextEngine, data: bytes, known: KnownWork = KNOWN) -> Examination:
    return engine.examine(data, known).result(60)


RENDERINGS = ("reader's fonts", "composite", "forms")
RIGHT = {
    "a plain paper": (Paper(), Proof.PROVED),
    "a title over two lines": (Paper(title=("Seasonal growth of barley in", "southern alpine meadows")), Proof.PROVED),
    "a title in capitals": (Paper(title=TITLE.upper()), Proof.PROVED),
    "a footnote's mark at the title": (Paper(title=TITLE + "1"), Proof.PROVED),
    "a hyphen": (Paper(title=("Seasonal growth of bar-", "ley in southern alpine meadows")), Proof.PROVED),
    "a retracted paper": (Paper(title=f"RETRACTED: {TITLE}"), Proof.PROVED),
    "a kind of article above the title": (Paper(above=[Text("Research Article", 10, 10)]), Proof.PROVED),
    "a DOI in the citation": (Paper(doi_line="Journal of Things 2020, 12, 101-106; doi:{}"), Proof.PROVED),
    "a DOI with its label": (Paper(doi_line="DOI: {}"), Proof.PROVED),
    "cite this": (Paper(doi_line="Cite this: J. Things 2020, 12, 101. https://doi.org/{}"), Proof.PROVED),
    "a paper without its DOI": (Paper(doi=None), Proof.PROBABLE),
    "an accepted manuscript": (Paper(doi=None, header="Accepted manuscript", pages=14), Proof.PROBABLE),
    "a preprint": (Paper(doi="10.1101/2020.01.01.123456", header=None), Proof.PROBABLE),
    "another title beside its DOI": (Paper(title="Barley and its growth in alpine meadows"), Proof.PROVED_VARIANT),
    "a manuscript in one size": (Paper(title_size=10, header=None), Proof.PROVED),
    "a repository's cover": (
        Paper(covers=[(Text("Open Archive of Somewhere", 16), "To cite this version:", f"J. Müller. {TITLE}. 2020.",
                       "HAL Id: hal-01234", "HAL is a multi-disciplinary archive", *prose(6))], header=None),
        Proof.PROVED),
    "three covers": (Paper(covers=[(Text("Cover page", 16), *prose(8))] * 3), Proof.PROVED),
    "a correction bound before it": (
        Paper(covers=[(Text("Correction", 16), "A figure of the paper was wrong.", *prose(6))]), Proof.PROVED),
}  # fmt: skip
IMPOSTORS = {
    "another paper": Paper(title=STRANGER, doi=OTHER, authors="B. Else and C. Other"),
    "another paper without a DOI": Paper(title=STRANGER, doi=None, authors="B. Else and C. Other"),
    "a part II": Paper(title=(TITLE + ":", "Part II"), doi=None),
    "a part II with its DOI": Paper(title=TITLE + ", Part II", doi=OTHER),
    "northern in place of southern": Paper(title=TITLE.replace("southern", "northern"), doi=None),
    "revisited": Paper(title=(TITLE, "revisited"), doi=None),
    "a paper that cites it": Paper(title=STRANGER, doi=None, authors="B. Else", extra=[f"As {TITLE}, doi:{DOI}."]),
    "a comment": Paper(title=f"Comment on {TITLE}", doi=OTHER, authors="B. Critic", pages=3),
    "a reply with the same authors": Paper(title=f"Reply to the comment on {TITLE}", doi=OTHER, pages=3),
    "an erratum": Paper(title=f"Erratum: {TITLE}", doi=OTHER, pages=2, references=False),
    "a correction with its DOI": Paper(above=[Text("Author Correction", 11, 8)], pages=2, references=False),
    "a retraction": Paper(above=[Text("Retraction notice", 11, 8)], pages=2, references=False),
    "a supplement": Paper(above=[Text("Supplementary Information", 14, 8)], header=None),
    "a supplement for": Paper(title=("Supporting information for", TITLE), header=None),
    "a review report": Paper(above=[Text("Peer Review File", 14, 8)], header=None),
    "a preview": Paper(references=False, pages=2),
    "an abstract page": Paper(references=False, pages=2, header=None),
    "a cut paper": Paper(references=False, pages=3),
    "a twin of a meeting": Paper(doi=None, header="Proceedings of the 5th Conference on Barley, 2020"),
    "a paper of another year": Paper(doi=None, header="Annals of Barley 3 (2012) 1-9"),
    "a re-issue": Paper(doi=OTHER),
    "a thesis": Paper(title=STRANGER, doi=None, authors="B. Else", header=None,
                      extra=["A thesis submitted for the degree of Doctor of Philosophy"], pages=30),
    "terms": Paper(title="Terms and Conditions", doi=None, authors=None, header=None, abstract=False, references=False),
    "a table of contents": Paper(title="Contents", doi=None, authors=None, abstract=False, references=False,
                                 extra=[f"{TITLE} ..... 101", "Another paper ..... 107"]),
    "a volume with the paper second": Paper(covers=Paper(title=STRANGER, doi=OTHER, authors="B. Else").made().pages),
    "its data's description": Paper(title=f"Data for: {TITLE}", doi="10.5281/zenodo.1234", pages=2, references=False),
}  # fmt: skip


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("name", RIGHT)
def test_a_paper_is_proved(engine, name, rendering):
    paper, proof = RIGHT[name]
    found = look(engine, WRITERS[rendering](paper.made()))
    assert found.verdict.proof == proof, found.record()


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("name", IMPOSTORS)
def test_an_impostor_is_not_proved(engine, name, rendering):
    found = look(engine, WRITERS[rendering](IMPOSTORS[name].made()))
    assert found.verdict.proof in (Proof.UNPROVED, Proof.REFUSED), found.record()


KINDS = {
    "another paper": Kind.ANOTHER_ARTICLE,
    "another paper without a DOI": Kind.ANOTHER_ARTICLE,
    "a comment": Kind.REPLY,
    "a reply with the same authors": Kind.REPLY,
    "an erratum": Kind.CORRECTION,
    "a correction with its DOI": Kind.CORRECTION,
    "a retraction": Kind.NOTICE,
    "a supplement": Kind.SUPPLEMENT,
    "a supplement for": Kind.SUPPLEMENT,
    "a review report": Kind.REVIEW_REPORT,
    "terms": Kind.TERMS,
    "a table of contents": Kind.CONTENTS,
}


@pytest.mark.parametrize("name", KINDS)
def test_a_refusal_names_its_kind(engine, name):
    found = look(engine, reportlab_pdf(IMPOSTORS[name].made()))
    assert (found.verdict.proof, found.verdict.kind) == (Proof.REFUSED, KINDS[name]), found.record()


@pytest.mark.parametrize("name", WRITERS)
def test_every_producer_s_paper_is_proved(engine, name):
    assert look(engine, WRITERS[name](Paper().made())).verdict.proof == Proof.PROVED


def test_a_scan_and_a_file_that_is_not_read_are_unproved(engine):
    scanned = look(engine, scan_pdf(Paper().made()))
    assert scanned.verdict.proof == Proof.UNPROVED
    assert "scan" in scanned.verdict.evidence
    broken = look(engine, b"%PDF-1.4 and nothing")
    assert (broken.verdict.proof, broken.verdict.evidence) == (Proof.UNPROVED, ("text-unreadable",))


def test_a_title_in_another_script_is_proved_by_doi_and_authors(engine):
    known = KnownWork.of(dois=[DOI], title="高山草地における大麦の季節成長", authors=AUTHORS)
    assert look(engine, reportlab_pdf(Paper().made()), known).verdict.proof == Proof.PROVED_VARIANT
    assert look(engine, reportlab_pdf(Paper(doi=None).made()), known).verdict.proof == Proof.UNPROVED


def test_a_work_without_a_doi_is_not_contradicted_by_one(engine):
    known = KnownWork.of(title=TITLE, authors=AUTHORS)
    assert look(engine, reportlab_pdf(Paper().made()), known).verdict.proof == Proof.PROBABLE


def test_a_work_that_is_a_reply_itself_is_proved(engine):
    title = f"Reply to the comment on {TITLE}"
    known = KnownWork.of(dois=[OTHER], title=title, authors=AUTHORS)
    found = look(engine, reportlab_pdf(Paper(title=("Reply to the comment on", TITLE), doi=OTHER).made()), known)
    assert found.verdict.proof == Proof.PROVED, found.record()


def test_missing_pages_are_told(engine):
    known = KnownWork.of(dois=[DOI], title=TITLE, authors=AUTHORS, first_page="100", last_page="140")
    found = look(engine, reportlab_pdf(Paper().made()), known)
    assert (found.verdict.proof, found.verdict.wholeness) == (Proof.UNPROVED, Whole.CUT)


def test_an_arxiv_stamp_is_an_identifier(engine):
    known = KnownWork.of(arxiv_id="2001.01234", title=TITLE, authors=AUTHORS)
    right = Paper(doi=None, above=["arXiv:2001.01234v2 [q-bio.PE] 5 Jan 2020"], header=None)
    wrong = Paper(doi=None, above=["arXiv:1912.05555v1 [q-bio.PE] 5 Dec 2019"], header=None)
    assert look(engine, reportlab_pdf(right.made()), known).verdict.proof == Proof.PROVED
    assert look(engine, reportlab_pdf(wrong.made()), known).verdict.proof == Proof.UNPROVED


def test_what_a_page_says_of_its_link_does_not_stand_against_the_printed_doi(engine):
    """A link that leads to another article: the page is about the work, and the file is not."""
    made = Paper(title=STRANGER, doi=OTHER, authors="Otto Roe1", header="Letters on Yeast 3 (2019) 7-12").made()
    found = engine.examine(reportlab_pdf(made), KNOWN, origin=Origin(page_doi=DOI)).result(timeout=60)
    assert (found.verdict.proof, found.verdict.kind) == (Proof.REFUSED, Kind.ANOTHER_ARTICLE), found.record()
