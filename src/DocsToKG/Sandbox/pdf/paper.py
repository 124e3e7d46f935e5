"""Lay out a paper as its publisher, its authors or arXiv would, and make the file.

Knows title pages, running heads, sections, references and page ranges. Does not know works or HTTP.
Promises: equal arguments give equal bytes; the last page bears the last number of the printed range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from DocsToKG.Sandbox import vocabulary as words
from DocsToKG.Sandbox.pdf import prose
from DocsToKG.Sandbox.pdf.document import Block, Document, Mark, page_break
from DocsToKG.Sandbox.pdf.renderings import RENDERINGS, written
from DocsToKG.Sandbox.seeded_random import stream

_SHORT_FILE, _MEDIUM_FILE = 9_000, 16_000
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_INSTITUTES = (
    "Department of Physics, University of Aldmoor", "Institute for Open Methods, Ostmark",
    "School of Medicine, Fenwick University", "Faculty of Sciences, Collegium Harwick",
    "Laboratory of Edge Ecology, Tidewater Research Centre", "Centre for Measurement, Lumen Technical University",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paper:
    """What is printed. `doi` None leaves the file without any; `stamp` is a line such as `arXiv:2101.00001v1`.

    What is not given is drawn from the key of the file. `form` is published, accepted or preprint.
    """

    title: str
    authors: tuple[str, ...]
    year: int
    doi: str | None
    stamp: str | None = None
    journal: str | None = None
    volume: str | None = None
    issue: str | None = None
    first_page: int | None = None
    pages: int | None = None
    form: str = "published"
    cover: str | None = None  # the repository whose cover page stands before the paper


def page_count(size_bytes: int, chance: Random) -> int:
    """How many pages a file of some size has."""
    if size_bytes < _SHORT_FILE:
        return 2
    return 3 if size_bytes < _MEDIUM_FILE else chance.randint(4, 7)


def make_pdf(paper: Paper, *, size_bytes: int, key: str, rendering: str = "plain") -> bytes:
    """A file of about `size_bytes` (never below what the text needs); `key` seeds what the paper leaves open."""
    pages = paper.pages or page_count(size_bytes, stream("pages", key))
    return written(document_of(paper, key, pages, rendering), rendering, key=key, size_bytes=size_bytes)


def document_of(paper: Paper, key: str, pages: int, rendering: str) -> Document:
    """The paper as blocks and marks, before a rendering writes it."""
    chance = stream("paper", key)
    how = RENDERINGS[rendering]
    journal = paper.journal or chance.choice(words.JOURNALS)
    volume, issue = paper.volume or str(1 + paper.year % 60), paper.issue or str(chance.randint(1, 12))
    first = paper.first_page or chance.randint(1, 1200)
    printed = f"{journal} {volume}({issue}), {first}–{first + pages - 1} ({paper.year})"
    cover = list(cover_page(paper, paper.cover)) if paper.cover else []
    front = [*cover, *_title_page(paper, chance, how.language)]
    return Document(
        front=tuple(front),
        body=_sections(chance, how.language),
        back=tuple(_back(chance, how.language, 8 if pages < 4 else chance.randint(14, 30))),
        marks=tuple(_marks(paper, printed, how.columns)),
        pages=pages + bool(paper.cover),
        first_page=first if paper.form == "published" else 1,
        unmarked=int(bool(paper.cover)),
        columns=how.columns,
        line_numbers=paper.form == "accepted" and chance.random() < 0.3,
        language=how.language,
        title=paper.title,
        authors=paper.authors,
        doi=paper.doi,
        subject=printed if paper.form == "published" else "",
    )


def cover_page(paper: Paper, repository: str) -> Iterator[Block]:
    """The page that a repository puts before a paper, and the break after it."""
    yield Block(repository, size=18, bold=True, align="center", before=40, across=True)
    cited = f"{', '.join(paper.authors)} ({paper.year}) {paper.title}."
    yield Block("This is the author's accepted version of an article. To cite it:", before=60, across=True)
    yield Block(cited + (f" https://doi.org/{paper.doi}" if paper.doi else ""), before=12, across=True)
    terms = "Downloaded from the repository. The work is made available under the terms of the repository's licence."
    yield Block(terms, size=8, before=200, across=True)
    yield page_break()


def _title_page(paper: Paper, chance: Random, language: str) -> Iterator[Block]:
    yield Block(paper.title, size=17, bold=True, before=18, role="H1", across=True)
    places = chance.sample(_INSTITUTES, min(3, len(paper.authors)))
    named = [f"{author}^{1 + at % len(places)}^" for at, author in enumerate(paper.authors)] if places else []
    yield Block(", ".join(named), size=11, before=10, across=True, marked=True)
    for at, place in enumerate(places, start=1):
        yield Block(f"^{at}^ {place}", size=8, before=2, across=True, marked=True)
    if paper.form == "published":
        yield Block(_dates(paper, chance), size=8, before=6, across=True)
    abstract = prose.paragraph(chance.randrange(prose.PARAGRAPHS), sentences=4)
    if language != "en":
        foreign = prose.paragraph(chance.randrange(prose.PARAGRAPHS), language, 3)
        yield Block(prose.abstract_head(language), size=11, bold=True, before=12, role="H2", across=True)
        yield Block(foreign, size=9, across=True)
    yield Block("Abstract", size=11, bold=True, before=12, role="H2", across=True)
    yield Block(f"We study {_subject(paper.title)}. {abstract}", size=9, across=True)
    keywords = ", ".join(chance.sample(words.SUBJECTS, 4))
    yield Block(f"Keywords: {keywords}", size=8, before=4, across=True)


def _subject(title: str) -> str:
    """What stands before a colon, as it would be written within a sentence."""
    part = title.partition(":")[0]
    return part[:1].lower() + part[1:]


def _dates(paper: Paper, chance: Random) -> str:
    month = chance.randrange(12)
    received = f"{chance.randint(1, 28)} {_MONTHS[month]} {paper.year - 1}"
    accepted = f"{chance.randint(1, 28)} {_MONTHS[chance.randrange(month + 1)]} {paper.year}"
    return f"Received {received}; accepted {accepted}"


def _sections(chance: Random, language: str) -> Iterator[Block]:
    """Section after section, without end."""
    heads = prose.section_heads(language)
    number = 0
    while True:
        head = heads[number % len(heads)] if number < len(heads) else f"Appendix {number - len(heads) + 1}"
        yield Block(f"{number + 1} {head}", size=11, bold=True, before=10, role="H2")
        for _ in range(chance.randint(2, 4)):
            yield Block(prose.paragraph(chance.randrange(prose.PARAGRAPHS), language))
        number += 1


def _back(chance: Random, language: str, count: int) -> Iterator[Block]:
    yield Block(prose.references_head(language), size=11, bold=True, before=10, role="H2")
    for entry in prose.references(chance, count):
        yield Block(entry, size=8, before=2)


def _marks(paper: Paper, printed: str, columns: int) -> Iterator[Mark]:
    if paper.form == "published":
        yield Mark(printed, 62, 800, pages="first")
        if paper.doi:
            yield Mark(f"https://doi.org/{paper.doi}", 62, 788, pages="first")
        short = paper.title if len(paper.title) < 60 else paper.title[:56].rpartition(" ")[0] + " ..."
        yield Mark(short, 62, 800, pages="others")
    elif paper.form == "accepted":
        yield Mark("Accepted manuscript", 62, 800)
        if paper.doi:
            yield Mark(f"DOI: {paper.doi}", 62, 788, pages="first")
    elif paper.doi:
        yield Mark(f"doi:{paper.doi}", 62, 40, pages="first")
    if paper.stamp and paper.stamp.startswith("arXiv:"):
        yield Mark(f"{paper.stamp}  [physics.gen-ph]  {paper.year}", 28, 240, 16, 90, "first")
    elif paper.stamp:
        yield Mark(paper.stamp, 400, 28, 7, pages="first")
    yield Mark("{page}", 290, 40, 9)
