"""The published version is kept although a preprint server answers faster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from tests.contentdownload.search_bench import Bench, Downloads, Source

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.fallback.race import VersionRace
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


class Sleeps(ManualClock):
    """Sleeps by moving itself, or by `oversleeps`; `heard` is called after each sleep."""

    def __init__(self, oversleeps: float = 0.0, heard: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.oversleeps, self.heard, self.slept = oversleeps, heard, 0

    async def sleep_until(self, moment: float) -> None:
        self.slept += 1
        self.advance(max(moment - self.monotonic(), self.oversleeps))
        self.heard()


def wait_for_better(race: VersionRace) -> None:
    preprint = DownloadPlan(PREPRINT, "preprints", version="submittedVersion")
    asyncio.run(race.wait_for_better("preprints", preprint))


@pytest.mark.parametrize("asleep_s", [1.0, 9.0, 3600.0])
def test_a_machine_that_slept_has_used_up_nobodys_patience(asleep_s: float) -> None:
    clock = Sleeps(oversleeps=asleep_s)
    race = VersionRace(clock, patience_s=8.0)
    clock.heard = lambda: clock.slept == 5 and race.leave("index")
    race.enter("index")
    race.enter("preprints")
    wait_for_better(race)
    assert clock.slept == 5


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
    clock = Sleeps()
    race = VersionRace(clock, patience_s=8.0)
    race.enter("index")
    race.enter("preprints")
    asked_at = clock.monotonic()
    wait_for_better(race)
    assert clock.monotonic() - asked_at == pytest.approx(8.0, abs=0.5)


class Restless(ManualClock):
    """Lets others go on for one turn of the loop, however long a sleep should be."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0

    async def sleep_until(self, moment: float) -> None:
        self.slept += 1
        await asyncio.sleep(0)


def test_nothing_is_fetched_between_the_winners_last_step_and_the_end_of_the_race() -> None:
    """Who waits looks at every turn of the loop, the one included at which the winner is over and nobody cut yet."""
    clock = Restless()
    bench = race(
        source("index", PUBLISHED, "publishedVersion"),
        source("preprints", PREPRINT, "submittedVersion"),
        good=f"{PUBLISHED} {PREPRINT}",
    )
    bench.clock = clock
    assert bench.run().meta["resolver"] == "index"
    assert bench.downloads.tried == [PUBLISHED]
    assert clock.slept > 1
