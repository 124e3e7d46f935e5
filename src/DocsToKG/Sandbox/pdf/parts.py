"""Files about a paper that are not the paper: a cover alone, the first page, a supplement, a notice of correction.

They bear the paper's title, authors and DOI, as such files do. Promises: equal arguments give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from DocsToKG.Sandbox.pdf import prose
from DocsToKG.Sandbox.pdf.document import Block, Document
from DocsToKG.Sandbox.pdf.paper import Paper, cover_page, document_of, page_count
from DocsToKG.Sandbox.pdf.renderings import written
from DocsToKG.Sandbox.seeded_random import stream

_SIZE_BYTES = 20_000


def make_part(paper: Paper, kind: str, *, key: str, rendering: str) -> bytes:
    """`kind` is cover_only, first_page, supplement or notice."""
    return written(_document(paper, kind, key, rendering), rendering, key=key, size_bytes=_SIZE_BYTES)


def _document(paper: Paper, kind: str, key: str, rendering: str) -> Document:
    if kind == "first_page":
        return _first_page(paper, key, rendering)
    makers = {"cover_only": _cover_only, "supplement": _supplement, "notice": _notice}
    front = tuple(makers[kind](paper, key))
    return Document(front=front, title=paper.title, authors=paper.authors, doi=paper.doi)


def _first_page(paper: Paper, key: str, rendering: str) -> Document:
    """A preview: the title page as printed, with the range of the whole paper, and nothing after it."""
    pages = paper.pages or page_count(_SIZE_BYTES, stream("pages", key))
    whole = document_of(paper, key, max(3, pages), rendering)
    return replace(whole, pages=2, back=(Block("This is a preview. The whole article is available to subscribers."),))


def _cover_only(paper: Paper, key: str) -> Iterator[Block]:
    # Without the break that the paper would follow.
    yield from list(cover_page(paper, paper.cover or "Institutional Repository"))[:-1]


def _supplement(paper: Paper, key: str) -> Iterator[Block]:
    chance = stream("supplement", key)
    yield Block("Supplementary Information", size=16, bold=True, role="H1")
    yield Block(paper.title, size=13, bold=True, before=10, role="H1")
    yield Block(", ".join(paper.authors), before=8)
    for number in range(1, 9):
        yield Block(f"Table S{number}. Values by site and season.", bold=True, before=10)
        yield Block(prose.paragraph(chance.randrange(prose.PARAGRAPHS)))


def _notice(paper: Paper, key: str) -> Iterator[Block]:
    yield Block(f"Correction to: {paper.title}", size=16, bold=True, role="H1")
    yield Block(", ".join(paper.authors), before=8)
    if paper.doi:
        yield Block(f"Correction to: https://doi.org/{paper.doi}", before=8)
    yield Block("In the original article the units of Table 2 were wrong. The conclusions are not affected.", before=8)
