"""Figures for Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from DocsToKG.Orchestrator.events.outbox import Outbox, Subscription


def page(admin) -> dict[str, float]:
    answer = admin.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    return {f"{s.name}{sorted(s.labels.items())}": s.value for family in families for s in family.samples}


def test_the_figures_follow_what_happens(admin):
    """MET-18 to MET-22, MET-24, MET-25."""
    for n in range(3):
        admin.post("/jobs", {"payload": {"n": n}})
    one, two = admin.post("/leases", {"workerId": "w", "limit": 2}).json()["leases"]
    admin.post(f"/leases/{one['leaseId']}/renew")
    admin.post("/leases/renew", {"leaseIds": [one["leaseId"], two["leaseId"], "lease_" + "0" * 32]})
    failed = {"status": "failed", "reason": "http-500"}
    admin.post(f"/leases/{one['leaseId']}/complete", failed)
    admin.post(f"/leases/{two['leaseId']}/complete", {**failed, "retryable": False})
    run = admin.post("/pack-runs", {}).json()["packRunId"]
    admin.post(f"/pack-runs/{run}/heartbeat")
    admin.post(f"/pack-runs/{run}/artifacts", {"name": "a", "digest": "sha256:" + "0" * 64, "uri": "s3://b/a"})
    found = page(admin)
    assert found["job_queue_depth[('jobType', 'content.download'), ('tenant', 'default')]"] == 2
    assert found["lease_extensions_total[]"] == 3
    assert found["job_retry_total[]"] == 1
    assert found["job_failures_total[('end', 'error')]"] == found["job_failures_total[('end', 'retried')]"] == 1
    assert found["job_latency_seconds_count[]"] == found["job_latency_seconds_bucket[('le', '+Inf')]"] == 1
    assert 0 <= found["job_latency_seconds_sum[]"] < 60
    assert found["pack_run_heartbeats_total[]"] == found["pack_run_artifacts_total[]"] == 1


def test_all_tenants_figures_need_a_token_for_all(caller):
    assert caller().get("/metrics").json()["error"]["code"] == "TENANT_FORBIDDEN"


def test_what_gathers_for_a_target_that_is_away_is_seen(admin, ledger):
    """The outbox has no bound, so its growth must show."""
    Outbox(ledger).register([Subscription("crm", "webhook")])
    for n in range(2):
        admin.post("/jobs", {"payload": {"n": n}})
    found = page(admin)
    assert found["event_outbox_waiting[('target', 'crm')]"] == 2
    assert found["event_outbox_dead[('target', 'crm')]"] == 0
    assert found["event_outbox_oldest_seconds[('target', 'crm')]"] >= 0
