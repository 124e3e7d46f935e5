"""Copies in archives, by the names that indexes give them: OAI ids, handles, RePEc handles, DOIs of repositories.

`copies_named_by` gives the arXiv id and the PMCID; `page_of_copy` gives the page of the deposit, from whose address its
archive's own source or a site rule knows the file. Pure; every name is read once by patterns of linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from DocsToKG.ContentDownload.resolvers.ids.addresses import identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    MAX_IDENTIFIER_CHARS,
    arxiv_base,
    normalize_arxiv,
    normalize_doi,
    normalize_pmcid,
    normalize_url,
)

_HOST = r"(?P<host>(?:[a-z0-9-]+\.)+[a-z]{2,10})"
# An OAI id is `oai:<namespace>:<local id>`. The namespace is often, not always, the host of the pages.
_OAI_PAGES = tuple(
    (re.compile(pattern, re.IGNORECASE), page)
    for pattern, page in (
        (r"oai:hal:(?P<id>[a-z]+(?:[-_][a-z]+){0,4}[-_]\d{6,9}(?:v\d{1,3})?)", "https://hal.science/{id}"),
        (r"oai:zenodo\.org:(?P<id>\d{1,12})", "https://zenodo.org/records/{id}"),
        (r"oai:osti\.gov:(?P<id>\d{1,12})", "https://www.osti.gov/biblio/{id}"),
        (r"oai:figshare\.com:article/(?P<id>\d{1,12})(?:v\d+)?", "https://figshare.com/articles/_/{id}"),
        (r"oai:osf\.io:(?P<id>[a-z0-9]{5}(?:_v\d+)?)", "https://osf.io/{id}"),
        (r"oai:mdpi\.com:/(?P<id>\d{4}-\d{3}[\dX]/\d+/[\w-]+/\d+)/?", "https://www.mdpi.com/{id}"),
        (
            r"oai:scielo:(?P<id>S[0-9X-]{20,30})",
            "http://www.scielo.br/scielo.php?script=sci_arttext&pid={id}",
        ),
        (r"oai:revues\.org:(?P<id>[\w-]+/\d+)", "https://journals.openedition.org/{id}"),
        (r"oai:books\.openedition\.org:(?P<id>[\w-]+/\d+)", "https://books.openedition.org/{id}"),
        (r"oai:persee:article/(?P<id>\w+)", "https://www.persee.fr/doc/{id}"),
        (
            r"oai:biodiversitylibrary\.org:part/(?P<id>\d{1,9})",
            "https://www.biodiversitylibrary.org/part/{id}",
        ),
        (
            r"(?:oai:escholarship\.org(?:/|:)ark:|ark:)/13030/qt(?P<id>[0-9a-z]{8})",
            "https://escholarship.org/uc/item/{id}",
        ),
        (
            r"oai:diva\.org:(?P<site>[a-z]{2,10})-(?P<id>\d{1,9})",
            "http://urn.kb.se/resolve?urn=urn:nbn:se:{site}:diva-{id}",
        ),
        (
            r"(?:oai:)?(?P<id>RePEc:[a-z]{3}:[a-z0-9]{6}:[\w:.-]{1,200})",
            "https://econpapers.repec.org/{id}",
        ),
        (r"oai:(?P<host>[a-z0-9-]+\.worktribe\.com):(?P<id>\d{1,12})", "https://{host}/output/{id}"),
        # EPrints numbers its records; DSpace names them by handle.
        (r"oai:(?P<host>e-?prints\.(?:[a-z0-9-]+\.)+[a-z]{2,10}?)(?:\.OAI2)?:(?P<id>\d{1,12})", "https://{host}/id/eprint/{id}/"),
        (rf"oai:{_HOST}:(?P<id>\d[\d.]{{1,20}}/\d[\w.-]{{0,60}})", "https://{host}/handle/{id}"),
        (r"(?:hdl:|info:hdl/)(?P<id>\d[\d.]{1,20}/[^\s?#]{1,200})", "https://hdl.handle.net/{id}"),
    )
)  # fmt: skip
# Repositories whose DOIs are made of their own ids, so that the page follows from the DOI.
_DOI_PAGES = tuple(
    (re.compile(pattern), page)
    for pattern, page in (
        (r"10\.2139/ssrn\.(?P<id>\d{1,9})", "https://papers.ssrn.com/sol3/papers.cfm?abstract_id={id}"),
        (
            r"10\.(?:17605|312(?:19|2[2-689]|3[0-6])|35542)/osf\.io/(?P<id>[a-z0-9]{5}(?:_v\d+)?)",
            "https://osf.io/{id}",
        ),
        (
            r"10\.21203/rs\.(?:\d\.)?(?P<id>rs-\d{1,9})/(?P<version>v\d{1,3})",
            "https://www.researchsquare.com/article/{id}/{version}",
        ),
        (
            r"10\.20944/preprints(?P<id>\d{6}\.\d{4})\.(?P<version>v\d{1,3})",
            "https://www.preprints.org/manuscript/{id}/{version}",
        ),
        (
            r"(?P<id>10\.(?:1101|64898)/(?:\d{4}\.\d\d\.\d\d\.)?\d{6})(?:v\d{1,2})?",
            "https://www.biorxiv.org/content/{id}",
        ),
        (
            r"(?P<id>10\.(?:1101|64898)/(?:\d{4}\.\d\d\.\d\d\.)?\d{8})(?:v\d{1,2})?",
            "https://www.medrxiv.org/content/{id}",
        ),
        (r"10\.6084/m9\.figshare\.(?P<id>\d{1,12})(?:\.v\d{1,3})?", "https://figshare.com/articles/_/{id}"),
        (r"10\.5281/zenodo\.(?P<id>\d{1,12})", "https://zenodo.org/records/{id}"),
        (r"10\.18653/v1/(?P<id>[\w.-]{4,60})", "https://aclanthology.org/{id}"),
        (r"10\.2172/(?P<id>\d{4,9})", "https://www.osti.gov/biblio/{id}"),
    )
)
# What a location names when it names no page: a resolver that points on.
_RESOLVERS = ("doi.org", "dx.doi.org")


def copies_named_by(names: Iterable[str]) -> tuple[str | None, str | None]:
    """The first arXiv id (without version) and the first PMCID that the OAI ids and URLs in `names` stand for."""
    arxiv_id: str | None = None
    pmcid: str | None = None
    for name in names:
        arxiv_id = arxiv_id or _arxiv_in(name)
        pmcid = pmcid or _pmcid_in(name)
    return arxiv_id, pmcid


def page_of_copy(name: str) -> str | None:
    """The page of the deposit that an OAI id, a handle or a DOI of a repository names; None for all other names."""
    name = name.removeprefix("pmh:").strip()
    if len(name) > MAX_IDENTIFIER_CHARS:
        return None
    if (doi := normalize_doi(name)) is not None:
        return _filled(_DOI_PAGES, doi)
    return _filled(_OAI_PAGES, name)


def pages_of_location(page: str | None, names: Iterable[str]) -> tuple[str, ...]:
    """The pages of one location of an index: the one it names, unless that only points on to one its ids tell.

    `names` are the location's ids. Some repositories carry the OAI namespace of another, so an id says nothing where
    the location names a page of its own.
    """
    own = normalize_url(page or "")
    if own is not None and not _is_resolver(own):
        return (own,)
    told = (page_of_copy(name) for name in (*names, *((page,) if page else ())))
    found = next((address for address in told if address is not None), None)
    return tuple(address for address in (found, own) if address is not None)


def dspace_item_in(names: Iterable[str]) -> str | None:
    """`host/handle/<handle>` from the first OAI id of the form that DSpace gives its items."""
    for name in names:
        page = page_of_copy(name) if name.removeprefix("pmh:").lower().startswith("oai:") else None
        host, mark, handle = (page or "").removeprefix("https://").partition("/handle/")
        if mark and host != "hdl.handle.net":
            return f"{host}/handle/{handle}"
    return None


def hal_id_in(names: Iterable[str]) -> str | None:
    """The first HAL id among OAI ids and addresses; HAL itself tells whether the deposit has a file."""
    for name in names:
        page = page_of_copy(name) if "hal:" in name[:12].lower() else None
        if page is not None:
            return page.rpartition("/")[2].lower()
    return None


def archive_metadata(names: Iterable[str], hal_names: Iterable[str] = ()) -> dict[str, str]:
    """By what the sources of DSpace and HAL know the deposits that these OAI ids name."""
    found = {"hal_id": hal_id_in(hal_names), "dspace_item": dspace_item_in(names)}
    return {name: value for name, value in found.items() if value is not None}


def _filled(table: tuple[tuple[re.Pattern[str], str], ...], name: str) -> str | None:
    for pattern, page in table:
        if (match := pattern.fullmatch(name)) is not None:
            return normalize_url(page.format_map(match.groupdict()))
    return None


def _is_resolver(address: str) -> bool:
    host = address.partition("://")[2].partition("/")[0]
    return host in _RESOLVERS


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
