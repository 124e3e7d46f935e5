"""What the server saw: requests, statuses, bytes, and which files were sent complete.

Counted by the server, so that yield, waste and rates can be measured without trusting the clients.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

MAX_URLS = 200_000


class Counters:
    """Totals since the start or the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.requests = 0
        self.bytes_sent = 0
        self.own_failures = 0
        self.by_host: Counter[str] = Counter()
        self.by_service: Counter[str] = Counter()
        self.by_status: Counter[str] = Counter()
        self.files_by_url: Counter[str] = Counter()
        self.files_by_work: Counter[str] = Counter()

    def begun(self, *, host: str, service: str) -> None:
        self.requests += 1
        self.by_host[host] += 1
        self.by_service[service] += 1

    def answered(self, *, status: int, sent: int) -> None:
        self.by_status[str(status)] += 1
        self.bytes_sent += sent

    def file_sent(self, *, url: str, doi: str) -> None:
        """A whole PDF left with status 200."""
        if len(self.files_by_url) < MAX_URLS:
            self.files_by_url[url] += 1
        self.files_by_work[doi] += 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "bytes": self.bytes_sent,
            "own_failures": self.own_failures,
            "by_host": dict(self.by_host),
            "by_service": dict(self.by_service),
            "by_status": dict(self.by_status),
            "files": self.files_by_work.total(),
            "files_by_url": dict(self.files_by_url),
            "files_by_work": dict(self.files_by_work),
        }
