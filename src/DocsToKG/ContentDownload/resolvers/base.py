"""What every source is built from, and the small steps they share.

A source implements `api.ports.Resolver`: it proposes plans and notes, and never downloads a paper.
Endpoints are data: each file carries its default, `ResolverSettings.base_url` replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.api.versions import version_rank
from DocsToKG.ContentDownload.resolvers.same_links import unique_links


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


def unique_plans(plans: Iterable[DownloadPlan]) -> tuple[DownloadPlan, ...]:
    """In order, each address once, whatever its spelling and session; of versions the newest first. Addresses that
    cannot be asked for are left out."""
    return tuple(unique_links(plans, lambda plan: plan.url))


def in_order(plans: Iterable[DownloadPlan]) -> list[DownloadPlan]:
    """PDFs before other forms, evidence before guesses, then published, accepted, submitted, unknown version."""

    def rank(plan: DownloadPlan) -> tuple[bool, bool, int]:
        return plan.expected_mime != "application/pdf", plan.is_guess, version_rank(plan.version)

    given = list(plans)
    return sorted(given, key=rank) if len(given) > 1 else given
