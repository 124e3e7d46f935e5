"""What the sources of repositories share: finding a repository's page among a work's links, and reading a deposit.

Promises: no exception, whatever a work's links or a record hold; a record about another paper is told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import unique_plans
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi, normalize_url
from DocsToKG.ContentDownload.resolvers.repositories.file_choice import DepositedFile, title_words

_VERSION = re.compile(r"\.v\d{1,4}$")
_FEWEST_WORDS = 3


def named_page(work: WorkArtifact, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The first link of the work that is all `pattern`, written as `host/path` without `www.` and the query."""
    for url in (*work.landing_urls, *work.pdf_urls):
        if (found := pattern.fullmatch(_place(url))) is not None:
            return found
    return None


@lru_cache(maxsize=1024)
def _place(url: str) -> str:
    """Host and path; empty for what is no address. Every repository looks at the same links of a work."""
    address = normalize_url(url)
    if address is None:
        return ""
    parts = urlsplit(address)
    return (parts.hostname or "").removeprefix("www.") + unquote(parts.path)


def file_plans(
    files: Iterable[DepositedFile],
    source: str,
    evidence: str,
    *,
    version: str | None,
    license: str | None,
    page_doi: str | None,
) -> tuple[DownloadPlan, ...]:
    """The files of one deposit as plans."""
    return unique_plans(
        DownloadPlan(
            file.url,
            source,
            version=version,
            license=license,
            host_type="repository",
            evidence=evidence,
            checksum=file.checksum,
            size_bytes=file.size_bytes,
            page_doi=page_doi,
        )
        for file in files
    )


def about_another(
    work: WorkArtifact, *, dois: Iterable[str | None], title: str | None, own: tuple[str, ...] = ()
) -> str | None:
    """The note when a record is about another paper, or None.

    A deposited copy often has a DOI of the repository's (those that start with `own`) beside the publisher's, so
    DOIs that differ decide only when both are of one kind; else the titles do.
    """
    said = [doi for doi in (normalize_doi(text or "") for text in dois) if doi is not None]
    if work.doi is None or not said or any(_same_deposit(doi, work.doi) for doi in said):
        return None
    note = f"wrong-article: the record is about {said[0]}"
    if work.doi.startswith(own):
        return note
    alike = _alike(title, work.title)
    if alike is None:
        return None if all(doi.startswith(own) for doi in said) else note
    return None if alike else note


def _same_deposit(one: str, other: str) -> bool:
    """Equal, or one of them names all versions of the other (`.../m9.figshare.7` and `.../m9.figshare.7.v2`)."""
    return one == other or one == _VERSION.sub("", other) or other == _VERSION.sub("", one)


def _alike(one: str | None, other: str | None) -> bool | None:
    """Do two titles share half of their telling words? None when one of them says too little."""
    first, second = title_words(one), title_words(other)
    fewest = min(len(first), len(second))
    return len(first & second) * 2 >= fewest if fewest >= _FEWEST_WORDS else None
