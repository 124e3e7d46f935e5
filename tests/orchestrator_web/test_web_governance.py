"""Quotas, policies, breakers, throttles, incidents, tenants, backfills and pack-runs over HTTP."""

from __future__ import annotations

import pytest

POLICY = {"name": "pool", "strategy": "Equal", "totalCapacity": 10, "quotaReason": "a pool", "quotaTicket": "Q-1"}


def submit(admin, count=1, **fields):
    jobs = [{"artifactId": f"a:{fields.get('jobType', '')}{n}", "payload": {}, **fields} for n in range(count)]
    return [job["id"] for job in admin.post("/jobs/bulk", {"jobs": jobs}).json()["jobs"]]


def lease(admin, **body):
    return admin.post("/leases", {"workerId": "w", "limit": 100, **body}).json()["leases"]


def test_a_policy_lives_from_making_to_removal(admin):
    """API-15 to API-19, with versions."""
    made = admin.post("/quota-governance/policies", POLICY)
    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    policy = made.json()
    path = f"/quota-governance/policies/{policy['policyId']}"
    assert (policy["quotaReason"], policy["quotaTicket"], policy["actor"]) == ("a pool", "Q-1", "someone")
    assert (policy["minimumPerTenant"], policy["burstMultiplier"], policy["enabled"]) == (1, 1.5, True)
    changed = admin("PUT", path, {"totalCapacity": 20}, If_Match='"v1"')
    assert (changed.json()["totalCapacity"], changed.json()["name"], changed.headers["etag"]) == (20, "pool", '"v2"')
    stale = admin("PUT", path, {"totalCapacity": 30}, If_Match='"v1"')
    assert (stale.status_code, stale.json()["error"]["code"], stale.headers["etag"]) == (
        412,
        "VERSION_CONFLICT",
        '"v2"',
    )
    assert admin("PUT", path, {"totalCapacity": 30}, If_Match='"nonsense"').status_code == 412
    assert admin.get("/quota-governance/policies?enabled=false").json()["policies"] == []
    assert admin("DELETE", path, If_Match='"v2"').status_code == 204
    assert admin.get(path).status_code == 404


def test_quota_changes_need_their_reason_and_nothing_changes_without(caller):
    """AUTH-06."""
    silent = caller(tenants=("*",))
    body = {key: value for key, value in POLICY.items() if not key.startswith("quota")}
    for method, path, sent in (
        ("POST", "/quota-governance/policies", body),
        ("PUT", "/quotas/content.download", {"maxActive": 1}),
        ("DELETE", "/quotas/content.download", None),
        ("PUT", "/tenants/a/weight", {"weight": 2}),
    ):
        assert silent(method, path, sent).json()["error"]["code"] == "REASON_REQUIRED"
    assert silent.get("/quota-governance/policies").json()["policies"] == []
    assert silent.get("/quotas").json()["quotas"] == []


def test_a_quota_holds_leases_back_and_the_status_says_so(admin):
    """QUOTA-01, QUOTA-19, JOB-05."""
    submit(admin, 5)
    quota = {"maxActive": 2, "maxPerHour": 1000, "burst": 10}
    set_to = admin("PUT", "/quotas/content.download", quota, If_Match='"v0"')
    assert (set_to.status_code, set_to.headers["etag"]) == (200, '"v1"')
    assert len(lease(admin)) == 2
    status = admin.get("/quota-governance/status?jobType=content.download").json()
    assert (status["effective"], status["active"]) == (2, 2)
    told = admin.get("/quota-governance/can-schedule?jobType=content.download").json()
    assert (told["canSchedule"], told["blockedBy"]) == (False, "quota")
    assert admin("DELETE", "/quotas/content.download").status_code == 204
    assert len(lease(admin)) == 3


def test_a_quota_for_every_tenant_needs_a_token_for_every_tenant(admin, caller):
    quota = {"maxActive": 1}
    assert admin("PUT", "/quotas/*?everyTenant=true", quota).json()["tenant"] == "*"
    assert caller(X_Reason="x")("PUT", "/quotas/*?everyTenant=true", quota).status_code == 403
    assert [each["tenant"] for each in caller().get("/quotas").json()["quotas"]] == ["*"]


def test_quota_is_requested_and_given_back(admin, caller):
    """API-20 to API-24, QUOTA-16, QUOTA-17."""
    policy = admin.post("/quota-governance/policies", POLICY).json()["policyId"]
    granted = admin.post("/quota-governance/request", {"jobType": "content.download", "requestedAmount": 99}).json()
    assert granted == {"policyId": policy, "granted": 10, "burstUsed": 0, "held": 10}
    assert admin.get("/quota-governance/allocation").json()["share"] == 10
    back = admin.post("/quota-governance/release", {"jobType": "content.download", "releasedAmount": 99}).json()
    assert back == {"policyId": policy, "released": 10, "held": 0}
    assert admin.get("/quota-governance/summary").json()["policies"][0]["totalCapacity"] == 10
    assert caller().get("/quota-governance/summary").json()["error"]["code"] == "TENANT_FORBIDDEN"


def test_a_breaker_opens_blocks_and_is_forced(admin):
    """API-08 to API-14."""
    path = "/circuit-breakers/unpaywall"
    assert admin.get(f"{path}/check").json() == {
        "isAllowed": True,
        "state": "Closed",
        "failureRate": 0.0,
        "timeUntilRetry": 0.0,
    }
    for _ in range(10):
        state = admin.post(f"{path}/failure", {"failureReason": "http-500"}).json()["state"]
    assert state == "Open"
    blocked = admin.get(f"{path}/check").json()
    assert (blocked["isAllowed"], blocked["timeUntilRetry"] > 0) == (False, True)
    assert [each["serviceId"] for each in admin.get("/circuit-breakers?state=Open").json()["circuitBreakers"]] == [
        "unpaywall"
    ]
    closed = admin.post(f"{path}/force-close", {"reason": "it is well"}).json()
    assert (closed["state"], closed["forced"]) == ("Closed", True)
    assert admin.post(f"{path}/force-open").json()["state"] == "Open"
    assert admin.get("/circuit-breakers?state=HalfOpen").json()["circuitBreakers"] == []
    assert admin.post(f"{path}/success").status_code == 200
    assert len(admin.get(f"{path}/transitions").json()["transitions"]) >= 3
    assert admin.get("/circuit-breakers/other").status_code == 404


def test_a_breaker_has_settings_of_its_own_until_they_are_taken_back(admin):
    path = "/circuit-breakers/unpaywall"
    given = admin("PUT", f"{path}/settings", {"minimumSamples": 2, "openSeconds": 900, "longestOpenSeconds": 900})
    assert given.json()["settings"] == {
        "failureThreshold": 0.5, "windowSeconds": 60.0, "minimumSamples": 2, "openSeconds": 900.0,
        "longestOpenSeconds": 900.0, "halfOpenTestCount": 3,
    }  # fmt: skip
    states = [admin.post(f"{path}/failure", {"failureReason": "http-500"}).json()["state"] for _ in range(2)]
    assert states == ["Closed", "Open"]
    assert 600 < admin.get(f"{path}/check").json()["timeUntilRetry"] <= 900
    assert admin("DELETE", f"{path}/settings").status_code == 204
    assert admin.get(path).json()["settings"]["minimumSamples"] == 10


def test_settings_of_a_breaker_are_refused_by_name(admin, caller):
    path = "/circuit-breakers/unpaywall/settings"
    high = admin("PUT", path, {"failureThreshold": 1.5})
    assert (high.status_code, "failureThreshold" in high.text) == (422, True)
    upside_down = admin("PUT", path, {"openSeconds": 700})
    assert (upside_down.status_code, "longestOpenSeconds" in upside_down.text) == (422, True)
    assert caller("orch:operate")("PUT", path, {"minimumSamples": 2}).status_code == 400  # without a reason
    assert caller("orch:read", X_Reason="a test of mine")("PUT", path, {"minimumSamples": 2}).status_code == 403
    assert admin.get("/circuit-breakers/unpaywall").status_code == 404


def test_a_source_is_paused_and_resumed(admin):
    """THR-01, API-05, API-27."""
    submit(admin, 1, source="arxiv", jobType="x")
    submit(admin, 1, source="pmc", jobType="y")
    paused = admin.post("/sources/arxiv/pause", {"reason": "they asked"}).json()
    assert (paused["mode"], paused["source"], paused["reason"]) == ("pause", "arxiv", "they asked")
    assert [each["provenance"]["tenant"] for each in lease(admin)] == ["default"]
    assert [each["paused"] for each in admin.get("/sources").json()["sources"]] == [True]
    assert len(admin.post("/sources/arxiv/resume").json()["throttles"]) == 1
    assert [each["source"] for each in lease(admin)] == ["arxiv"]
    admin("PUT", "/sources/arxiv", {"state": {"export.arxiv.org": {"rate": "1/3 seconds"}}})
    assert admin.get("/sources").json()["sources"][0]["state"] == {"export.arxiv.org": {"rate": "1/3 seconds"}}


def test_a_throttle_lowers_what_runs_at_once_until_it_is_lifted(admin):
    """THR-02, THR-03."""
    submit(admin, 4)
    body = {"jobType": "content.download", "maxActive": 1, "expiresInSeconds": 3600}
    throttle = admin.post("/limits/throttle", body).json()
    assert throttle["expiresAt"] > throttle["createdAt"]
    assert len(lease(admin)) == 1
    assert admin.post("/limits/throttle", {"pause": True, "maxActive": 1}).status_code == 422
    lifted = admin.post(f"/throttles/{throttle['throttleId']}/lift").json()
    assert lifted["liftedBy"] == "someone"
    assert admin.get("/throttles").json()["throttles"] == []
    assert len(admin.get("/throttles?active=false").json()["throttles"]) == 1
    assert len(lease(admin)) == 3


def test_incidents_are_joined_acknowledged_and_resolved(admin):
    """INC-02, INC-04."""
    body = {"source": "jobtype:x", "severity": "error", "cause": "half of them fail"}
    first = admin.post("/incidents", body).json()
    assert admin.post("/incidents", body).json()["count"] == 2
    path = f"/incidents/{first['incidentId']}"
    seen = admin.post(f"{path}/acknowledge")
    assert (seen.json()["state"], seen.json()["actor"]) == ("acknowledged", "someone")
    assert admin.post(f"{path}/resolve", If_Match='"v1"').status_code == 412
    assert admin.post(f"{path}/resolve", If_Match=seen.headers["etag"]).json()["state"] == "resolved"
    assert admin.post(f"{path}/acknowledge").json()["error"]["code"] == "CONFLICT"
    assert [each["state"] for each in admin.get("/incidents?state=resolved").json()["incidents"]] == ["resolved"]


def test_a_blocked_tenant_submits_and_leases_nothing(admin, caller):
    """OPS-05."""
    theirs = caller(tenant="theirs")
    theirs.post("/jobs", {"payload": {}})
    assert admin.post("/tenants/theirs/block", {"reason": "floods"}).json()["blockedReason"] == "floods"
    assert theirs.post("/jobs", {"payload": {}}).json()["error"]["code"] == "REFUSED"
    assert lease(theirs) == []
    assert [each["tenant"] for each in admin.get("/tenants?blocked=true").json()["tenants"]] == ["theirs"]
    assert theirs.post("/tenants/theirs/unblock", {"reason": "me"}).status_code == 403
    admin.post("/tenants/theirs/unblock")
    assert len(lease(theirs)) == 1
    assert admin("PUT", "/tenants/theirs/weight", {"weight": 3}).json()["weight"] == 3


@pytest.mark.parametrize("missing", ["backfillReason", "backfillTicket", "reason", "ticket"])
def test_a_backfill_needs_two_scopes_two_reasons_and_two_tickets(caller, missing):
    """AUTH-04, AUTH-05, AUTH-06, JOB-16."""
    body = {
        "jobType": "rebuild", "fromAt": "2026-01-01T00:00:00Z", "toAt": "2026-01-02T00:00:00Z", "stepSeconds": 3600,
        "backfillReason": "lost a day", "backfillTicket": "B-1", "reason": "asked to", "ticket": "O-1",
    }  # fmt: skip
    asking = caller("orch:quota", "orch:backfill", "orch:read")
    refused = asking.post("/backfills", {name: value for name, value in body.items() if name != missing})
    assert refused.json()["error"]["code"] == "REASON_REQUIRED"
    assert asking.get("/jobs").json()["jobs"] == []
    assert caller("orch:backfill").post("/backfills", body).status_code == 403
    made = asking.post("/backfills", body).json()
    assert (made["jobs"], made["reason"], made["ticket"]) == (24, "lost a day", "B-1")
    assert asking.get(f"/backfills/{made['backfillId']}").json() == made
    assert asking.get("/backfills").json()["backfills"] == [made]
    [begun] = [each for each in asking.get("/actions").json()["actions"] if each["action"] == "backfill_started"]
    assert (begun["reason"], begun["ticket"]) == ("lost a day", "B-1")
    assert (begun["detail"]["operatorReason"], begun["detail"]["operatorTicket"]) == ("asked to", "O-1")


def test_workers_report_and_are_listed(admin):
    admin.post("/workers", {"workerId": "w1", "node": "n1", "info": {"threads": 8}})
    submit(admin, 2)
    lease(admin, workerId="w1")
    [worker] = admin.get("/workers").json()["workers"]
    assert (worker["workerId"], worker["node"], worker["leases"], worker["info"]) == ("w1", "n1", 2, {"threads": 8})


def test_a_pack_run_logs_publishes_and_finishes(admin, caller):
    """PACK-01 to PACK-03."""
    body = {"project": "p", "artifacts": ["report.json"], "channel": "logs", "heartbeatSeconds": 5}
    run = admin.post("/pack-runs", body, Idempotency_Key="run-1").json()
    path = f"/pack-runs/{run['packRunId']}"
    assert admin.get(f"/jobs/{run['jobId']}").json()["jobType"] == "pack-run"
    assert admin.post(f"{path}/logs", {"lines": [{"line": "one"}, {"line": "two", "stream": "stderr"}]}).json() == {
        "lastSeq": 2
    }
    lines = admin.get(f"{path}/logs?after=1").json()
    assert ([each["line"] for each in lines["lines"]], lines["ended"]) == (["two"], False)
    artifact = {"name": "report.json", "digest": "sha256:" + "a" * 64, "uri": "s3://bucket/report.json"}
    assert admin.post(f"{path}/artifacts", artifact).status_code == 201
    assert admin.post(f"{path}/artifacts", {**artifact, "digest": "sha256:" + "b" * 64}).status_code == 409
    assert admin.post(f"{path}/artifacts", {**artifact, "digest": "md5:1"}).status_code == 422
    assert admin.post(f"{path}/heartbeat").json()["state"] == "running"
    assert admin.post(f"{path}/finish", {"status": "succeeded"}).json()["state"] == "succeeded"
    assert admin.post(f"{path}/logs", {"lines": [{"line": "late"}]}).status_code == 409
    assert len(admin.get(f"{path}/artifacts").json()["artifacts"]) == 1
    assert [each["packRunId"] for each in admin.get("/pack-runs").json()["packRuns"]] == [run["packRunId"]]
    for word in ("", "/logs", "/artifacts"):
        assert caller(tenant="theirs").get(path + word).status_code == 404
        assert admin.get(f"{path}{word}?project=other").status_code == 404


def test_the_figures_show_a_type_that_is_held_without_an_end(admin):
    admin.post("/jobs", {"payload": {}})
    admin.post("/circuit-breakers/jobtype:content.download/force-open", {"reason": "a trial"})
    admin.post("/leases", {"workerId": "w"})
    [held] = admin.get("/dashboard/metrics").json()["held"]
    assert (held["jobType"], held["by"], held["until"]) == ("content.download", "breaker", None)
