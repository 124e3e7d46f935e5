"""What keeps a job from running, and when it may: every answer, on a real ledger."""

from __future__ import annotations

from queue import Queue

import pytest

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import BadJob, LeaseLost
from DocsToKG.Orchestrator.jobs import eligibility
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Progress


def said(ledger, job_id):
    why = ledger.why(job_id)
    assert why.job_id == job_id
    return why.state, why.reason, why.at, why.detail


def test_a_due_job_is_next_in_line_or_behind_others(ledger, clock, enqueue):
    first, second = enqueue(2)
    [urgent] = enqueue(1, priority=5)
    assert said(ledger, urgent) == ("queued", "queued", clock.now(), "due now, and next in line")
    assert said(ledger, first)[3] == "due now, behind 1 other"
    assert said(ledger, second)[3] == "due now, behind 2 others"


def test_jobs_of_the_same_host_stand_in_one_line(ledger, enqueue):
    _, second = enqueue(2, host_key="one.example")
    [other] = enqueue(1, host_key="two.example")
    assert said(ledger, second)[3] == "due now, behind 1 other"
    assert said(ledger, other)[3] == "due now, and next in line"


def test_the_count_of_those_ahead_is_capped(ledger, enqueue, monkeypatch):
    from DocsToKG.Orchestrator.ledger import reads

    monkeypatch.setattr(reads, "AHEAD_CAP", 3)
    monkeypatch.setattr(eligibility, "AHEAD_CAP", 3)
    *_, last = enqueue(9)
    assert said(ledger, last)[3] == "due now, behind 3 or more others"


def test_a_paused_queue_is_named_with_its_reason(ledger, enqueue):
    [job] = enqueue(1)
    ledger.pause(reason="the disk is full")
    assert said(ledger, job)[:3] == ("queued", "paused", None)
    assert "the disk is full" in ledger.why(job).detail


def test_a_delay_shows_its_end_and_what_went_before(ledger, clock, lease_one):
    job = lease_one()
    ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 30, 3, "HTTP 503"))
    until = clock.now() + 30
    assert said(ledger, job.job_id) == ("queued", "delayed", until, f"waits until {utc_iso(until)} after: HTTP 503")
    clock.advance(30)
    assert said(ledger, job.job_id)[1] == "queued"


def test_a_lease_shows_its_holder_and_its_end(ledger, clock, lease_one):
    job = lease_one("cdw-1", ttl_s=60)
    ledger.progress(Progress(job.job_id, job.fence, job.lease_id, "fetch"))
    until = clock.now() + 60
    assert said(ledger, job.job_id)[:3] == ("in_progress", "leased", until)
    assert ledger.why(job.job_id).detail == f"leased by cdw-1 (fetch) until {utc_iso(until)}, unless renewed"
    clock.advance(61)
    assert "has run out" in ledger.why(job.job_id).detail


def test_a_job_that_waits_in_a_process_names_its_host_and_has_not_begun(ledger, lease_one):
    """QUE-15: a word that says so marks the job as begun, and one without a host keeps the host that is known."""
    job = lease_one("cdw-1")
    names = (job.job_id, job.fence, job.lease_id)
    ledger.progress(Progress(*names, "fetch", begun=False, host_key="pub.org"))
    why, row = ledger.why(job.job_id), ledger.job(job.job_id)
    assert (why.host, row.stage, row.started_at) == ("pub.org", "fetch", None)
    assert why.detail.startswith("leased by cdw-1 (fetch), for pub.org until")
    ledger.progress(Progress(*names, "verify"))
    row = ledger.job(job.job_id)
    assert (row.host_key, row.stage, row.started_at is not None) == ("pub.org", "verify", True)


def test_words_of_one_lease_that_are_written_together_lose_neither_host_nor_beginning(ledger, lease_one):
    job = lease_one()
    names = (job.job_id, job.fence, job.lease_id)
    words = [Progress(*names, "fetch", begun=False, host_key="pub.org"), Progress(*names, "fetch")]
    words += [
        Progress(*names, "store", begun=False),
        Progress(job.job_id, job.fence + 1, job.lease_id, "x", begun=False),
    ]
    *kept, lost = [ledger.submit_progress(word) for word in words]
    assert [future.result(60) for future in kept] == [None] * 3
    assert isinstance(lost.exception(5), LeaseLost)
    row = ledger.job(job.job_id)
    assert (row.host_key, row.stage, row.started_at is not None) == ("pub.org", "store", True)


def test_a_host_that_no_ledger_can_keep_spoils_no_others_word(ledger, lease_one):
    job = lease_one()
    names = (job.job_id, job.fence, job.lease_id)
    good = ledger.submit_progress(Progress(*names, "fetch"))
    with pytest.raises(BadJob):
        ledger.submit_progress(Progress(*names, "fetch", host_key="h" * 9000))
    assert good.result(60) is None


def test_who_waits_for_no_word_is_told_of_each_after_its_commit(ledger, lease_one):
    job = lease_one()
    told: Queue[tuple[str, BaseException | None, str | None]] = Queue()
    for fence, stage in ((job.fence, "fetch"), (job.fence + 1, "late")):
        word = Progress(job.job_id, fence, job.lease_id, stage)
        ledger.tell_progress(word, lambda refused, stage=stage: told.put((stage, refused, ledger.job(1).stage)))
    answers = [told.get(timeout=10) for _ in range(2)]
    assert [(stage, type(refused), seen) for stage, refused, seen in answers] == [
        ("fetch", type(None), "fetch"),
        ("late", LeaseLost, "fetch"),
    ]
    with pytest.raises(BadJob):
        ledger.tell_progress(Progress(job.job_id, job.fence, job.lease_id, "x", host_key="h" * 9000), told.put)


def test_a_waiting_job_names_what_it_waits_for(ledger):
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(7)])
    [one, many] = ledger.enqueue_many(
        [NewJob("b:1", {}, depends_on=["a:3"]), NewJob("b:2", {}, depends_on=[f"a:{n}" for n in range(7)])]
    )
    assert said(ledger, one.job_id) == ("pending", "waits_for", None, "waits for job 4 (a:3, queued)")
    assert ledger.why(many.job_id).detail.endswith("and 2 more")


@pytest.mark.parametrize(("state", "words"), [("done", "success"), ("error", "no copy was found")])
def test_an_ended_job_says_how_it_ended(ledger, clock, lease_one, state, words):
    job = lease_one()
    last_error = None if state == "done" else words
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState(state), last_error, outcome=words))
    assert said(ledger, job.job_id) == (state, "ended", None, f"ended as {state} at {utc_iso(clock.now())}: {words}")


def test_a_job_nobody_knows_is_said_to_be_unknown(ledger):
    assert said(ledger, 7) == ("unknown", "unknown", None, "no job 7 in this ledger")


def test_the_moment_is_told_by_the_readers_own_clock(ledger, clock, enqueue):
    """Ledger time does not step back; whoever reads `at` compares it with a clock that may have."""
    [job] = enqueue(1, delay_s=60)
    clock.step(-3600)
    assert ledger.why(job).at == pytest.approx(clock.now() + 60)
