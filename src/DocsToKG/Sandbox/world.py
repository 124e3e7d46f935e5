"""The invented literature: any number of works, each a function of the seed and its index.

Knows works, their identifiers, their copies and which of them are good. Does not know HTTP or time.
Promises: equal (seed, faults, size) give equal works, made in any order and one at a time; every identifier leads back
to its work without a table.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from DocsToKG.Sandbox import vocabulary as words
from DocsToKG.Sandbox.faults import Faults, fault_of_copy
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.identifiers import (
    arxiv_id_for,
    arxiv_index,
    doi_for,
    openalex_id_for,
    pmcid_for,
    pmid_for,
    semantic_scholar_id_for,
)
from DocsToKG.Sandbox.pdf import Paper, make_pdf
from DocsToKG.Sandbox.pdf.parts import make_part
from DocsToKG.Sandbox.publishers import (
    CLOSED_PUBLISHER,
    DISALLOWING_PUBLISHER,
    GONE_PUBLISHER,
    OPEN_PUBLISHERS,
    REPOSITORIES,
    ROBOTS_DOWN_PUBLISHER,
    SERIAL_BASE,
    SLOW_PUBLISHER,
    Publisher,
    indexes_in,
)
from DocsToKG.Sandbox.seeded_random import choose, fraction, stream
from DocsToKG.Sandbox.works import ACCEPTED, PUBLISHED, SUBMITTED, Copy, Work

_KEPT_BYTES = 64_000_000
_FORMS = {PUBLISHED: "published", ACCEPTED: "accepted", SUBMITTED: "preprint"}
_LICENCES = ("cc-by", "cc-by", "cc-by", "cc-by-nc", "cc-by-nc-nd", None)


class World:
    """`count` works of one seed."""

    def __init__(
        self,
        *,
        seed: int = 7,
        count: int = 500,
        size_bytes: int = 60_000,
        faults: Faults | None = None,
        files: Files | None = None,
    ) -> None:
        if count < 1 or size_bytes < 1:
            raise ValueError("a world needs at least one work, and files at least one byte")
        self.seed = seed
        self.count = count
        self.size_bytes = size_bytes
        self.faults = faults if faults is not None else Faults()
        self.files = files if files is not None else Files()
        self.work = lru_cache(maxsize=20_000)(self._make_work)
        # Files are kept while they fit in some tens of megabytes.
        self.file = lru_cache(maxsize=max(2, min(256, _KEPT_BYTES // size_bytes)))(self._make_file)

    def by_index(self, index: int) -> Work | None:
        return self.work(index) if 0 <= index < self.count else None

    def by_doi(self, doi: str) -> Work | None:
        """DOIs are compared without regard to case."""
        wanted = doi.lower()
        found = (self.by_index(index) for index in [*indexes_in(doi), *_arxiv_indexes(doi.lower())])
        return next((work for work in found if work and work.doi.lower() == wanted), None)

    def by_arxiv_id(self, arxiv_id: str) -> Work | None:
        found = (self.by_index(index) for index in _arxiv_indexes(arxiv_id))
        return next((work for work in found if work and work.arxiv_id == arxiv_id), None)

    def by_number(self, number: int, base: int, field: str) -> Work | None:
        """By PMCID, PMID or OpenAlex number, where the work has that identifier."""
        work = self.by_index(number - base)
        return work if work and getattr(work, field) else None

    def acceptable_files(self, work: Work) -> dict[str, bytes]:
        """Every version that is the paper, by version name."""
        return {version: self.file(work.origin, version) for version in sorted({copy.version for copy in work.copies})}

    def file_of(self, work: Work, copy: Copy) -> bytes:
        return self.file(work.origin, copy.version)

    def wrong_file_for(self, work: Work) -> bytes:
        """Another article, one whose file names its own DOI in text, so that the mistake can be seen."""
        index = work.index + 1
        while not self._shows_itself(index % self.count) or self.work(index % self.count).origin == work.origin:
            index += 1
            if index > work.index + self.count:
                return self.file(work.index + self.count, PUBLISHED)
        return self.file(index % self.count, PUBLISHED)

    def part_for(self, work: Work, kind: str) -> bytes:
        """A file about the work that is not the work: its cover, first page, supplement or a notice."""
        key = f"{self.seed}:{work.index}:{kind}"
        rendering = self.files.rendering(self.seed, work.index, kind)
        paper = self._paper(work, PUBLISHED)
        return make_part(paper, kind, key=key, rendering="plain" if rendering == "scan" else rendering)

    def _shows_itself(self, index: int) -> bool:
        return not self._in_group(index) and self._rendering(index, PUBLISHED) != "scan"

    def _rendering(self, index: int, version: str) -> str:
        return self.files.rendering(self.seed, index, version)

    def _make_file(self, index: int, version: str) -> bytes:
        work = self.work(index)
        return make_pdf(
            self._paper(work, version),
            size_bytes=work.size_bytes,
            key=f"{self.seed}:{index}:{version}",
            rendering=self._rendering(index, version),
        )

    def _paper(self, work: Work, version: str) -> Paper:
        # A file shared by several DOIs names none of them: any would be wrong for the others. An arXiv file
        # carries the stamp of arXiv, and a DOI only when arXiv registered it.
        names_doi = not self._in_group(work.origin) and (version != SUBMITTED or not work.in_crossref)
        stamp = f"arXiv:{work.arxiv_id}v{work.arxiv_versions}" if version == SUBMITTED and work.arxiv_id else version
        publisher = next((copy.publisher for copy in work.copies if copy.kind == "repository"), None)
        has_cover = version == ACCEPTED and self.files.has_cover(self.seed, work.origin)
        return Paper(
            work.title,
            tuple(f"{given} {family}" for given, family in work.authors),
            work.year,
            work.doi if names_doi else None,
            stamp,
            journal=work.journal,
            volume=work.volume,
            issue=work.issue,
            first_page=work.first_page,
            pages=work.page_count,
            form=_FORMS[version],
            cover=publisher.name if publisher and has_cover else None,
        )

    def _is_duplicate(self, index: int) -> bool:
        return index > 0 and fraction(self.seed, index, "duplicate") < self.faults.duplicate

    def _origin(self, index: int) -> int:
        while self._is_duplicate(index):
            index -= 1
        return index

    def _in_group(self, index: int) -> bool:
        return self._is_duplicate(index) or (index + 1 < self.count and self._is_duplicate(index + 1))

    def _make_work(self, index: int) -> Work:
        origin = self._origin(index)
        chance = stream(self.seed, origin, "work")
        year = chance.randint(1998, 2025)
        title = (
            f"{chance.choice(words.QUALITIES)} {chance.choice(words.SUBJECTS)} in {chance.choice(words.PLACES)}: "
            f"{chance.choice(words.METHODS)} ({SERIAL_BASE + origin})"
        )
        authors = tuple((chance.choice(words.GIVEN), chance.choice(words.FAMILY)) for _ in range(chance.randint(1, 4)))
        size = max(4_000, int(chance.lognormvariate(0.0, 0.5) * self.size_bytes / 1.133))
        kind = "open" if origin != index else self._kind_of(index)
        arxiv_id = arxiv_id_for(self.seed, index)
        work = Work(
            index=index,
            doi=f"10.48550/arXiv.{arxiv_id}" if kind == "preprint" else doi_for(self.seed, index, year),
            title=title,
            year=year,
            authors=authors,
            journal=chance.choice(words.JOURNALS),
            licence=choose(_LICENCES, self.seed, index, "licence"),
            oa_status="closed",
            arxiv_id=arxiv_id,
            arxiv_versions=chance.randint(1, 3),
            pmcid=pmcid_for(index),
            pmid=pmid_for(index),
            openalex_id=openalex_id_for(index),
            semantic_scholar_id=semantic_scholar_id_for(self.seed, index),
            in_crossref=kind != "preprint",
            origin=origin,
            size_bytes=size,
            copies=(),
        )
        return self._with_copies(work, kind, duplicate=origin != index)

    def _kind_of(self, index: int) -> str:
        at = fraction(self.seed, index, "kind")
        for kind, share in (("closed", 0.035), ("pmc_only", 0.02), ("wayback_only", 0.015), ("preprint", 0.06)):
            if at < share:
                return kind
            at -= share
        return "open"

    def _with_copies(self, work: Work, kind: str, *, duplicate: bool) -> Work:
        copies = list(self._copies(work, kind, duplicate))
        reachable = replace(work, copies=tuple(copies)).reachable_by
        # Trouble usually spares one copy: most works whose easy copies are all bad have another in a repository.
        if kind == "open" and not {"unpaywall", "arxiv", "doi"} & set(reachable):
            copies = [copy for copy in copies if copy.kind != "repository"]
            if fraction(self.seed, work.index, "rescue") < 0.75:
                copies.append(replace(self._repository_copy(work), fault=None))
        kinds = {copy.kind for copy in copies}
        return replace(
            work,
            copies=tuple(copies),
            arxiv_id=work.arxiv_id if "arxiv" in kinds else None,
            pmcid=work.pmcid if "pmc" in kinds else None,
            pmid=work.pmid if "pmc" in kinds or work.index % 3 == 0 else None,
            oa_status=_oa_status(kind, work),
        )

    def _copies(self, work: Work, kind: str, duplicate: bool) -> list[Copy]:
        copies = [] if kind == "preprint" else [self._publisher_copy(work, kind)]
        if kind == "preprint" or (kind == "open" and not duplicate and self._happens(work, "arxiv", 0.25)):
            copies.append(self._arxiv_copy(work))
        if kind == "open" and self._happens(work, "repository", 0.4):
            copies.append(self._repository_copy(work))
        if kind == "pmc_only" or (kind == "open" and not duplicate and self._happens(work, "pmc", 0.25)):
            copies += self._pmc_copies(work)
        if kind == "wayback_only" or (kind == "open" and self._happens(work, "wayback", 0.15)):
            copies.append(_wayback_copy(work, copies[0]))
        return copies

    def _publisher_copy(self, work: Work, kind: str) -> Copy:
        publisher = self._publisher(work, kind)
        listed = "pdf" if kind == "wayback_only" or self._happens(work, "pdf listed", 0.65) else "page"
        return Copy(
            "publisher",
            publisher.landing_url(work.serial),
            publisher.pdf_url(work.serial),
            PUBLISHED,
            fault=self._fault(work, "publisher"),
            listed="nothing" if publisher.state == "closed" else listed,
            open=publisher.state == "open" and publisher.robots == "allow",
            publisher=publisher,
        )

    def _publisher(self, work: Work, kind: str) -> Publisher:
        fixed = {"closed": CLOSED_PUBLISHER, "pmc_only": CLOSED_PUBLISHER, "wayback_only": GONE_PUBLISHER}
        if kind in fixed:
            return fixed[kind]
        at = fraction(self.seed, work.index, "house")  # the words of draws stay: they are part of what a seed means
        faults = self.faults
        for publisher, share in (
            (DISALLOWING_PUBLISHER, faults.robots_disallow),
            (ROBOTS_DOWN_PUBLISHER, faults.robots_down),
            (SLOW_PUBLISHER, faults.crawl_delay),
        ):
            if at < share:
                return publisher
            at -= share
        return choose(OPEN_PUBLISHERS, self.seed, work.index, "open house")

    def _arxiv_copy(self, work: Work) -> Copy:
        page, file = f"https://arxiv.org/abs/{work.arxiv_id}", f"https://arxiv.org/pdf/{work.arxiv_id}"
        return Copy("arxiv", page, file, SUBMITTED, fault=self._fault(work, "arxiv"))

    def _repository_copy(self, work: Work) -> Copy:
        publisher = choose(REPOSITORIES, self.seed, work.index, "repository house")
        listed = "pdf" if self._happens(work, "repository pdf listed", 0.6) else "page"
        pages = (publisher.landing_url(work.serial), publisher.pdf_url(work.serial))
        return Copy(
            "repository", *pages, ACCEPTED, fault=self._fault(work, "repository"), listed=listed, publisher=publisher
        )

    def _pmc_copies(self, work: Work) -> list[Copy]:
        page = f"https://www.ncbi.nlm.nih.gov/pmc/articles/{(work.pmcid or '').removeprefix('PMC')}"
        bucket = f"https://pmc-oa-opendata.s3.amazonaws.com/{work.pmcid}.1/{work.pmcid}.1.pdf"
        render = f"https://europepmc.org/articles/{work.pmcid}?pdf=render"
        return [
            Copy("pmc", page, bucket, PUBLISHED, fault=self._fault(work, "pmc"), listed="page"),
            Copy("europepmc", page, render, PUBLISHED, fault=self._fault(work, "europepmc"), listed="nothing"),
        ]

    def _fault(self, work: Work, kind: str) -> str | None:
        return fault_of_copy(self.faults, self.seed, work.index, kind)

    def _happens(self, work: Work, what: str, share: float) -> bool:
        return fraction(self.seed, work.index, what) < share


def _arxiv_indexes(text: str) -> list[int]:
    index = arxiv_index(text[len("10.48550/arxiv.") :] if text.lower().startswith("10.48550/arxiv.") else text)
    return [] if index is None else [index]


def _wayback_copy(work: Work, publisher: Copy) -> Copy:
    stamp = f"{work.year + 1}0{1 + work.index % 9}15{10 + work.index % 14:02d}3000"
    replay = f"https://web.archive.org/web/{stamp}id_/{publisher.pdf_url}"
    return Copy("wayback", publisher.landing_url, replay, PUBLISHED, listed="nothing")


def _oa_status(kind: str, work: Work) -> str:
    if kind == "closed":
        return "closed"
    if kind in ("pmc_only", "preprint"):
        return "green"
    return "bronze" if work.licence is None or kind == "wayback_only" else ("gold", "hybrid")[work.index % 2]
