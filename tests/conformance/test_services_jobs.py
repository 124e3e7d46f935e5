"""Jobs as their tenants and operators see them, on every ledger."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control import paging
from DocsToKG.Orchestrator.control.jobs import pages
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.service import JobService
from DocsToKG.Orchestrator.control.jobs.views import JobView
from DocsToKG.Orchestrator.errors import BadJob, BadPage, Conflict, LeaseLost, LedgerError, Refused, UnknownJob
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, JobState, NewJob

BY = {"actor": "op", "reason": "because"}


@pytest.fixture
def jobs(ledger: Any) -> JobService:
    return JobService(ledger)


def submit(jobs: JobService, tenant: str, count: int = 1, **fields: Any) -> list[int]:
    start = sum(jobs.counts(tenant).values())
    made = [NewJob(f"doi:10.1/{start + n}", {"n": start + n}, **fields) for n in range(count)]
    return [answer.job_id for answer in jobs.submit(tenant, made, actor="producer")]


def finish(ledger: Any, job: Any, state: JobState = JobState.DONE, **more: Any) -> None:
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, state, **more))


def every(jobs: JobService, tenant: str, query: JobQuery, size: int) -> Iterator[JobView]:
    token = None
    while True:
        page = jobs.list(tenant, query, page_size=size, page_token=token)
        yield from page.jobs
        token = page.next_page_token
        if token is None:
            return


def hold_back(ledger: Any, tenant: str, job_type: str, until_s: float | None) -> None:
    ledger.write(
        lambda tx: tx.execute(
            "INSERT INTO lanes (tenant, job_type, blocked_until, blocked_by) VALUES (:tenant, :type, :until, 'quota')",
            {"tenant": tenant, "type": job_type, "until": until_s and round(until_s * 1000)},
        )
    )


def test_a_submitted_job_is_the_tenants_whatever_it_names(jobs: JobService) -> None:
    [answer] = jobs.submit("a", [NewJob("x", {"k": 1}, tenant="b")], actor="p")
    assert answer.created
    assert jobs.get("a", answer.job_id).tenant == "a"
    with pytest.raises(UnknownJob):
        jobs.get("b", answer.job_id)


def test_the_same_key_makes_one_job_and_another_payload_is_a_conflict(jobs: JobService) -> None:
    """JOB-18."""
    first = jobs.submit("a", [NewJob("x", {"k": 1}, idempotency_key="one")], actor="p")
    again = jobs.submit("a", [NewJob("x", {"k": 1}, idempotency_key="one")], actor="p")
    assert again[0].job_id == first[0].job_id
    assert not again[0].created
    with pytest.raises(Conflict):
        jobs.submit("a", [NewJob("y", {"k": 2}, idempotency_key="one")], actor="p")
    with pytest.raises(Conflict):  # and nothing of it is enqueued
        jobs.submit("a", [NewJob("z", {}), NewJob("y", {"k": 2}, idempotency_key="one")], actor="p")
    with pytest.raises(Conflict):
        jobs.submit("a", [NewJob(n, {"n": n}, idempotency_key="two") for n in "xy"], actor="p")
    assert sum(jobs.counts("a").values()) == 1
    other = jobs.submit("b", [NewJob("y", {"k": 2}, idempotency_key="one")], actor="p")
    assert other[0].created


def test_a_job_cannot_wait_for_or_copy_one_of_another_tenant(jobs: JobService) -> None:
    [foreign] = submit(jobs, "b")
    for named in ({"depends_on": [foreign]}, {"replay_of": foreign}):
        with pytest.raises(UnknownJob):
            jobs.submit("a", [NewJob("x", {}, **named)], actor="p")  # type: ignore[arg-type]
    assert sum(jobs.counts("a").values()) == 0


def test_a_blocked_tenant_submits_nothing(ledger: Any, jobs: JobService) -> None:
    """OPS-05."""
    ledger.write(
        lambda tx: tx.execute(
            "INSERT INTO tenants (tenant, blocked, blocked_reason, updated_at) VALUES ('a', 1, 'abuse', 1)"
        )
    )
    with pytest.raises(Refused, match="abuse") as refused:
        submit(jobs, "a")
    assert refused.value.reason == "tenant_blocked"
    assert submit(jobs, "b")


def test_too_many_or_no_jobs_at_once_are_refused(jobs: JobService) -> None:
    for count in (0, 1001):
        with pytest.raises(BadJob):
            jobs.submit("a", [NewJob(str(n), {}) for n in range(count)], actor="p")


@pytest.mark.parametrize("tenant", ["default", "a"])
@pytest.mark.parametrize("size", [4, 50])
def test_pages_give_every_job_once_newest_first(
    ledger: Any, jobs: JobService, tenant: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-01, API-28. Also with windows so small that pages are cut short."""
    dice = random.Random(7)
    for n in range(50):
        submit(jobs, dice.choice([tenant, "b", "c"]), job_type=dice.choice(["t1", "t2"]), source=f"s{n % 3}")
    for job in ledger.lease("w", 25, 60):
        if dice.random() < 0.7:
            finish(ledger, job, dice.choice([JobState.DONE, JobState.SKIPPED, JobState.ERROR]), last_error="E: no")
    everything = [job for job in ledger.list_jobs(limit=1000) if job.tenant == tenant]
    status = {job.job_id: jobs.get(tenant, job.job_id).status for job in everything}
    for window in (5000, 3):
        monkeypatch.setattr(pages, "WINDOW", window)
        for statuses in ((), ("queued",), ("succeeded",), ("failed", "leased")):
            for more in ({}, {"job_type": "t1"}, {"source": "s2", "worker_id": "w"}):
                query = JobQuery(statuses=[JobStatus(word) for word in statuses], **more)  # type: ignore[arg-type]
                found = [view.job_id for view in every(jobs, tenant, query, size)]
                expected = [
                    job.job_id
                    for job in everything
                    if (not statuses or status[job.job_id] in statuses)
                    and all(getattr(job, name) == value for name, value in more.items())
                ]
                assert found == sorted(expected, reverse=True), (window, statuses, more)


def test_a_page_stays_bounded_and_says_where_it_goes_on(jobs: JobService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "WINDOW", 10)
    submit(jobs, "a", 35)
    rare = submit(jobs, "a", 1, job_type="rare")
    submit(jobs, "a", 35)
    page = jobs.list("a", JobQuery(job_type="rare"))
    assert not page.jobs
    assert page.next_page_token is not None
    assert [job.job_id for job in every(jobs, "a", JobQuery(job_type="rare"), 50)] == rare


def test_a_job_that_comes_in_meanwhile_moves_no_page(jobs: JobService) -> None:
    ids = submit(jobs, "a", 6)
    first = jobs.list("a", page_size=3)
    submit(jobs, "a", 5)
    second = jobs.list("a", page_size=3, page_token=first.next_page_token)
    assert [job.job_id for job in (*first.jobs, *second.jobs)] == ids[::-1]
    assert second.next_page_token is None


@pytest.mark.parametrize(
    "token", ["", "x", "!!", "aGVsbG8", "é", "W10", "a" * 600, paging.token("history", 1), paging.token("jobs", 10**9),
              paging.token("jobs", 0), paging.token("jobs", -1), paging.token("jobs", 2**70), paging.token("jobs", "1")]
)  # fmt: skip
def test_a_token_that_was_not_handed_out_is_refused(jobs: JobService, token: str) -> None:
    submit(jobs, "a", 3)
    with pytest.raises(BadPage):
        jobs.list("a", page_token=token)


def test_a_page_has_fifty_jobs_and_at_most_five_hundred(jobs: JobService) -> None:
    submit(jobs, "a", 501)
    assert len(jobs.list("a").jobs) == 50
    assert len(jobs.list("a", page_size=10_000).jobs) == 500
    with pytest.raises(BadJob):
        jobs.list("a", page_size=0)


def test_time_windows_choose_by_creation_and_by_last_change(ledger: Any, jobs: JobService, clock: ManualClock) -> None:
    ids, moments = [], []
    for _ in range(12):
        moments.append(clock.now())
        ids += submit(jobs, "a")
        clock.advance(1000)
    found = [job.job_id for job in every(jobs, "a", JobQuery(created_from=moments[3], created_to=moments[7]), 2)]
    assert found == ids[3:7][::-1]
    [leased] = ledger.lease("w", 1, 60)
    late = JobQuery(updated_from=moments[-1] + 500)
    assert [job.job_id for job in jobs.list("a", late).jobs] == [leased.job_id]
    assert [job.job_id for job in jobs.list("a", JobQuery(updated_to=moments[2])).jobs] == [ids[1]]
    assert not jobs.list("a", JobQuery(created_from=clock.now() + 10**6)).jobs
    assert not jobs.list("a", JobQuery(created_to=1.0)).jobs


def test_search_words_and_named_fields_must_all_fit(ledger: Any, jobs: JobService) -> None:
    [odd, plain, other] = [
        jobs.submit("a", [NewJob(name, {}, source=source)], actor="p")[0].job_id
        for name, source in (("doi:10.1/50%_OFF!", "crossref"), ("doi:10.1/plain", "crossref"), ("arxiv:1", "arxiv"))
    ]
    for job in ledger.lease("w1", 3, 60):
        if job.job_id == plain:
            finish(ledger, job, JobState.ERROR, last_error="http_404: Not Found")

    def found(text: str) -> set[int]:
        return {job.job_id for job in jobs.list("a", JobQuery(search=parse(text))).jobs}

    assert found("doi") == {odd, plain}
    assert found("50%_off!") == {odd}
    assert found("0%_o") == {odd}
    assert found("%") == {odd}
    assert found('"not found"') == {plain}
    assert found("source:crossref plain") == {plain}
    assert found("worker:w1") == {odd, other}
    assert other in found(str(other))
    assert found("doi:10.1/plain") == {plain}
    assert found("nothing-like-it") == set()
    assert found("") == {odd, plain, other}


def test_counts_come_by_status_and_need_no_job(ledger: Any, jobs: JobService) -> None:
    submit(jobs, "a", 4)
    submit(jobs, "b", 9)
    submit(jobs, "a", 2, job_type="other")
    for job, state in zip(
        [job for job in ledger.lease("w", 20, 60) if job.tenant == "a" and job.job_type != "other"],
        (JobState.DONE, JobState.SKIPPED, JobState.ERROR),
        strict=False,
    ):
        finish(ledger, job, state)
    counts = jobs.counts("a", job_type="content.download")
    assert {word: count for word, count in counts.items() if count} == {"succeeded": 2, "failed": 1, "leased": 1}
    assert set(counts) == {status.value for status in JobStatus}
    assert sum(jobs.counts("nobody").values()) == 0


def test_a_queued_job_of_a_held_lane_shows_as_pending_until_the_lane_opens(
    ledger: Any, jobs: JobService, clock: ManualClock
) -> None:
    """JOB-05, JOB-17."""
    [held] = submit(jobs, "a", job_type="slow")
    [free] = submit(jobs, "a", job_type="quick")
    [foreign] = submit(jobs, "b", job_type="slow")
    until = clock.now() + 600
    hold_back(ledger, "a", "slow", until)
    assert jobs.get("a", held).status == "pending"
    assert jobs.get("a", held).next_eligible_at == until
    assert jobs.get("b", foreign).status == "queued"
    pending = jobs.list("a", JobQuery(statuses=[JobStatus.PENDING])).jobs
    queued = jobs.list("a", JobQuery(statuses=[JobStatus.QUEUED])).jobs
    assert ([job.job_id for job in pending], [job.job_id for job in queued]) == ([held], [free])
    counts = jobs.counts("a")
    assert (counts["pending"], counts["queued"]) == (1, 1)
    clock.advance(601)
    assert jobs.get("a", held).status == "queued"
    hold_back(ledger, "a", "quick", None)  # nobody knows until when
    assert jobs.get("a", free).status == "pending"
    assert jobs.get("a", free).next_eligible_at == jobs.get("a", free).created_at


def test_the_detail_tells_attempts_leases_waits_result_and_why(
    ledger: Any, jobs: JobService, clock: ManualClock
) -> None:
    """API-02."""
    [first] = submit(jobs, "a", project="p", correlation_id="c")
    [job_id] = [answer.job_id for answer in jobs.submit("a", [NewJob("y", {"k": [1]}, depends_on=[first])], actor="p")]
    assert jobs.detail("a", job_id).dependencies == [first]
    assert jobs.detail("a", job_id).why.reason == "waits_for"
    finish(ledger, ledger.lease("w0", 1, 60)[0])
    clock.advance(10)
    [job] = ledger.lease("w1", 1, 60)
    clock.advance(5)
    ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 0.0, 3, "http_500: sorry"))
    clock.advance(1)
    [job] = ledger.lease("w2", 1, 60)
    clock.advance(7)
    finish(ledger, job, result={"file": "x.pdf"})
    detail = jobs.detail("a", job_id)
    assert (detail.payload, detail.result) == ({"k": [1]}, {"file": "x.pdf"})
    assert [(span.worker_id, span.ended_by, span.reason) for span in detail.lease_history] == [
        ("w1", "failed", "http_500: sorry"),
        ("w2", "finished", None),
    ]
    assert (detail.metrics.first_wait_s, detail.metrics.working_s, detail.metrics.total_s) == (10.0, 12.0, 23.0)
    assert (detail.status, detail.attempts, detail.why.reason) == ("succeeded", 1, "ended")
    assert detail.payload_digest == ledger.job(job_id).payload_digest


def test_the_history_of_a_job_comes_in_pages(ledger: Any, jobs: JobService) -> None:
    [job_id] = submit(jobs, "a")
    for _ in range(3):
        assert ledger.lease("w", 1, 60)
        jobs.clear_lease("a", job_id, **BY)
    first = jobs.history("a", job_id, page_size=4)
    second = jobs.history("a", job_id, page_size=500, page_token=first.next_page_token)
    events = [row.event for row in (*first.events, *second.events)]
    assert events == [row.event for row in ledger.history(job_id)]
    assert second.next_page_token is None
    with pytest.raises(BadPage):
        jobs.history("a", job_id, page_token=paging.token("history", 10**15))


def test_a_cancel_needs_a_reason_and_is_kept_with_it(ledger: Any, jobs: JobService) -> None:
    """API-03, AUTH-07."""
    [job_id] = submit(jobs, "a")
    with pytest.raises(BadJob):
        jobs.cancel("a", job_id, actor="op", reason=" ")
    assert jobs.cancel("a", job_id, actor="op", reason="wrong paper", ticket="T-1").status == "canceled"
    last = ledger.history(job_id)[-1]
    assert (last.event, last.actor, last.reason, last.ticket) == ("canceled", "op", "wrong paper", "T-1")
    assert jobs.cancel("a", job_id, **BY).last_error == "wrong paper"


def test_a_replay_is_a_copy_that_goes_first_and_knows_its_origin(ledger: Any, jobs: JobService) -> None:
    """JOB-14."""
    [job_id] = submit(jobs, "a", project="p", correlation_id="c", trace_context="t")
    with pytest.raises(Conflict):
        jobs.replay("a", job_id, **BY)
    finish(ledger, ledger.lease("w", 1, 60)[0])
    with pytest.raises(BadJob):
        jobs.replay("a", job_id, actor="op", reason="")
    submit(jobs, "a", 3)
    copy = jobs.replay("a", job_id, actor="op", reason="again", ticket="T-2")
    assert (copy.replay_of, copy.priority, copy.project, copy.correlation_id) == (job_id, 1000, "p", "c")
    origin = jobs.get("a", job_id)
    assert (copy.payload_digest, copy.artifact_id) == (origin.payload_digest, origin.artifact_id)
    assert jobs.detail("a", copy.job_id).payload == jobs.detail("a", job_id).payload
    [first] = ledger.lease("w", 1, 60)
    assert first.job_id == copy.job_id
    finish(ledger, first)
    second = jobs.replay("a", copy.job_id, **BY)
    assert jobs.detail("a", second.job_id).replay_chain == [copy.job_id, job_id]
    assert jobs.detail("a", job_id).replays == [copy.job_id]
    [note] = [row for row in ledger.history(job_id) if row.event == "replay_requested"]
    assert (note.actor, note.reason, note.ticket) == ("op", "again", "T-2")


def test_a_cleared_lease_frees_the_job_and_refuses_the_old_worker(ledger: Any, jobs: JobService) -> None:
    """OPS-06."""
    [job_id] = submit(jobs, "a")
    with pytest.raises(Conflict):
        jobs.clear_lease("a", job_id, **BY)
    [stuck] = ledger.lease("stuck", 1, 6000)
    assert jobs.clear_lease("a", job_id, actor="op", reason="stuck", ticket="T").status == "queued"
    with pytest.raises(LeaseLost):
        finish(ledger, stuck)
    [again] = ledger.lease("other", 1, 60)
    assert again.job_id == job_id
    [note] = [row for row in ledger.history(job_id) if row.event == "lease_cleared"]
    assert (note.actor, note.reason, note.ticket) == ("op", "stuck", "T")


def test_dead_letters_are_listed_and_retried_as_themselves(ledger: Any, jobs: JobService) -> None:
    good, bad, late = submit(jobs, "a", 3)
    [foreign] = submit(jobs, "b")
    for job in ledger.lease("w", 4, 60):
        state = {bad: JobState.ERROR, late: JobState.TIMED_OUT, foreign: JobState.ERROR}.get(job.job_id, JobState.DONE)
        finish(ledger, job, state, last_error="E: no")
    assert [job.job_id for job in jobs.dead_letters("a").jobs] == [late, bad]
    for wrong, error in (([bad, good], Conflict), ([bad, foreign], UnknownJob), ([], BadJob)):
        with pytest.raises(error):
            jobs.retry_dead_letters("a", wrong, **BY)
    assert jobs.get("a", bad).status == "failed"
    assert [job.status for job in jobs.retry_dead_letters("a", [bad, late], **BY)] == ["queued", "queued"]
    assert not jobs.dead_letters("a").jobs
    assert ledger.history(bad)[-2].event == "retry_requested"


def test_no_method_shows_or_changes_a_job_of_another_tenant(ledger: Any, jobs: JobService) -> None:
    """LEDG-08: every method that takes a job, with a job of every state."""
    ids = submit(jobs, "a", 4)
    _, failed, done = ledger.lease("w", 3, 600)
    finish(ledger, failed, JobState.ERROR, last_error="E: no")
    finish(ledger, done)
    before = [ledger.job(job_id) for job_id in ids]
    asked: list[Callable[[str, int], Any]] = [
        jobs.get,
        jobs.detail,
        jobs.why,
        jobs.history,
        lambda tenant, job_id: jobs.cancel(tenant, job_id, **BY),
        lambda tenant, job_id: jobs.replay(tenant, job_id, **BY),
        lambda tenant, job_id: jobs.clear_lease(tenant, job_id, **BY),
        lambda tenant, job_id: jobs.retry_dead_letters(tenant, [job_id], **BY),
        lambda tenant, job_id: jobs.submit(tenant, [NewJob("n", {}, depends_on=[job_id])], actor="p"),
    ]
    for ask in asked:
        for job_id in (*ids, 0, -1, 10**6, 2**80):
            with pytest.raises(UnknownJob):
                ask("b", job_id)
    assert jobs.list("b").jobs == []
    assert jobs.dead_letters("b").jobs == []
    assert sum(jobs.counts("b").values()) == 0
    assert [ledger.job(job_id) for job_id in ids] == before
    assert not [row for job_id in ids for row in ledger.history(job_id) if row.event.endswith("_requested")]


def test_hostile_names_are_answered_with_our_own_errors(jobs: JobService) -> None:
    submit(jobs, "a")
    for text in ("\0", "%", "'; DROP TABLE jobs; --", "\ud800", ":x", "a" * 5000, "/* lock */"):
        for query in (JobQuery(job_type=text), JobQuery(source=text), JobQuery(search=parse(text))):
            try:
                jobs.list("a", query)
                jobs.list(text, query)
            except LedgerError:
                continue
    assert len(jobs.list("a").jobs) == 1
