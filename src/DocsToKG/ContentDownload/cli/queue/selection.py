"""Select jobs by state, host, text of the last error, time of the last change, type and tenant.

The ledger applies most filters. The host is also compared with the URLs of a job's work, which the ledger does not
read.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.orchestrator.models import JobState
    from DocsToKG.Orchestrator.ledger.base import JobFilter, JobRecord, Ledger

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([smhd])")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ADDRESSES = ("url", "landing_urls", "pdf_urls")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Which jobs are meant, besides their state and error."""

    host: Annotated[str | None, typer.Option(metavar="HOST", help="Only jobs that wait for this host, or name it.")] = (
        None
    )
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only jobs changed since: 30m, 2h, 7d or 2026-01-31T12:00.")
    ] = None
    job_type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only jobs of this type.")] = None
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Only jobs of this tenant.")] = None

    def selection(self, *, states: Collection[JobState], error: str | None) -> JobSelection:
        from DocsToKG.Orchestrator.ledger.base import JobFilter

        jobs = JobFilter(
            states=states,
            reason=None if error is None else error.strip(),
            since=None if self.since is None else since_time(self.since, time.time()),
            job_type=self.job_type,
            tenant=self.tenant,
        )
        return JobSelection(jobs, None if self.host is None else _host(self.host))


@dataclass(frozen=True, slots=True)
class JobSelection:
    """The jobs that match every filter; `host` is canonical, or None for any."""

    filter: JobFilter
    host: str | None = None

    def jobs(self, ledger: Ledger, *, after: int = 0, page: int) -> Iterator[JobRecord]:
        """By number, page by page, so that a long queue is never held in memory."""
        while found := ledger.list_jobs(limit=page, after_id=after, wanted=self.filter):
            yield from (job for job in found if self._is_for_host(job))
            after = found[-1].job_id

    def _is_for_host(self, job: JobRecord) -> bool:
        return self.host is None or self.host == job.host_key or self.host in _hosts(job)


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
