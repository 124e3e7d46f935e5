"""Processes that die between any two steps: no event is lost, none has two ids, none is sent that was undone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conformance.events_process import opened
from tests.conformance.events_receiver import Receiver, receiving

from DocsToKG.Orchestrator.control.history.chains import COLUMNS
from DocsToKG.Orchestrator.control.jobs.reads import history_row
from DocsToKG.Orchestrator.events.envelope import envelopes
from DocsToKG.Orchestrator.events.outbox import Outbox, Subscription
from DocsToKG.Orchestrator.ledger.base import Finish, HistoryRow, JobState, NewJob
from DocsToKG.Orchestrator.signing.keyring import KeyFolder

PROCESS = str(Path(__file__).with_name("events_process.py"))
pytestmark = pytest.mark.slow


class Scene(NamedTuple):
    """A ledger, a key, somebody who receives, and processes that can be started on them."""

    forks: subprocess.Popen[str]

    place: str
    keys: str
    receiver: Receiver

    def run(self, what: str, step: str) -> int:
        """A process of its own, to its end or its death; its exit code."""
        assert self.forks.stdin is not None
        assert self.forks.stdout is not None
        self.forks.stdin.write(json.dumps([what, self.place, self.keys, self.receiver.url, step]) + "\n")
        self.forks.stdin.flush()
        return int(self.forks.stdout.readline())

    def end_lead(self) -> None:
        """As if the time of whoever led had run out; that it does is shown in test_services_small.py."""
        with opened(self.place) as ledger:
            ledger.write(lambda tx: tx.execute("DELETE FROM leaders"))

    def carry_on(self) -> None:
        """Processes that nobody kills, until nothing waits."""
        self.end_lead()
        deadline = time.monotonic() + 120
        while True:
            assert self.run("carry", "none") == 0
            with opened(self.place) as ledger:
                if not Outbox(ledger).list():
                    return
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def committed(self) -> list[dict[str, Any]]:
        with opened(self.place) as ledger:
            rows = ledger.read(lambda tx: tx.execute(f"SELECT {COLUMNS} FROM job_history ORDER BY seq"))
            history: list[HistoryRow] = [history_row(row) for row in rows]
            return envelopes(ledger, [row for row in history if row.event != "renewed"])


@pytest.fixture(scope="module")
def forks() -> Iterator[subprocess.Popen[str]]:
    """The process that all others are forked from."""
    words = [sys.executable, PROCESS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate(timeout=60)


@pytest.fixture(params=["sqlite", "postgres"])
def scene(forks: subprocess.Popen[str], request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    folder = KeyFolder(tmp_path / "keys")
    public = folder.new("events", 0.0).public
    place, name = str(tmp_path / "ledger.sqlite"), f"e_{uuid.uuid4().hex[:20]}"
    if request.param == "postgres":
        place = f"{request.getfixturevalue('postgres_url')} {name}"
    with opened(place) as ledger:
        Outbox(ledger).register([Subscription("hook", "webhook")])
    with receiving(public) as receiver:
        yield Scene(forks, place, str(folder.path), receiver)
    if request.param == "postgres":
        import psycopg

        with psycopg.connect(place.split(" ")[0], autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def test_a_carrier_killed_at_any_step_loses_nothing(scene: Scene) -> None:
    """One after the other, each with more to carry than it gets to, and each left with what the ones before had in
    hand."""
    for step in ("before-claim", "after-claim", "before-send", "after-send", "before-mark", "after-mark"):
        with opened(scene.place) as ledger:
            ledger.enqueue_many([NewJob(f"{step}-{n}", {}) for n in range(8)])
            for job in ledger.lease("w", 8, 600):
                ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
        scene.end_lead()
        assert scene.run("carry", step) == -signal.SIGKILL
    scene.carry_on()
    assert_told(scene)


@pytest.mark.parametrize("step", ["before-commit", "after-commit"])
def test_a_worker_killed_around_its_commit_tells_what_it_committed_and_nothing_else(scene: Scene, step: str) -> None:
    assert scene.run("work", step) == -signal.SIGKILL
    scene.carry_on()
    assert_told(scene)
    if step == "before-commit":
        assert len(scene.receiver.events) < 48


def assert_told(scene: Scene) -> None:
    """What was committed is what was told: the same ids and words, each job in its order; twice at most where a
    process died, and then the same again."""
    wanted = scene.committed()
    told: dict[str, dict[str, Any]] = {}
    for event in scene.receiver.events:
        assert told.setdefault(event["eventId"], event) == event
    assert scene.receiver.wrong == []
    assert {event["eventId"]: event for event in wanted} == told
    assert len({event["idempotencyKey"] for event in wanted}) == len(wanted) == len(told)
    order, seen = defaultdict(list), defaultdict(list)
    for event in wanted:
        order[event["job"]["id"]].append(event["eventId"])
    for event_id, event in told.items():
        seen[event["job"]["id"]].append(event_id)
    assert seen == order
