"""The services of the sandbox, one file each. `all_services` builds them for one world."""

from __future__ import annotations

from DocsToKG.Sandbox.services.arxiv import Arxiv
from DocsToKG.Sandbox.services.base import Context, Service
from DocsToKG.Sandbox.services.crossref import Crossref
from DocsToKG.Sandbox.services.doi import DoiResolver
from DocsToKG.Sandbox.services.europepmc import EuropePmc
from DocsToKG.Sandbox.services.openalex import OpenAlex
from DocsToKG.Sandbox.services.pmc import Pmc
from DocsToKG.Sandbox.services.publishers import Publishers, Repositories
from DocsToKG.Sandbox.services.semanticscholar import SemanticScholar
from DocsToKG.Sandbox.services.small_indexes import SmallIndexes
from DocsToKG.Sandbox.services.unpaywall import Unpaywall
from DocsToKG.Sandbox.services.wayback import Wayback


def all_services(context: Context) -> list[Service]:
    return [
        Unpaywall(context),
        OpenAlex(context),
        Crossref(context),
        DoiResolver(context),
        Arxiv(context),
        Pmc(context),
        EuropePmc(context),
        SemanticScholar(context),
        SmallIndexes(context),
        Publishers(context),
        Repositories(context),
        Wayback(context),
    ]
