"""A case: what is known of a work, a file that is or is not its paper, and the renderings it is made in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.adversary.works import IndexedWork

from DocsToKG.Sandbox.pdf.document import Document
from DocsToKG.Sandbox.pdf.renderings import written

LATIN = (
    "plain", "latex", "word", "indesign", "ocr", "tagged", "columns", "forms", "type1", "type3", "ascii85", "unencoded",
)  # fmt: skip
ANY_SCRIPT = ("word", "tagged", "rtl", "ocr")
_EACH = 4


@dataclass(frozen=True)
class Case:
    """`right` tells whether the file is the paper. `text` is False where no program could read it."""

    name: str
    work: IndexedWork
    document: Document
    renderings: tuple[str, ...]
    right: bool
    text: bool = True

    def file(self, rendering: str) -> bytes:
        return written(self.document, rendering, key=self.name, size_bytes=30_000)


Maker = Callable[[str], tuple[IndexedWork, Document]]


def renderings_of(number: int) -> tuple[str, ...]:
    """Four renderings, so that each is met by a third of the cases."""
    return tuple(LATIN[(number + step * 3) % len(LATIN)] for step in range(_EACH))
