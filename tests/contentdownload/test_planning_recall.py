"""From how many recorded works does a record lead to a file before any landing page is read, and how often in vain?

Evidence is what a record names: a file of an open location, the page of an archive whose files have known addresses,
an id that an archive's own source looks up. A source that could be asked for every DOI counts only where a record names
its deposit. What rules build from the DOI alone are guesses, and are counted apart. The floors lie just below what was
measured, so that a route that is lost is noticed.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.contentdownload.labelled_files import files_of_publishers, is_file_of, pages_of, records
from tests.contentdownload.scripted import CALL, drive

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.doi_redirect import DoiRedirectResolver
from DocsToKG.ContentDownload.resolvers.landing_scrape import LandingResolver
from DocsToKG.ContentDownload.resolvers.openalex import work_of_record
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.resolvers.site_rules.load import shipped_rules

OPEN = ("bronze", "diamond", "gold", "green", "hybrid")
# Archives that list their files when they are asked for a record of their own.
ARCHIVES = ("pmc", "zenodo", "figshare", "hal", "osti", "biorxiv", "dspace")
NOT_BY_DOI = {name: ResolverSettings(options={"by_doi": False}) for name in ("hal", "osti")}
# Of the works of a status, how many per cent have evidence, and how many have evidence or a guess.
FLOORS = {"bronze": (99, 99), "diamond": (59, 74), "gold": (86, 89), "green": (91, 91), "hybrid": (54, 79)}
PUBLISHERS = {"10.1016": 57, "10.1007": 89, "10.1002": 99, "10.2139": 99, "10.1038": 99, "10.1371": 99}


class OneAnswer:
    """Gives the record to the source that asks for it, and is no landing page."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.body = json.dumps(record).encode()

    async def fetch(self, url, role, call, *, headers=None):  # type: ignore[no-untyped-def]
        assert role == "metadata", "no landing page is fetched while planning"
        return Page(url, 200, {"content-type": "application/json"}, self.body, ())


@dataclass(frozen=True)
class Found:
    """How one record leads to a file."""

    doi: str
    evidence: tuple[str, ...]
    guesses: tuple[str, ...]


def found_by(record: dict[str, Any]) -> Found:
    work = work_of_record(Record(record))
    assert work is not None
    guesses = DoiRedirectResolver(settings=ResolverSettings()).guesses(work)
    return Found(work.doi or "", tuple(evidence_of(record, work)), tuple(plan.url for plan in guesses))


def evidence_of(record: dict[str, Any], work: WorkArtifact) -> Iterable[str]:
    """By which ways the record leads to a file, the plainest first."""
    openalex = registry.build(["openalex"])["openalex"]
    if drive(openalex.resolve(work, OneAnswer(record), CALL)).plans:  # type: ignore[arg-type]
        yield "pdf link"
    landing = LandingResolver(settings=ResolverSettings())
    if any(plan.evidence != "given" for plan in landing.known_files(work)):
        yield "page of a known archive"
    if registry.build(["arxiv"])["arxiv"].applies_to(work) is None:
        yield "arXiv id"
    for name, archive in registry.build(ARCHIVES, settings=NOT_BY_DOI).items():
        if archive.applies_to(work) is None:
            yield f"{name} id"


def share(part: int, whole: int) -> float:
    return 100.0 * part / whole


@pytest.mark.slow
def test_evidence_leads_to_four_of_five_open_works_and_guesses_to_more(capsys: pytest.CaptureFixture[str]) -> None:
    by_status = {status: [found_by(record) for record in records(status)] for status in OPEN}
    every = [one for found in by_status.values() for one in found]
    evidence = share(sum(bool(one.evidence) for one in every), len(every))
    both = share(sum(bool(one.evidence or one.guesses) for one in every), len(every))
    lines = [f"{len(every)} open works: evidence {evidence:.1f} %, with guesses {both:.1f} %"]
    for status, found in by_status.items():
        named = share(sum(bool(one.evidence) for one in found), len(found))
        with_guesses = share(sum(bool(one.evidence or one.guesses) for one in found), len(found))
        lines.append(f"  {status:8} {len(found):3} works: evidence {named:5.1f} %, with guesses {with_guesses:5.1f} %")
        assert named >= FLOORS[status][0], status
        assert with_guesses >= FLOORS[status][1], status
    by_prefix: dict[str, list[Found]] = defaultdict(list)
    for one in every:
        by_prefix[one.doi.partition("/")[0]].append(one)
    for prefix, floor in PUBLISHERS.items():
        reached = share(sum(bool(one.evidence or one.guesses) for one in by_prefix[prefix]), len(by_prefix[prefix]))
        lines.append(f"  {prefix:8} {len(by_prefix[prefix]):3} works: {reached:5.1f} %")
        assert reached >= floor, prefix
    first = Counter(one.evidence[0] if one.evidence else "guess" if one.guesses else "nothing" for one in every)
    lines.append(f"  first way: {dict(first.most_common())}")
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert len(every) == 240
    assert evidence >= 80
    assert both >= 88


@pytest.mark.slow
def test_closed_works_have_no_candidate() -> None:
    found = [found_by(record) for record in records("closed")]
    assert len(found) == 60
    assert [one for one in found if one.evidence or one.guesses] == []


@pytest.mark.slow
def test_at_most_three_of_a_hundred_guesses_are_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the publisher's file is known, and the rule is on."""
    source = DoiRedirectResolver(settings=ResolverSettings())
    judged, wrong = 0, []
    for doi, known in files_of_publishers().items():
        for plan in source.guesses(WorkArtifact(f"doi:{doi}", doi=doi)):
            judged += 1
            wrong += [] if any(is_file_of(plan.url, address, doi) for address in known) else [(plan.url, known)]
    with capsys.disabled():
        print(f"\n{judged} guesses judged, {len(wrong)} wrong")
    assert judged >= 90
    assert len(wrong) <= 0.03 * judged, wrong


@pytest.mark.slow
def test_the_shares_in_the_rules_are_those_that_are_measured() -> None:
    """Measured anew, so that a rule that changes must say how good it is now."""
    rules = shipped_rules()
    told = {("doi", rule.name): rule.measured for rule in rules.prefixes}
    told |= {("page", rule.name): rule.measured for rule in rules.files if rule.measured is not None}
    right, judged = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for doi, known in files_of_publishers().items():
        answers: dict[tuple[str, str], set[str]] = defaultdict(set)
        for rule, address in rules.guesses(doi, min_share=0):
            answers["doi", rule.name].add(address)
        for page in {page for address in known for page in pages_of(doi, address)}:
            for page_rule in rules.files:
                if page_rule.measured is not None and (file := page_rule.rewrite(page)) is not None:
                    answers["page", page_rule.name].add(file)
        for name, addresses in answers.items():
            judged[name] += 1
            right[name] += any(is_file_of(guess, address, doi) for guess in addresses for address in known)
    measured = {name: (right[name], judged[name]) for name in told}
    assert {name: (one.right, one.judged) for name, one in told.items() if one is not None} == measured
