"""An unproved file waits in quarantine while other copies are tried, and stays there when none is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from tests.contentdownload.search_bench import Bench, Downloads, Source

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, StoredCopy, WorkArtifact
from DocsToKG.ContentDownload.config.rules import Tier
from DocsToKG.ContentDownload.errors import TransientFailure

GUESS, SCAN, PAPER = "https://a.org/guess.pdf", "https://b.org/scan.pdf", "https://c.org/paper.pdf"


@dataclass
class Quarantining(Downloads):
    """Files at these addresses are unproved."""

    unproved: frozenset[str] = frozenset()

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None:
        waits = plan.url in self.unproved
        copy = await super().__call__(plan, work, client, call, (lambda: True) if waits else claim)
        if copy is None or not waits:
            return copy
        name = plan.url.rpartition("/")[2]
        return replace(copy, sha256="cd" * 32, quarantined=f"QUARANTINE/{name}", facts={"evidence": ["scan"]})


@dataclass
class Store:
    released: list[str] = field(default_factory=list)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def bench(store: Store) -> Bench:
    sources = [Source("guesser", (GUESS,)), Source("page", (SCAN,)), Source("archive", (PAPER,))]
    downloads = Quarantining(good=frozenset({GUESS, SCAN}), unproved=frozenset({GUESS, SCAN}))
    tiers = [Tier("first", 1, ("guesser", "page")), Tier("last", 1, ("archive",))]
    return Bench(sources, tiers, downloads, more={"release": store.released.append})


def test_the_next_copy_is_tried_and_its_proof_ends_the_wait(bench: Bench, store: Store) -> None:
    bench.downloads.good |= {PAPER}
    outcome = bench.run()
    assert outcome.ok
    assert outcome.meta["resolver"] == "archive"
    assert bench.downloads.tried == [GUESS, SCAN, PAPER]
    assert store.released == ["QUARANTINE/guess.pdf", "QUARANTINE/scan.pdf"]


def test_what_no_other_copy_outdoes_stays_and_is_told(bench: Bench, store: Store) -> None:
    outcome = bench.run()
    assert not outcome.ok
    assert (outcome.reason, outcome.meta["cause"]) == (Reason.ALL_TIERS_EXHAUSTED, Reason.UNPROVED)
    assert not outcome.meta["retryable"]
    assert "2 files from a.org, b.org wait in quarantine" in outcome.meta["explanation"]
    assert "1 gone (404) from c.org" in outcome.meta["explanation"]
    assert "content catalog unproved" in outcome.meta["explanation"]
    assert outcome.meta["proof"] == "unproved"
    waiting = [tried["quarantine"] for tried in outcome.meta["candidates"] if tried["quarantine"]]
    assert [one["path"] for one in waiting] == ["QUARANTINE/guess.pdf", "QUARANTINE/scan.pdf"]
    assert {(one["sha256"], one["size_bytes"]) for one in waiting} == {("cd" * 32, 3)}
    assert store.released == []


def test_a_server_that_is_away_may_still_have_the_paper(bench: Bench) -> None:
    bench.downloads.errors[PAPER] = TransientFailure(Reason.TIMEOUT, "slow", url=PAPER)
    outcome = bench.run()
    assert outcome.meta["retryable"]
    assert outcome.meta["cause"] == Reason.TIMEOUT


def test_another_try_knows_the_files_that_wait_and_fetches_none_of_them_again(bench: Bench, store: Store) -> None:
    bench.downloads.errors[PAPER] = TransientFailure(Reason.TIMEOUT, "slow", url=PAPER)
    outcomes = bench.run_again(2)
    assert not next(outcomes).ok
    bench.downloads.errors.clear()
    bench.downloads.good |= {PAPER}
    assert next(outcomes).ok
    assert bench.downloads.tried == [GUESS, SCAN, PAPER, PAPER]
    assert store.released == ["QUARANTINE/guess.pdf", "QUARANTINE/scan.pdf"]
