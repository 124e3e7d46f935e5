"""What is known of a work before its file is read, in comparable form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from DocsToKG.ContentDownload.validation.dois import normal_doi
from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.normalization import (
    content,
    content_words,
    family_name,
    fold,
    line_content,
    plain_title,
    script_of,
)

_SUBTITLE = re.compile(r"\s*[:?!—–]\s+|\.\s+|\s+-\s+")
_ABOUT_ANOTHER = re.compile(
    r"^\W*(?:author'?s?'? |publisher'?s?'? )?(?:corrigend|errat|addend"
    r"|(?:correction|retraction)(?: notice| note)?(?: to\b|:|$)"
    r"|withdrawal(?: notice)?:|expression of concern|in memoriam|obituar|book reviews?(?::|$)|editorial(?::|$)"
    r"|(?:reply|replies|response|rejoinder|rebuttal)(?: to\b|:|$)|letter(?: to the editor|:|$)|comments? (?:on\b|to\b))"
)
_NUMBER = re.compile(r"[A-Za-z]?(\d{1,6})")


@dataclass(frozen=True)
class KnownWork:
    """Identifiers, title, authors and place of publication. Everything may be missing."""

    dois: tuple[str, ...] = ()
    arxiv_id: str | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    first_page: str | None = None
    last_page: str | None = None
    journal: str | None = None

    @classmethod
    def of(
        cls,
        *,
        dois: Sequence[str | None] = (),
        arxiv_id: str | None = None,
        title: str | None = None,
        authors: Sequence[str] = (),
        year: int | None = None,
        first_page: str | None = None,
        last_page: str | None = None,
        journal: str | None = None,
    ) -> KnownWork:
        """The work from what indexes say; identifiers in any spelling."""
        arxiv = re.sub(r"v\d{1,2}$", "", arxiv_id.lower().removeprefix("arxiv:")) if arxiv_id else None
        named = [doi for one in dois if (doi := normal_doi(one))]
        for doi in list(named):
            if doi.startswith("10.48550/arxiv.") and arxiv is None:
                arxiv = doi.removeprefix("10.48550/arxiv.")
        if arxiv:
            named.append(f"10.48550/arxiv.{arxiv}")
        return cls(
            tuple(dict.fromkeys(named)), arxiv, plain_title(title) if title else None, tuple(authors), year,
            first_page, last_page, journal,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """For the way to a worker."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KnownWork:
        return cls(**{**data, "dois": tuple(data["dois"]), "authors": tuple(data["authors"])})

    @property
    def is_comparable(self) -> bool:
        """Something is known that a file's text can show. Without it no text is read."""
        return bool(self.dois or self.arxiv_id or self.has_title)

    @cached_property
    def content(self) -> str:
        return line_content(self.title or "")

    @cached_property
    def main_content(self) -> str:
        """The title before its subtitle; empty when it has none, or when what is left would tell little."""
        parts = _SUBTITLE.split(self.title or "", maxsplit=1)
        if len(parts) < 2 or len(content_words(parts[0])) < thresholds.MIN_TITLE_WORDS:
            return ""
        main = content(parts[0])
        return main if len(main) >= thresholds.MIN_TITLE_LETTERS else ""

    @cached_property
    def title_words(self) -> tuple[str, ...]:
        return tuple(content_words(self.title or ""))

    @cached_property
    def plain_words(self) -> tuple[str, ...]:
        """The first words of the title that a text has as they are."""
        return tuple(word for word in self.title_words if len(word) >= 4 and word.isascii() and word.isalpha())[:2]

    @cached_property
    def is_about_another(self) -> bool:
        """By its own title the work is a short thing about a paper or a person: an erratum, a reply, an obituary."""
        return _ABOUT_ANOTHER.match(fold(self.title or "")) is not None

    @property
    def has_title(self) -> bool:
        """The title is one that few other papers have."""
        if not self.title:
            return False
        long_enough = len(self.content) >= thresholds.MIN_TITLE_LETTERS or self.script not in ("latin", "")
        return bool(self.content) and long_enough and (len(self.title_words) >= 2 or self.script not in ("latin", ""))

    @cached_property
    def script(self) -> str:
        return script_of(self.title or "")

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Family names to compare: the first ones and the last one."""
        names = [name for author in self.authors if (name := family_name(author))]
        most = thresholds.AUTHORS_COMPARED
        return tuple(names if len(names) <= most else [*names[: most - 1], names[-1]])

    @cached_property
    def page_range(self) -> tuple[int, int] | None:
        """First and last page of the article, where both are numbers in order."""
        first, last = _number(self.first_page), _number(self.last_page)
        if first is None or last is None:
            return None
        if last < first:  # `1045-52`
            digits = str(last)
            last = int(str(first)[: -len(digits)] + digits) if len(digits) < len(str(first)) else -1
        return (first, last) if last >= first else None


def _number(page: str | None) -> int | None:
    found = _NUMBER.fullmatch(page.strip()) if page else None
    return int(found[1]) if found else None
