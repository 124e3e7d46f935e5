"""Which works are meant: by source, tier, host, year, licence, version, state, time and words.

Knows how each choice reads as SQL over the lines of the record, and what a line says of its work. Touches no disk.
Promises: values become parameters, never SQL; a choice that can mean nothing raises `InputError` with the right form.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

from DocsToKG.ContentDownload.api.licences import family, spdx
from DocsToKG.ContentDownload.catalog.connection import Db
from DocsToKG.ContentDownload.config.filters import VERSIONS, year_range
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.core.clock import utc_iso

STATES = ("obtained", "present", "left-out", "robots", "failed", "taken-down")
# Lines of this stage say that a work was taken down, or may be had again; no success before them counts any more.
TAKEDOWN_STAGE = "takedown"
TAKEN_DOWN, GIVEN_BACK = "taken-down", "takedown-undone"
STATE = f"""CASE WHEN stage = '{TAKEDOWN_STAGE}' AND cause = '{TAKEN_DOWN}' THEN 'taken-down'
     WHEN stage = '{TAKEDOWN_STAGE}' THEN 'left-out'
     WHEN status = 'ok' THEN 'obtained'
     WHEN status = 'skipped' AND reason IN ('already-present', 'not-modified') THEN 'present'
     WHEN status = 'skipped' AND reason = 'filtered' THEN 'left-out'
     WHEN status = 'skipped' AND reason = 'taken-down' THEN 'taken-down'
     WHEN status = 'skipped' AND reason = 'robots' THEN 'robots' ELSE 'failed' END"""
ADDRESS = "COALESCE(canonical_url, url)"
_REST = f"SUBSTR({ADDRESS}, INSTR({ADDRESS}, '://') + 3)"
FILE_HOST = f"LOWER(SUBSTR({_REST}, 1, INSTR({_REST} || '/', '/') - 1))"
# A miss has no address of its own; its copies have. Needs the functions of `add_functions`.
HOST = f"CASE WHEN {ADDRESS} IS NULL THEN host_of_copies(candidates, cause) ELSE {FILE_HOST} END"
_AT_HOST = f"""CASE WHEN {ADDRESS} IS NULL THEN copies_at(?, candidates)
     ELSE {FILE_HOST} = ? OR {FILE_HOST} LIKE ? ESCAPE '\\' END"""
LICENCE = "COALESCE(license, license_raw)"
_DAY = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Selection:
    """The works that fit everything that is given; of several values of one kind any will do."""

    sources: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    years: tuple[int | None, int | None] | None = None
    licences: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    text: str | None = None
    run_id: str | None = None

    def where(self, db: Db) -> tuple[str, list[Any]]:
        """The condition on a line of `db`, and its values. Needs the functions of `add_functions`."""
        parts, values = ["1 = 1"], []
        for condition, given in self._conditions(db):
            parts.append(condition)
            values += given
        return " AND ".join(f"({part})" for part in parts), values

    def _conditions(self, db: Db) -> Iterator[tuple[str, list[Any]]]:
        for column, words in (("resolver", self.sources), ("tier", self.tiers), ("version", self.versions)):
            if words:
                yield _one_of(column, words), list(words)
        if self.states:
            yield _one_of(f"({STATE})", self.states), list(self.states)
        if self.reasons:
            yield _one_of("reason", self.reasons), list(self.reasons)
        if self.hosts:
            # `.example.org` stands for the host and everything below it.
            yield " OR ".join([_AT_HOST] * len(self.hosts)), [v for host in self.hosts for v in _host_values(host)]
        if self.licences:
            yield _of_licences(db, self.licences)
        if self.years is not None:
            first, last = self.years
            yield "year BETWEEN ? AND ?", [first if first is not None else -9999, last if last is not None else 9999]
        for operator, moment in ((">=", self.since), ("<", self.until)):
            if moment is not None:
                yield f"created_at {operator} ?", [moment]
        if self.run_id is not None:
            yield "run_id = ?", [self.run_id]
        for word in (self.text or "").split():
            columns = ("doc_id", "title", "path", "url", "explanation")
            tests = [f"{column} LIKE ? ESCAPE '\\'" for column in columns]
            yield " OR ".join(tests), [f"%{_escaped(word)}%"] * len(columns)


def read_selection(
    *,
    sources: Iterable[str] = (),
    tiers: Iterable[str] = (),
    hosts: Iterable[str] = (),
    year: str | None = None,
    licences: Iterable[str] = (),
    versions: Iterable[str] = (),
    states: Iterable[str] = (),
    since: str | None = None,
    until: str | None = None,
    text: str | None = None,
    run_id: str | None = None,
    now: float = 0.0,
) -> Selection:
    """What a user wrote, as a selection. `2 d` ago counts from `now`."""
    try:
        years = year_range(year) if year is not None else None
    except ValueError as error:
        raise InputError(str(error)) from None
    begin = _moment(since, now, after=False) if since else None
    if begin is not None and now > 0 and begin > utc_iso(now):
        raise InputError(f"{str(since)[:40]!r} has not come yet; name a time that is past")
    return Selection(
        sources=tuple(sources),
        tiers=tuple(tiers),
        hosts=tuple(host.lower() for host in hosts),
        years=years,
        licences=tuple(licences),
        versions=tuple(_version(name) for name in versions),
        states=tuple(_state(name) for name in states),
        since=begin,
        until=_moment(until, now, after=True) if until else None,
        text=text or None,
        run_id=run_id,
    )


def _of_licences(db: Db, licences: tuple[str, ...]) -> tuple[str, list[Any]]:
    """Names of one licence are judged here: row by row where the database is in this process, else name by name."""
    if isinstance(db, sqlite3.Connection):
        return " OR ".join(["licence_fits(?, " + LICENCE + ")"] * len(licences)), list(licences)
    names = [name for (name,) in db.execute(f"SELECT DISTINCT {LICENCE} FROM manifests")]
    fitting = [name for name in names if any(_fits(wanted, name) for wanted in licences)]
    known = [name for name in fitting if name is not None]
    tests = [_one_of(LICENCE, tuple(known))] if known else []
    tests += [f"{LICENCE} IS NULL"] if None in fitting else []
    return " OR ".join(tests) or "1 = 0", known


def add_functions(db: Db) -> None:
    """What SQL alone cannot judge. A server brings these functions with its schema."""
    if not isinstance(db, sqlite3.Connection):
        return
    db.create_function("licence_fits", 2, _fits, deterministic=True)
    db.create_function("host_of_copies", 2, _host_of_copies, deterministic=True)
    db.create_function("copies_at", 2, _copies_at, deterministic=True)


def _host_of_copies(candidates: str | None, cause: str | None) -> str | None:
    """Where the copy stands that decided about a miss: the first that failed for this cause, else the first."""
    copies = _copies(candidates)
    return next((host for host, reason in copies if reason == cause), copies[0][0] if copies else None)


def _copies_at(wanted: str, candidates: str | None) -> bool:
    """Whether a copy of a work that was missed stands at the host."""
    hosts = [host for host, _ in _copies(candidates)]
    if wanted.startswith("."):
        return any(f".{host}".endswith(wanted) for host in hosts)
    return any(host == wanted or host.startswith(f"{wanted}:") for host in hosts)


def _copies(candidates: str | None) -> list[tuple[str, str | None]]:
    """Host and reason of every copy that was no good."""
    try:
        found = orjson.loads(candidates or "[]")
        return [(host_of(copy["url"]), copy.get("reason")) for copy in found if copy.get("url")]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []  # a line that somebody else wrote


def host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()


@lru_cache(maxsize=4096)
def _fits(wanted: str, said: str | None) -> bool:
    """A name without version stands for its whole family; `none` for works of which no licence is known."""
    if said is None:
        return wanted.lower() in ("none", "unknown")
    if re.search(r"\d\.\d", wanted):
        return spdx(wanted) is not None and spdx(wanted) == spdx(said)
    name = family(wanted)
    return wanted.strip().lower() == said.strip().lower() or (name is not None and name == family(said))


def _one_of(column: str, words: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join('?' * len(words))})"


def _host_values(host: str) -> tuple[str, str, str]:
    if host.startswith("."):
        return host, host[1:], f"%{_escaped(host)}"
    return host, host, f"{_escaped(host)}:%"  # with any port


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def _version(name: str) -> str:
    word = re.sub("(?i)version$", "", name.strip()).lower()
    if word not in VERSIONS:
        raise InputError(f"{name[:40]!r} is not a version; there are {', '.join(VERSIONS)}")
    return VERSIONS[word]


def _state(name: str) -> str:
    word = name.strip().lower().replace("_", "-")
    if word not in STATES:
        raise InputError(f"{name[:40]!r} is not a state; there are {', '.join(STATES)}")
    return word


def _moment(text: str, now: float, *, after: bool) -> str:
    """`2026`, `2026-03`, `2026-03-01`, a full time, or `7d` ago; `after` is the end of what was named."""
    plain = text.strip()
    if ago := _AGO.fullmatch(plain.lower()):
        return utc_iso(now - int(ago[1]) * _SECONDS[ago[2]])
    try:
        if _DAY.fullmatch(plain):
            return _day(plain, after=after)
        moment = datetime.fromisoformat(plain)
        return utc_iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise InputError(f"{text[:40]!r} is not a time; write 2026-03-01, 2026-03-01T12:00Z or 7d (ago)") from None


def _day(plain: str, *, after: bool) -> str:
    year, month, day = (*map(int, plain.split("-")), 0, 0)[:3]
    first = datetime(year, month or 1, day or 1, tzinfo=UTC)
    if after:
        days = 1 if day else 32 if month else 367
        first = first + timedelta(days=days)
        first = first.replace(day=first.day if day else 1, month=first.month if month else 1)
    return utc_iso(first.timestamp())
