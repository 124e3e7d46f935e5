"""The published version is kept although a preprint server answers faster."""

from __future__ import annotations

import time

import pytest
from tests.contentdownload.search_bench import WORK, Bench, Downloads, Source

from DocsToKG.ContentDownload.api.steps import Race, Wait
from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.fallback.standing import Standing
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import ManualClock

PUBLISHED, PREPRINT = "https://pub.org/1", "https://pre.org/1"


def race(*sources: Source, good: str, **downloads: object) -> Bench:
    names = tuple(source.name for source in sources)
    return Bench(list(sources), [Tier("only", len(names), names)], Downloads(frozenset(good.split()), **downloads))  # type: ignore[arg-type]


def source(name: str, url: str, version: str | None, delay_s: float = 0.0) -> Source:
    return Source(name, delay_s=delay_s, plans=(DownloadPlan(url, name, version=version),))


def test_a_preprint_waits_for_an_index_that_has_not_answered_yet() -> None:
    slow = source("index", PUBLISHED, "publishedVersion", delay_s=0.3)
    bench = race(slow, source("preprints", PREPRINT, "submittedVersion"), good=f"{PUBLISHED} {PREPRINT}")
    assert bench.run().meta["resolver"] == "index"
    assert bench.downloads.tried == [PUBLISHED]


@pytest.mark.parametrize("asleep_s", [1.0, 9.0, 3600.0])
def test_a_machine_that_slept_has_used_up_nobodys_patience(asleep_s: float) -> None:
    clock = ManualClock()
    standing = Standing(clock, patience_s=8.0)
    standing.enter("index")
    standing.enter("preprints")
    steps = standing.give_way("preprints", DownloadPlan(PREPRINT, "preprints", version="submittedVersion"))
    steps.send(None)
    clock.advance(asleep_s)
    assert "better version" in steps.send(None).why  # type: ignore[union-attr]
    standing.leave("index")
    with pytest.raises(StopIteration):
        steps.send(None)


def test_a_preprint_waits_while_the_published_version_is_fetched_and_goes_on_when_it_fails() -> None:
    bench = race(
        source("index", PUBLISHED, "publishedVersion"),
        source("preprints", PREPRINT, "submittedVersion"),
        good=PREPRINT,
        slow={PUBLISHED: 0.2},
    )
    assert bench.run().meta["resolver"] == "preprints"
    assert bench.downloads.tried == [PUBLISHED, PREPRINT]


def test_copies_of_the_same_or_of_unknown_version_race_as_before() -> None:
    bench = race(
        source("slow", PUBLISHED, None), source("quick", PREPRINT, None), good=f"{PUBLISHED} {PREPRINT}",
        slow={PUBLISHED: 30.0},
    )  # fmt: skip
    began = time.monotonic()
    assert bench.run().meta["resolver"] == "quick"
    assert time.monotonic() - began < 25


def test_nobody_waits_longer_than_the_patience() -> None:
    clock = ManualClock()
    standing = Standing(clock, patience_s=8.0)
    standing.enter("index")
    standing.enter("preprints")
    steps = standing.give_way("preprints", DownloadPlan(PREPRINT, "preprints", version="submittedVersion"))
    asked_at = clock.monotonic()
    for step in steps.__await__():
        assert isinstance(step, Wait)
        clock.advance(step.until - clock.monotonic())
    assert clock.monotonic() - asked_at == pytest.approx(8.0, abs=0.5)


def test_nothing_is_fetched_between_the_winners_last_step_and_the_end_of_the_race() -> None:
    bench = race(
        source("index", PUBLISHED, "publishedVersion"),
        source("preprints", PREPRINT, "submittedVersion"),
        good=f"{PUBLISHED} {PREPRINT}",
    )
    pipeline = bench.pipeline()
    walk = pipeline.steps(WORK, JobContext())
    asked = walk.send(None)
    assert isinstance(asked, Race)
    index, preprints = (branch(CancelToken()) for branch in asked.branches)
    assert "answer" in preprints.send(None).why  # type: ignore[union-attr]
    assert "better version" in preprints.send(None).why  # type: ignore[union-attr]
    assert list(index.__await__())
    assert "better version" in preprints.send(None).why  # type: ignore[union-attr]
    assert bench.downloads.tried == [PUBLISHED]
    for steps in (preprints, walk):
        steps.close()
    pipeline.close()
