"""Compose documents for the cases: articles in the manners of several publishers, and single sheets of other kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.adversary.works import IndexedWork

from DocsToKG.Sandbox.pdf import prose
from DocsToKG.Sandbox.pdf.document import A4, Block, Document, Mark, page_break
from DocsToKG.Sandbox.seeded_random import stream

PLACES = (
    "Department of Applied Sciences, University of Norrhavn", "Institut des Sciences Mineures, Clairpont",
    "Faculty of Medicine, Estoria State University", "National Laboratory of Hollin", "Oststadt College",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How an article is set. `doi_at`: header, footer, label, citation, abstract, last, address, old, broken, none."""

    title: str | None = None
    subtitle: str = ""
    names: tuple[str, ...] | None = None
    doi: str | None = None
    doi_at: str = "header"
    title_size: float = 16
    body_pages: int | None = None
    first_page: int | None = None
    journal_line: str | None = None
    dates: bool = True
    places: bool = True
    abstract: bool = True
    language: str = "en"
    references: str | None = None  # the head of the list; None for that of the language, "" for no list
    reference_count: int = 18
    columns: int = 1
    before_title: tuple[Block, ...] = ()
    after_title: tuple[Block, ...] = ()
    appended: tuple[Block, ...] = ()
    marks: tuple[Mark, ...] = ()
    running: str | None = None
    size: tuple[float, float] = A4
    rotate: int = 0
    line_numbers: bool = False
    leading_pages: tuple[Block, ...] = ()  # before the article, ends with a break
    leading: int = 0  # how many pages those are
    align: str = "left"
    info_title: str | None = None
    xmp_doi: bool = False


def article(work: IndexedWork, key: str, look: Look | None = None, /, **changes: object) -> Document:
    """The work as a whole article, with what `changes` make different."""
    look = replace(look or Look(), **changes)  # type: ignore[arg-type]
    doi = look.doi if look.doi is not None else work.doi
    title = look.title if look.title is not None else work.title
    names = look.names if look.names is not None else work.names
    pages = look.body_pages or work.pages
    first = look.first_page or work.first_page
    printed = f"{work.journal} {work.volume} ({work.issue}), {first}–{first + pages - 1} ({work.year})"
    line = printed if look.journal_line is None else look.journal_line
    front = [*look.leading_pages, *_front(work, look, title, names, doi, line, key)]
    return Document(
        front=tuple(front),
        body=_body(look, key),
        back=(*_back(look, doi, key), *look.appended),
        marks=(*_heads(look, doi, line, work), *look.marks),
        pages=pages + look.leading,
        first_page=first,
        columns=look.columns,
        size=look.size,
        rotate=look.rotate,
        line_numbers=look.line_numbers,
        unmarked=look.leading,
        language=look.language,
        title=title if look.info_title is None else look.info_title,
        authors=tuple(names),
        doi=doi if look.xmp_doi else None,
    )


def _front(
    work: IndexedWork, look: Look, title: str, names: Sequence[str], doi: str | None, line: str, key: str
) -> Iterator[Block]:
    chance = stream("adversary", key)
    yield from look.before_title
    yield Block(title, size=look.title_size, bold=True, before=16, role="H1", across=True, align=look.align)
    if look.subtitle:
        yield Block(look.subtitle, size=look.title_size - 3, before=6, across=True, align=look.align)
    places = chance.sample(PLACES, 2)
    shown = [f"{name}^{1 + at % 2}^" if look.places else name for at, name in enumerate(names)]
    yield Block(", ".join(shown), size=11, before=10, across=True, marked=True, align=look.align)
    if look.places:
        for at, place in enumerate(places, start=1):
            yield Block(f"^{at}^ {place}", size=8, before=2, across=True, marked=True, align=look.align)
    if look.dates:
        yield Block(f"Received 4 March {work.year - 1}. Accepted 19 January {work.year}.", size=8, across=True)
    yield from look.after_title
    yield from _own_doi_blocks(look, doi, work, title, names)
    if look.abstract:
        yield Block(prose.abstract_head(look.language), size=11, bold=True, before=10, role="H2", across=True)
        text = prose.paragraph(chance.randrange(prose.PARAGRAPHS), look.language, 5)
        if doi and look.doi_at == "abstract":
            text += f" doi: {doi}"
        yield Block(text, size=9, across=True)


def _own_doi_blocks(
    look: Look, doi: str | None, work: IndexedWork, title: str, names: Sequence[str]
) -> Iterator[Block]:
    if doi is None:
        return
    match look.doi_at:
        case "label":
            yield Block(f"DOI: {doi}", size=8, across=True)
        case "address":
            yield Block(f"https://doi.org/{doi}", size=8, across=True)
        case "old":
            yield Block(f"http://dx.doi.org/{doi}", size=8, across=True)
        case "broken":
            half = len(doi) * 2 // 3
            yield Block(f"https://doi.org/{doi[:half]}\n{doi[half:]}", size=8, across=True)
        case "citation":
            cited = f"{', '.join(names)} ({work.year}). {title}. {work.journal} {work.volume}: {work.first_page}."
            yield Block(f"Cite this article: {cited} https://doi.org/{doi}", size=8, across=True)


def _body(look: Look, key: str) -> Iterator[Block]:
    chance = stream("adversary body", key)
    heads = prose.section_heads(look.language)
    number = 0
    while True:
        yield Block(f"{number + 1}. {heads[number % len(heads)]}", size=11, bold=True, before=10, role="H2")
        for _ in range(chance.randint(2, 5)):
            yield Block(prose.paragraph(chance.randrange(prose.PARAGRAPHS), look.language))
        number += 1


def _back(look: Look, doi: str | None, key: str) -> Iterator[Block]:
    head = prose.references_head(look.language) if look.references is None else look.references
    if head:
        yield Block(head, size=11, bold=True, before=10, role="H2")
        for entry in prose.references(stream("adversary references", key), look.reference_count):
            yield Block(entry, size=8, before=2)
    if doi and look.doi_at == "last":
        yield Block(f"DOI {doi}", size=8, before=14)


def _heads(look: Look, doi: str | None, line: str, work: IndexedWork) -> Iterator[Mark]:
    width, height = look.size
    if line:
        yield Mark(line, 62, height - 40, pages="first")
    if doi and look.doi_at == "header":
        yield Mark(f"https://doi.org/{doi}", 62, height - 52, pages="first")
    if doi and look.doi_at == "footer":
        yield Mark(f"© {work.year} {work.journal}. doi:{doi}", 62, 46, 7, pages="first")
    if look.running is not None:
        yield Mark(look.running, 62, height - 40, pages="others")
    yield Mark("{page}", width / 2, 34, 9)


def sheet(*blocks: Block | str, pages: int | None = None, marks: Sequence[Mark] = (), title: str = "") -> Document:
    """Blocks as they are; a string is a paragraph, a line that ends with a bar is a head."""
    return Document(front=tuple(map(_as_block, blocks)), marks=tuple(marks), pages=pages, title=title)


def _as_block(block: Block | str) -> Block:
    if isinstance(block, Block):
        return block
    if block == "---":
        return page_break()
    if block.endswith("|"):
        return Block(block[:-1], size=16, bold=True, before=14, role="H1")
    return Block(block)


def filler(key: str, count: int, language: str = "en") -> list[Block]:
    """Paragraphs of text that say nothing of the work."""
    chance = stream("filler", key)
    return [Block(prose.paragraph(chance.randrange(prose.PARAGRAPHS), language)) for _ in range(count)]


def citation(work: IndexedWork) -> str:
    """The work as a list of references gives it."""
    names = ", ".join(f"{author.family} {author.given[0]}" for author in work.authors)
    where = f"{work.journal}. {work.year};{work.volume}({work.issue}):{work.first_page}-{work.last_page}"
    return f"{names}. {work.title}. {where}." + (f" doi:{work.doi}" if work.doi else "")
