"""What a proof saw of a file, in the shape that judges read and records keep.

Knows no bytes. A field is empty when the file did not say; judges take silence for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from DocsToKG.core.values import lean_dataclass

_TITLE_CHARS = 500
_DOIS = 10
_NOTES = 5


class Named(Protocol):
    """A file that may say which paper it is."""

    @property
    def doi_seen(self) -> tuple[str, ...]: ...

    @property
    def doi_declared(self) -> tuple[str, ...]: ...

    @property
    def doi_printed(self) -> tuple[str, ...]: ...

    @property
    def title(self) -> str | None: ...

    @property
    def first_page(self) -> str: ...


@lean_dataclass(frozen=True, slots=True)
class PdfFacts:
    """What the proof saw. `pages` is None when a password hides them; `repaired`: pikepdf rebuilt the index.

    `doi_declared` are DOIs in fields that name the file itself, `doi_printed` those shown on the first page,
    `doi_seen` all of them and those of the second page. `partly_read`: the first page shows more than its text tells.
    """

    pages: int | None
    encrypted: bool
    linearized: bool
    warnings: tuple[str, ...]
    doi_seen: tuple[str, ...]
    title: str | None
    version: str | None
    doi_declared: tuple[str, ...] = ()
    doi_printed: tuple[str, ...] = ()
    first_page: str = ""
    repaired: bool = False
    producer: str | None = None
    partly_read: bool = False

    def record(self) -> dict[str, Any]:
        """The facts worth a line in the record; the page's text is not."""
        return {
            "form": "pdf",
            "pages": self.pages,
            "encrypted": self.encrypted,
            "linearized": self.linearized,
            "repaired": self.repaired,
            "version": self.version,
            "producer": self.producer,
            "dois_seen": list(self.doi_seen[:_DOIS]),
            "title_seen": (self.title or "")[:_TITLE_CHARS] or None,
            "warnings": list(self.warnings[:_NOTES]),
        }


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The same of full text in XML or HTML. `chars` counts the running text that was found."""

    form: str
    chars: int
    title: str | None = None
    doi_declared: tuple[str, ...] = ()
    pmid: str | None = None
    pmcid: str | None = None

    @property
    def doi_seen(self) -> tuple[str, ...]:
        return self.doi_declared

    @property
    def doi_printed(self) -> tuple[str, ...]:
        return ()

    @property
    def first_page(self) -> str:
        return ""

    def record(self) -> dict[str, Any]:
        return {
            "form": self.form,
            "chars": self.chars,
            "dois_seen": list(self.doi_declared[:_DOIS]),
            "title_seen": (self.title or "")[:_TITLE_CHARS] or None,
        }
