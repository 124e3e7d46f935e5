"""How many open works have a file to ask for before any landing page is fetched, on records of a real index.

Counted from the index's own record: its PDF links, addresses that tell their file, and ids in archives whose files
their own source lists. What rules build from the DOI alone is counted apart.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.needs import recorded

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.doi_redirect import DoiRedirectResolver
from DocsToKG.ContentDownload.resolvers.landing import LandingResolver
from DocsToKG.ContentDownload.resolvers.openalex_record import work_of_record

OPEN = ("bronze", "diamond", "gold", "green", "hybrid")
# Sources that turn an id or a page of their own archive into its files, without a look at that page.
ARCHIVES = ("pmc", "zenodo", "figshare", "hal", "osti", "biorxiv")


class OneAnswer:
    """Gives the record to whoever asks."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.body = json.dumps(record).encode()

    async def fetch(self, url, role, call, *, headers=None):  # type: ignore[no-untyped-def]
        assert role == "metadata", "no landing page is fetched while planning"
        return Page(url, 200, {"content-type": "application/json"}, self.body, ())


def open_records() -> list[dict[str, Any]]:
    folder = recorded("openalex")
    files = [folder / f"works-{status}.json" for status in OPEN]
    return [entry["work"] for file in files for entry in json.loads(file.read_text())["records"]]


def plans_of(name: str, work: WorkArtifact, client: Any = None) -> tuple[DownloadPlan, ...]:
    source = registry.build([name])[name]
    if source.applies_to(work) is not None:
        return ()
    with pytest.raises(StopIteration) as done:
        next(source.resolve(work, client, Call(work_id=work.work_id)))  # type: ignore[arg-type]
    return tuple(plan for plan in done.value.value.plans if plan.expected_mime == "application/pdf")


def where_from(record: dict[str, Any]) -> Iterator[str]:
    """By which ways the record leads to a file, the plainest first."""
    work = work_of_record(record)
    assert work is not None
    if any(plan.evidence == "pdf_url" for plan in plans_of("openalex", work, OneAnswer(record))):
        yield "pdf link"
    landing = LandingResolver(settings=ResolverSettings())
    if any(plan.evidence != "given" for plan in landing.known_files(work)) or plans_of("arxiv", work):
        yield "address or arXiv id"
    archives = registry.build(ARCHIVES)
    for name in ARCHIVES:
        if archives[name].applies_to(work) is None:
            yield name
    if list(DoiRedirectResolver(settings=ResolverSettings()).guesses(work)):
        yield "guess"


@pytest.mark.slow
def test_three_of_four_open_works_have_a_file_candidate_before_any_landing_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ways = [list(where_from(record)) for record in open_records()]
    first = Counter(found[0] if found else "nothing" for found in ways)
    total = len(ways)
    links = sum("pdf link" in found for found in ways) / total
    addresses = sum(bool({"pdf link", "address or arXiv id"} & set(found)) for found in ways) / total
    without_pmc = sum(bool(set(found) - {"guess", "pmc"}) for found in ways) / total
    evidence = sum(bool(set(found) - {"guess"}) for found in ways) / total
    with_guesses = sum(map(bool, ways)) / total
    with capsys.disabled():
        print(
            f"\n{total} open works: PDF links {links:.1%}; with addresses that tell their file {addresses:.1%}; "
            f"with ids in archives {evidence:.1%} (without PMC {without_pmc:.1%}); "
            f"guesses would add {with_guesses - evidence:.1%}\nfirst way: {dict(first.most_common())}"
        )
    assert total == 240
    assert evidence >= 0.75
    assert with_guesses >= evidence


@pytest.mark.slow
def test_a_guess_from_a_doi_is_mostly_where_the_index_says_the_file_is() -> None:
    """Rules that miss what publishers really do would only cost requests. Most others name the file in another way."""
    source = DoiRedirectResolver(settings=ResolverSettings())
    agreed, compared = 0, 0
    for record in open_records():
        work = work_of_record(record)
        assert work is not None
        guessed = {_place(plan.url): plan.url for plan in source.guesses(work)}
        named = {_place(url) for url in work.pdf_urls}
        if {host for host, _ in guessed} & {host for host, _ in named}:
            compared += 1
            agreed += bool(set(guessed) & named)
    assert compared >= 50
    assert agreed / compared >= 0.75


def _place(url: str) -> tuple[str, str]:
    """Host and path: the query differs by tracking, the case of a DOI by taste."""
    parts = urlsplit(url)
    return (parts.hostname or ""), unquote(parts.path).lower()
