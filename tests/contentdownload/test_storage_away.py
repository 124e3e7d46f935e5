"""A store that takes no files: nothing more is fetched, no paper is blamed, and it goes on once the store is back."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.search_bench import Bench, Source, bench
from tests.contentdownload.stand_in import Exchange, StandIn

from DocsToKG.ContentDownload.api.types import DownloadOutcome, Reason, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import StorageAway
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.pipeline import HeldFile, JobContext
from DocsToKG.ContentDownload.storage.outage import Hold, Outage
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import SystemClock

A, B = "https://a.org/x.pdf", "https://b.org/x.pdf"


def away() -> StorageAway:
    return StorageAway(Reason.BACKOFF, "the bucket does not answer", retry_after_s=3.0)


@pytest.mark.parametrize(("one_tier", "parallel"), [(False, 1), (True, 1), (True, 2)])
def test_the_search_ends_when_a_proved_file_cannot_be_stored(one_tier: bool, parallel: int) -> None:
    """And begins anew: what was asked is asked again, and no copy counts as tried."""
    first, second = Source("a", (A,)), Source("b", (B,), delay_s=20.0)
    run = bench(first, second, good=f"{A} {B}", errors={A: away()}, one_tier=one_tier, parallel=parallel)
    tries = run.run_again(2)
    outcome = next(tries)
    assert run.downloads.tried == [A]
    assert (outcome.classification, outcome.reason) == ("error", Reason.BACKOFF)
    assert outcome.meta["retryable"]
    assert outcome.meta["only_waited"], "it costs the work no try"
    assert outcome.meta["retry_after_s"] == 3.0
    assert "takes no files" in outcome.meta["explanation"]
    run.downloads.errors.clear()
    assert next(tries).ok
    assert run.downloads.tried == [A, A]


def test_a_store_that_cannot_say_what_it_holds_costs_the_work_no_try() -> None:
    source = Source("a", (A,))
    run = bench(source, good=A)

    def already(work: WorkArtifact) -> HeldFile | None:
        raise away()

    run.already = already
    outcome = run.run()
    assert (outcome.reason, outcome.meta["only_waited"]) == (Reason.BACKOFF, True)
    assert source.asked == []


def with_store(run: Bench, held_up: Any) -> DownloadOutcome:
    run.about_store = {"held_up": held_up}
    pipeline = run.pipeline()
    try:
        return pipeline.process(WorkArtifact("doi:10.1/x", doi="10.1/x"))
    finally:
        pipeline.close()


def test_nobody_is_asked_for_a_paper_while_the_store_is_away() -> None:
    source = Source("a", (A,))
    holds = iter([Hold(0.01, "away"), Hold(0.01, "away")])
    asked_meanwhile: list[int] = []

    def held_up() -> Hold | None:
        asked_meanwhile.append(len(source.asked))
        return next(holds, None)

    assert with_store(bench(source, good=A), held_up).ok
    assert asked_meanwhile == [0] * len(asked_meanwhile)
    assert len(asked_meanwhile) >= 3


def test_a_work_that_has_waited_long_for_the_store_is_given_back() -> None:
    """So that a node whose store is there may have it."""
    source, looks = Source("a", (A,)), []
    outcome = with_store(bench(source, good=A), lambda: looks.append(1) or Hold(0.01, "away"))  # type: ignore[func-returns-value]
    assert (outcome.reason, outcome.meta["only_waited"], source.asked) == (Reason.BACKOFF, True, [])
    assert 3 < len(looks) < 20


def test_a_work_that_waits_for_the_store_is_given_back_at_once_when_the_run_stops(tmp_path: Path) -> None:
    """ORC-11: nothing of it has begun."""
    looked = threading.Event()
    run = bench(Source("a", (A,)))
    run.about_store = {"held_up": lambda: looked.set() or Hold(60.0, "away")}
    pipeline = run.pipeline()
    with (
        WorkQueue(tmp_path / "q.sqlite") as queue,
        RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=SystemClock()) as record,
    ):
        queue.enqueue("a:1", {})
        running = Orchestrator(load_config(None, {}, environ={}, user_file=tmp_path / "no"), queue, pipeline, record)
        running.start()
        assert looked.wait(20)
        began = time.monotonic()
        running.stop(grace_s=60.0)
        assert time.monotonic() - began < 4.0
        assert (queue.job(1).state, queue.job(1).attempts) == ("queued", 0)
    pipeline.close()


class Place:
    """Somewhere files are kept, and a clock."""

    def __init__(self) -> None:
        self.now, self.looks, self.trouble = 100.0, 0, "away"  # type: float, int, str | None
        self.outage = Outage(self.look, first_s=1.0, longest_s=8.0, monotonic=lambda: self.now)

    def look(self) -> str | None:
        self.looks += 1
        return self.trouble


def test_a_place_that_failed_is_left_alone_and_looked_at_ever_less_often() -> None:
    place = Place()
    assert place.outage.hold() is None
    assert place.outage.begin("away")
    assert not place.outage.begin("still away")
    waits = []
    for _ in range(6):
        hold = place.outage.hold()
        assert hold is not None
        waits.append(hold.seconds)
        place.now += hold.seconds
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert place.looks == 5
    place.trouble = None
    assert place.outage.hold() is None
    assert place.outage.hold() is None
    assert place.looks == 6
    place.outage.end()
    place.outage.begin("away again")
    hold = place.outage.hold()
    assert hold == Hold(1.0, "away again")


def test_one_thread_looks_and_the_others_are_told_to_wait() -> None:
    place, inside, go_on = Place(), threading.Event(), threading.Event()

    def look() -> str | None:
        inside.set()
        assert go_on.wait(30)
        return None

    outage = Outage(look, first_s=1.0, monotonic=lambda: place.now)
    outage.begin("away")
    place.now += 5
    looker = threading.Thread(target=outage.hold)
    looker.start()
    assert inside.wait(30)
    assert outage.hold() is not None
    go_on.set()
    looker.join(30)
    assert outage.hold() is None


def test_a_place_that_looks_well_and_takes_no_file_is_left_alone_ever_longer() -> None:
    """A bucket that is full answers every question: each file fetched for it costs a host an answer."""
    place = Place()
    place.trouble = None
    waits = []
    for _ in range(5):
        place.outage.begin("it has no room")
        hold = place.outage.hold()
        assert hold is not None
        waits.append(hold.seconds)
        place.now += hold.seconds
        assert place.outage.hold() is None, "it looks well"
        place.now += 3
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0]


def test_a_place_that_was_well_for_long_is_looked_at_soon() -> None:
    place = Place()
    place.trouble = None
    for _ in range(2):
        place.outage.begin("away")
        assert place.outage.hold() == Hold(1.0, "away")
        place.now += 1
        assert place.outage.hold() is None
        place.now += 60


def test_a_file_that_was_taken_ends_the_outage() -> None:
    place = Place()
    place.outage.begin("away")
    place.outage.end()
    assert place.outage.hold() is None
    assert place.looks == 0


class Patient(StandIn):
    """A pipeline whose works wait until they are called off."""

    def __init__(self) -> None:
        super().__init__(self._wait, HostLimits(clock=SystemClock(), default_host=HostLimit()), most=8)
        self.begun, self.cut = threading.Event(), threading.Event()

    async def _wait(self, artifact: WorkArtifact, ctx: JobContext, exchange: Exchange) -> DownloadOutcome:
        self.begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.cut.set()
        raise AssertionError("it was called off")


@pytest.mark.slow
def test_a_job_whose_lease_may_be_over_is_cut_although_the_ledger_does_not_answer(tmp_path: Path) -> None:
    """QUE-22: another node may have it by now, so nothing more is stored for it here."""
    cfg = load_config(
        None, {"orchestrator": {"lease_ttl_seconds": 2, "heartbeat_seconds": 1}}, environ={}, user_file=tmp_path / "no"
    )
    pipeline, answers = Patient(), threading.Event()
    with (
        WorkQueue(tmp_path / "q.sqlite") as queue,
        RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=SystemClock()) as record,
    ):
        queue.enqueue("a:1", {})
        heartbeat = queue.ledger.heartbeat

        def silent(*words: Any) -> Any:
            answers.wait(60)
            return heartbeat(*words)

        queue.ledger.heartbeat = silent  # type: ignore[method-assign]
        running = Orchestrator(cfg, queue, pipeline, record)  # type: ignore[arg-type]
        running.start()
        try:
            assert pipeline.begun.wait(30)
            assert pipeline.cut.wait(30)
        finally:
            answers.set()
            running.stop()
            pipeline.close()
        assert queue.stats()["in_progress"] == 0
