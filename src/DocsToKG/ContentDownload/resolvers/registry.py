"""Which sources exist, and building the ones a run uses.

Names are the short canonical ones (`unpaywall`); the long ones of the tiers are aliases of the configuration.
A source's module is loaded when it is first asked for. Keys do not travel in URLs or headers made here, where the cache
would store them: `credentials` says which host gets what, and the client adds it below the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from DocsToKG.ContentDownload.api.ports import Resolver
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.core.tasks import in_thread
from DocsToKG.core.urls import host_key

# By name: the module of this package and the class in it.
_SOURCES: Mapping[str, tuple[str, str]] = {
    "index": ("index", "IndexResolver"),
    "unpaywall": ("unpaywall", "UnpaywallResolver"),
    "arxiv": ("arxiv", "ArxivResolver"),
    "doi_redirect": ("doi_redirect", "DoiRedirectResolver"),
    "landing": ("landing_scrape", "LandingResolver"),
    "openalex": ("openalex", "OpenAlexResolver"),
    "idconv": ("idconv", "IdConverter"),
    "pmc": ("pmc", "PmcResolver"),
    "europe_pmc": ("europe_pmc", "EuropePmcResolver"),
    "wayback": ("wayback", "WaybackResolver"),
    "crossref": ("crossref", "CrossrefResolver"),
    "semantic_scholar": ("semantic_scholar", "SemanticScholarResolver"),
    "core": ("core", "CoreResolver"),
    "doaj": ("doaj", "DoajResolver"),
    "openaire": ("openaire", "OpenAireResolver"),
    "zenodo": ("repositories.zenodo", "ZenodoResolver"),
    "figshare": ("repositories.figshare", "FigshareResolver"),
    "hal": ("repositories.hal", "HalResolver"),
    "osti": ("repositories.osti", "OstiResolver"),
    "biorxiv": ("repositories.biorxiv", "BiorxivResolver"),
    "datacite": ("repositories.datacite", "DataciteResolver"),
    "dspace": ("repositories.dspace", "DspaceResolver"),
    "fatcat": ("fatcat", "FatcatResolver"),
}


@dataclass(frozen=True, slots=True)
class KeyUse:
    """How a service is shown its key: the header, how the key stands in it, and the addresses that get it."""

    header: str
    form: str
    addresses: tuple[str, ...]


_KEYS: Mapping[str, KeyUse] = {
    "openalex": KeyUse("Authorization", "Bearer {key}", ("https://api.openalex.org", "https://content.openalex.org")),
    "semantic_scholar": KeyUse("x-api-key", "{key}", ("https://api.semanticscholar.org",)),
    "core": KeyUse("Authorization", "Bearer {key}", ("https://api.core.ac.uk",)),
    "zenodo": KeyUse("Authorization", "Bearer {key}", ("https://zenodo.org",)),
    "figshare": KeyUse("Authorization", "token {key}", ("https://api.figshare.com",)),
}


def names() -> tuple[str, ...]:
    """Every source that can be built."""
    return tuple(_SOURCES)


class Sources(Mapping[str, Resolver]):
    """Sources by name, each loaded when it is first asked for: a run that finds its papers in the first tier never
    loads those of the last. What reads a user's file is built at once, so that a mistake in it is told at the start."""

    def __init__(self, wanted: Iterable[str], settings: Mapping[str, ResolverSettings]) -> None:
        self._settings = {name: settings.get(name) or ResolverSettings() for name in wanted}
        self._built: dict[str, Resolver] = {}
        self._lock = threading.Lock()
        for name, own in self._settings.items():
            if name not in _SOURCES:
                raise ConfigError(f"unknown source {name!r}; known: {', '.join(names())}")
            if own.options.get("site_rules"):
                self._build(name)

    def __getitem__(self, name: str) -> Resolver:
        return self._built.get(name) or self._build(name)

    def __contains__(self, name: object) -> bool:  # Mapping's own would load it
        return name in self._settings

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    async def prepare(self, wanted: Iterable[str]) -> None:
        """Load those that are not yet; the event loop goes on meanwhile."""
        for name in wanted:
            if name in self._settings and name not in self._built:
                await in_thread(self._build, name)

    def _build(self, name: str) -> Resolver:
        with self._lock:
            if name not in self._built:
                module, kind = _SOURCES[name]
                made = getattr(import_module(f"DocsToKG.ContentDownload.resolvers.{module}"), kind)
                self._built[name] = cast(Resolver, made(settings=self._settings[name]))
            return self._built[name]


def build(wanted: Iterable[str], *, settings: Mapping[str, ResolverSettings] | None = None) -> Sources:
    """The sources `wanted`, in that order; an unknown name is a `ConfigError`."""
    return Sources(wanted, settings or {})


def credentials(settings: Mapping[str, ResolverSettings]) -> dict[str, HostCredentials]:
    """By host: the keys of the sources that have one. A blank key is none, because services refuse it."""
    found: dict[str, HostCredentials] = {}
    for name, use in _KEYS.items():
        own = settings.get(name)
        if own is not None and own.has_key:
            key = (own.api_key or "").strip()
            first, *others = use.addresses
            for address in (own.base(first), *others):
                found[host_key(address)] = HostCredentials(headers={use.header: use.form.format(key=key)})
    return found
