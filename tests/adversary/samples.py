"""How a set of samples is written: the work that was asked for, and the PDF that came, as blocks of text on pages.

`tests/adversary/third_set/README.md` tells its use. Knows how papers are set, not how files are judged. No name, title
or DOI in a sample is that of a real paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from tests.adversary.case import Case, renderings_of
from tests.adversary.works import Author, IndexedWork

from DocsToKG.Sandbox.pdf import prose
from DocsToKG.Sandbox.pdf.document import A4, Block, Document, Mark, page_break
from DocsToKG.Sandbox.pdf.layout import laid_out
from DocsToKG.Sandbox.seeded_random import stream

ANY = ("word", "tagged", "ocr", "rtl")
SECTIONS = ("Introduction", "Methods", "Results", "Discussion", "Conclusion")


class Made(NamedTuple):
    """A sample. Without `renderings` the set gives it four of those for Latin letters; `ANY` is for other scripts."""

    work: IndexedWork
    document: Document
    renderings: tuple[str, ...] = ()


Maker = Callable[[], Made]


class SampleSet:
    """Functions that make samples, in the order in which they are written."""

    def __init__(self) -> None:
        self._impostors: list[Maker] = []
        self._right: list[Maker] = []

    def impostor(self, make: Maker) -> Maker:
        """The file is not the paper."""
        self._impostors.append(make)
        return make

    def right(self, make: Maker) -> Maker:
        """The file is the paper."""
        self._right.append(make)
        return make

    def cases(self) -> list[Case]:
        found = []
        for makers, is_right in ((self._impostors, False), (self._right, True)):
            for number, make in enumerate(makers):
                made = make()
                renderings = made.renderings or renderings_of(number + 5 * is_right)
                found.append(Case(make.__name__, made.work, made.document, renderings, right=is_right))
        return found


class Text(NamedTuple):
    """A piece of text on a page. With `at` it stands there, in points from the lower left corner of a page of 595 by
    842, and takes one line; without, it follows the text above and is broken into lines."""

    text: str
    size: float = 10.0
    bold: bool = False
    align: str = "left"  # left | center | right
    at: tuple[float, float] | None = None
    angle: int = 0  # of a text with a place
    before: float = 4.0  # points above it, without a place


def document_of(*pages: Sequence[Text], title: str = "", doi: str | None = None, columns: int = 1) -> Document:
    """A file of exactly these pages. `title` and `doi` are what its metadata says. A page whose text does not fit
    raises `ValueError`."""
    front: list[Block] = []
    marks: list[Mark] = []
    for number, page in enumerate(pages, start=1):
        if number > 1:
            front.append(page_break())
        for piece in page:
            if piece.at is None:
                front.append(Block(piece.text, piece.size, piece.bold, piece.align, piece.before))
            else:
                marks.append(Mark(piece.text, *piece.at, piece.size, piece.angle, str(number), piece.bold))
    document = Document(front=tuple(front), marks=tuple(marks), title=title, doi=doi, columns=columns)
    if len(laid_out(document)) != len(pages):
        raise ValueError("the text of a page does not fit on it")
    return document


# Works, as an index describes them


def people(text: str) -> tuple[Author, ...]:
    """`Given Family, Given|van Family`: a bar parts given from family names of several words."""
    found = []
    for name in text.split(", ") if text else ():
        given, bar, family = name.partition("|")
        if not bar:
            given, _, family = name.rpartition(" ")
        found.append(Author(given, family))
    return tuple(found)


def known(
    doi: str | None, title: str, by: str, year: int, journal: str, where: str, pages: str, arxiv: str | None = None
) -> IndexedWork:
    """`where` is `volume(issue)`, `pages` is `first-last` or the number of an article."""
    volume, _, issue = where.rstrip(")").partition("(")
    first, _, last = pages.partition("-")
    return IndexedWork(
        doi, title, people(by), year, journal, volume, issue, int(first), int(last or first), arxiv_id=arxiv
    )


# Building blocks


_TOPICAL = (
    "Earlier work on {a} gave mixed results, and few studies followed {b} for longer than a year.",
    "We therefore asked whether {a} depends on {b}.", "Our understanding of {a} has changed over the last decade.",
    "The data on {a} were collected as described by others and checked twice.", "As for {a}, both groups were alike.",
    "This agrees with the view that {a} and {b} have a common cause.", "Models without {a} fitted less well.",
    "Differences in {b} may explain why {a} was not seen before.", "The role of {a} remains to be settled.",
)  # fmt: skip
_SMALL = {
    "the",
    "and",
    "of",
    "in",
    "on",
    "for",
    "with",
    "by",
    "to",
    "a",
    "an",
    "its",
    "from",
    "under",
    "after",
    "across",
}


def terms_of(title: str) -> list[str]:
    words = [word.strip(".,:;?!“”()[]").lower() for word in title.replace("<i>", "").replace("</i>", "").split()]
    words = [word for word in words if word not in _SMALL and len(word) > 2]
    return [" ".join(pair) for pair in pairwise(words)] or words or ["the matter"]


def text(key: str, title: str, count: int, sentences: int = 5) -> list[Block]:
    """Paragraphs that speak of what the title names."""
    chance = stream("second", key)
    terms = terms_of(title)
    found = []
    for _ in range(count):
        said = prose.paragraph(chance.randrange(prose.PARAGRAPHS), "en", sentences)
        lines = [
            chance.choice(_TOPICAL).format(a=chance.choice(terms), b=chance.choice(terms))
            for _ in range(sentences // 2)
        ]
        found.append(Block(" ".join([lines[0][0].upper() + lines[0][1:], said, *lines[1:]]) if lines else said))
    return found


def lines(*shown: str, size: float = 10, before: float = 4, across: bool = True) -> tuple[Block, ...]:
    """One block for each line; one that ends with a bar is a head, `---` begins a page."""
    found = []
    for line in shown:
        if line == "---":
            found.append(page_break())
        elif line.endswith("|"):
            found.append(Block(line[:-1], size=size + 4, bold=True, before=12, role="H1", across=across))
        else:
            found.append(Block(line, size=size, before=before, across=across))
    return tuple(found)


def listed(work: IndexedWork, *, doi: bool = True) -> str:
    """The work as a list of references gives it."""
    names = ", ".join(f"{author.family} {author.given[:1]}" for author in work.authors)
    title = work.title.replace("<i>", "").replace("</i>", "")
    where = f"{work.journal} {work.year};{work.volume}:{work.first_page}-{work.last_page}"
    return f"{names}. {title}. {where}." + (f" https://doi.org/{work.doi}" if doi and work.doi else "")


def reference_blocks(key: str, count: int, cited: Sequence[str] = (), head: str = "References") -> tuple[Block, ...]:
    entries = [*(entry.partition(". ")[2] for entry in prose.references(stream("second refs", key), count)), *cited]
    shown = [Block(f"{at}. {entry}", size=8, before=2) for at, entry in enumerate(sorted(entries), start=1)]
    return (Block(head, size=11, bold=True, before=10, role="H2"), *shown)


def sections(key: str, title: str, heads: Sequence[str] = SECTIONS, each: int = 3) -> Iterator[Block]:
    for number, head in enumerate(heads, start=1):
        yield Block(f"{number}. {head}", size=11, bold=True, before=10, role="H2")
        yield from text(f"{key}{number}", title, each)


def endless(key: str, title: str, heads: Sequence[str]) -> Iterator[Block]:
    at = 0
    while True:
        yield from sections(f"{key}/{at}", title, heads)
        at += 1


def paper(
    key: str,
    title: str,
    names: Sequence[str],
    *,
    head: Sequence[str] = (),
    top: tuple[Block, ...] = (),
    after: tuple[Block, ...] = (),
    abstract: str = "Abstract",
    heads: Sequence[str] = SECTIONS,
    body: Sequence[Block] | None = None,
    refs: int = 18,
    ref_head: str = "References",
    cited: Sequence[str] = (),
    pages: int | None = None,
    first: int = 1,
    lead: tuple[Block, ...] = (),
    leads: int = 0,
    tail: tuple[Block, ...] = (),
    marks: tuple[Mark, ...] = (),
    columns: int = 1,
    numbered: bool = False,
    running: str = "",
    places: str = "",
    title_size: float = 16,
    info: str | None = None,
    xmp: str | None = None,
    language: str = "en",
    subject: str = "",
) -> Document:
    """An article: heads at the top of its first page, title page, sections, references; `lead` and `tail` around it."""
    about = subject or title
    front = [*lead, *top, Block(title, size=title_size, bold=True, before=14, role="H1", across=True)]
    if names:
        front.append(Block(", ".join(names), size=11, before=8, across=True))
    front += [Block(place, size=8, before=2, across=True) for place in places.split("; ") if place]
    front += after
    if abstract:
        front.append(Block(abstract, size=11, bold=True, before=10, role="H2", across=True))
        front += [block._replace(size=9, across=True) for block in text(key + "abstract", about, 1)]
    if body is None:
        body_blocks = list(islice(endless(key, about, heads), 16 * pages) if pages else sections(key, about, heads))
    else:
        body_blocks = list(body)
    shown = [Mark(line, 62, 806 - 11 * at, pages="first") for at, line in enumerate(head)]
    if running:
        shown.append(Mark(running, 62, 806, pages="others"))
    back = reference_blocks(key, refs, cited, ref_head) if refs or cited else ()
    return Document(
        front=tuple(front),
        body=body_blocks,
        back=(*back, *tail),
        marks=(*shown, Mark("{page}", 290, 34, 9), *marks),
        pages=pages + leads if pages else None,
        first_page=first,
        columns=columns,
        line_numbers=numbered,
        unmarked=leads,
        language=language,
        title=title if info is None else info,
        authors=tuple(names),
        doi=xmp,
    )


def published(work: IndexedWork, key: str, **changes: object) -> Document:
    """The work with the head line of its journal, its DOI and its own page numbers; `changes` as of `paper`."""
    pages = work.pages if work.pages > 1 else 8
    place = f"{work.first_page}–{work.last_page}" if work.pages > 1 else f"{work.first_page}"
    given: dict[str, object] = {
        "head": (f"{work.journal} {work.volume} ({work.year}) {place}", f"https://doi.org/{work.doi}"),
        "pages": pages,
        "first": work.first_page if work.pages > 1 else 1,
        "places": "Department of Applied Studies, University of Norrhavn; Institute for Field Research, Estoria",
        **changes,
    }
    title = str(given.pop("title", work.title.replace("<i>", "").replace("</i>", "")))
    names = given.pop("names", work.names)
    assert isinstance(names, tuple)
    return paper(key, title, names, **given)  # type: ignore[arg-type]


def sheets(*blocks: Block, marks: tuple[Mark, ...] = (), title: str = "", size: tuple[float, float] = A4) -> Document:
    return Document(front=blocks, marks=marks, title=title, size=size)
