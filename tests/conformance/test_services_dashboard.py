"""The figures of the console, on every ledger: exact, and from counters and bounded reads only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.dashboard import BreakerSummary, Dashboard, DashboardService
from DocsToKG.Orchestrator.control.history import rates
from DocsToKG.Orchestrator.control.history.rates import Minute, ReasonCount, token_of
from DocsToKG.Orchestrator.control.jobs.pages import JobQuery
from DocsToKG.Orchestrator.control.jobs.service import JobService
from DocsToKG.Orchestrator.jobs.search import parse
from DocsToKG.Orchestrator.jobs.status import JobStatus
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, JobState, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

Open = Callable[..., Any]
MANY = 60_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_750_000_020.0)  # the beginning of a minute


def enqueue(ledger: Any, count: int, tenant: str = "a", **more: Any) -> None:
    start = ledger.stats()["total"]
    ledger.enqueue_many([NewJob(f"{start + n}", {}, tenant=tenant, **more) for n in range(count)])


def finish(ledger: Any, job: Any, state: JobState, error: str | None = None) -> None:
    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, state, error))


def rates_of(figures: Dashboard) -> tuple[Any, ...]:
    return figures.throughput, figures.errors, figures.since


def sums(told: Dashboard) -> dict[str, int]:
    names = ("enqueued", "leased", "succeeded", "failed", "retried", "canceled")
    return {name: sum(getattr(minute, name) for minute in told.throughput) for name in names}


def test_counts_and_queues_come_by_status_and_type(ledger: Any) -> None:
    enqueue(ledger, 3, job_type="t1")
    enqueue(ledger, 2, job_type="t2")
    enqueue(ledger, 7, tenant="b", job_type="t1")
    shown = DashboardService(ledger).metrics("a")
    assert {word: n for word, n in shown.counts.items() if n} == {"queued": 5}
    assert {kind: queue["queued"] for kind, queue in shown.queues.items()} == {"t1": 3, "t2": 2}
    assert sums(shown)["enqueued"] == 5


def test_each_minute_counts_what_happened_in_it(ledger: Any, clock: ManualClock) -> None:
    """STREAM-01: throughput and error distribution."""
    service = DashboardService(ledger)
    enqueue(ledger, 6)
    clock.advance(60)
    done, skipped, failed, tried, late, called = ledger.lease("w", 6, 600)
    finish(ledger, done, JobState.DONE)
    finish(ledger, skipped, JobState.SKIPPED)
    service.metrics("a")  # what was read once is not read, nor counted, again
    clock.advance(60)
    finish(ledger, failed, JobState.ERROR, "http_404: https://a/1")
    finish(ledger, late, JobState.TIMED_OUT, "deadline")
    ledger.fail(Fail(tried.job_id, tried.fence, tried.lease_id, 5.0, 3, "http_500: https://a/2"))
    ledger.cancel(called.job_id, "no longer wanted")
    told = service.metrics("a")
    assert len(told.throughput) == 60
    assert told.throughput[-3:] == [
        Minute(1_750_000_020.0, enqueued=6),
        Minute(1_750_000_080.0, leased=6, succeeded=2),
        Minute(1_750_000_140.0, failed=2, retried=1, canceled=1),
    ]
    assert told.errors == [ReasonCount("deadline", 1), ReasonCount("http_404", 1), ReasonCount("http_500", 1)]
    assert rates_of(DashboardService(ledger).metrics("a")) == rates_of(told)
    assert sums(service.metrics("b")) == dict.fromkeys(sums(told), 0)


def test_what_is_older_than_an_hour_is_forgotten(ledger: Any, clock: ManualClock) -> None:
    kept = DashboardService(ledger)
    enqueue(ledger, 4)
    assert sums(kept.metrics("a"))["enqueued"] == 4
    clock.advance(59 * 60)
    enqueue(ledger, 1)
    assert sums(kept.metrics("a"))["enqueued"] == 5
    clock.advance(60)
    for service in (kept, DashboardService(ledger)):
        assert sums(service.metrics("a"))["enqueued"] == 1


def test_a_long_history_is_entered_at_the_hour_and_read_in_bounds(
    ledger: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        enqueue(ledger, 40)
        enqueue(ledger, 5, tenant="b")
        clock.advance(15 * 60)
    told = DashboardService(ledger).metrics("a")
    assert sums(told)["enqueued"] == 120  # of 45, 30 and 15 minutes ago
    monkeypatch.setattr(rates, "MOST_ROWS", 100)
    told = DashboardService(ledger).metrics("a")
    assert 0 < sums(told)["enqueued"] < 120
    assert told.since > clock.now() - 3600
    monkeypatch.setattr(rates, "MOST_ROWS", 1000)
    assert sums(DashboardService(ledger).metrics("a"))["enqueued"] == 120


def test_the_oldest_wait_is_that_of_a_job_that_could_run(ledger: Any, clock: ManualClock) -> None:
    service = DashboardService(ledger)
    assert service.metrics("a").oldest_wait_s is None
    enqueue(ledger, 1, delay_s=1000)
    enqueue(ledger, 1, tenant="b")
    clock.advance(50)
    enqueue(ledger, 2)
    clock.advance(30)
    assert service.metrics("a").oldest_wait_s == 30
    assert service.metrics("b").oldest_wait_s == 80
    assert service.metrics("default").oldest_wait_s is None


def test_what_holds_work_back_is_told(ledger: Any, clock: ManualClock) -> None:
    now = round(clock.now() * 1000)
    for statement in (
        "INSERT INTO lanes (tenant, job_type, tokens, tokens_at, blocked_until, blocked_by)"
        f" VALUES ('a', 'slow', 2.5, {now}, {now + 9000}, 'quota'), ('b', 'slow', 1, {now}, {now + 9000}, 'quota'),"
        f" ('a', 'past', 1, {now}, {now - 1}, 'quota'), ('a', 'open', NULL, NULL, NULL, 'throttle')",
        "INSERT INTO breakers (tenant, key, state, state_json, updated_at) VALUES ('a', 'service:x', 'open', '{}', 1),"
        " ('a', 'service:y', 'closed', '{}', 1), ('b', 'service:z', 'open', '{}', 1)",
        "INSERT INTO incidents (incident_id, tenant, source, severity, cause, state, count, first_at, last_at,"
        " updated_at) VALUES ('1', 'a', 's', 'high', 'c', 'open', 1, 1, 1, 1), ('2', 'a', 't', 'high', 'c',"
        " 'resolved', 1, 1, 1, 1), ('3', 'b', 's', 'high', 'c', 'open', 1, 1, 1, 1)",
        "INSERT INTO throttles (throttle_id, tenant, mode, origin, actor, created_at, expires_at, lifted_at) VALUES"
        " ('1', 'a', 'pause', 'operator', 'o', 1, NULL, NULL),"
        f" ('2', '*', 'pause', 'operator', 'o', 1, {now + 1}, NULL),"
        f" ('3', 'a', 'pause', 'operator', 'o', 1, {now - 1}, NULL), ('4', 'a', 'pause', 'operator', 'o', 1, NULL, 1),"
        " ('5', 'b', 'pause', 'operator', 'o', 1, NULL, NULL)",
    ):
        ledger.write(lambda tx, statement=statement: tx.execute(statement))
    ledger.pause(reason="disk")
    shown = DashboardService(ledger).metrics("a")
    assert [(lane.job_type, lane.by, lane.until) for lane in shown.held] == [
        ("open", "throttle", None), ("slow", "quota", clock.now() + 9),
    ]  # fmt: skip
    assert ("slow", 2.5) in [(lane.job_type, lane.tokens) for lane in shown.rate_limits]
    assert shown.open_breakers == [BreakerSummary("service:x", "open")]
    assert (shown.open_incidents, shown.throttles) == (1, 2)
    assert (shown.paused, shown.maintenance) == (True, False)


@pytest.mark.parametrize(
    ("reason", "token"),
    [("http_404: x", "http_404"), ("plain", "plain"), (": x", "unknown"), ("", "unknown"), ("y" * 100, "y" * 64)],
)
def test_a_reason_is_known_by_its_first_word(reason: str, token: str) -> None:
    assert token_of(reason) == token


def noted(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any] | None]]:
    """The statements that are asked of the ledger from now on, with their values."""
    asked: list[tuple[str, Mapping[str, Any] | None]] = []
    read = ledger.read

    def noting(make: Callable[[Any], Any]) -> Any:
        def with_notes(tx: Any) -> Any:
            plain = tx.execute

            def ask(statement: str, values: Mapping[str, Any] | None = None) -> Any:
                asked.append((statement, values))
                return plain(statement, values)

            tx.execute = ask
            return make(tx)

        return read(with_notes)

    monkeypatch.setattr(ledger, "read", noting)
    return asked


def plan(ledger: Any, statement: str, values: Mapping[str, Any] | None) -> str:
    words = "EXPLAIN QUERY PLAN" if isinstance(ledger, SqliteLedger) else "EXPLAIN (ANALYZE, BUFFERS)"
    rows = ledger.read(lambda tx: tx.execute(f"{words} {statement}", values))
    return "\n".join(str(row[-1]) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("tenant", ["small", "default"])
def test_no_question_of_the_console_reads_all_jobs(
    ledger: Any, tenant: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Among many jobs of many tenants, no plan goes through all of them, and on PostgreSQL few pages are touched."""
    _fill(ledger)
    if not isinstance(ledger, SqliteLedger):
        _vacuum(request.getfixturevalue("postgres_url"), request.getfixturevalue("clean_schema"))
    asked = noted(ledger, monkeypatch)
    jobs, dashboard = JobService(ledger), DashboardService(ledger)
    dashboard.metrics(tenant)
    jobs.counts(tenant)
    newest = jobs.list(tenant).jobs[0]
    for query in (
        JobQuery(),
        JobQuery(statuses=[JobStatus.FAILED]),
        JobQuery(statuses=[JobStatus.QUEUED], job_type="t1"),
        JobQuery(search=parse("needle"), worker_id="w"),
        JobQuery(created_from=newest.created_at - 5, created_to=newest.created_at),
    ):
        page = jobs.list(tenant, query)
        jobs.list(tenant, query, page_token=page.next_page_token)
    jobs.detail(tenant, newest.job_id)
    for statement, values in list(asked):
        told = plan(ledger, statement, values)
        scans = re.findall(r"SCAN jobs\b.*|Seq Scan on jobs\b.*", told)
        assert not scans, (statement, told)
        for touched in re.findall(r"shared (?:hit=(\d+))?(?: ?read=(\d+))?", told):
            assert sum(int(pages) for pages in touched if pages) < MANY // 4, (statement, told)


def _fill(ledger: Any) -> None:
    """Many ended jobs, straight into the table: of one big tenant, with some of a small one and the default one."""
    one = isinstance(ledger, SqliteLedger)
    numbers = (
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY}) "
        if one
        else f"WITH n AS (SELECT generate_series(1, {MANY}) AS i) "
    )
    due = "0" if one else "false"
    ledger.write(
        lambda tx: tx.execute(
            f"{numbers}INSERT INTO jobs (artifact_id, artifact_json, payload_digest, tenant, job_type, state, due,"
            " next_eligible_at, created_at, updated_at, finished_at) SELECT 'x' || i, '{}', 'd',"
            " CASE WHEN i % 1000 = 0 THEN 'small' WHEN i % 1000 = 1 THEN 'default' ELSE 'big' END,"
            " CASE WHEN i % 2 = 0 THEN 't1' ELSE 't2' END,"
            " CASE WHEN i % 7000 = 0 THEN 'error' WHEN i % 5000 = 0 THEN 'queued' ELSE 'done' END,"
            f" {due}, 1, 1749990000000 + i * 100, 1, 1 FROM n"
        )
    )


def _vacuum(url: str, schema: str) -> None:
    """As autovacuum does in the background."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"VACUUM ANALYZE {schema}.jobs")
