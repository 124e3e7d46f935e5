"""A source that had nothing to ask by is asked once another has told what it needs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.contentdownload.search_bench import WORK, Bench, Downloads, Source

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.config.rules import Tier


@dataclass
class NeedsPmcid(Source):
    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if work.pmcid else "no_pmcid"


@pytest.fixture
def bench() -> Bench:
    """The source that needs an id goes before the one that tells it, and a later tier follows."""
    pmc, later = NeedsPmcid("pmc", ("https://pmc.org/7",)), Source("later", ("https://b.org/1",))
    teacher = Source("teacher", ("https://a.org/closed",), learns=WorkArtifact(WORK.work_id, pmcid="PMC7"))
    tiers = [Tier("first", 2, ("pmc", "teacher")), Tier("second", 1, ("later",))]
    return Bench([pmc, teacher, later], tiers, Downloads(frozenset({"https://pmc.org/7"})))


def test_what_one_source_tells_opens_another_of_the_same_tier(bench: Bench) -> None:
    """RES-02: the tier is exhausted only when nothing in it can be asked any more."""
    outcome = bench.run()
    assert outcome.ok
    assert (outcome.meta["resolver"], outcome.meta["tier"]) == ("pmc", "first")
    assert bench.downloads.tried == ["https://a.org/closed", "https://pmc.org/7"]


def test_a_source_of_an_earlier_tier_is_asked_late_and_keeps_its_tier(bench: Bench) -> None:
    bench.tiers = [Tier("first", 1, ("pmc",)), Tier("second", 1, ("teacher",)), Tier("third", 1, ("later",))]
    outcome = bench.run()
    assert (outcome.meta["resolver"], outcome.meta["tier"]) == ("pmc", "first")
    assert outcome.meta["fallback_chain"] == ["teacher", "pmc"]


def test_nobody_is_asked_twice(bench: Bench) -> None:
    bench.downloads.good = frozenset()
    assert not bench.run().ok
    assert [len(source.asked) for source in bench.sources] == [1, 1, 1]
    assert bench.downloads.tried.count("https://pmc.org/7") == 1


def test_the_plan_shows_the_late_source_too(bench: Bench) -> None:
    assert [(tier, plan.url) for tier, plan in bench.plan()] == [
        ("first", "https://a.org/closed"),
        ("first", "https://pmc.org/7"),
        ("second", "https://b.org/1"),
    ]
