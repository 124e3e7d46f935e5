"""Hosts that refuse us again and again are not asked any more: some treat whoever goes on asking as an attacker.

Knows which hosts want that, how often in a row each site has answered 403, and which are left alone until the end of
the run. One forbidden paper is no refusal of us; several answers 403 with none of another kind between them are.
Shared by the clients of a process; thread-safe.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.core.urls import host_key, mask_url

_FORBIDDEN = 403
_BUSY = 429  # says nothing about whether we are welcome, and neither does any 5xx


class HostBlocklist:
    """`hosts` are those that are left alone after `most` refusals in a row; those of one domain are one site.
    `others` says whether any other host is left alone likewise, each for itself."""

    def __init__(self, hosts: Iterable[str] = (), *, others: bool = False, most: int = 5) -> None:
        self._others = others
        self._site = {host: _domain(host) for host in hosts}
        self._most = most
        self._lock = threading.Lock()
        self._in_a_row: Counter[str] = Counter()
        self._stopped: set[str] = set()

    def look(self, url: str) -> None:
        """Raises when the host of `url` is left alone."""
        if self._stopped and self._site_of(url) in self._stopped:
            raise CandidateRejected(
                Reason.HTTP_STATUS, "refused us in this run", url=mask_url(url), http_status=_FORBIDDEN
            )

    def on_answer(self, url: str, status: int) -> None:
        """The host of `url` has answered."""
        site = self._site_of(url)
        if site is None or status == _BUSY or status >= 500:
            return
        with self._lock:
            self._in_a_row[site] = self._in_a_row[site] + 1 if status == _FORBIDDEN else 0
            if self._in_a_row[site] >= self._most:
                self._stopped.add(site)

    @property
    def notes(self) -> list[str]:
        """One sentence for each site that is left alone."""
        return [
            f"{self._names(site)} answered 403 {self._most} times in a row and was not asked any more in this run; "
            "find out why before the next one"
            for site in sorted(self._stopped)
        ]

    def _site_of(self, url: str) -> str | None:
        host = host_key(url)
        return self._site.get(host, host if self._others else None)

    def _names(self, site: str) -> str:
        return " and ".join(sorted(host for host, its in self._site.items() if its == site)) or site


def _domain(host: str) -> str:
    """`export.arxiv.org` and `arxiv.org` are one site. Said of listed hosts only, so that two labels are enough."""
    return ".".join(host.partition(":")[0].split(".")[-2:])
