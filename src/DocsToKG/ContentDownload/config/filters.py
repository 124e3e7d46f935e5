"""Which works and copies the user does not want, decided by metadata before any file is requested.

`FiltersConfig` are the settings, `Filters` the rule. Pure: a judgement is a sentence that names the filter, or None.
A fact that nobody has told yet speaks against a copy, unless `unknown: keep` is set; it never speaks against a work as
long as another source may still tell it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, field_validator

from DocsToKG.ContentDownload.api.licences import family, spdx
from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.ContentDownload.config.section import Section, Words

FAMILIES = ("cc0", "cc-by", "cc-by-sa", "cc-by-nd", "cc-by-nc", "cc-by-nc-sa", "cc-by-nc-nd", "public-domain")
# Words of the indexes for copies that are open without a licence of their own.
INDEX_WORDS = ("publisher-specific-oa", "other-oa", "implied-oa")
OA_STATUSES = ("gold", "diamond", "hybrid", "bronze", "green", "closed")
VERSIONS = {"published": "publishedVersion", "accepted": "acceptedVersion", "submitted": "submittedVersion"}
_YEARS = re.compile(r"(?P<first>[0-9]{4})?\s*(?P<dash>[-:\u2013])?\s*(?P<last>[0-9]{4})?")


class FiltersConfig(Section):
    """Works and copies that are left out before a file is requested. Nothing is left out by default."""

    license: Words = Field(
        default=(), description="Licences wanted, like cc-by, cc0; a name without version matches all versions."
    )
    oa_status: Words = Field(default=(), description=f"Statuses wanted, of {', '.join(OA_STATUSES)}.")
    version: Words = Field(default=(), description="Versions wanted, of published, accepted and submitted.")
    year: str | None = Field(default=None, description="Years wanted: 2018, 2015-2020, 2015- or -2020.")
    retracted: Literal["include", "exclude", "only"] = Field(
        default="include", description="What to do with works that are known to be retracted."
    )
    unknown: Literal["drop", "keep"] = Field(
        default="drop", description="Copies of which a fact that a filter needs is not known."
    )

    @field_validator("license")
    @classmethod
    def _known_licences(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if family(name) is None and name.lower() not in INDEX_WORDS:
                known = ", ".join((*FAMILIES, *INDEX_WORDS))
                raise ValueError(f"{name[:40]!r} is not a licence known here; there are {known}, mit, apache-2.0 ...")
        return value

    @field_validator("oa_status")
    @classmethod
    def _known_statuses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_one_of(name, OA_STATUSES, "status") for name in value)

    @field_validator("version")
    @classmethod
    def _known_versions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_one_of(re.sub("(?i)version$", "", name), tuple(VERSIONS), "version") for name in value)

    @field_validator("year", mode="before")
    @classmethod
    def _years(cls, value: Any) -> Any:
        if value is None or isinstance(value, bool) or not isinstance(value, int | str):
            return value
        text = str(value).strip()
        year_range(text)
        return text


def year_range(text: str) -> tuple[int | None, int | None]:
    """First and last year of `2018`, `2015-2020`, `2015-` or `-2020`; an open end is None."""
    match = _YEARS.fullmatch(text.strip())
    if match is None or not (match["first"] or match["last"]) or (match["last"] and not match["dash"]):
        raise ValueError(f"{text[:40]!r} is not a range of years; write 2018, 2015-2020, 2015- or -2020")
    first, last = (int(match[name]) if match[name] else None for name in ("first", "last"))
    if first is not None and last is not None and first > last:
        raise ValueError(f"{text[:40]!r} ends before it begins; write {last}-{first}")
    return first, last if match["dash"] else first


@dataclass(frozen=True, slots=True)
class Filters:
    """The settings as a rule. The default lets everything pass."""

    licences: tuple[str, ...] = ()
    oa_statuses: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    years: tuple[int | None, int | None] | None = None
    retracted: str = "include"
    keeps_unknown: bool = False
    _judges: tuple[Callable[[WorkArtifact], str | None], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_judges", tuple(self._work_judges()))

    @classmethod
    def of(cls, config: FiltersConfig) -> Filters:
        return cls(
            licences=config.license,
            oa_statuses=config.oa_status,
            versions=config.version,
            years=year_range(config.year) if config.year is not None else None,
            retracted=config.retracted,
            keeps_unknown=config.unknown == "keep",
        )

    def lacks(self, work: WorkArtifact) -> bool:
        """Whether a fact about the work that a filter needs is not known yet, so that asking is worth a request."""
        unsaid = (self.retracted == "exclude" and work.is_retracted is None) or (self.licences and work.license is None)
        return bool(unsaid) or self._unknown_fact(work) is not None

    def refuses_work(self, work: WorkArtifact) -> str | None:
        """Why the work is not wanted, on what is known of it so far."""
        for judge in self._judges:
            if (why := judge(work)) is not None:
                return why
        return None

    def refuses_told(self, licences: Collection[str]) -> str | None:
        """Why a work with copies under these licences is not wanted; None without any licence, because another source
        may know one."""
        if not self.licences or any(self._against_licence(said) is None for said in licences):
            return None
        return next((self._against_licence(said) for said in licences), None)

    def refuses_plan(self, plan: DownloadPlan, work: WorkArtifact) -> str | None:
        """Why this copy is not wanted."""
        if not (self._judges or self.licences or self.versions):
            return None
        return self.refuses_work(work) or next(self._against(plan, work), None)

    def _against(self, plan: DownloadPlan, work: WorkArtifact) -> Iterator[str]:
        if (fact := self._unknown_fact(work)) is not None and not self.keeps_unknown:
            yield f"{fact} unknown"
        if self.licences and (why := self._against_licence(plan.license)) is not None:
            yield why
        if self.versions and (why := self._against_version(plan.version)) is not None:
            yield why

    def _work_judges(self) -> Iterator[Callable[[WorkArtifact], str | None]]:
        if self.years is not None:
            yield self._against_year
        if self.oa_statuses:
            yield self._against_status
        if self.retracted != "include":
            yield self._against_retraction

    def _unknown_fact(self, work: WorkArtifact) -> str | None:
        if self.years is not None and work.publication_year is None:
            return "year"
        if self.oa_statuses and work.oa_status is None:
            return "open-access status"
        return "whether it is retracted is" if self.retracted == "only" and work.is_retracted is None else None

    def _against_year(self, work: WorkArtifact) -> str | None:
        assert self.years is not None
        year, (first, last) = work.publication_year, self.years
        if year is None or (first or year) <= year <= (last or year):
            return None
        wanted = str(first) if first == last else f"{first or ''}-{last or ''}"
        return f"year {year} is not in {wanted}"

    def _against_status(self, work: WorkArtifact) -> str | None:
        if work.oa_status is None or work.oa_status.lower() in self.oa_statuses:
            return None
        return f"open-access status {work.oa_status[:40]} is not {_either(self.oa_statuses)}"

    def _against_retraction(self, work: WorkArtifact) -> str | None:
        if self.retracted == "exclude":
            return "retracted" if work.is_retracted else None
        return "not retracted" if work.is_retracted is False else None

    def _against_licence(self, said: str | None) -> str | None:
        if said is None or not said.strip():
            return None if self.keeps_unknown else "licence unknown"
        if any(_covers(wanted, said) for wanted in self.licences):
            return None
        return f"licence {_shown_licence(said)} is not {_either(self.licences)}"

    def _against_version(self, said: str | None) -> str | None:
        name = next((name for name, token in VERSIONS.items() if token == said), None)
        if name is None:
            return None if self.keeps_unknown else "version unknown"
        return None if name in self.versions else f"version {name} is not {_either(self.versions)}"


def _one_of(name: str, known: tuple[str, ...], what: str) -> str:
    word = name.strip().lower()
    if word not in known:
        raise ValueError(f"{name[:40]!r} is not a {what}; there are {', '.join(known)}")
    return word


def _covers(wanted: str, said: str) -> bool:
    """A name without version matches all its versions; an unknown name must match exactly."""
    name = family(wanted)
    if name is None or name != family(said):
        return wanted.lower() == said.strip().lower()
    return re.search(r"[0-9]\.[0-9]", wanted) is None or spdx(wanted) == spdx(said)


def _shown_licence(said: str) -> str:
    return family(said) or (said.strip() if said.isprintable() and len(said) <= 60 else "of another kind")


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)
