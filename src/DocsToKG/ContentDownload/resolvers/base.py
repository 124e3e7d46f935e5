"""What every source is built from, and the small steps they share.

A source implements `api.ports.Resolver`: it proposes plans and notes, and never downloads a paper.
Endpoints are data: each file carries its default, `ResolverSettings.base_url` replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.core.backoff import parse_retry_after
from DocsToKG.core.urls import BadUrl, index_url, mask_url


@dataclass(frozen=True, slots=True)
class ResolverSettings:
    """One source's own settings. The key is never part of a URL here; see `registry.credentials`."""

    base_url: str | None = None
    email: str | None = None
    api_key: str | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def base(self, default: str) -> str:
        return (self.base_url or default).rstrip("/")


def encode_segment(text: str) -> str:
    """An identifier as part of a path: everything escaped but unreserved characters and the slash."""
    return quote(text, safe="/")


def refuse_busy(page: Page) -> None:
    """Raise when the answer only says "not now"."""
    if page.status == 429 or page.status >= 500:
        # A date in Retry-After needs a clock, which the client below has already used; seconds do without.
        header = page.headers.get("retry-after", "")
        after = parse_retry_after(header, now=0.0) if header.strip().isdigit() else None
        raise TransientFailure(
            Reason.RETRY_AFTER if page.status == 429 else Reason.HTTP_STATUS,
            f"status {page.status}",
            url=mask_url(page.url),
            http_status=page.status,
            retry_after_s=after,
        )


def unique_plans(plans: Iterable[DownloadPlan]) -> tuple[DownloadPlan, ...]:
    """In order, each address once, whatever its spelling; addresses that cannot be asked for are left out."""
    kept: dict[str, DownloadPlan] = {}
    for plan in plans:
        try:
            kept.setdefault(index_url(plan.url), plan)
        except BadUrl:
            continue
    return tuple(kept.values())


_VERSIONS = {"publishedVersion": 0, "acceptedVersion": 1, "submittedVersion": 2}


def in_order(plans: Iterable[DownloadPlan]) -> list[DownloadPlan]:
    """PDFs before other forms, evidence before guesses, then published, accepted, submitted, unknown version."""

    def rank(plan: DownloadPlan) -> tuple[bool, bool, int]:
        return plan.expected_mime != "application/pdf", plan.is_guess, _VERSIONS.get(plan.version or "", 3)

    return sorted(plans, key=rank)
