"""Jobs over HTTP: submit, list, look, call off, run again."""

from __future__ import annotations

import pytest

from DocsToKG.Orchestrator.api.openapi import EXAMPLES, document
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish


def submit(admin, count=1, **fields):
    jobs = [{"artifactId": f"doi:10.1/{n}", "payload": {"n": n}, **fields} for n in range(count)]
    return [job["id"] for job in admin.post("/jobs/bulk", {"jobs": jobs}).json()["jobs"]]


def end(ledger, state=JobState.ERROR, why="not found"):
    [job] = ledger.lease("w", 1, 60)
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, state, why))
    return job.job_id


def test_a_job_is_submitted_and_shown(admin):
    """API-01, API-02, API-26, DOC-04, DOC-05."""
    made = admin.post("/jobs", {"artifactId": "doi:10.1/a", "payload": {"doi": "10.1/a"}, "priority": 5})
    assert (made.status_code, made.headers["location"]) == (201, "/api/v1/orchestrator/jobs/1")
    job = admin.get("/jobs/1").json()
    assert (job["status"], job["priority"], job["payload"]) == ("queued", 5, {"doi": "10.1/a"})
    assert job["payloadDigest"].startswith("sha256:")
    assert (job["createdAt"][-1], job["signatures"]) == ("Z", [])
    assert admin.get("/jobs/1").content == admin.get("/api/jobs/1").content


def test_the_same_artifact_twice_is_one_job(admin):
    body = {"artifactId": "doi:10.1/a", "payload": {}}
    assert admin.post("/jobs", body).json()["created"]
    again = admin.post("/jobs", body)
    assert (again.status_code, again.json()["created"]) == (200, False)


def test_a_key_acts_once_and_gives_the_first_answer(admin, ledger):
    """API-29, JOB-18."""
    first = admin.post("/jobs", {"payload": {"n": 1}}, Idempotency_Key="k1")
    again = admin.post("/api/jobs", {"payload": {"n": 1}}, Idempotency_Key="k1")
    assert again.content == first.content
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert admin.post("/jobs", {"payload": {"n": 2}}, Idempotency_Key="k1").status_code == 409
    assert ledger.stats()["total"] == 1


def test_a_key_is_free_again_when_the_request_did_not_act(admin):
    refused = admin.post("/jobs", {"payload": {}, "payloadDigest": "0" * 64}, Idempotency_Key="k")
    assert refused.status_code == 422
    assert admin.post("/jobs", {"payload": {}, "payloadDigest": "0" * 64}, Idempotency_Key="k").status_code == 422
    for key in ("", " ", "x" * 129, "é"):
        assert admin.post("/jobs", {"payload": {}}, Idempotency_Key=key.encode()).status_code == 400


def test_the_key_of_one_tenant_is_not_that_of_another(caller):
    body = {"payload": {}}
    made = [caller(tenant=name).post("/jobs", body, Idempotency_Key="k").json()["id"] for name in ("a", "b")]
    assert made == [1, 2]


def test_a_job_may_not_name_another_tenant(admin):
    assert admin.post("/jobs", {"payload": {}, "tenant": "theirs"}).json()["error"]["code"] == "TENANT_FORBIDDEN"


def test_lists_go_page_by_page_in_a_stable_order(admin):
    """API-28."""
    ids = submit(admin, 7)
    seen, token = [], None
    while True:
        page = admin.get("/jobs?page_size=3" + (f"&page_token={token}" if token else "")).json()
        seen += [job["id"] for job in page["jobs"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert seen == sorted(ids, reverse=True)
    assert admin.get("/jobs?page_token=garbage").json()["error"]["code"] == "BAD_PAGE_TOKEN"
    assert admin.get("/jobs?page_size=501").status_code == 422


def test_lists_are_filtered(admin, ledger):
    """API-01."""
    submit(admin, 2)
    submit(admin, 1, jobType="other")
    end(ledger)
    assert [job["status"] for job in admin.get("/jobs?status=failed").json()["jobs"]] == ["failed"]
    assert len(admin.get("/jobs?status=failed&status=queued").json()["jobs"]) == 3
    assert [job["jobType"] for job in admin.get("/jobs?jobType=other").json()["jobs"]] == ["other"]
    assert len(admin.get("/jobs?search=not%20found").json()["jobs"]) == 1
    assert admin.get("/jobs?createdFrom=2100-01-01T00:00:00Z").json()["jobs"] == []
    assert len(admin.get("/jobs?createdTo=2100-01-01T00:00:00%2B02:00").json()["jobs"]) == 3
    assert admin.get("/jobs?createdTo=2100-01-01T00:00:00").status_code == 422
    assert admin.get("/jobs?status=done").status_code == 422


def test_a_job_is_called_off_with_a_reason(admin, caller):
    """API-03, JOB-15: the reason is stored with who gave it."""
    [job] = submit(admin)
    assert caller().post(f"/jobs/{job}/cancel").json()["error"]["code"] == "REASON_REQUIRED"
    body = {"reason": "not needed", "ticket": "T-9"}
    assert caller().post(f"/jobs/{job}/cancel", body).json()["status"] == "canceled"
    last = admin.get(f"/jobs/{job}/history").json()["events"][-1]
    assert (last["event"], last["actor"], last["reason"], last["ticket"]) == (
        "canceled",
        "someone",
        "not needed",
        "T-9",
    )


def test_an_ended_job_is_replayed_as_a_copy(admin, ledger):
    """API-04, JOB-14: also without a prefix."""
    [job] = submit(admin)
    assert admin.post(f"/jobs/{job}/replay").json()["error"]["code"] == "CONFLICT"
    end(ledger)
    headers = {"Authorization": f"Bearer {admin.token}", "X-Reason": "again"}
    copy = admin.client.post(f"/jobs/{job}/replay", headers=headers).json()
    assert (copy["replayOf"], copy["priority"], copy["status"]) == (job, 1000, "queued")
    original = admin.get(f"/jobs/{job}").json()
    assert (copy["payloadDigest"], original["replays"]) == (original["payloadDigest"], [copy["id"]])


def test_a_stuck_lease_is_cleared(admin, ledger):
    """OPS-06."""
    [job] = submit(admin)
    ledger.lease("stuck", 1, 3600)
    assert admin.post(f"/jobs/{job}/clear-lease").json()["status"] == "queued"
    assert len(ledger.lease("next", 1, 60)) == 1


def test_dead_letters_are_listed_and_tried_again(admin, ledger):
    submit(admin, 2)
    dead = end(ledger)
    assert [job["id"] for job in admin.get("/dead-letters").json()["jobs"]] == [dead]
    assert admin.post("/dead-letters/retry", {"jobIds": [dead, 2]}).status_code == 409
    assert admin.post("/dead-letters/retry", {"jobIds": [dead]}).json()["jobs"][0]["status"] == "queued"


def test_why_is_told(admin):
    submit(admin)
    told = admin.get("/jobs/1/why").json()
    assert (told["reason"], told["detail"]) == ("queued", "due now, and next in line")


@pytest.mark.parametrize(("old", "new"), [("/jobs/1/detail", "/jobs/1"), ("/jobs/summary", "/dashboard/metrics")])
def test_old_routes_name_their_successors(admin, old, new):
    """DOC-03."""
    submit(admin)
    answer = admin.get(old)
    assert answer.status_code == 200
    assert answer.headers["deprecation"].startswith("@")
    assert answer.headers["link"] == f'</api/v1/orchestrator{new}>; rel="successor-version"'
    assert "deprecation" not in admin.get("/jobs/1").headers


def test_dependencies_hold_a_job_back(admin):
    """JOB-03: ids of other tenants are as unknown as any."""
    [first] = submit(admin)
    second = admin.post("/jobs", {"payload": {}, "dependencies": [first]}).json()
    assert second["status"] == "pending"
    assert admin.get(f"/jobs/{second['id']}").json()["dependencies"] == [first]
    assert admin.post("/jobs", {"payload": {}, "dependencies": [999]}).status_code == 404


def test_a_job_carries_the_trace_of_its_request(admin, ledger):
    """TRC-08."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    made = admin.post("/jobs", {"payload": {}}, traceparent=trace)
    assert made.headers["x-trace-id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert ledger.job(1).trace_context == trace
    for bad in ("00-" + "0" * 32 + "-00f067aa0ba902b7-01", "nonsense"):
        assert admin.get("/jobs/1", traceparent=bad).headers["x-trace-id"] not in (bad, "0" * 32)


def test_the_examples_of_the_description_are_true(admin):
    """DOC-02: pagination, idempotency and errors, in their order, on a fresh ledger."""
    kept: dict[str, str] = {}
    bare = {"Authorization": f"Bearer {admin.token}"}
    for example in EXAMPLES:
        asked, wanted = example["request"], example["response"]
        path = asked["path"]
        for name, value in kept.items():
            path = path.replace(f"${name}", value)
        headers = {**bare, **asked.get("headers", {})}
        answer = admin.client.request(asked["method"], path, json=asked.get("body"), headers=headers)
        assert answer.status_code == wanted["status"], example["title"]
        assert holds(answer.json(), wanted["body"]), example["title"]
        for name, value in wanted.get("headers", {}).items():
            assert answer.headers[name] == value
        for field, name in wanted.get("keep", {}).items():
            kept[name] = answer.json()[field]


def holds(found, wanted):
    if isinstance(wanted, dict):
        return all(name in found and holds(found[name], value) for name, value in wanted.items())
    return found == wanted


@pytest.mark.slow
def test_the_description_is_found_and_kept(admin, client, app):
    """DOC-01, DOC-02: OAS 3.1, the same bytes for the same build."""
    found = client.get("/.well-known/openapi")
    assert (found.json()["spec"], found.headers["cache-control"]) == (
        "/openapi/orchestrator.json",
        "public, max-age=300",
    )
    described = client.get(found.json()["spec"])
    assert described.json()["openapi"] == "3.1.0"
    assert described.json() == document(app)
    assert client.get(found.json()["spec"], headers={"If-None-Match": described.headers["etag"]}).status_code == 304
    operations = [each["operationId"] for item in described.json()["paths"].values() for each in item.values()]
    assert len(operations) == len(set(operations))
    assert {"LeaseJob", "pauseSource", "resumeSource", "listJobs", "listJobsShort"} <= set(operations)
    assert "http" not in str(described.json()["info"])


def test_a_list_the_job_itself_and_graphql_show_the_same(admin):
    """One view per resource: REST and GraphQL write it with the same names and formats."""
    [job] = submit(admin, payload={"doi": "10.1/a"}, project="p", source="s", correlationId="c")
    [lease] = admin.post("/leases", {"workerId": "w"}).json()["leases"]
    [listed] = admin.get("/jobs").json()["jobs"]
    shown = admin.get(f"/jobs/{job}").json()
    assert {name: shown[name] for name in listed} == listed
    assert (listed["leaseUntil"], listed["payloadDigest"]) == (lease["leaseUntil"], lease["payloadDigest"])
    query = "{ jobs { nodes { id artifactId nextEligibleAt payloadDigest status createdAt finishedAt } } }"
    [node] = admin.post("/graphql", {"query": query}).json()["data"]["jobs"]["nodes"]
    assert {**node, "id": job} == {name: listed[name] for name in node}
