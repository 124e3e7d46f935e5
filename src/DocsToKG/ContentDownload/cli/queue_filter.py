"""Which jobs does a list show? By host, by words of the last error, by the time of the last change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.base import JobRecord

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([smhd])")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ADDRESSES = ("url", "landing_urls", "pdf_urls")


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Everything that was asked for must fit; None asks for nothing."""

    host: str | None = None
    reason: str | None = None
    since: float | None = None

    @classmethod
    def of(cls, *, host: str | None, reason: str | None, since: str | None, now: float) -> JobFilter:
        """From the words of a command line."""
        return cls(
            host=None if host is None else _host(host),
            reason=None if reason is None else reason.strip().casefold(),
            since=None if since is None else since_time(since, now),
        )

    def fits(self, job: JobRecord) -> bool:
        return (
            (self.since is None or job.updated_at >= self.since)
            and (self.reason is None or self.reason in (job.last_error or "").casefold())
            and (self.host is None or self.host == job.host_key or self.host in _hosts(job))
        )


def since_time(words: str, now: float) -> float:
    """Unix seconds of `2h` (before now) or of an ISO date or time, in UTC where it names no zone."""
    if span := _SPAN.fullmatch(words.strip().lower()):
        return now - float(span[1]) * _UNITS_S[span[2]]
    try:
        moment = datetime.fromisoformat(words.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{words[:40]!r} is no time for --since; write 30m, 2h, 7d, 2026-01-31 or 2026-01-31T12:00"
        ) from None


def _host(words: str) -> str:
    """The host as the queue spells it; an address names its host too."""
    from DocsToKG.core.urls import BadUrl, host_key

    text = words.strip()
    try:
        return host_key(text if "://" in text else f"https://{text}")
    except BadUrl:
        raise typer.BadParameter(f"{words[:80]!r} is no host; write it as www.example.org") from None


def _hosts(job: JobRecord) -> Iterator[str]:
    """The hosts that the job's work names itself."""
    from DocsToKG.core.urls import BadUrl, host_key

    try:
        work = json.loads(job.artifact_json)
    except (ValueError, RecursionError):
        return
    for address in _addresses(work):
        try:
            yield host_key(address)
        except BadUrl:
            continue


def _addresses(work: Any) -> Iterator[str]:
    for name in _ADDRESSES if isinstance(work, dict) else ():
        value = work.get(name)
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))
