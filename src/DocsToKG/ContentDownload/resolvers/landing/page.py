"""What a landing page says: the links to the full text, the paper it is about, and what kind of page it is.

Pure: bytes in, facts out. Knows nothing of the network or of what was asked for; `doi_of_paper`
compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage, parse_html
from DocsToKG.ContentDownload.resolvers.landing.json_ld import is_free
from DocsToKG.ContentDownload.resolvers.landing.link_ranking import own_names
from DocsToKG.ContentDownload.resolvers.landing.page_kind import PageKind, kind_of, next_pages
from DocsToKG.ContentDownload.resolvers.landing.pdf_links import FullTextLink, guessed_link, other_forms, pdf_links
from DocsToKG.ContentDownload.resolvers.landing.supplements import SupplementLink, supplement_links
from DocsToKG.ContentDownload.resolvers.record import title_of, year_of
from DocsToKG.ContentDownload.resolvers.site_rules.rules import SiteRules

__all__ = ["FullTextLink", "LandingFacts", "PageKind", "doi_of_paper", "extract"]

_DOI_TAGS = (
    "citation_doi",
    "bepress_citation_doi",
    "prism.doi",
    "doi",
    "dc.doi",
    "dc.identifier.doi",
    "dc.identifier",
    "dcterms.identifier",
    "eprints.id_number",
    "rft_id",
)
_TITLE_TAGS = ("citation_title", "bepress_citation_title", "eprints.title", "dc.title", "dcterms.title")
_YEAR_TAGS = (
    "citation_publication_date",
    "citation_date",
    "citation_year",
    "citation_online_date",
    "prism.publicationdate",
    "dc.date",
)


@dataclass(frozen=True, slots=True)
class LandingFacts:
    """`doi` is the first of `dois`; `next_urls` are set on a page that only points on.

    `other_forms` are links to full text in XML and HTML. `guess` is an address built from the page's own where it
    names no PDF. `is_free` is what the page itself says, None if it is silent.
    """

    pdf_links: tuple[FullTextLink, ...] = ()
    other_forms: tuple[FullTextLink, ...] = ()
    guess: FullTextLink | None = None
    is_free: bool | None = None
    doi: str | None = None
    dois: tuple[str, ...] = ()
    title: str | None = None
    year: int | None = None
    kind: PageKind = PageKind.OTHER
    next_urls: tuple[str, ...] = ()
    supplements: tuple[SupplementLink, ...] = ()


def extract(
    page_url: str, html: bytes, headers: Mapping[str, str], *, status: int = 200, rules: SiteRules | None = None
) -> LandingFacts:
    """The facts of one page; empty ones when it is no HTML. Header names are lower case."""
    page = parse_html(page_url, html, headers)
    if page is None:
        return LandingFacts()
    dois = tuple(dict.fromkeys(_dois(page)))
    links = pdf_links(page, dois, rules)
    points_to, free = next_pages(page), is_free(page)
    names = own_names(page_url, dois)
    is_named = any(
        link.evidence != "anchor" or any(name in unquote(link.url).lower() for name in names) for link in links
    )
    kind = kind_of(
        page, status=status, has_pdf=bool(links), points_on=bool(points_to), is_free=free, has_own_pdf=is_named
    )
    is_article = kind == PageKind.ARTICLE
    return LandingFacts(
        pdf_links=links if is_article else (),
        other_forms=other_forms(page, dois, rules) if is_article and free is not False else (),
        guess=guessed_link(page, rules) if is_article and not links and free is not False else None,
        is_free=free,
        doi=dois[0] if dois else None,
        dois=dois,
        title=next((title for value in page.meta(*_TITLE_TAGS) if (title := title_of(value))), None),
        year=next((year for value in page.meta(*_YEAR_TAGS) if (year := year_of(value))), None),
        kind=kind,
        next_urls=points_to if kind == PageKind.ROUTER else (),
        supplements=supplement_links(page) if is_article else (),
    )


def doi_of_paper(wanted: str, said: tuple[str, ...]) -> str | None:
    """The DOI among those of a page by which it is about the paper asked for, as the page spells it. Versions of one
    preprint are one paper."""
    return next((doi for doi in said if _without_version(doi) == _without_version(wanted)), None)


def _without_version(doi: str) -> str:
    doi = re.sub(r"[./]?v\d{1,2}$", "", doi)
    # This publisher numbers versions without a letter.
    return re.sub(r"\.\d{1,2}$", "", doi) if doi.startswith("10.12688/") else doi


def _dois(page: HtmlPage) -> Iterator[str]:
    for value in page.meta(*_DOI_TAGS):
        if (doi := normalize_doi(value)) is not None:
            yield doi
    for link in page.links():
        if "cite-as" in link.rels and (doi := normalize_doi(link.target)) is not None:
            yield doi
