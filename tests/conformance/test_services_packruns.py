"""Pack-runs: logs, artifacts, heartbeats and ends, on every ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.control.pack_runs import Hints, PackRunService
from DocsToKG.Orchestrator.control.tenants import TenantService
from DocsToKG.Orchestrator.errors import BadJob, Conflict, LedgerBusy, NotFound, Refused
from DocsToKG.Orchestrator.ledger.base import Finish, JobState

DIGEST = "sha256:" + sha256_hex(b"hello")


@pytest.fixture
def packs(ledger: Any) -> PackRunService:
    return PackRunService(ledger)


def register(packs: PackRunService, tenant: str = "a", **more: Any) -> str:
    hints = more.pop("hints", Hints(artifacts=["report.pdf"], channel="logs", heartbeat_s=10))
    return packs.register(tenant, payload={"pack": "p"}, hints=hints, actor="me", **more).pack_run_id


def test_a_run_is_registered_with_its_hints_and_a_job(ledger: Any, packs: PackRunService) -> None:
    """PACK-01, PACK-04."""
    run = packs.get("a", register(packs, project="p1", correlation_id="c1", idempotency_key="k1"))
    assert (run.state, run.channel, run.heartbeat_s, run.project) == ("registered", "logs", 10.0, "p1")
    assert run.job_id is not None
    [job] = ledger.lease("runner", 1, 60)
    assert (job.job_id, job.job_type, job.tenant, job.project) == (run.job_id, "pack-run", "a", "p1")
    assert job.payload["packRun"] == {
        "packRunId": run.pack_run_id, "heartbeatSeconds": 10.0, "artifacts": ["report.pdf"],
    }  # fmt: skip
    again = packs.register("a", payload={"pack": "p"}, actor="me", idempotency_key="k1")
    assert again.pack_run_id == run.pack_run_id
    assert ledger.stats()["total"] == 1


def test_bad_hints_are_refused_and_leave_nothing(ledger: Any, packs: PackRunService) -> None:
    for hints in (Hints(heartbeat_s=0), Hints(heartbeat_s=10**6), Hints(artifacts=[""]), Hints(channel="x" * 300)):
        with pytest.raises(BadJob):
            register(packs, hints=hints)
    assert packs.list("a").pack_runs == []


def test_a_run_whose_job_would_be_refused_leaves_nothing(ledger: Any, packs: PackRunService) -> None:
    with pytest.raises(BadJob):
        packs.register("a", payload={"text": "x" * 2**20}, actor="me")
    TenantService(ledger).block("a", actor="op", reason="unpaid")
    with pytest.raises(Refused):
        register(packs, idempotency_key="k")
    assert packs.list("a").pack_runs == []
    [(count,)] = ledger.read(lambda tx: tx.execute("SELECT count(*) FROM job_history WHERE event LIKE 'pack_run%'"))
    assert count == 0
    TenantService(ledger).unblock("a", actor="op")
    assert packs.get("a", register(packs, idempotency_key="k")).job_id is not None


def test_lines_are_numbered_by_the_ledger_and_read_from_any_number(packs: PackRunService) -> None:
    run = register(packs)
    assert packs.append_logs("a", run, [("stdout", "one\n"), ("stderr", "two")]) == 2
    assert packs.append_logs("a", run, [("stdout", f"line {n}") for n in range(250)]) == 252
    page = packs.logs("a", run, after=1, limit=3)
    assert [(line.seq, line.stream, line.line) for line in page.lines] == [
        (2, "stderr", "two"), (3, "stdout", "line 0"), (4, "stdout", "line 1"),
    ]  # fmt: skip
    assert not page.ended
    assert packs.logs("a", run, after=252).lines == []
    assert len(packs.logs("a", run, limit=10_000).lines) == 252


def test_hostile_lines_are_bounded_and_kept_on_one_line(packs: PackRunService) -> None:
    run = register(packs)
    packs.append_logs("a", run, [("o", "a\0b"), ("o", "x" * 20_000), ("o", "\ud800"), ("o", "1\n2\r3"), ("o", "")])
    lines = [line.line for line in packs.logs("a", run).lines]
    assert lines[0] == "a\ufffdb"
    assert len(lines[1]) == 8192
    assert lines[1].endswith("[cut]")
    assert all("\n" not in line and "\r" not in line for line in lines)
    for batch in ([], [("o", "x")] * 501, [("", "x")], [("s" * 33, "x")]):
        with pytest.raises(BadJob):
            packs.append_logs("a", run, batch)


def test_writers_at_once_leave_no_gap_and_no_double(open_ledger: Callable[..., Any]) -> None:
    services = [PackRunService(open_ledger()) for _ in range(4)]
    run = register(services[0])

    def write(packs: PackRunService, name: int) -> None:
        for turn in range(5):
            packs.append_logs("a", run, [(f"s{name}", f"{turn}/{n}") for n in range(7)])

    threads = [threading.Thread(target=write, args=(packs, n)) for n, packs in enumerate(services)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    lines = services[0].logs("a", run, limit=500).lines
    assert [line.seq for line in lines] == list(range(1, 4 * 5 * 7 + 1))
    for name in range(4):
        mine = [line.line for line in lines if line.stream == f"s{name}"]
        assert mine == [f"{turn}/{n}" for turn in range(5) for n in range(7)]


def test_an_artifact_has_a_checked_digest_for_good(packs: PackRunService) -> None:
    """PACK-03."""
    run = register(packs)
    words: dict[str, Any] = {"name": "r.pdf", "uri": "s3://b/r.pdf", "mime": "application/pdf"}
    made = packs.publish("a", run, digest=DIGEST, content=b"hello", **words)
    assert (made.size, made.digest) == (5, DIGEST)
    assert packs.publish("a", run, digest=DIGEST, **words) == made
    with pytest.raises(Conflict):
        packs.publish("a", run, digest="sha256:" + "0" * 64, **words)
    for digest, content in (
        (DIGEST, b"other"),
        ("sha256:xyz", None),
        ("md5:" + "0" * 64, None),
        (DIGEST.upper(), None),
    ):
        with pytest.raises(BadJob):
            packs.publish("a", run, name="x", uri="u", digest=digest, content=content)
    with pytest.raises(BadJob):
        packs.publish("a", run, name="x", uri="u", digest=DIGEST, content=b"hello", size=4)
    with pytest.raises(BadJob):
        packs.publish("a", run, name="x", uri="u", digest=DIGEST, size=-1)
    assert packs.artifacts("a", run) == [made]


def test_a_run_that_misses_three_heartbeats_is_timed_out_with_its_job(
    ledger: Any, packs: PackRunService, clock: ManualClock
) -> None:
    """PACK-05."""
    silent, lively, waiting = register(packs), register(packs), register(packs)
    jobs = {job.payload["packRun"]["packRunId"]: job for job in ledger.lease("runner", 2, 6000)}
    for run in (silent, lively):
        assert packs.heartbeat("a", run).state == "running"
    clock.advance(29)
    packs.append_logs("a", lively, [("o", "still here")])
    assert packs.time_out_overdue() == []
    clock.advance(2)
    assert [run.pack_run_id for run in packs.time_out_overdue()] == [silent]
    assert packs.time_out_overdue() == []
    assert packs.get("a", silent).state == "timed_out"
    assert packs.get("a", lively).state == "running"
    assert packs.get("a", waiting).state == "registered"
    job = ledger.job(jobs[silent].job_id)
    assert (job.state, job.last_error.split(":")[0]) == (JobState.TIMED_OUT, "heartbeat_missed")
    assert ledger.job(jobs[lively].job_id).state is JobState.IN_PROGRESS


def test_a_job_that_waits_again_is_called_off_with_its_run(
    ledger: Any, packs: PackRunService, clock: ManualClock
) -> None:
    """PACK-05: its runner died, and the next one could do nothing for a run that is over."""
    run = register(packs)
    [job] = ledger.lease("runner", 1, 6000)
    packs.heartbeat("a", run)
    ledger.release_worker("runner")
    clock.advance(31)
    assert len(packs.time_out_overdue()) == 1
    found = ledger.job(job.job_id)
    assert (found.state, found.last_error.split(":")[0]) == (JobState.CANCELED, "heartbeat_missed")
    assert ledger.lease("other", 1, 60) == []


def test_a_job_that_comes_back_while_its_run_is_timed_out_is_called_off(
    ledger: Any, packs: PackRunService, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = register(packs)
    [job] = ledger.lease("runner", 1, 6000)
    packs.heartbeat("a", run)
    clock.advance(31)
    finish = ledger.submit_finish
    monkeypatch.setattr(ledger, "submit_finish", lambda end: ledger.release_worker("runner") and finish(end))
    assert len(packs.time_out_overdue()) == 1
    assert ledger.job(job.job_id).state is JobState.CANCELED


def test_a_job_that_could_not_be_ended_with_its_run_is_ended_later(
    ledger: Any, packs: PackRunService, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [register(packs), register(packs)]
    jobs = ledger.lease("runner", 2, 6000)
    for run in runs:
        packs.heartbeat("a", run)
    clock.advance(31)

    def busy(*_: Any, **__: Any) -> None:
        raise LedgerBusy("locked")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "submit_finish", busy)
        with pytest.raises(LedgerBusy):
            packs.time_out_overdue()
    assert {run.pack_run_id for run in packs.time_out_overdue()} == set(runs)
    assert packs.time_out_overdue() == []
    assert [ledger.job(job.job_id).state for job in jobs] == [JobState.TIMED_OUT] * 2


def test_a_run_whose_job_is_over_already_is_timed_out_alone(
    ledger: Any, packs: PackRunService, clock: ManualClock
) -> None:
    run = register(packs)
    [job] = ledger.lease("runner", 1, 6000)
    packs.heartbeat("a", run)
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    clock.advance(100)
    assert len(packs.time_out_overdue()) == 1
    assert ledger.job(job.job_id).state is JobState.DONE


def test_an_ended_run_takes_nothing_more_and_each_change_is_one_row(ledger: Any, packs: PackRunService) -> None:
    """DOC-09."""
    run = register(packs, correlation_id="c1")
    packs.heartbeat("a", run)
    packs.heartbeat("a", run)
    assert packs.finish("a", run, "succeeded", actor="runner").ended_at is not None
    assert packs.finish("a", run, "succeeded", actor="runner").state == "succeeded"
    with pytest.raises(Conflict):
        packs.finish("a", run, "failed", actor="runner")
    with pytest.raises(BadJob):
        packs.finish("a", run, "done", actor="runner")
    for write in (
        lambda: packs.heartbeat("a", run),
        lambda: packs.append_logs("a", run, [("o", "x")]),
        lambda: packs.publish("a", run, name="x", uri="u", digest=DIGEST),
    ):
        with pytest.raises(Conflict):
            write()
    assert packs.logs("a", run).ended
    rows = ledger.read(
        lambda tx: tx.execute("SELECT event, detail_json FROM job_history WHERE event LIKE 'pack_run%' ORDER BY seq")
    )
    assert [event for event, _ in rows] == ["pack_run_registered", "pack_run_started", "pack_run_succeeded"]
    assert all('"correlationId": "c1"' in detail and run in detail for _, detail in rows)


def test_another_tenant_or_project_gets_nothing(packs: PackRunService) -> None:
    """PACK-02, LEDG-08."""
    run = register(packs, project="p1")
    packs.append_logs("a", run, [("o", "secret")])
    asked: list[Callable[[], Any]] = [
        lambda: packs.get("b", run),
        lambda: packs.get("a", run, project="p2"),
        lambda: packs.logs("b", run),
        lambda: packs.logs("a", run, project="p2"),
        lambda: packs.artifacts("b", run),
        lambda: packs.artifacts("a", run, project="p2"),
        lambda: packs.append_logs("b", run, [("o", "x")]),
        lambda: packs.publish("b", run, name="x", uri="u", digest=DIGEST),
        lambda: packs.heartbeat("b", run),
        lambda: packs.finish("b", run, "failed", actor="x"),
        lambda: packs.get("a", "pr_no"),
        lambda: packs.get("a", "\ud800"),
    ]
    for ask in asked:
        with pytest.raises(NotFound):
            ask()
    assert packs.list("b").pack_runs == []
    assert packs.get("a", run).state == "running"


def test_runs_are_listed_newest_first_in_pages(packs: PackRunService, clock: ManualClock) -> None:
    runs = []
    for n in range(5):
        runs.append(register(packs))
        clock.advance(n % 2)
    token, seen = None, []
    while True:
        page = packs.list("a", page_size=2, page_token=token)
        seen += [run.pack_run_id for run in page.pack_runs]
        token = page.next_page_token
        if token is None:
            break
    assert sorted(seen) == sorted(runs)
    assert [packs.get("a", run).created_at for run in seen] == sorted(
        (packs.get("a", run).created_at for run in runs), reverse=True
    )
