"""The history as a feed: nothing missed, nothing twice, in an order that makes sense, on every ledger."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.history import chains
from DocsToKG.Orchestrator.control.history.feed import Cursor, HistoryFeed, parse_cursor
from DocsToKG.Orchestrator.errors import BadPage
from DocsToKG.Orchestrator.ledger.base import Finish, HistoryRow, JobState, NewJob

Open = Callable[..., Any]
WRITERS = 6
ROUNDS = 12


def enqueue(ledger: Any, tenant: str, names: list[str]) -> list[int]:
    return [answer.job_id for answer in ledger.enqueue_many([NewJob(name, {}, tenant=tenant) for name in names])]


def read_all(feed: HistoryFeed, cursor: Cursor, tenant: str, limit: int = 500) -> tuple[list[HistoryRow], Cursor]:
    rows: list[HistoryRow] = []
    while True:
        page = feed.after(cursor, tenant, limit)
        rows += [event.row for event in page.events]
        cursor = page.cursor
        if not page.more:
            return rows, cursor


def test_a_reader_sees_its_tenants_rows_from_its_place_on(open_ledger: Open) -> None:
    ledger = open_ledger(clock=ManualClock())
    feed = HistoryFeed(ledger)
    enqueue(ledger, "a", ["old"])
    cursor = feed.now("a")
    enqueue(ledger, "b", ["foreign"])
    ids = enqueue(ledger, "a", ["x", "y", "z"])
    rows, cursor = read_all(feed, cursor, "a", limit=2)
    assert [(row.event, row.job_id) for row in rows] == [("enqueued", job_id) for job_id in ids]
    assert read_all(feed, cursor, "a")[0] == []
    assert len(read_all(feed, feed.start("a"), "a")[0]) == 4
    assert [row.tenant for row in read_all(feed, feed.start("b"), "b")[0]] == ["b"]
    assert read_all(feed, feed.now("nobody"), "nobody")[0] == []


def test_a_reader_may_go_on_after_any_event_by_its_text(open_ledger: Open) -> None:
    """STREAM-03: the text is what a client sends back as Last-Event-ID."""
    ledger = open_ledger(clock=ManualClock())
    feed = HistoryFeed(ledger)
    start = feed.now("tenant ü/1")
    enqueue(ledger, "tenant ü/1", [str(n) for n in range(7)])
    events = feed.after(start, "tenant ü/1").events
    for place, event in enumerate(events):
        text = str(event.cursor)
        assert text.isascii()
        assert text.isprintable()
        rest = feed.after(parse_cursor(text), "tenant ü/1").events
        assert [each.row for each in rest] == [each.row for each in events[place + 1 :]]


def test_the_rows_of_others_do_not_hide_a_tenants_own(open_ledger: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may come back empty where much happened to others, and says that there is more."""
    monkeypatch.setattr(chains, "WINDOW", 10)
    ledger = open_ledger(clock=ManualClock())
    feed = HistoryFeed(ledger)
    cursor = feed.now("a")
    enqueue(ledger, "b", [str(n) for n in range(95)])
    [job_id] = enqueue(ledger, "a", ["x"])
    enqueue(ledger, "b", [str(n) for n in range(95, 190)])
    rows, cursor = read_all(feed, cursor, "a", limit=5)
    assert [row.job_id for row in rows] == [job_id]
    assert not feed.after(cursor, "a").more


@pytest.mark.parametrize(
    "text", ["", "x", "h1", "h1.", "h1.YQ.0", "h1.YQ.0-", "h1.YQ.a-b", "h1.YQ.0-1\n", "h2.YQ.0-1", "h1._w.0-1",
             "h1.YQ" + ".0-1" * 2000, "h1.YQ.0-99999999999999999999", "é"]
)  # fmt: skip
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadPage):
        parse_cursor(text)


def test_a_cursor_of_another_tenant_or_beyond_the_history_is_refused(open_ledger: Open) -> None:
    ledger = open_ledger(clock=ManualClock())
    feed = HistoryFeed(ledger)
    enqueue(ledger, "a", ["x"])
    for cursor in (feed.now("b"), Cursor("a", {0: 10**9}), Cursor("a", {77: 1})):
        with pytest.raises(BadPage):
            feed.after(cursor, "a")


@pytest.mark.slow
def test_a_reader_that_comes_too_late_is_told_what_it_missed(postgres_url: str, schema: str) -> None:
    """STREAM-03. Whole months are removed on PostgreSQL alone."""
    from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

    clock = ManualClock()
    with PostgresLedger(postgres_url, schema_name=schema, clock=clock, database_time=False) as ledger:
        late_reader(ledger, clock, postgres_url, schema)


def late_reader(ledger: Any, clock: ManualClock, url: str, schema: str) -> None:
    from DocsToKG.Orchestrator.ledger.drivers.postgres import maintenance
    from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database

    database, feed = Database(url, schema=schema, patience_s=5), HistoryFeed(ledger)
    with database.connect() as connection:
        maintenance.make_months(connection, database, int(clock.now() * 1000))
        early = feed.start("a")
        enqueue(ledger, "a", ["old"])
        clock.advance(40 * 86_400)
        kept = enqueue(ledger, "a", ["new"])
        assert not feed.after(early, "a").passed
        assert maintenance.remove_months(connection, database, int(clock.now() * 1000), int(clock.now() * 1000)) == 1
    page = feed.after(early, "a")
    assert page.passed
    assert [event.row.job_id for event in page.events] == kept
    assert not feed.after(page.cursor, "a").passed
    assert not feed.after(feed.start("a"), "a").passed


def test_parallel_writers_lose_no_row_and_double_none(open_ledger: Open) -> None:
    """OPS-01, STREAM-03: several ledgers write at once, with one transaction each at a time; a reader follows."""
    ledgers = [open_ledger() for _ in range(WRITERS)]
    feed = HistoryFeed(open_ledger())
    beginning = cursor = feed.now("a")
    done = threading.Event()
    errors: list[BaseException] = []

    def write(ledger: Any, name: int) -> None:
        try:
            for turn in range(ROUNDS):
                ledger.enqueue_many([NewJob(f"{name}/{turn}/{n}", {}, tenant="a") for n in range(5)])
                ledger.enqueue_many([NewJob(f"{name}/{turn}", {}, tenant="b")])
                for job in ledger.lease(f"w{name}", 6, 600):
                    ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
        except BaseException as error:
            errors.append(error)

    seen: list[HistoryRow] = []

    def follow() -> None:
        nonlocal cursor
        try:
            while True:
                last = done.is_set()
                page = feed.after(cursor, "a", limit=7)
                seen.extend(event.row for event in page.events)
                cursor = parse_cursor(str(page.cursor))
                if last and not page.more:
                    return
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(ledger, n)) for n, ledger in enumerate(ledgers)]
    reader = threading.Thread(target=follow)
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join(120)
    done.set()
    reader.join(120)
    assert not errors
    whole, _ = read_all(feed, beginning, "a")
    assert sum(row.event == "enqueued" for row in whole) == WRITERS * ROUNDS * 5
    places = [(row.shard, row.link) for row in seen]
    assert len(places) == len(set(places))
    assert set(places) == {(row.shard, row.link) for row in whole}
    _assert_each_job_makes_sense(seen)
    _assert_each_job_makes_sense(whole)


def _assert_each_job_makes_sense(rows: list[HistoryRow]) -> None:
    """What happened to one job comes in the order in which it happened, whoever wrote it."""
    states: defaultdict[int, list[tuple[str | None, str | None]]] = defaultdict(list)
    for row in rows:
        if row.job_id is not None:
            states[row.job_id].append((row.from_state, row.to_state))
    for moves in states.values():
        assert [before for before, _ in moves] == [None, *(after for _, after in moves[:-1])]
