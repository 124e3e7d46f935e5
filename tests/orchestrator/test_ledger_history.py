from __future__ import annotations

import hashlib
import json
import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, NewJob, Progress
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Links, link_hash
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


def full_life(ledger, clock):
    ledger.enqueue_many([NewJob("a:1", {})], actor="cli")
    [job] = ledger.lease("w", 1, 60)
    ledger.progress(Progress(job.job_id, job.fence, job.lease_id, "fetch"))
    ledger.fail(Fail(job.job_id, job.fence, job.lease_id, 5, 3, "timeout"))
    clock.advance(5)
    [job] = ledger.lease("w", 1, 60)
    clock.advance(61)
    [job] = ledger.lease("w2", 1, 60)
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR, "gone"))
    ledger.retry_failed(actor="operator", reason="again")
    return job.job_id


def test_every_state_change_is_a_row_with_actor_and_reason(ledger, clock):
    """LEDG-04."""
    rows = ledger.history(full_life(ledger, clock))
    assert [(row.event, row.from_state, row.to_state, row.fence) for row in rows] == [
        ("enqueued", None, "queued", 0),
        ("leased", "queued", "in_progress", 1),
        ("failed", "in_progress", "queued", 1),
        ("leased", "queued", "in_progress", 2),
        ("lease_expired", "in_progress", "queued", 2),
        ("leased", "queued", "in_progress", 3),
        ("finished", "in_progress", "error", 3),
        ("retried", "error", "queued", 3),
    ]
    assert (rows[0].actor, rows[1].actor, rows[2].reason, rows[-1].reason) == ("cli", "w", "timeout", "again")


def test_a_heartbeat_is_one_row_however_many_leases(ledger, enqueue, sql):
    """LEDG-04."""
    enqueue(5)
    ledger.lease("w", 5, 60)
    ledger.heartbeat("w", 60)
    ledger.heartbeat("nobody", 60)
    assert sql("SELECT actor, detail_json FROM job_history WHERE event = 'renewed'") == [("w", '{"leases": 5}')]


def test_pause_and_resume_are_written_down_once_each(ledger, sql):
    ledger.pause(actor="ann", reason="disk")
    ledger.pause(actor="ben")
    ledger.resume(actor="ann")
    rows = sql("SELECT event, actor, reason FROM job_history ORDER BY seq")
    assert rows == [("paused", "ann", "disk"), ("resumed", "ann", None)]


def test_the_chain_of_an_honest_ledger_verifies(ledger, clock):
    """LEDG-05: one chain per tenant."""
    full_life(ledger, clock)
    ledger.enqueue_many([NewJob("a:1", {}, tenant="other"), NewJob("a:2", {}), NewJob("a:3", {}, tenant="other")])
    assert ledger.verify_history()
    assert ledger.history(2)[0].link == 1


def test_an_empty_history_verifies(ledger):
    assert ledger.verify_history()


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE job_history SET reason = 'nothing happened' WHERE seq = 3",
        "UPDATE job_history SET at = at + 1 WHERE seq = 2",
        "UPDATE job_history SET actor = 'someone else' WHERE seq = (SELECT max(seq) FROM job_history)",
        "UPDATE job_history SET prev_hash = zeroblob(32) WHERE seq = 4",
        "DELETE FROM job_history WHERE seq = 1",
        "DELETE FROM job_history WHERE seq = 4",
        "DELETE FROM job_history WHERE seq = (SELECT max(seq) FROM job_history)",
        "DELETE FROM job_history",
    ],
)
def test_a_forged_history_is_found_out(forgery, ledger, clock, sql):
    """LEDG-03, LEDG-05: the database refuses the change; once that is taken away, the chain shows it."""
    full_life(ledger, clock)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sql(forgery)
    assert ledger.verify_history()
    sql("DROP TRIGGER job_history_keeps_rows")
    sql("DROP TRIGGER job_history_loses_no_row")
    sql(forgery)
    assert not ledger.verify_history()


def test_a_row_rewritten_with_a_hash_of_its_own_is_found_out(ledger, clock, sql):
    """Each hash covers the one before, so a forger would have to rewrite everything after, and the known end."""
    full_life(ledger, clock)
    sql("DROP TRIGGER job_history_keeps_rows")
    sql("UPDATE job_history SET reason = 'nothing happened' WHERE seq = 3")
    columns = "tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket"
    [(*words, prev_hash)] = sql(f"SELECT {columns}, detail_json, prev_hash FROM job_history WHERE seq = 3")
    forged = link_hash(tuple(words), prev_hash)
    sql("UPDATE job_history SET hash = ? WHERE seq = 3", forged)
    sql("UPDATE job_history SET prev_hash = ? WHERE seq = 4", forged)
    assert not ledger.verify_history()


def test_rows_added_behind_the_ledgers_back_are_found_out(ledger, clock, sql):
    full_life(ledger, clock)
    columns = "tenant, shard, link, job_id, at, event, actor, prev_hash, hash"
    sql(f"INSERT INTO job_history ({columns}) SELECT {columns} FROM job_history WHERE seq = 2")
    assert not ledger.verify_history()


def test_two_ledgers_on_one_file_build_one_chain(ledger, path, clock):
    with SqliteLedger(path, clock=clock) as other:
        for n in range(5):
            ledger.enqueue_many([NewJob(f"a:{n}", {})])
            other.enqueue_many([NewJob(f"b:{n}", {})])
    assert ledger.verify_history()


def test_a_ledger_that_is_being_written_verifies(ledger):
    """The check reads what stood at its beginning, so that a busy ledger raises no false alarm."""
    stop = threading.Event()

    def write() -> None:
        for n in range(150):  # bounded: the more is written, the longer a check takes
            ledger.enqueue_many([NewJob(f"a:{n}:{m}", {}) for m in range(20)])
            if stop.wait(0.005):
                break

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert all(ledger.verify_history() for _ in range(15))
    finally:
        stop.set()
        writer.join(timeout=30)


def test_history_survives_long_reading_in_pages(ledger):
    ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(2500)])
    assert ledger.verify_history()


_texts = st.none() | st.text(max_size=20)
_numbers = st.none() | st.integers(min_value=-(2**63), max_value=2**63 - 1)


@given(st.text(max_size=20), st.lists(_numbers, min_size=3, max_size=3), st.lists(_texts, min_size=5, max_size=5))
def test_a_link_is_hashed_as_the_json_that_any_verifier_can_write(
    actor: str, numbers: list[int | None], texts: list[str | None]
) -> None:
    """LEDG: whoever checks the chain needs JSON and SHA-256, and nothing of ours."""
    job_id, fence, attempts = numbers
    before, after, reason, ticket, detail = texts
    entry = ("t", 0, 7, job_id, 1, "leased", before, after, fence, attempts, actor, reason, ticket, detail)
    words = json.dumps(entry, separators=(",", ":")).encode("ascii")
    assert link_hash(entry, NO_HASH) == hashlib.sha256(NO_HASH + words).digest()


@given(st.integers(0, 2**40), st.booleans(), st.text(max_size=20), _texts, _texts, _texts)
def test_links_of_changes_that_are_alike_are_the_links_made_one_by_one(job_id, ended, actor, reason, ticket, before):
    after = "done" if ended else "queued"
    links = Links("t\u00e9", 3, 1_700_000_000_000, "moved", before, after, ticket)
    move = (job_id, "t\u00e9", "content.download", before, after, 2, 1, actor, reason)
    first, second = links.make(6, NO_HASH, [move, move])
    assert links.shared == ("t\u00e9", 3, 1_700_000_000_000, "moved", before, after, ticket, None)
    for link, prev_hash, own in ((7, NO_HASH, first), (8, first[-1], second)):
        entry = (
            "t\u00e9", 3, link, job_id, 1_700_000_000_000, "moved", before, after, 2, 1, actor, reason, ticket, None,
        )  # fmt: skip
        assert own == (link, job_id, 2, 1, actor, reason, prev_hash, link_hash(entry, prev_hash))
