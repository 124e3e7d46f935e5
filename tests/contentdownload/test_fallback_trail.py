"""What the memory of a search says about a work that got nothing."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.trail import Trail
from DocsToKG.core.clock import ManualClock


@pytest.fixture
def trail() -> Trail:
    return Trail(WorkArtifact("doi:10.1/a", doi="10.1/a"), ManualClock())


def test_a_work_that_our_own_gates_sent_away_has_only_waited(trail: Trail) -> None:
    trail.missed("landing", TransientFailure(Reason.BREAKER_OPEN, "open for 2 s", retry_after_s=2.0))
    trail.missed("unpaywall", TransientFailure(Reason.RETRY_AFTER, "a hold", retry_after_s=60.0))
    assert trail.only_waited
    assert (trail.transient, trail.retry_after_s) == (True, 2.0)


def test_a_host_that_was_tested_and_is_still_down_counts_as_tried(trail: Trail) -> None:
    """FAIL-03: a work of a host that never comes back must end one day."""
    trail.missed("unpaywall", TransientFailure(Reason.BREAKER_OPEN, "open for 4 s", retry_after_s=4.0, tested=True))
    assert not trail.only_waited
    assert trail.transient


def test_an_answer_counts_as_tried_whatever_the_others_said(trail: Trail) -> None:
    trail.missed("landing", TransientFailure(Reason.BREAKER_OPEN, "open for 2 s", retry_after_s=2.0))
    trail.missed("unpaywall", CandidateRejected(Reason.HTTP_STATUS, "status 404", http_status=404))
    assert not trail.only_waited


def test_without_a_candidate_there_was_no_wait(trail: Trail) -> None:
    assert not trail.only_waited
