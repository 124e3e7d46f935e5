"""Which sources exist, and building the ones a run uses.

Names are the short canonical ones (`unpaywall`); the long ones of the tiers are aliases of the configuration.
Keys do not travel in URLs or headers made here, where the cache would store them: `credentials` says which host
gets what, and the client adds it below the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from DocsToKG.ContentDownload.api.ports import Resolver
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.ContentDownload.resolvers import openalex_record
from DocsToKG.ContentDownload.resolvers.arxiv import ArxivResolver
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.doi_redirect import DoiRedirectResolver
from DocsToKG.ContentDownload.resolvers.idconv import IdConverter
from DocsToKG.ContentDownload.resolvers.landing import LandingResolver
from DocsToKG.ContentDownload.resolvers.openalex import OpenAlexResolver
from DocsToKG.ContentDownload.resolvers.unpaywall import UnpaywallResolver
from DocsToKG.core.urls import host_key

_BUILDERS: Mapping[str, Callable[[ResolverSettings], Resolver]] = {
    "unpaywall": lambda settings: UnpaywallResolver(settings=settings),
    "arxiv": lambda settings: ArxivResolver(settings=settings),
    "doi_redirect": lambda settings: DoiRedirectResolver(settings=settings),
    "landing": lambda settings: LandingResolver(settings=settings),
    "openalex": lambda settings: OpenAlexResolver(settings=settings),
    "idconv": lambda settings: IdConverter(settings=settings),
}


def names() -> tuple[str, ...]:
    """Every source that can be built, in the order of the default tiers."""
    return tuple(_BUILDERS)


def build(wanted: Iterable[str], *, settings: Mapping[str, ResolverSettings] | None = None) -> dict[str, Resolver]:
    """The sources `wanted`, in that order; an unknown name is a `ConfigError`."""
    built: dict[str, Resolver] = {}
    for name in wanted:
        builder = _BUILDERS.get(name)
        if builder is None:
            raise ConfigError(f"unknown source {name!r}; known: {', '.join(names())}")
        built[name] = builder((settings or {}).get(name) or ResolverSettings())
    return built


def credentials(settings: Mapping[str, ResolverSettings]) -> dict[str, HostCredentials]:
    """By host: the keys of the sources that have one. A blank key is none, because services refuse it."""
    openalex = settings.get("openalex") or ResolverSettings()
    if not (openalex.api_key or "").strip():
        return {}
    host = host_key(openalex.base(openalex_record.DEFAULT_BASE_URL))
    return {host: HostCredentials(headers={"Authorization": f"Bearer {(openalex.api_key or '').strip()}"})}
