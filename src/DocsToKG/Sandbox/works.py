"""A work and its copies, as values: authors, title, identifiers, addresses, and the services that lead to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from DocsToKG.Sandbox.faults import HARMLESS, TRANSIENT
from DocsToKG.Sandbox.pdf.paper import page_count
from DocsToKG.Sandbox.publishers import SERIAL_BASE, Publisher
from DocsToKG.Sandbox.seeded_random import stream

PUBLISHED, ACCEPTED, SUBMITTED = "publishedVersion", "acceptedVersion", "submittedVersion"


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a work. `listed` is what the indexes say of it: pdf, page or nothing."""

    kind: str  # publisher | repository | arxiv | pmc | europepmc | wayback
    landing_url: str
    pdf_url: str
    version: str
    fault: str | None = None
    listed: str = "pdf"
    open: bool = True  # neither behind a paywall, nor gone, nor forbidden by robots.txt
    publisher: Publisher | None = None

    @property
    def good(self) -> bool:
        """A polite client that retries gets the paper here."""
        return self.open and (self.fault is None or self.fault in TRANSIENT or self.fault in HARMLESS)


@dataclass(frozen=True)
class Work:
    """One work. `origin` is the index whose file it shares (its own, unless it is a duplicate)."""

    index: int
    doi: str
    title: str
    year: int
    authors: tuple[tuple[str, str], ...]
    journal: str
    licence: str | None
    oa_status: str
    arxiv_id: str | None
    arxiv_versions: int
    pmcid: str | None
    pmid: str | None
    openalex_id: str
    semantic_scholar_id: str
    in_crossref: bool
    origin: int
    size_bytes: int
    copies: tuple[Copy, ...]

    def copy(self, kind: str) -> Copy | None:
        return next((copy for copy in self.copies if copy.kind == kind), None)

    @property
    def serial(self) -> int:
        return SERIAL_BASE + self.index

    @property
    def date(self) -> str:
        return f"{self.year}-{1 + self.index % 12:02d}-{1 + self.index % 28:02d}"

    @property
    def volume(self) -> str:
        return str(1 + self.year - 1990)

    @property
    def issue(self) -> str:
        return str(1 + self.origin % 12)

    @property
    def first_page(self) -> int:
        return 1 + self.origin * 37 % 1900

    @property
    def page_count(self) -> int:
        return page_count(self.size_bytes, stream("pages", self.origin))

    @property
    def page_range(self) -> str:
        return f"{self.first_page}-{self.first_page + self.page_count - 1}"

    @cached_property
    def reachable_by(self) -> tuple[str, ...]:
        """The services whose answers lead to a good copy."""
        good = [copy for copy in self.copies if copy.good]
        kinds = {copy.kind for copy in good}
        listed = any(copy.listed != "nothing" and copy.kind in ("publisher", "repository", "arxiv") for copy in good)
        found = {
            "unpaywall": listed and self.in_crossref,
            "arxiv": "arxiv" in kinds,
            "doi": "publisher" in kinds or (not self.in_crossref and "arxiv" in kinds),
            "openalex": listed,
            "crossref": self.in_crossref and "publisher" in kinds,
            "semanticscholar": "arxiv" in kinds or (listed and "publisher" in kinds),
            "pmc": "pmc" in kinds,
            "europepmc": "europepmc" in kinds,
            "wayback": "wayback" in kinds,
        }
        return tuple(name for name, leads in found.items() if leads)
