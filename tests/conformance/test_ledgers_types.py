"""One ledger for jobs of many types: whoever leases one type takes, counts and waits for no other.

On both databases, on the ledger itself and by way of a service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import served

from DocsToKG.Orchestrator.client import OrchestratorClient, RemoteLedger
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob, Release

DOWNLOAD, OTHER = "content.download", "pack-run"


@pytest.fixture
def ledger(open_ledger: Callable[..., Any]) -> Any:
    return open_ledger()


@pytest.fixture(params=["here", pytest.param("behind a service", marks=pytest.mark.slow)])
def side(request: pytest.FixtureRequest, ledger: Any) -> Iterator[Any]:
    """The ledger as a worker has it."""
    if request.param == "here":
        yield ledger
        return
    with ExitStack() as stack:
        port = stack.enter_context(served(app_over(ledger)))
        client = OrchestratorClient(f"http://127.0.0.1:{port}", token_for("orch:operate", "orch:read"))
        yield stack.enter_context(RemoteLedger(client))


def others(count: int = 3, **fields: Any) -> list[NewJob]:
    return [NewJob(f"pack:{n}", {}, job_type=OTHER, priority=5, **fields) for n in range(count)]


def downloads(count: int, **fields: Any) -> list[NewJob]:
    return [NewJob(f"doi:10.1/{n}", {}, **fields) for n in range(count)]


def finish(side: Any, jobs: list[Any]) -> None:
    ends = [Finish(job.job_id, job.fence, job.lease_id, JobState.DONE) for job in jobs]
    assert set(side.submit_finishes(ends).result(timeout=30)) == {"applied"}


@pytest.mark.parametrize("host", [None, "a.example"])
def test_downloads_are_drained_and_a_job_of_another_type_stays(ledger: Any, side: Any, host: str | None) -> None:
    packs = ledger.enqueue_many(others(host_key=host))
    ledger.enqueue_many([*downloads(5), NewJob("doi:10.1/x", {}, host_key="a.example")])
    assert side.stats(DOWNLOAD)["queued"] == side.stats(DOWNLOAD)["total"] == 6
    assert side.stats()["queued"] == 9
    taken: set[str] = set()
    while jobs := side.lease("w", 4, 60, job_type=DOWNLOAD):
        assert {job.job_type for job in jobs} == {DOWNLOAD}
        taken |= {job.artifact_id for job in jobs}
        assert side.stats(DOWNLOAD)["in_progress"] == len(jobs)
        finish(side, jobs)
    assert len(taken) == 6
    stats = side.stats(DOWNLOAD)
    assert (stats["queued"], stats["in_progress"], stats["done"], stats["total"]) == (0, 0, 6, 6)
    assert side.next_eligible_at(DOWNLOAD) is None
    assert side.next_eligible_at() is not None
    assert side.stats(OTHER)["queued"] == 3
    assert all([row.event for row in ledger.history(pack.job_id)] == ["enqueued"] for pack in packs)
    assert len(side.lease("w", 9, 60, job_type=OTHER)) == 3


def test_what_waits_of_one_type_is_known_before_anybody_has_leased(ledger: Any, side: Any) -> None:
    ledger.enqueue_many(others())
    assert side.next_eligible_at(DOWNLOAD) is None
    assert side.stats(DOWNLOAD)["total"] == 0
    assert side.stats("never heard of")["total"] == 0


def test_a_delay_is_that_of_the_type_asked_for(ledger: Any, side: Any) -> None:
    ledger.enqueue_many([*others(1), *downloads(1)])
    for job_type, delay_s in ((OTHER, 60.0), (DOWNLOAD, 3600.0)):
        [job] = side.lease("w", 1, 60, job_type=job_type)
        side.submit_release(Release(job.job_id, job.fence, job.lease_id, delay_s)).result(timeout=30)
    later, sooner = side.next_eligible_at(DOWNLOAD), side.next_eligible_at(OTHER)
    assert 3400 < later - sooner < 3700
    assert side.next_eligible_at() == pytest.approx(sooner, abs=1.0)


def test_work_of_another_type_calls_nobody(ledger: Any) -> None:
    ledger.enqueue_many(others())
    for _ in range(2):  # with a lease that was in vain in between
        assert not ledger.wait_for_work(0.05, job_type=DOWNLOAD)
        assert ledger.lease("w", 1, 60, job_type=DOWNLOAD) == []
    assert ledger.wait_for_work(30)
    ledger.enqueue_many(downloads(1))
    assert ledger.wait_for_work(30, job_type=DOWNLOAD)


def test_leases_of_two_types_in_turn_miss_no_job_of_either(ledger: Any) -> None:
    """Each type has its place in the queue; what one learns says nothing about the other."""
    ledger.enqueue_many([job for pair in zip(others(30), downloads(30), strict=True) for job in pair])
    found = {DOWNLOAD: 0, OTHER: 0}
    for number in range(20):
        job_type = (DOWNLOAD, OTHER)[number % 2]
        jobs = ledger.lease("w", 3, 60, job_type=job_type)
        assert {job.job_type for job in jobs} == {job_type}
        found[job_type] += len(jobs)
    assert found == {DOWNLOAD: 30, OTHER: 30}
    assert ledger.lease("w", 9, 60) == []
