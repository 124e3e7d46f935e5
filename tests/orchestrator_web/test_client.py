"""The client, and a ledger made of it, against a real service on loopback."""

from __future__ import annotations

import threading
import time

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import served

from DocsToKG.Orchestrator.client import NotAdmitted, OrchestratorClient, RemoteLedger, ServiceUnavailable
from DocsToKG.Orchestrator.errors import BadJob, Conflict, LeaseLost, NotFound, Refused
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Progress, Release


@pytest.fixture
def url(ledger):
    with served(app_over(ledger)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def service(url):
    with OrchestratorClient(url, token_for()) as client:
        yield client


@pytest.fixture
def remote(url):
    with RemoteLedger(OrchestratorClient(url, token_for())) as opened:
        yield opened


def test_a_job_goes_from_submission_to_its_result(service):
    made = service.enqueue({"doi": "10.1/a"}, artifactId="doi:10.1/a", correlationId="c")
    [lease] = service.lease("w", limit=5, wait_s=1)
    assert (lease.job_id, lease.payload, lease.retry.attempt) == (made["id"], {"doi": "10.1/a"}, 1)
    assert lease.provenance.correlation_id == "c"
    service.progress(lease.lease_id, "fetch", {"tried": 1})
    [renewal] = service.renew([lease.lease_id], lease_s=1200)
    assert renewal.state == "held"
    assert renewal.lease_until is not None
    assert renewal.lease_until > lease.lease_until
    assert service.complete(lease.lease_id, "succeeded", result={"file": "x.pdf"})["status"] == "succeeded"
    assert service.job(lease.job_id)["result"] == {"file": "x.pdf"}
    assert service.why(lease.job_id)["reason"] == "ended"
    assert service.history(lease.job_id)[0]["event"] == "enqueued"
    assert service.replay(lease.job_id, "again")["replayOf"] == lease.job_id
    assert [job["status"] for job in service.jobs(page_size=1)] == ["queued", "succeeded"]


def test_errors_come_back_as_our_own(service, url):
    with pytest.raises(NotFound, match="no job 7"):
        service.job(7)
    with pytest.raises(BadJob):
        service.enqueue({}, priority="high")
    service.enqueue({})
    [lease] = service.lease("w")
    with pytest.raises(Conflict):
        service.replay(lease.job_id, "too early")
    service.cancel(lease.job_id, "not needed")
    assert service.renew([lease.lease_id])[0].state == "canceled"
    with pytest.raises(LeaseLost) as lost:
        service.complete(lease.lease_id, "succeeded")
    assert lost.value.job_id == lease.job_id
    with OrchestratorClient(url, "dtk_planted") as stranger, pytest.raises(NotAdmitted) as refused:
        stranger.dashboard()
    assert "planted" not in str(refused.value)


def test_a_service_that_is_away_is_asked_again_and_then_told(ledger):
    pauses: list[float] = []
    with served(app_over(ledger)) as port:
        url = f"http://127.0.0.1:{port}"
    with OrchestratorClient(url, "t", pause=pauses.append) as client, pytest.raises(ServiceUnavailable) as away:
        client.dashboard()
    assert len(pauses) == 3
    assert f"no answer from the service at {url} (" in str(away.value)


def test_an_address_without_sense_is_refused():
    for url in ("ftp://x", "http://", "http://user:pw@host", "nonsense", "http://x:port", "http://x:99999", "http://["):
        with pytest.raises(BadJob):
            OrchestratorClient(url, "t")


def test_a_worker_settles_its_jobs_as_on_a_ledger_of_its_own(remote, ledger):
    """JOB-19."""
    jobs = [NewJob(f"doi:10.1/{n}", {"n": n}) for n in range(6)]
    assert [answer.created for answer in remote.enqueue_many(jobs)] == [True] * 6
    leases = remote.lease("w1", 10, 60)
    assert [job.payload for job in leases] == [{"n": n} for n in range(6)]
    named = [(job.job_id, job.fence, job.lease_id) for job in leases]
    remote.submit_progress(Progress(*named[0], stage="fetch")).result(30)
    assert remote.submit_finish(Finish(*named[0], JobState.DONE, result={"file": "a"})).result(30) == "applied"
    skipped, lost = remote.submit_finishes(
        [Finish(*named[1], JobState.SKIPPED), Finish(1, 1, "lease_" + "0" * 32, JobState.DONE)]
    ).result(30)
    assert (skipped, type(lost)) == ("applied", LeaseLost)
    assert remote.submit_fail(Fail(*named[2], 30, 3, "http-500")).result(30) is JobState.QUEUED
    assert remote.submit_release(Release(*named[3], delay_s=5, why="host-busy")).result(30) is JobState.QUEUED
    assert remote.submit_finish(Finish(*named[4], JobState.ERROR, "not-found")).result(30) == "applied"
    assert remote.heartbeat("w1", 60) == {named[5][2]}
    assert remote.release_worker("w1") == 1
    states = [ledger.job(job_id).state.value for job_id, _, _ in named]
    assert states == ["done", "skipped", "queued", "queued", "error", "queued"]
    assert ledger.job(named[0][0]).result_json == '{"file":"a"}'
    counts = remote.stats()
    assert (counts["queued"], counts["done"], counts["error"], counts["total"]) == (3, 2, 1, 6)
    assert not remote.is_paused()
    soonest = remote.next_eligible_at()
    assert soonest is not None


def test_a_worker_that_does_not_come_back_costs_its_jobs_no_attempt(remote, ledger):
    """QUE-20, FAIL-01: also behind the service, however often."""
    remote.enqueue_many([NewJob("doi:10.1/a", {}, max_attempts=2)])
    deadline = time.monotonic() + 60
    for life in range(3):
        jobs = []
        while not jobs:  # the lease of the life before runs out after a second
            assert time.monotonic() < deadline
            jobs = remote.lease(f"w{life}", 1, 1)
    [job] = jobs
    assert (job.fence, job.attempts) == (3, 0)
    assert remote.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)).result(30) == "applied"
    assert (remote.lease_suspect("last", 60), remote.next_suspect_at()) == ([], None)


def test_a_worker_ends_one_job_and_takes_the_next(remote, ledger):
    remote.enqueue_many([NewJob(f"doi:10.1/{n}", {"n": n}) for n in range(3)])
    [first, second] = remote.lease("w", 2, 60)
    ends = [Finish(job.job_id, job.fence, job.lease_id, JobState.DONE) for job in (first, second)]
    told, [third] = remote.finish_and_lease(ends, "w", 1, 60, job_type="content.download")
    assert told == ["applied", "applied"]
    assert third.payload == {"n": 2}
    assert remote.heartbeat("w", 60) == {third.lease_id}
    ledger.cancel(third.job_id, "not needed")
    [lost], jobs = remote.finish_and_lease([Finish(*third[:3], JobState.DONE)], "w", 1, 60)
    assert (type(lost), jobs) == (LeaseLost, [])
    assert remote.finish_and_lease([], "w", 1, 60) == ([], [])


def test_a_worker_hears_what_it_lost(remote, ledger):
    remote.enqueue_many([NewJob("a", {})])
    [job] = remote.lease("w", 1, 60)
    ledger.cancel(job.job_id, "not needed")
    assert remote.heartbeat("w", 60) == set()
    with pytest.raises(LeaseLost):
        remote.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)).result(30)


def test_waiting_ends_when_woken_or_when_told_so(remote):
    woken = threading.Timer(0.2, remote.wake)
    woken.start()
    assert remote.wait_for_work(60)
    woken.join(30)
    stop = threading.Event()
    stop.set()
    assert not remote.wait_for_work(60, unless=stop.is_set)


def test_queues_are_those_of_the_tokens_tenant_and_count_all_that_waits(url, ledger):
    ledger.enqueue_many([NewJob("theirs", {}, tenant="theirs")])
    needs = {"a": [], "b": [], "c": ["a"]}
    ledger.enqueue_many([NewJob(name, {}, tenant="ours", depends_on=wanted) for name, wanted in needs.items()])
    with RemoteLedger(OrchestratorClient(url, token_for(tenant="ours"))) as remote:
        remote.lease("w", 1, 60)
        assert remote.depths() == {("content.download", "ours"): 2}
        assert ledger.depths()["content.download", "ours"] == 2


def test_what_is_an_operators_is_refused(remote):
    with pytest.raises(Refused, match="retry_failed"):
        remote.retry_failed()
    assert getattr(remote, "nothing", None) is None
