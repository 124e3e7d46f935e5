"""What one of all instances does every few seconds."""

from __future__ import annotations

import threading

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.api.housekeeping import Housekeeping
from DocsToKG.Orchestrator.api.services import Services
from DocsToKG.Orchestrator.control.pack_runs import Hints
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


@pytest.fixture
def timed(tmp_path):
    clock = ManualClock()
    with SqliteLedger(tmp_path / "l.sqlite", clock=clock) as ledger:
        yield Services(ledger), clock


def test_one_instance_does_it_and_another_takes_over(timed):
    """OPS-01."""
    services, clock = timed
    first, second = Housekeeping(services), Housekeeping(services)
    assert (first.once(), second.once()) == (True, False)
    clock.advance(16)
    assert (second.once(), first.once()) == (True, False)


def test_a_silent_pack_run_is_timed_out(timed):
    """PACK-05."""
    services, clock = timed
    run = services.pack_runs.register("default", payload={}, hints=Hints(heartbeat_s=5), actor="t").pack_run_id
    services.pack_runs.heartbeat("default", run)
    upkeep = Housekeeping(services)
    clock.advance(14)
    upkeep.once()
    assert services.pack_runs.get("default", run).state == "running"
    clock.advance(2)
    upkeep.once()
    assert services.pack_runs.get("default", run).state == "timed_out"


def test_the_thread_ends_with_the_service(timed):
    services, _ = timed
    with Housekeeping(services, every_s=0.05).running():
        assert "housekeeping" in {thread.name for thread in threading.enumerate()}
    assert "housekeeping" not in {thread.name for thread in threading.enumerate()}


def test_what_nobody_foresaw_does_not_end_the_thread(timed, monkeypatch):
    services, _ = timed
    asked = threading.Semaphore(0)

    def purge() -> None:
        asked.release()
        raise ZeroDivisionError

    monkeypatch.setattr(services.answers, "purge", purge, raising=False)
    with Housekeeping(services, every_s=0.05).running():
        assert asked.acquire(timeout=20)
        assert asked.acquire(timeout=20)
