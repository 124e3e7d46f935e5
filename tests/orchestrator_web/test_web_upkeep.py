"""What one of all instances does every few seconds."""

from __future__ import annotations

import threading

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.pack_runs import Hints
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.web.rooms import rooms_of
from DocsToKG.Orchestrator.web.upkeep import Upkeep


@pytest.fixture
def timed(tmp_path):
    clock = ManualClock()
    with SqliteLedger(tmp_path / "l.sqlite", clock=clock) as ledger:
        yield rooms_of(ledger), clock


def test_one_instance_does_it_and_another_takes_over(timed):
    """OPS-01."""
    rooms, clock = timed
    first, second = Upkeep(rooms), Upkeep(rooms)
    assert (first.once(), second.once()) == (True, False)
    clock.advance(16)
    assert (second.once(), first.once()) == (True, False)


def test_a_silent_pack_run_is_timed_out(timed):
    """PACK-05."""
    rooms, clock = timed
    run = rooms.pack_runs.register("default", payload={}, hints=Hints(heartbeat_s=5), actor="t").pack_run_id
    rooms.pack_runs.heartbeat("default", run)
    upkeep = Upkeep(rooms)
    clock.advance(14)
    upkeep.once()
    assert rooms.pack_runs.get("default", run).state == "running"
    clock.advance(2)
    upkeep.once()
    assert rooms.pack_runs.get("default", run).state == "timed_out"


def test_the_thread_ends_with_the_service(timed):
    rooms, _ = timed
    with Upkeep(rooms, every_s=0.05).running():
        assert "upkeep" in {thread.name for thread in threading.enumerate()}
    assert "upkeep" not in {thread.name for thread in threading.enumerate()}


def test_what_nobody_foresaw_does_not_end_the_thread(timed, monkeypatch):
    rooms, _ = timed
    asked = threading.Semaphore(0)

    def purge() -> None:
        asked.release()
        raise ZeroDivisionError

    monkeypatch.setattr(rooms.answers, "purge", purge, raising=False)
    with Upkeep(rooms, every_s=0.05).running():
        assert asked.acquire(timeout=20)
        assert asked.acquire(timeout=20)
