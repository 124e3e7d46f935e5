"""The three kinds of site rules and what each does. Pure.

A `FileRule` turns the address of a viewer or a page into that of the file, a `PageRule` takes a link out of a page,
a `PrefixRule` builds an address from a DOI alone, which is a guess. Every rule carries an example of itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, unquote

from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage, scripts_of, words_of
from DocsToKG.ContentDownload.resolvers.site_rules.css_selectors import Selector
from DocsToKG.core.urls import BadUrl, host_key

PDF = "application/pdf"
# A guess that is wrong costs a request, and maybe a wrong paper: rules measured below this are off.
MIN_SHARE = 0.9
_MOST_LINKS = 6
_FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True)
class Example:
    """One case of a rule, run by the tests: an address, a page or a DOI, and the addresses it must give."""

    gives: tuple[str, ...]
    url: str = ""
    html: str = ""
    doi: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """How often a guess was right where the true address is known: `right` of `judged`."""

    right: int
    judged: int

    @property
    def share(self) -> float:
        return self.right / self.judged if self.judged else 0.0


@dataclass(frozen=True, slots=True)
class Where:
    """Which pages a rule is about: hosts with all below them, and a pattern that the address must contain."""

    hosts: tuple[str, ...] = ()
    url: re.Pattern[str] | None = None

    def holds(self, url: str) -> bool:
        if self.hosts and not f".{host_of(url)}".endswith(tuple(f".{known}" for known in self.hosts)):
            return False
        return self.url is None or self.url.search(url) is not None


@dataclass(frozen=True, slots=True)
class FileRule:
    """`shows`: the address shows a file that is already named (a viewer), or a page of a paper that has one.
    `sure`: an open archive whose every page has its file there, so that no visit is needed."""

    name: str
    where: Where
    pattern: re.Pattern[str]
    to: str
    shows: Literal["file", "page"]
    sure: bool
    example: Example
    host_type: str | None = None
    measured: Measured | None = None

    def rewrite(self, url: str) -> str | None:
        """The address of the file, or None when the rule does not apply."""
        if not self.where.holds(url):
            return None
        changed, count = self.pattern.subn(self.to, url, count=1)
        return changed if count and changed != url else None


@dataclass(frozen=True, slots=True)
class PageRule:
    """Takes the attribute of a selected element, the group of a pattern in the text, or fields of a JSON script.

    `own`: the link must carry the paper's name. `single`: several links are several papers, so none is taken.
    """

    name: str
    where: Where
    example: Example
    stage: Literal["viewer", "site"] = "site"
    mime: str = PDF
    generator: re.Pattern[str] | None = None
    select: Selector | None = None
    attribute: str = "href"
    words: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    script: Mapping[str, str] = field(default_factory=dict)
    rewrite: tuple[re.Pattern[str], str] | None = None
    own: bool = False
    single: bool = False

    def links(self, page: HtmlPage, own_names: Collection[str]) -> list[str]:
        """The links as they stand on the page, or addresses built from it."""
        if not self.where.holds(page.url) or not self._is_made_by(page):
            return []
        found = list(dict.fromkeys(link for link in self._taken(page) if not self.own or _carries(link, own_names)))
        if self.single and len(found) > 1:
            return []
        return [self._rewritten(link) for link in found[:_MOST_LINKS]]

    def _is_made_by(self, page: HtmlPage) -> bool:
        return self.generator is None or any(self.generator.search(name) for name in page.meta("generator"))

    def _taken(self, page: HtmlPage) -> Iterator[str]:
        if self.select is not None:
            for node in self.select.find(page):
                if self.words is None or self.words.search(words_of(node)):
                    yield node.get(self.attribute) or ""
        if self.text is not None and (match := self.text.search(page.text)) is not None:
            yield match[1].replace("\\/", "/")
        if self.script:
            for data in scripts_of(page, self.script["type"]):
                yield _filled(self.script["form"], _at(data, self.script["at"]))

    def _rewritten(self, link: str) -> str:
        return self.rewrite[0].sub(self.rewrite[1], link, count=1) if self.rewrite else link


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """`open`: whether all papers under the pattern are open, or some. `terms` translate the group
    `term`, and `upper` names the groups that are written in capitals."""

    name: str
    pattern: re.Pattern[str]
    to: str
    example: Example
    open: Literal["all", "some"] = "some"
    terms: Mapping[str, str] = field(default_factory=dict)
    upper: tuple[str, ...] = ()
    host_type: str = "publisher"
    measured: Measured | None = None

    def address(self, doi: str) -> str | None:
        """Where the file of this DOI would be."""
        match = self.pattern.fullmatch(doi)
        if match is None:
            return None
        parts = {"doi": doi, **{name: value or "" for name, value in match.groupdict().items()}}
        term = parts.get("term", "")
        if self.terms and term not in self.terms:
            return None
        parts |= {name: parts[name].upper() for name in self.upper}
        if self.terms:
            parts["term"] = self.terms[term]
        return _FIELD.sub(lambda part: quote(parts.get(part[1], ""), safe="/"), self.to)


@dataclass(frozen=True, slots=True)
class SiteRules:
    files: tuple[FileRule, ...] = ()
    pages: tuple[PageRule, ...] = ()
    prefixes: tuple[PrefixRule, ...] = ()
    _viewers: tuple[FileRule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_viewers", tuple(rule for rule in self.files if rule.shows == "file"))

    def unwrapped(self, url: str) -> str:
        """The address of the file that a viewer shows; the same one when no rule speaks."""
        for rule in self._viewers:
            if rule.pattern.search(url):  # seldom, and soon seen
                url = rule.rewrite(url) or url
        return url

    def file_of_page(
        self, url: str, *, only_sure: bool = False, min_share: float = MIN_SHARE
    ) -> tuple[str, FileRule] | None:
        """The address of the file of the page at `url`, and the rule that knows it."""
        for rule in self.files:
            is_asked = rule.shows == "page" and (rule.sure or (not only_sure and _is_good(rule.measured, min_share)))
            if is_asked and (address := rule.rewrite(url)) is not None:
                return address, rule
        return None

    def guesses(
        self, doi: str, *, only_open: bool = False, min_share: float = MIN_SHARE
    ) -> list[tuple[PrefixRule, str]]:
        """Where the rules that are right often enough put the file of this DOI."""
        rules = (rule for rule in self.prefixes if (rule.open == "all" or not only_open))
        found = ((rule, rule.address(doi)) for rule in rules if _is_good(rule.measured, min_share))
        return [(rule, address) for rule, address in found if address is not None]

    def plus(self, other: SiteRules) -> SiteRules:
        """The rules of `other` first, and in place of those of the same name."""

        def merged(mine: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
            names = {rule.name for rule in others}
            return (*others, *(rule for rule in mine if rule.name not in names))

        return SiteRules(
            merged(self.files, other.files), merged(self.pages, other.pages), merged(self.prefixes, other.prefixes)
        )


def _is_good(measured: Measured | None, min_share: float) -> bool:
    """A rule of a user's own needs no measure: who wrote it wants it."""
    return measured is None or measured.share >= min_share


def host_of(url: str) -> str:
    try:
        return host_key(url).partition(":")[0]
    except BadUrl:
        return ""


def _carries(link: str, names: Collection[str]) -> bool:
    return any(name in unquote(link).lower() for name in names)


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _filled(form: str, data: Any) -> str:
    """The form with its fields, or nothing when one of them is missing."""
    values = {name: _at(data, name) for name in _FIELD.findall(form)}
    if not all(isinstance(value, str) and len(value) <= 300 for value in values.values()):
        return ""
    return _FIELD.sub(lambda part: values[part[1]], form)
