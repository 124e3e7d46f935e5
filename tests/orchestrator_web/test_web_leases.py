"""The bridge to workers: lease, renew, tell, complete."""

from __future__ import annotations

import threading

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import PATIENCE_S, EventStream, served

from DocsToKG.Orchestrator.api.middleware import HOME


def leased(admin, **body):
    admin.post("/jobs", {"payload": {"n": 1}, "correlationId": "c", "project": "p"})
    [lease] = admin.post("/leases", {"workerId": "w1", **body}).json()["leases"]
    return lease


def test_a_lease_carries_all_that_a_worker_needs(admin):
    """JOB-07, JOB-08."""
    lease = leased(admin)
    assert lease["provenance"] == {"tenant": "default", "project": "p", "correlationId": "c", "taskRunnerId": "w1"}
    assert lease["retry"] == {"attempt": 1, "maxAttempts": 3, "backoffSeconds": 60.0}
    assert lease["leaseId"].startswith("lease_")
    assert lease["leaseUntil"].endswith("Z")
    assert lease["idempotencyKey"]
    assert lease["instrumentation"]["traceparent"].startswith("00-")
    assert admin.get(f"/jobs/{lease['jobId']}").json()["workerId"] == "w1"
    assert admin.post("/leases", {"workerId": "w2"}).json() == {"leases": []}


def test_a_job_succeeds_with_its_result(admin):
    """JOB-10, JOB-11."""
    lease = leased(admin)
    path = f"/leases/{lease['leaseId']}"
    assert admin.post(f"{path}/progress", {"stage": "fetch", "result": {"tried": 1}}).status_code == 204
    job = admin.get(f"/jobs/{lease['jobId']}").json()
    assert (job["stage"], job["result"]) == ("fetch", {"tried": 1})
    done = admin.post(f"{path}/complete", {"status": "succeeded", "result": {"file": "a.pdf"}})
    assert done.json()["status"] == "succeeded"
    assert admin.post(f"{path}/complete", {"status": "succeeded", "result": {"file": "a.pdf"}}).status_code == 200
    job = admin.get(f"/jobs/{lease['jobId']}").json()
    assert (job["status"], job["result"], len(job["leaseHistory"])) == ("succeeded", {"file": "a.pdf"}, 1)


def test_the_next_job_comes_with_the_end_of_the_last(admin):
    """A worker with one job at a time makes one request for each."""
    lease = leased(admin)
    for n in range(2):
        admin.post("/jobs", {"payload": {"n": n}})
    body = {"status": "succeeded", "next": {"workerId": "w1", "jobTypes": ["content.download", "other"]}}
    path, key = f"/leases/{lease['leaseId']}/complete", {"Idempotency-Key": "k1"}
    done = admin.post(path, body, **key)
    assert done.json()["status"] == "succeeded"
    [following] = done.json()["leases"]
    assert following["provenance"]["taskRunnerId"] == "w1"
    assert admin.post(path, body, **key).json() == done.json()  # a lost answer loses no lease
    failed = {"status": "failed", "reason": "busy", "next": {"workerId": "w1"}}
    [last] = admin.post(f"/leases/{following['leaseId']}/complete", failed).json()["leases"]
    assert admin.post(f"/leases/{last['leaseId']}/complete", body).json()["leases"] == []
    assert admin.get(f"/jobs/{last['jobId']}").json()["status"] == "succeeded"


def test_with_a_lost_lease_nothing_is_leased(admin):
    lease = leased(admin)
    admin.post(f"/leases/{lease['leaseId']}/complete", {"status": "succeeded"})
    [waiting] = [admin.post("/jobs", {"payload": {"n": 2}}).json()["id"]]
    late = {"status": "timed_out", "reason": "late", "next": {"workerId": "w1"}}
    assert admin.post(f"/leases/{lease['leaseId']}/complete", late).status_code == 409
    job = admin.get(f"/jobs/{waiting}").json()
    assert (job["status"], job["attempts"]) == ("queued", 0)


def test_a_failure_comes_again_by_its_policy_unless_it_is_for_good(admin):
    """JOB-12."""
    lease = leased(admin)
    failed = {"status": "failed", "reason": "http-500: busy", "retryAfterSeconds": 30}
    again = admin.post(f"/leases/{lease['leaseId']}/complete", failed).json()
    assert (again["status"], again["retried"]) == ("queued", True)
    assert again["nextEligibleAt"] > admin.get(f"/jobs/{lease['jobId']}").json()["updatedAt"]
    lease = leased(admin)
    end = admin.post(f"/leases/{lease['leaseId']}/complete", {**failed, "retryable": False}).json()
    assert (end["status"], end["retried"]) == ("failed", False)


@pytest.mark.parametrize("status", ["canceled", "timed_out"])
def test_other_ends_are_kept_as_such(admin, status):
    lease = leased(admin)
    done = admin.post(f"/leases/{lease['leaseId']}/complete", {"status": status, "reason": "so"}).json()
    assert done["status"] == status


def test_a_stale_lease_is_refused_everywhere(admin, caller):
    """JOB-10: 409, and nothing changes; another tenant's lease is as stale as any."""
    lease = leased(admin)
    admin.post(f"/jobs/{lease['jobId']}/clear-lease")
    asks = {"renew": None, "progress": {"stage": "x"}, "complete": {"status": "succeeded"}, "release": None}
    for word, body in asks.items():
        answer = admin.post(f"/leases/{lease['leaseId']}/{word}", body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "LEASE_LOST"), word
    mine = admin.post("/leases", {"workerId": "w"}).json()["leases"][0]
    for word, body in asks.items():
        assert caller(tenant="theirs").post(f"/leases/{mine['leaseId']}/{word}", body).status_code == 409
    assert admin.get(f"/jobs/{lease['jobId']}").json()["status"] == "leased"


def test_a_worker_hears_of_a_cancellation_at_its_next_renewal(admin):
    """JOB-15."""
    lease = leased(admin)
    assert admin.post(f"/leases/{lease['leaseId']}/renew", {"leaseSeconds": 1200}).json()["state"] == "held"
    admin.post(f"/jobs/{lease['jobId']}/cancel", {"reason": "not needed"})
    told = admin.post(f"/leases/{lease['leaseId']}/renew").json()
    assert (told["state"], "not needed" in told["reason"]) == ("canceled", True)
    both = admin.post("/leases/renew", {"leaseIds": [lease["leaseId"], "lease_" + "0" * 32]}).json()["renewals"]
    assert [each["state"] for each in both] == ["canceled", "lost"]


def test_a_job_given_back_counts_no_attempt(admin):
    lease = leased(admin)
    assert admin.post(f"/leases/{lease['leaseId']}/release", {"reason": "shutdown"}).status_code == 204
    job = admin.get(f"/jobs/{lease['jobId']}").json()
    assert (job["status"], job["attempts"]) == ("queued", 0)


def test_a_lease_is_of_the_callers_tenant_and_of_the_wanted_types(admin, caller):
    caller(tenant="theirs").post("/jobs", {"payload": {}})
    assert admin.post("/leases", {"workerId": "w"}).json()["leases"] == []
    admin.post("/jobs", {"payload": {}, "jobType": "a"})
    assert admin.post("/leases", {"workerId": "w", "jobTypes": ["b"]}).json()["leases"] == []
    assert len(admin.post("/leases", {"workerId": "w", "jobTypes": ["b", "a"]}).json()["leases"]) == 1


def test_many_wait_for_work_without_holding_up_others(ledger):
    """A long poll costs no thread: more of them wait than there are threads, and requests are still answered."""
    import anyio

    from DocsToKG.Orchestrator.api.auth.rate_limit import RateLimiter
    from DocsToKG.Orchestrator.ledger.base import NewJob

    app = app_over(ledger, threads=anyio.CapacityLimiter(2), rate_limiter=RateLimiter(per_second=1e6, burst=1_000_000))
    with served(app) as port:
        found: list[int] = []
        waiters = [threading.Thread(target=lambda n=n: found.append(poll(port, n))) for n in range(12)]
        for waiter in waiters:
            waiter.start()
        with EventStream(port, f"{HOME}/jobs", token_for()) as other:
            assert other.status == 200
        ledger.enqueue_many([NewJob(f"doi:10.1/{n}", {}) for n in range(12)])
        for waiter in waiters:
            waiter.join(PATIENCE_S * 2)
    assert sorted(found) == list(range(1, 13))


def test_a_wait_without_work_ends_in_time_and_asks_seldom(admin, caller, ledger, monkeypatch):
    """A job that is another tenant's is due all the time, which must not make a busy loop."""
    caller(tenant="theirs").post("/jobs", {"payload": {}})
    lease, asked = ledger.lease, []
    monkeypatch.setattr(ledger, "lease", lambda *args, **words: asked.append(1) or lease(*args, **words))
    assert admin.post("/leases", {"workerId": "w", "waitSeconds": 1}).json()["leases"] == []
    assert 2 <= len(asked) < 15


def poll(port: int, number: int) -> int:
    """Ask until there is something, as a worker does."""
    while True:
        body = f'{{"workerId": "w{number}", "waitSeconds": 30}}'
        with EventStream(port, f"{HOME}/leases", token_for(), method="POST", content=body) as answer:
            leases = answer.body()["leases"]
        if leases:
            return int(leases[0]["jobId"])


def test_maintenance_halts_leases_and_nothing_else(admin):
    """OPS-03."""
    lease = leased(admin)
    admin.post("/jobs", {"payload": {"n": 2}})
    assert admin("PUT", "/maintenance", {"on": True}).json()["on"]
    assert admin.post("/leases", {"workerId": "w"}).json()["leases"] == []
    assert admin.post(f"/leases/{lease['leaseId']}/renew").status_code == 200
    assert admin.post(f"/leases/{lease['leaseId']}/complete", {"status": "succeeded"}).status_code == 200
    assert admin.get("/jobs").status_code == 200
    admin("PUT", "/maintenance", {"on": False})
    assert len(admin.post("/leases", {"workerId": "w"}).json()["leases"]) == 1
