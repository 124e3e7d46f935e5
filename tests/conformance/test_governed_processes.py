"""Rules among real processes on one PostgreSQL: limits hold whoever asks, and act everywhere without a restart."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.waiting import eventually

from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.slow
WORKER = str(Path(__file__).with_name("governed_worker.py"))


@pytest.fixture
def ledger(postgres_url: str, schema: str) -> Iterator[PostgresLedger]:
    with PostgresLedger(postgres_url, schema_name=schema, poll_s=0.05) as opened:
        yield opened


class Instances:
    """Three processes that begin at one word and tell what they have leased."""

    def __init__(self, url: str, schema: str, deed: str) -> None:
        self._crew = [
            subprocess.Popen(
                [sys.executable, WORKER, url, schema, f"i{n}", "8", deed],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for n in range(3)
        ]  # fmt: skip
        for each in self._crew:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"

    def begin(self) -> None:
        for each in self._crew:
            self._say(each)

    def told(self) -> list[Any]:
        found: list[Any] = []
        for each in self._crew:
            assert each.stdout is not None
            found += json.loads(each.stdout.readline())
        return found

    def end(self) -> None:
        for each in self._crew:
            with contextlib.suppress(OSError):
                self._say(each)
        for each in self._crew:
            try:
                each.wait(60)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait(30)
            for stream in (each.stdin, each.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    @staticmethod
    def _say(each: subprocess.Popen[str]) -> None:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()


@contextlib.contextmanager
def instances(url: str, schema: str, deed: str) -> Iterator[Instances]:
    crew = Instances(url, schema, deed)
    try:
        yield crew
    finally:
        crew.end()


def add(ledger: PostgresLedger, count: int, tenant: str) -> None:
    ledger.enqueue_many([NewJob(f"{tenant}:{n}", {}, tenant=tenant, job_type="t") for n in range(count)])


class Watch:
    """Looks again and again at how many jobs of a tenant are leased at once."""

    def __init__(self, url: str, schema: str) -> None:
        self.most: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(url, schema))
        self._thread.start()

    def _run(self, url: str, schema: str) -> None:
        words = f"SELECT tenant, count(*) FROM {schema}.jobs WHERE state = 'in_progress' GROUP BY tenant"
        with psycopg.connect(url, autocommit=True) as connection:
            while not self._stop.is_set():
                for tenant, count in connection.execute(words).fetchall():
                    self.most[tenant] = max(self.most[tenant], count)
                time.sleep(0.001)

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)


def test_a_quota_is_never_exceeded_by_three_instances_with_eight_threads_each(
    postgres_url: str, schema: str, ledger: PostgresLedger
) -> None:
    """QUOTA-02, OPS-01: every job runs once, never more than maxActive at a time."""
    QuotaService(ledger).set("a", "t", 5, 1_000_000, 1_000_000, actor="ann")
    QuotaService(ledger).policies.create("pool", "Equal", 9, actor="ann")
    add(ledger, 150, "a")
    add(ledger, 150, "b")
    with instances(postgres_url, schema, "300") as crew:
        watch = Watch(postgres_url, schema)
        try:
            crew.begin()
            told = crew.told()
        finally:
            watch.end()
    assert sorted(job_id for job_id, _ in told) == sorted({job_id for job_id, _ in told})
    assert Counter(tenant for _, tenant in told) == {"a": 150, "b": 150}
    assert 1 <= watch.most["a"] <= 5
    assert 1 <= watch.most["b"] <= 9
    assert ledger.verify_history()
    assert ledger.read(lambda tx: tx.execute("SELECT count(*) FROM jobs WHERE state = 'done'")) == [(300,)]


def test_exactly_as_many_tests_pass_as_allowed_across_instances(
    postgres_url: str, schema: str, ledger: PostgresLedger
) -> None:
    """BRK-04, BRK-07: 3 instances with 8 threads ask at once, and N probes pass."""
    breakers = BreakerService(ledger)
    add(ledger, 200, "a")
    breakers.force_open("a", "jobtype:t", actor="ann", reason="test")
    breakers.unforce("a", "jobtype:t", actor="ann")
    assert breakers.get("a", "jobtype:t").state == "half-open"
    with instances(postgres_url, schema, "probe") as crew:
        crew.begin()
        told = crew.told()
        assert len(told) == len(set(told)) == 3
        leased = ledger.read(lambda tx: tx.execute("SELECT id FROM jobs WHERE state = 'in_progress' ORDER BY id"))
        assert [row[0] for row in leased] == sorted(told)


def test_an_hour_holds_no_more_starts_than_allowed_across_instances(
    postgres_url: str, schema: str, ledger: PostgresLedger
) -> None:
    """QUOTA-03: the bucket is one for all."""
    QuotaService(ledger).set("a", "t", 1000, 3, 40, actor="ann")  # a token every 20 minutes beside the 40
    add(ledger, 200, "a")
    with instances(postgres_url, schema, "probe") as crew:
        crew.begin()
        told = crew.told()
    assert len(told) == len(set(told)) == 40


def test_a_pause_acts_on_another_process_at_once_and_so_does_its_end(
    postgres_url: str, schema: str, ledger: PostgresLedger
) -> None:
    """THR-03, OPS-03: after the call has returned, no lease is given in any process, and none needs a restart."""
    add(ledger, 400, "a")
    with instances(postgres_url, schema, "400") as crew:
        crew.begin()
        done = "SELECT count(*) FROM jobs WHERE state = 'done'"
        eventually(lambda: ledger.read(lambda tx: tx.execute(done))[0][0] >= 20)
        held = ThrottleService(ledger).apply("a", pause=True, actor="ann")
        _wait_for_older_transactions(postgres_url)
        settled = _leases(ledger)
        time.sleep(0.3)
        assert _leases(ledger) == settled
        assert settled < 400
        ThrottleService(ledger).lift("a", held.throttle_id, actor="ann")
        told = crew.told()
    assert len(told) == 400


def _leases(ledger: PostgresLedger) -> int:
    found = ledger.read(lambda tx: tx.execute("SELECT count(*) FROM job_history WHERE event = 'leased'"))
    return int(found[0][0])


def _wait_for_older_transactions(url: str) -> None:
    """A lease whose transaction had begun before the pause was written may still be on its way."""
    words = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'docstokg-ledger' AND xact_start < %s"
    with psycopg.connect(url, autocommit=True, application_name="watch") as connection:
        [(now,)] = connection.execute("SELECT clock_timestamp()").fetchall()
        eventually(lambda: connection.execute(words, (now,)).fetchall() == [(0,)])


def test_leases_of_one_transaction_share_and_none_is_given_twice(
    postgres_url: str, schema: str, ledger: PostgresLedger
) -> None:
    """Requests that pile up behind a lock are answered together, whatever they ask for."""
    QuotaService(ledger).set("a", "t", 20, 10_000, 100, actor="ann")
    add(ledger, 40, "a")
    add(ledger, 40, "b")
    found: list[Any] = []
    asked = [threading.Thread(target=lambda n=n: found.extend(ledger.lease(f"w{n}", 6, 600 + n % 3))) for n in range(9)]
    with psycopg.connect(postgres_url) as holder:
        holder.execute(f"LOCK TABLE {schema}.jobs IN SHARE MODE")
        for each in asked:
            each.start()
        eventually(lambda: ledger.pending_changes >= len(asked) - 1)  # the first of them waits in the database
    for each in asked:
        each.join(60)
    assert len(found) == len({job.job_id for job in found}) == 54
    assert Counter(job.tenant for job in found)["a"] == 20
    leased = ledger.read(
        lambda tx: tx.execute("SELECT worker_id, count(*) FROM jobs WHERE fence = 1 GROUP BY worker_id")
    )
    assert dict(leased) == {f"w{n}": 6 for n in range(9)}
    assert ledger.verify_history()
