"""What a console stands on: who asks, decisions for many jobs, the trail of decisions, what a rule would do."""

from __future__ import annotations

import pytest

from DocsToKG.Orchestrator.control.jobs import bulk as bulk_room
from DocsToKG.Orchestrator.control.jobs import pages
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish

NEEDS = "INSERT INTO job_dependencies (job_id, needs_job_id) VALUES (:job, :need)"


def submit(admin, count, **fields):
    jobs = [{"artifactId": f"doi:10.1/{n}", "payload": {"n": n}, **fields} for n in range(count)]
    return [job["id"] for job in admin.post("/jobs/bulk", {"jobs": jobs}).json()["jobs"]]


def fail_all(ledger, why="no_oa_pdf: nothing is open"):
    while leased := ledger.lease("w1", 100, 60):
        for job in leased:
            ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, why))


def test_who_asks_is_told_what_it_may_do(caller, admin):
    reader = caller("orch:read", tenant="ours").get("/whoami").json()
    assert (reader["tenant"], reader["tenants"], reader["scopes"]) == ("ours", ["ours"], ["orch:read"])
    assert "listJobs" in reader["operations"]
    assert not {"cancelJob", "listTenants", "createPolicy"} & set(reader["operations"])
    assert {"cancelJob", "listTenants", "createPolicy"} <= set(admin.get("/whoami").json()["operations"])


def test_a_token_without_a_scope_is_not_told_even_who_it_is(caller, client):
    refused = caller("nothing").get("/whoami")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "SCOPE_REQUIRED")
    assert client.get("/api/whoami").status_code == 401


def test_a_jobs_detail_has_its_fence_its_leases_and_its_course(admin, ledger):
    submit(admin, 1)
    fail_all(ledger)
    job = admin.get("/jobs/1").json()
    assert (job["fence"], job["leaseHistory"][0]["fence"]) == (1, 1)
    assert [row["event"] for row in job["history"]] == ["enqueued", "leased", "finished"]
    assert job["history"][-1]["reason"] == job["lastError"]


def test_a_failed_job_is_retried_as_itself(admin, ledger):
    submit(admin, 1)
    assert admin.post("/jobs/1/retry").status_code == 409
    fail_all(ledger)
    again = admin.post("/jobs/1/retry", {"reason": "the host is back"}).json()
    assert (again["status"], again["attempts"]) == ("queued", 0)
    [row] = [row for row in admin.get("/jobs/1").json()["history"] if row["event"] == "retry_requested"]
    assert (row["reason"], row["ticket"]) == ("the host is back", "T-1")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("status:failed", [1, 2, 3]), ("status:queued", []), ("status:failed error:no_oa", [1, 2, 3]),
        ("error:timeout", []), ("artifact:doi:10.1/1", [2]), ("type:content.download 10.1/2", [3]),
        ("status:bogus", []),
    ],
)  # fmt: skip
def test_a_search_takes_qualifiers(admin, ledger, words, found):
    submit(admin, 3)
    fail_all(ledger)
    jobs = admin.get(f"/jobs?search={words.replace(' ', '%20')}").json()["jobs"]
    assert sorted(job["id"] for job in jobs) == found


def test_a_preview_counts_and_changes_nothing(admin, ledger):
    submit(admin, 30)
    preview = admin.post("/bulk-actions/preview", {"action": "cancel", "filter": {"search": "10.1/1"}}).json()
    assert (preview["count"], preview["complete"], preview["upTo"]) == (11, True, 30)
    assert len(preview["sample"]) == 11
    assert ledger.stats()["queued"] == 30


def test_an_action_touches_the_jobs_of_its_preview_and_no_later_ones(admin, ledger):
    submit(admin, 20)
    preview = admin.post("/bulk-actions/preview", {"action": "cancel"}).json()
    later = admin.post("/jobs", {"payload": {}}).json()["id"]
    done = admin.post("/bulk-actions/cancel", {"upTo": preview["upTo"], "reason": "wrong list"}).json()
    assert done == {"action": "cancel", "changed": 20, "more": False, "upTo": None}
    assert ledger.job(later).state is JobState.QUEUED
    assert admin.get("/jobs/1").json()["lastError"] == "wrong list"


def test_failed_jobs_are_retried_by_filter(admin, ledger):
    submit(admin, 12)
    fail_all(ledger)
    body = {"filter": {"search": "error:no_oa", "status": ["failed", "queued"]}, "upTo": 12}
    assert admin.post("/bulk-actions/retry", body).json()["changed"] == 12
    assert admin.post("/bulk-actions/retry", body).json()["changed"] == 0
    assert ledger.stats()["queued"] == 12


def test_a_bulk_action_goes_on_where_it_stopped(admin, ledger):
    for start in range(0, 1200, 400):
        jobs = [{"artifactId": f"a:{n}", "payload": {}} for n in range(start, start + 400)]
        assert admin.post("/jobs/bulk", {"jobs": jobs}).status_code == 201
    changed = []
    for _ in range(5):
        done = admin.post("/bulk-actions/cancel", {"upTo": 1200}).json()
        changed.append(done["changed"])
        if not done["more"]:
            break
    assert changed == [500, 500, 200]
    assert ledger.stats()["canceled"] == 1200


def bulk(admin, action, up_to, **filter_):
    """Every answer of an action that is gone on with until it says that it is through."""
    answers = []
    while up_to is not None:
        answers.append(admin.post(f"/bulk-actions/{action}", {"filter": filter_, "upTo": up_to}).json())
        assert answers[-1]["more"] == (answers[-1]["upTo"] is not None)
        assert (answers[-1]["upTo"] or 0) < up_to, "each goes on further down"
        up_to = answers[-1]["upTo"]
    return answers


def test_a_bulk_action_comes_to_jobs_far_below_the_newest(admin, ledger, monkeypatch):
    """As many pages as one answer looks through may hold nothing that fits: the next one goes on below them."""
    monkeypatch.setattr(pages, "WINDOW", 10)
    monkeypatch.setattr(bulk_room, "LOOKS", 2)
    submit(admin, 100)
    answers = bulk(admin, "cancel", 100, search="10.1/7")
    assert [each["changed"] for each in answers][:4] == [0, 10, 0, 0]
    assert ledger.stats()["canceled"] == sum(each["changed"] for each in answers) == 11


def test_a_bulk_retry_passes_jobs_that_must_stay(admin, ledger, monkeypatch):
    """A job whose need has failed stays as it is until the need comes back, and must not be found again and again."""
    monkeypatch.setattr(bulk_room, "MOST_AT_ONCE", 5)
    first, *_ = submit(admin, 12)
    fail_all(ledger)
    ledger.write(lambda tx: [tx.execute(NEEDS, {"job": job, "need": first}) for job in range(first + 1, first + 12)])
    assert [each["changed"] for each in bulk(admin, "retry", first + 11)] == [0, 0, 2]


def test_a_bulk_action_needs_a_reason_and_stays_with_its_tenant(caller, admin):
    submit(admin, 3)
    hasty = caller("orch:operate")
    assert hasty.post("/bulk-actions/cancel", {"upTo": 3}).json()["error"]["code"] == "REASON_REQUIRED"
    theirs = caller(tenant="theirs", X_Reason="a test")
    assert theirs.post("/bulk-actions/preview", {"action": "cancel"}).json()["count"] == 0
    assert theirs.post("/bulk-actions/cancel", {"upTo": 3}).json()["changed"] == 0
    assert admin.get("/jobs?status=canceled").json()["jobs"] == []


def test_the_trail_has_every_decision_with_who_why_and_ticket(admin, caller, ledger):
    """AUTH-05, AUTH-07."""
    submit(admin, 2)
    admin.post("/jobs/1/cancel", {"reason": "a mistake", "ticket": "OPS-7"})
    admin.post("/limits/throttle", {"pause": True, "source": "arxiv"})
    admin("PUT", "/quotas/*", {"maxActive": 5, "quotaReason": "less", "quotaTicket": "Q-1"})
    admin("PUT", "/maintenance", {"on": True})
    admin.post("/circuit-breakers/crossref/force-open", {"reason": "it is down"})
    [job] = ledger.lease("w", 1, 60) or [None]
    assert job is None
    actions = admin.get("/actions").json()["actions"]
    said = {each["action"]: (each["actor"], each["reason"], each["ticket"]) for each in actions}
    assert said["canceled"] == ("someone", "a mistake", "OPS-7")
    assert said["quota_set"] == ("someone", "less", "Q-1")
    assert {"throttle_applied", "maintenance_on", "breaker_open"} <= set(said)
    assert not {"leased", "renewed", "enqueued"} & set(said)
    scopes = {each["action"]: each["scope"] for each in actions}
    assert scopes["quota_set"] == "orch:quota"
    assert {scopes[name] for name in ("canceled", "throttle_applied", "maintenance_on", "breaker_forced_open")} == {
        "orch:operate"
    }
    ledger.cancel(2, "by hand")  # nobody asked for a token
    assert admin.get("/actions").json()["actions"][0]["scope"] is None
    assert ledger.verify_history()
    assert [each["action"] for each in admin.get("/actions?ticket=OPS-7").json()["actions"]] == ["canceled"]
    theirs = caller(tenant="theirs").get("/actions").json()["actions"]
    assert {each["action"] for each in theirs} == {"maintenance_on"}


def test_the_trail_is_read_page_by_page(admin):
    submit(admin, 7)
    for job in range(1, 8):
        admin.post(f"/jobs/{job}/cancel", {"reason": f"number {job}"})
    seen, token = [], ""
    for _ in range(10):
        page = admin.get(f"/actions?page_size=3{token}").json()
        seen += [each["jobId"] for each in page["actions"]]
        if page["next_page_token"] is None:
            break
        token = f"&page_token={page['next_page_token']}"
    assert seen == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.slow
def test_a_policy_is_tried_before_it_is_saved(admin):
    for tenant in ("a", "b"):
        admin.post("/jobs", {"payload": {}}, X_Tenant=tenant)
    body = {"strategy": "Proportional", "totalCapacity": 9, "tenants": [{"tenant": "b", "weight": 2}]}
    preview = admin.post("/quota-governance/preview", body).json()
    assert {row["tenant"]: row["after"] for row in preview["tenants"]} == {"a": 3, "b": 6}
    assert (preview["governs"], preview["tenants"][0]["before"]) == (True, None)
    assert admin.get("/quota-governance/policies").json()["policies"] == []
    admin.post("/quota-governance/policies", {**{k: v for k, v in body.items() if k != "tenants"}, "name": "p"})
    weaker = admin.post("/quota-governance/preview", {**body, "priority": -1}).json()
    assert (weaker["governs"], weaker["governedBy"][:4]) == (False, "pol_")
    assert (
        admin.post("/quota-governance/preview", {**body, "minimumPerTenant": 5, "maximumPerTenant": 1}).status_code
        == 422
    )


def test_a_quota_is_tried_before_it_is_saved(admin, ledger):
    submit(admin, 4)
    ledger.lease("w", 3, 60)
    preview = admin.post("/quotas/content.download/preview", {"maxActive": 2}).json()
    assert (preview["before"], preview["after"], preview["active"], preview["overBy"]) == (None, 2, 3, 1)
    assert admin.get("/quotas").json()["quotas"] == []


def test_the_dashboard_says_how_long_the_backlog_will_take(admin, ledger):
    submit(admin, 10)
    assert admin.get("/dashboard/metrics").json()["backlogSeconds"] is None
    for job in ledger.lease("w", 4, 60):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    shown = admin.get("/dashboard/metrics").json()
    assert (shown["waiting"], shown["maintenance"]) == (6, False)
    assert shown["endsPerMinute"] > 0
    assert shown["backlogSeconds"] == pytest.approx(6 * 60 / shown["endsPerMinute"], rel=0.01)
