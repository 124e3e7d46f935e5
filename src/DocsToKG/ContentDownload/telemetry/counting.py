"""From what happened to the figures: each event feeds every name that is about it.

Knows which metrics an attempt, a wait, a breaker and an outcome feed. Stands before the record and hands everything
on. Knows no jobs and no exporter.
"""

from __future__ import annotations

from typing import Any

from DocsToKG.ContentDownload.api.ports import AttemptSink
from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, DownloadOutcome, OutcomeClass, Reason, Verb
from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.attempts import SENT
from DocsToKG.ContentDownload.telemetry.labels import NONE
from DocsToKG.ContentDownload.telemetry.metrics import Meters

# Works that were there already or are not wanted are not attempted, as in the summary of a run.
_NOT_ATTEMPTED = frozenset({Reason.ALREADY_PRESENT, Reason.NOT_MODIFIED, Reason.FILTERED, Reason.TAKEN_DOWN})


def count_attempt(meters: Meters, attempt: Attempt) -> None:
    """One line of the attempts record."""
    resolver, verb, reason = attempt.resolver, str(attempt.verb), str(attempt.reason or NONE)
    meters.add(metrics.ATTEMPTS, resolver=resolver, status=str(attempt.status), reason=reason, verb=verb)
    if attempt.status is AttemptStatus.RETRY:
        meters.add(metrics.RETRIES, resolver=resolver, reason=reason)
    if attempt.verb is Verb.STREAM and attempt.bytes_written:
        meters.add(metrics.BYTES, attempt.bytes_written, resolver=resolver)
    if attempt.status in SENT:
        _count_exchange(meters, attempt, resolver, verb)


def _count_exchange(meters: Meters, attempt: Attempt, resolver: str, verb: str) -> None:
    elapsed_ms, host = attempt.elapsed_ms, attempt.host or NONE
    if elapsed_ms is not None:
        meters.record(metrics.HTTP_LATENCY, elapsed_ms, resolver=resolver, verb=verb)
    if attempt.from_cache and not attempt.revalidated:
        return
    status = NONE if attempt.http_status is None else str(attempt.http_status)
    meters.add(metrics.HTTP_REQUESTS, host=host, status=status, resolver=resolver)
    if elapsed_ms is not None:
        meters.record(metrics.CONTENT_HTTP_LATENCY, elapsed_ms, host=host, resolver=resolver)


def count_outcome(meters: Meters, outcome: DownloadOutcome) -> None:
    """A work ended for good."""
    resolver, reason = str(outcome.meta.get("resolver") or NONE), str(outcome.reason or NONE)
    meters.add(metrics.OUTCOMES, resolver=resolver, outcome=str(outcome.classification), reason=reason)
    if outcome.classification == OutcomeClass.SKIP and outcome.reason in _NOT_ATTEMPTED:
        return
    meters.add(metrics.TIERS_ENDED, tier=str(outcome.meta.get("tier") or NONE) if outcome.ok else NONE)
    if outcome.ok and outcome.meta.get("ttfp_ms") is not None:
        meters.record(metrics.TTFP, float(outcome.meta["ttfp_ms"]))


class CountedAttempts:
    """Hands everything on, and counts it."""

    def __init__(self, sink: AttemptSink, meters: Meters) -> None:
        self._sink = sink
        self._meters = meters

    def attempt(self, attempt: Attempt) -> None:
        self._sink.attempt(attempt)
        count_attempt(self._meters, attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: Any) -> None:
        if delay_ms > 0:
            self._meters.record(metrics.RATE_SLEEP, float(delay_ms))
            self._meters.add(metrics.RATE_WAITS, rule=why)
        self._sink.rate_wait(key, delay_ms, why=why, **about)

    def breaker_transition(self, key: str, old_state: str, new_state: str, **about: Any) -> None:
        if new_state == "open":
            self._meters.add(metrics.BREAKER_OPEN, host=key.removeprefix("host:"))
        self._sink.breaker_transition(key, old_state, new_state, **about)
