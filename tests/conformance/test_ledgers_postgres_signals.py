"""Workers of a ledger on PostgreSQL are woken by what others do, and miss nothing where a notice is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest
from tests.conformance.postgres_ledgers import cut_all, end, given_ledger, given_name, given_open_one, given_sql  # noqa: F401
from tests.waiting import eventually

from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Orchestrator.notifications.pg_notify import PgNotifySignal

pytestmark = pytest.mark.slow
FOR_EVER_S = 1000.0


def woken(ledger: PostgresLedger, deed: Callable[[], object]) -> bool:
    """Whether it is woken long before it would ask again by itself."""
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(ledger.wait_for_work(FOR_EVER_S)), daemon=True)
    waiter.start()
    waiter.join(timeout=0.1)  # likely it waits by then; if not, the test shows less
    deed()
    waiter.join(timeout=60)
    return answers == [True]


@pytest.fixture
def channel() -> str:
    return f"c_{uuid4().hex[:12]}"


def listening(signal_: PgNotifySignal) -> None:
    signal_.mark()
    eventually(lambda: signal_.is_listening)


def test_an_enqueue_elsewhere_wakes_a_waiting_worker(open_one, postgres_url, channel):
    heard, said = PgNotifySignal(postgres_url, channel=channel), PgNotifySignal(postgres_url, channel=channel)
    here, there = open_one(signal=heard, poll_s=FOR_EVER_S), open_one(signal=said, poll_s=FOR_EVER_S)
    listening(heard)
    assert woken(here, lambda: there.enqueue_many([NewJob("a:1", {})]))


def test_a_listener_that_was_cut_off_comes_back_and_misses_nothing(open_one, postgres_url, channel, sql):
    signal_ = PgNotifySignal(postgres_url, channel=channel)
    here, there = open_one(signal=signal_, poll_s=FOR_EVER_S), open_one(poll_s=FOR_EVER_S)
    listening(signal_)

    def deed() -> None:
        # This one says nothing on the channel: as if the listener had been away, whose return is what wakes.
        there.enqueue_many([NewJob("a:1", {})])
        sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'docstokg-listen'")

    assert woken(here, deed)
    assert signal_.troubles >= 1
    listening(signal_)


def test_a_listener_that_the_server_forgot_is_found_out(postgres_url, channel, monkeypatch):
    """The first LISTEN never reaches the server."""
    execute, lost = psycopg.Connection.execute, iter([True])

    def loses_one(self, query, *more, **words):
        is_lost = "LISTEN" in str(query) and next(lost, False)
        return execute(self, "SELECT 1" if is_lost else query, *more, **words)

    monkeypatch.setattr(psycopg.Connection, "execute", loses_one)
    signal_ = PgNotifySignal(postgres_url, channel=channel, check_s=0.3)
    try:
        mark = signal_.mark()
        deadline = time.monotonic() + 60
        while not signal_.troubles:
            assert time.monotonic() < deadline
            mark = signal_.mark()
            signal_.wait(0.1, since=mark)
        listening(signal_)
    finally:
        signal_.close()


def test_without_any_signal_the_ledger_is_asked_now_and_then(open_one):
    here, there = open_one(poll_s=0.3), open_one()
    assert woken(here, lambda: there.enqueue_many([NewJob("a:1", {})]))


def test_many_notices_of_one_lane_are_few_on_the_wire(postgres_url, channel):
    signal_ = PgNotifySignal(postgres_url, channel=channel)
    try:
        listening(signal_)
        for _ in range(500):
            signal_.notify("content.download")
        eventually(lambda: signal_.notices and signal_.sent)
        assert 1 <= signal_.sent < 50
    finally:
        signal_.close()


def test_a_signal_whose_server_is_away_raises_nothing():
    signal_ = PgNotifySignal("postgresql://me@127.0.0.1:1/x")
    mark = signal_.mark()
    signal_.notify("lane")
    assert signal_.wait(0, since=mark)
    assert not signal_.wait(0.05)
    signal_.close()
