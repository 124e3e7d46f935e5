"""What the API calls the states of a job, and what is looked for in a list: pure rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.Orchestrator.jobs.search import MAX_CHARS, MAX_WORDS, Search, parse, pattern
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.jobs.status import (
    HeldLanes,
    JobStatus,
    by_status,
    eligible_ms,
    states_for,
    status_of,
)

TYPES = st.sampled_from(["t1", "t2", "t3"])
HELD = st.dictionaries(TYPES, st.integers(0, 10**6), max_size=3).map(HeldLanes)
STATES = st.sampled_from(list(JobState))


@given(STATES, TYPES, HELD, st.frozensets(st.sampled_from(list(JobStatus))))
def test_a_job_is_found_by_its_one_status_and_by_no_other(
    state: JobState, job_type: str, held: HeldLanes, asked: frozenset[JobStatus]
) -> None:
    status = status_of(state, job_type, held)
    fitting = [
        choice
        for choice in states_for(asked, held)
        if choice.state is state and (choice.only is None or job_type in choice.only) and job_type not in choice.without
    ]
    assert len(fitting) == (1 if not asked or status in asked else 0)


@given(STATES, TYPES, HELD)
def test_only_a_queued_job_is_held_back(state: JobState, job_type: str, held: HeldLanes) -> None:
    """JOB-05, JOB-17."""
    waits = state is JobState.QUEUED and job_type in held.until
    assert (status_of(state, job_type, held) == "pending") == (waits or state is JobState.PENDING)
    assert eligible_ms(state, job_type, 500, held) == (max(500, held.until[job_type]) if waits else 500)


@pytest.mark.slow
@given(st.dictionaries(st.tuples(TYPES, STATES.map(str)), st.integers(0, 1000)), HELD)
def test_every_job_is_counted_once(counts: dict[tuple[str, str], int], held: HeldLanes) -> None:
    told = by_status(counts, held)
    assert set(told) == {status.value for status in JobStatus}
    assert sum(told.values()) == sum(counts.values())


@given(st.text(max_size=5000))
def test_whatever_is_typed_gives_a_bounded_search(text: str) -> None:
    found = parse(text)
    assert len(found.words) <= MAX_WORDS
    assert all(0 < len(word) <= MAX_CHARS * 2 for word in found.words)
    assert all("\0" not in word for word in (*found.words, *found.exactly.values()))


@pytest.mark.parametrize(
    ("typed", "words", "exactly"),
    [
        ("", (), {}),
        ("Alpha beta", ("alpha", "beta"), {}),
        ('"Not Found" x', ("not found", "x"), {}),
        ("worker:w1 type:ingest", (), {"worker_id": "w1", "job_type": "ingest"}),
        ('source:"my source"', (), {"source": "my source"}),
        ("doi:10.1/x", ("doi:10.1/x",), {}),
        ('unclosed "quote', ("unclosed", "quote"), {}),
        ("worker:", ("worker:",), {}),
    ],
)
def test_words_phrases_and_named_fields(typed: str, words: tuple[str, ...], exactly: dict[str, str]) -> None:
    assert parse(typed) == Search(words, exactly)


def test_signs_of_a_pattern_mean_themselves() -> None:
    assert pattern("50%_!") == "%50!%!_!!%"
