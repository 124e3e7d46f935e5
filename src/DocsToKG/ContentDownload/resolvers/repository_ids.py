"""arXiv ids and PMCIDs hidden in what indexes say about a copy.

Knows the OAI ids of both archives (`oai:arXiv.org:...`, `oai:pubmedcentral.nih.gov:<digits>`) and their page addresses,
which often lack the prefix of the PMCID.
"""

from __future__ import annotations

from collections.abc import Iterable

from DocsToKG.ContentDownload.resolvers.ids import arxiv_base, identifier_in_url, normalize_arxiv, normalize_pmcid


def copies_named_by(names: Iterable[str]) -> tuple[str | None, str | None]:
    """The first arXiv id (without version) and the first PMCID that the OAI ids and URLs in `names` stand for."""
    arxiv_id: str | None = None
    pmcid: str | None = None
    for name in names:
        arxiv_id = arxiv_id or _arxiv_in(name)
        pmcid = pmcid or _pmcid_in(name)
    return arxiv_id, pmcid


def _arxiv_in(name: str) -> str | None:
    prefix, _, rest = name.removeprefix("pmh:").partition("arXiv.org:")
    found = normalize_arxiv(rest) if prefix == "oai:" else None
    if found is None and name.startswith("http"):
        identifier = identifier_in_url(name)
        found = identifier.value if identifier is not None and identifier.scheme == "arxiv" else None
    return arxiv_base(found) if found is not None else None


def _pmcid_in(name: str) -> str | None:
    prefix, _, rest = name.removeprefix("pmh:").partition("pubmedcentral.nih.gov:")
    if prefix == "oai:":
        return normalize_pmcid(rest)
    identifier = identifier_in_url(name) if name.startswith("http") else None
    return identifier.value if identifier is not None and identifier.scheme == "pmcid" else None
