"""Commands to try by hand: one `curl` line for each service, about works that exist."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World

_LOOK = 300


def curl_examples(world: World, port: int) -> list[str]:
    """Lines a shell understands; services about which this world has nothing to show are left out."""
    urls = dict(_urls(world))
    width = max(len(name) for name in urls)
    return [f"{name:<{width}}  {_curl(url, port)}" for name, url in urls.items()]


def _urls(world: World) -> Iterator[tuple[str, str]]:
    first = world.work(0)
    doi = quote(first.doi, safe="")
    yield "unpaywall", f"https://api.unpaywall.org/v2/{doi}?email=you@university.edu"
    yield "openalex", f"https://api.openalex.org/works/doi:{doi}"
    yield "crossref", f"https://api.crossref.org/works/{doi}"
    yield "doi", f"https://doi.org/{doi}"
    yield (
        "semanticscholar",
        f"https://api.semanticscholar.org/graph/v1/paper/DOI:{doi}?fields=externalIds,openAccessPdf",
    )
    for kind in ("publisher", "repository", "arxiv", "pmc", "europepmc", "wayback"):
        if work := _work_with(world, kind):
            copy = work.copy(kind)
            yield kind, copy.pdf_url if copy else ""
    yield "truth", "https://sandbox.local/truth.json?n=1"


def _work_with(world: World, kind: str) -> Work | None:
    works = map(world.work, range(min(world.count, _LOOK)))
    return next((work for work in works if (copy := work.copy(kind)) and copy.good), None)


def _curl(url: str, port: int) -> str:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return f"curl -sSi -A 'you (mailto:you@university.edu)' -H 'Host: {parts.netloc}' 'http://127.0.0.1:{port}{target}'"
