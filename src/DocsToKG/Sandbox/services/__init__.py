"""The services of the sandbox, one file each. `all_services` seats them on one stage."""

from __future__ import annotations

from DocsToKG.Sandbox.services.arxiv import Arxiv
from DocsToKG.Sandbox.services.crossref import Crossref
from DocsToKG.Sandbox.services.doi import DoiResolver
from DocsToKG.Sandbox.services.europepmc import EuropePmc
from DocsToKG.Sandbox.services.openalex import OpenAlex
from DocsToKG.Sandbox.services.pmc import Pmc
from DocsToKG.Sandbox.services.publishers import Publishers
from DocsToKG.Sandbox.services.repositories import Repositories
from DocsToKG.Sandbox.services.semanticscholar import SemanticScholar
from DocsToKG.Sandbox.services.small_indexes import SmallIndexes
from DocsToKG.Sandbox.services.unpaywall import Unpaywall
from DocsToKG.Sandbox.services.wayback import Wayback
from DocsToKG.Sandbox.web import Service, Web


def all_services(web: Web) -> list[Service]:
    return [
        Unpaywall(web),
        OpenAlex(web),
        Crossref(web),
        DoiResolver(web),
        Arxiv(web),
        Pmc(web),
        EuropePmc(web),
        SemanticScholar(web),
        SmallIndexes(web),
        Publishers(web),
        Repositories(web),
        Wayback(web),
    ]
