"""Bundles of what happened, on every ledger: the same bytes at any time, and proved without the ledger."""

from __future__ import annotations

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from tests.orchestrator.eventful import afternoon, bundle, finish, morning, ms, trust
from typer.testing import CliRunner

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.audit.verify import verify, verify_sequence
from DocsToKG.Orchestrator.cli.app import app
from DocsToKG.Orchestrator.errors import BadRange
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.ledger.drivers.postgres import maintenance
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Database
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.keys import new_signer

NOW = ManualClock().now()
A, B = new_signer("a", NOW), new_signer("b", NOW)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_bundle_tells_all_and_is_proved(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    """AUD-01, AUD-02, AUD-03, AUD-06."""
    start = ms(clock)
    morning(ledger, clock)
    afternoon(ledger, clock)
    made = bundle(ledger, start, ms(clock), tmp_path / "day", [A, B])
    report = verify(made.path, trust(clock, A))
    assert report.problems == []
    assert report.rows == made.rows
    states = {row["jobId"]: (row["stateBefore"], row["state"]) for row in rows(made.path, "jobs")}
    assert states == {job.job_id: (None, job.state.value) for job in ledger.list_jobs(limit=100)}
    assert [row["liftedBy"] for row in rows(made.path, "throttles")] == ["ann"]
    [quota] = rows(made.path, "quotas")
    assert (quota["quota_reason"], quota["quota_ticket"]) == ("more room", "OPS-7")
    actions = {row["event"]: row for row in rows(made.path, "actions")}
    assert actions["backfill_started"]["backfill_reason"] == "lost"
    assert actions["backfill_started"]["backfill_ticket"] == "OPS-9"
    assert actions["canceled"]["ticket"] == "OPS-8"
    assert {row["event"] for row in rows(made.path, "incidents")} == {"incident_raised", "incident_resolved"}


def test_a_range_gives_the_same_bytes_whatever_happens_later(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    """AUD-04: what failed in the morning is done by the evening, and the morning's bundle still says that it failed."""
    start = ms(clock)
    morning(ledger, clock)
    noon = ms(clock)
    first = bundle(ledger, start, noon, tmp_path / "first", [A])
    packed = bundle(ledger, start, noon, tmp_path / "first.tar.zst", [A])
    afternoon(ledger, clock)
    again = bundle(ledger, start, noon, tmp_path / "again", [A])
    packed_again = bundle(ledger, start, noon, tmp_path / "again.tar.zst", [A])
    assert contents(first.path) == contents(again.path)
    assert packed.path.read_bytes() == packed_again.path.read_bytes()
    assert sorted(row["state"] for row in rows(again.path, "jobs")) == ["done", "error", "queued"]
    assert [row["liftedAt"] for row in rows(again.path, "throttles")] == [None]


def test_bundles_go_on_where_the_one_before_ended(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    times = [ms(clock)]
    morning(ledger, clock)
    times.append(ms(clock))
    afternoon(ledger, clock)
    times.append(ms(clock))
    clock.advance(3600)
    times.append(ms(clock))  # a range in which nothing happened
    paths = [bundle(ledger, times[n], times[n + 1], tmp_path / f"{n}.tar.zst", [A]).path for n in range(len(times) - 1)]
    assert [report.problems for report in verify_sequence(paths, trust(clock, A))] == [[], [], []]
    broken = verify_sequence([paths[0], paths[2]], trust(clock, A))
    assert "begins at" in broken[1].problems[0]
    assert "does not go on" in broken[1].problems[1]
    assert verify_sequence([paths[1], paths[0]], trust(clock, A))[1].problems


def test_what_is_written_at_the_end_of_a_range_is_waited_for(clock: ManualClock, tmp_path: Path) -> None:
    """AUD-04: a file's one writer may have begun in the range and not have committed."""
    begun, gate, start = threading.Event(), threading.Event(), ms(clock)

    def write(tx: ControlTx) -> None:
        tx.note("a", event="noted", actor="me")
        begun.set()
        gate.wait(30)

    with SqliteLedger(tmp_path / "q.sqlite", clock=clock) as ledger, ThreadPoolExecutor(2) as threads:
        ledger.enqueue_many([NewJob("doi:10.1/x", {}, tenant="a")])
        writing = threads.submit(ledger.write, write)
        assert begun.wait(30)
        clock.advance(1)
        exporting = threads.submit(bundle, ledger, start, ms(clock), tmp_path / "first", [A])
        wait([exporting], 0.2)
        gate.set()
        writing.result(30)
        first = exporting.result(30)
        again = bundle(ledger, start, ms(clock), tmp_path / "again", [A])
    assert [row["event"] for row in rows(first.path, "history")] == ["enqueued", "noted"]
    assert contents(first.path) == contents(again.path)


def test_one_tenant_sees_only_what_is_its_own(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    start = ms(clock)
    morning(ledger, clock)
    afternoon(ledger, clock)
    made = bundle(ledger, start, ms(clock), tmp_path / "b", [A], tenant="b")
    assert verify(made.path, trust(clock, A)).problems == []
    for name in ("jobs", "history", "throttles", "quotas", "incidents", "actions", "chains"):
        assert {row["tenant"] for row in rows(made.path, name)} <= {"b"}
    assert made.rows["jobs.jsonl"] == 3


def test_a_lease_across_the_border_is_told_on_both_sides(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    start = ms(clock)
    ledger.enqueue_many([NewJob("doi:10.1/x", {})])
    clock.advance(1)
    [job] = ledger.lease("w-1", 1, 600.0)
    clock.advance(1)
    border = ms(clock)
    finish(ledger, job)
    clock.advance(1)
    before = bundle(ledger, start, border, tmp_path / "before", [A])
    after = bundle(ledger, border, ms(clock), tmp_path / "after", [A])
    assert rows(before.path, "jobs")[0]["state"] == "in_progress"
    assert [(row["stateBefore"], row["state"]) for row in rows(after.path, "jobs")] == [("in_progress", "done")]
    assert all(report.proved for report in verify_sequence([before.path, after.path], trust(clock, A)))


def test_a_range_that_is_not_over_is_refused(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    with pytest.raises(BadRange, match="not over"):
        bundle(ledger, ms(clock), ms(clock) + 60_000, tmp_path / "x", [A])
    with pytest.raises(BadRange, match="before it begins"):
        bundle(ledger, ms(clock), ms(clock), tmp_path / "x", [A])
    assert list(tmp_path.glob("*x*")) == []


@pytest.mark.slow
def test_months_that_are_no_longer_kept_are_not_passed_over(
    postgres_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    """Whole months are removed on PostgreSQL alone. Nor is an empty bundle signed when all are gone."""
    name, start = f"g_{uuid.uuid4().hex[:20]}", ms(clock)
    words = {"schema_name": name, "clock": clock, "database_time": False}
    database = Database(postgres_url, schema=name, patience_s=5)
    with PostgresLedger(postgres_url, **words) as ledger, database.connect() as connection:
        maintenance.make_months(connection, database, start)
        ledger.enqueue_many([NewJob("old:1", {}, tenant="a")])
        clock.advance(40 * 86_400)
        maintenance.make_months(connection, database, ms(clock))
        ledger.enqueue_many([NewJob("new:1", {}, tenant="a")])
        assert maintenance.remove_months(connection, database, ms(clock), ms(clock)) == 1
        clock.advance(1)
        with pytest.raises(BadRange, match="export from 2025-07-01 on"):
            bundle(ledger, start, ms(clock), tmp_path / "all", [A])
        july = ms(ManualClock(datetime(2025, 7, 1, tzinfo=UTC).timestamp()))
        made = bundle(ledger, july, ms(clock), tmp_path / "kept", [A])
        assert verify(made.path, trust(clock, A)).problems == []
        assert [row["link"] for row in rows(made.path, "history")] == [2]

        clock.advance(40 * 86_400)
        maintenance.remove_months(connection, database, ms(clock), ms(clock))
        with pytest.raises(BadRange, match="is no longer kept here"):
            bundle(ledger, july, ms(clock), tmp_path / "none", [A])
        made = bundle(ledger, ms(clock) - 1000, ms(clock), tmp_path / "quiet", [A])
        assert [row["to"]["link"] for row in rows(made.path, "chains")] == [2]
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.mark.slow
def test_the_command_exports_from_a_server(postgres_url: str, tmp_path: Path) -> None:
    name = f"d_{uuid.uuid4().hex[:20]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        url = urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
        try:
            with PostgresLedger(url) as ledger:
                ledger.enqueue_many([NewJob(f"doi:10.1/{n}", {}, tenant="a") for n in range(3)])
                now = datetime.fromtimestamp(ledger.read(lambda tx: tx.now_ms) / 1000 + 0.001, UTC).isoformat()
            keys = ["--keys", str(tmp_path / "keys")]
            for words in (
                ["keys", "new", "operations", *keys],
                ["export", "--from", "2026-01-01", "--to", now, "-o", str(tmp_path / "b"), "--ledger", url, *keys],
                ["manifest", "-o", str(tmp_path / "m.json"), "--ledger", url, *keys],
                ["verify", str(tmp_path / "b"), str(tmp_path / "m.json"), "--trust", str(tmp_path / "keys")],
            ):
                result = CliRunner().invoke(app, ["audit", *words])
                assert result.exit_code == 0, result.output
            assert "3 rows of history, 3 jobs" in result.output
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
