"""What a proof saw of a file, in the shape that judges read and records keep.

Knows no bytes. A field is empty when the file did not say; judges take silence for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from DocsToKG.ContentDownload.validation.pdf.document import StreamReport
from DocsToKG.ContentDownload.validation.policy import Decision
from DocsToKG.core.values import lean_dataclass

_TITLE_CHARS = 500
_DOIS = 10
_NOTES = 5


class Named(Protocol):
    """A file that may say which paper it is."""

    @property
    def doi_seen(self) -> tuple[str, ...]: ...


@lean_dataclass(frozen=True, slots=True)
class PdfFacts:
    """What the proof saw. `pages` is None when a password hides them; `repaired`: pikepdf rebuilt the index.

    `doi_seen`: the DOIs that the file declares or shows on its first pages. `validation`: the verdict and its evidence;
    `decision`: what becomes of the file. `streams`: what decoding them showed, where that was done along.
    """

    pages: int | None
    encrypted: bool
    linearized: bool
    warnings: tuple[str, ...]
    version: str | None
    repaired: bool = False
    doi_seen: tuple[str, ...] = ()
    title: str | None = None
    producer: str | None = None
    validation: Mapping[str, Any] = field(default_factory=dict)
    decision: Decision = Decision.KEEP
    streams: StreamReport | None = None

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
            **self.validation,
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
    proof: str | None = None  # how sure it is that the text is the work
    decision: Decision = Decision.KEEP

    @property
    def doi_seen(self) -> tuple[str, ...]:
        return self.doi_declared

    def record(self) -> dict[str, Any]:
        return {
            "form": self.form,
            "chars": self.chars,
            "dois_seen": list(self.doi_declared[:_DOIS]),
            "title_seen": (self.title or "")[:_TITLE_CHARS] or None,
            "proof": self.proof,
        }
