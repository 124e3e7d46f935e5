"""What is known of hosts beyond what their answers say: the pause after a 429 without a time, and whose answer it is.

Knows that an archive replays the answers of other servers, with `Memento-Datetime` (RFC 7089): such a 429 was meant for
the archive's own robot, long ago. Believed of the archives named alone, since anybody can send the header.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import httpx2

from DocsToKG.core.urls import host_key

_TOO_MANY = 429
ARCHIVES = ("web.archive.org",)


class RetryAfterRules:
    """`seconds` by host, and `default_s` for the others; `archives` are the hosts whose replays are known as such."""

    def __init__(
        self,
        seconds: Mapping[str, float] | None = None,
        *,
        default_s: float = 0.0,
        archives: Iterable[str] = ARCHIVES,
    ) -> None:
        self._seconds = dict(seconds or {})
        self._default_s = default_s
        self._archives = frozenset(archives)

    def after(self, url: str, status: int, asked_s: float | None) -> float | None:
        """The pause after an answer: what it asks for, and after a 429 no less than its host is known to want."""
        least_s = self._seconds.get(host_key(url), self._default_s) if status == _TOO_MANY else 0.0
        return max(least_s, asked_s or 0.0) if least_s else asked_s

    def is_replay(self, url: str, response: httpx2.Response) -> bool:
        """Does this answer come from an archive's memory?"""
        return "memento-datetime" in response.headers and host_key(url) in self._archives
