from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.core.digest import canonical_json, sha256_hex
from DocsToKG.Orchestrator.errors import BadJob, UnknownJob
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.checks import checked_job


def test_a_new_artifact_becomes_one_queued_job(ledger):
    [answer] = ledger.enqueue_many([NewJob("doi:10.1/x", {"doi": "10.1/x"})])
    job = ledger.job(answer.job_id)
    assert (answer.created, job.state, job.tenant, job.job_type, job.priority, job.project) == (
        True, "queued", "default", "content.download", 0, None,
    )  # fmt: skip


def test_a_known_artifact_changes_nothing_and_says_so(ledger):
    """QUE-04: also within one call, and when the payload differs."""
    first, again = ledger.enqueue_many([NewJob("doi:10.1/x", {"a": 1}), NewJob("doi:10.1/x", {"a": 2})])
    assert (again.job_id, again.created, again.state) == (first.job_id, False, JobState.QUEUED)
    assert ledger.job(first.job_id).artifact_json == '{"a":1}'
    assert ledger.stats()["total"] == 1


def test_the_same_artifact_is_another_job_for_another_tenant_or_type(ledger):
    """QUE-02."""
    jobs = [
        NewJob("doi:10.1/x", {}),
        NewJob("doi:10.1/x", {}, tenant="other"),
        NewJob("doi:10.1/x", {}, job_type="export"),
    ]
    assert [answer.created for answer in ledger.enqueue_many(jobs)] == [True, True, True]


def test_a_replay_stands_beside_the_job_it_repeats(ledger):
    [first] = ledger.enqueue_many([NewJob("doi:10.1/x", {})])
    [replay] = ledger.enqueue_many([NewJob("doi:10.1/x", {}, replay_of=first.job_id)])
    assert replay.created
    found = ledger.find("doi:10.1/x")
    assert found is not None
    assert found.job_id == first.job_id


def test_a_replay_of_nothing_is_refused_with_its_whole_batch(ledger):
    with pytest.raises(UnknownJob, match="99"):
        ledger.enqueue_many([NewJob("a:1", {}), NewJob("a:2", {}, replay_of=99)])
    assert ledger.stats()["total"] == 0


def test_the_same_idempotency_key_gives_the_same_job(ledger):
    """JOB-18."""
    [first] = ledger.enqueue_many([NewJob("doi:10.1/x", {}, idempotency_key="k")])
    [again] = ledger.enqueue_many([NewJob("doi:10.1/y", {}, idempotency_key="k")])
    assert (again.job_id, again.created, again.artifact_id) == (first.job_id, False, "doi:10.1/x")


def test_a_payload_may_come_as_text_and_keeps_its_meaning(ledger):
    as_text, as_dict = ledger.enqueue_many([NewJob("a:1", '{"b": 1, "a": "é"}'), NewJob("a:2", {"a": "é", "b": 1})])
    one, two = ledger.job(as_text.job_id), ledger.job(as_dict.job_id)
    assert one.artifact_json == two.artifact_json == '{"a":"é","b":1}'
    assert one.payload_digest == sha256_hex(canonical_json({"a": "é", "b": 1}))


def test_a_payload_is_checked_against_its_digest(ledger):
    """JOB-02."""
    good = sha256_hex(canonical_json({"a": 1}))
    assert ledger.enqueue_many([NewJob("a:1", {"a": 1}, payload_digest=f"sha256:{good}")])[0].created
    with pytest.raises(BadJob, match="digest"):
        ledger.enqueue_many([NewJob("a:2", {"a": 2}, payload_digest=good)])


@pytest.mark.parametrize(
    "job",
    [
        NewJob("", {}),
        NewJob("  ", {}),
        NewJob("a:1", "not json"),
        NewJob("a:1", "[1]"),
        NewJob("a:1", "[" * 100_000),
        NewJob("a:1", '{"a": NaN}'),
        NewJob("a:1", {"a": float("nan")}),
        NewJob("a:1", {"a": "\ud800"}),
        NewJob("a:1", {"a": object()}),
        NewJob("a:1", {"a": "x" * 1_100_000}),
        NewJob("a:1", '{"a": "' + "x" * 1_100_000 + '"}'),
        NewJob("a" * 3000, {}),
        NewJob("a:1", {}, idempotency_key="k" * 3000),
        NewJob("a:1", {}, max_attempts=0),
        NewJob("a:1", {}, priority=2**70),
        NewJob("a:1", {}, delay_s=float("nan")),
    ],
    ids=lambda job: f"{job.artifact_id[:4]}-{str(job.payload)[:12]}",
)
def test_a_bad_job_is_refused_and_nothing_of_its_batch_is_written(job, ledger):
    with pytest.raises(BadJob):
        ledger.enqueue_many([NewJob("good:1", {}), job])
    assert ledger.stats()["total"] == 0


def test_a_delayed_job_waits_for_its_time(ledger, clock, enqueue):
    """QUE-13."""
    enqueue(delay_s=10)
    assert ledger.next_eligible_at() == pytest.approx(clock.now() + 10, abs=0.002)
    clock.advance(9.9)
    assert ledger.lease("w", 1, 60) == []
    clock.advance(0.1)
    assert len(ledger.lease("w", 1, 60)) == 1


def test_a_large_enqueue_is_split_and_answers_in_order(ledger):
    answers = ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(4500)])
    assert [answer.artifact_id for answer in answers] == [f"a:{n}" for n in range(4500)]
    assert ledger.stats()["queued"] == 4500


_plain = st.none() | st.booleans() | st.integers() | st.text()


@pytest.mark.slow
@examples(40)
@given(st.recursive(_plain, lambda inner: st.dictionaries(st.text(), inner)))
def test_payloads_are_kept_in_the_one_form_that_digests_are_taken_over(value):
    try:
        expected = canonical_json({"value": value})
    except UnicodeEncodeError:  # half of a surrogate pair has no place in UTF-8, and is refused
        with pytest.raises(BadJob):
            checked_job(NewJob("a:1", {"value": value}))
        return
    assert checked_job(NewJob("a:1", {"value": value})).columns[1].encode() == expected


def test_a_name_with_a_nul_is_refused(ledger):
    with pytest.raises(BadJob, match="NUL"):
        ledger.enqueue_many([NewJob("a:1\0", {})])


def test_an_empty_host_is_no_host(ledger):
    ledger.enqueue_many([NewJob("a:1", {}, host_key="")])
    [job] = ledger.lease("w", 1, 60)
    assert job.host_key is None


def test_names_that_json_must_escape_are_known_again(ledger):
    names = ['a:"quoted"', "a:back\\slash", "a:\u00e9\u4e2d\U0001f600", "a:\n\t\x01", "a:'; DROP TABLE jobs; --"]
    jobs = [NewJob(name, {}, idempotency_key=name) for name in names]
    first, again = ledger.enqueue_many(jobs), ledger.enqueue_many(jobs + jobs)
    assert [answer.created for answer in first] == [True] * 5
    assert [answer.job_id for answer in again] == [answer.job_id for answer in first] * 2
    assert not any(answer.created for answer in again)
