"""A whole fleet in one thread: workers that stall, die and wake too late, on a clock that jumps, seed by seed.

Every step of every worker is one call of a real ledger, chosen by a seeded generator, so that a failing seed
fails again. Between any two calls a worker may crash or sleep past its lease, the ledger may be closed and
opened, and the wall clock may be set back. Effects are counted outside the ledger.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.states import TERMINAL, JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, LeasedJob, NewJob, Progress, Release
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

SEEDS = 200
TTL_S = 30.0
ENDS = (JobState.DONE, JobState.DONE, JobState.DONE, JobState.SKIPPED, JobState.ERROR)


@dataclass
class Worker:
    """What one process knows. `asleep_until` is beyond its leases when it is frozen for long."""

    name: str
    held: list[LeasedJob] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)
    asleep_until: float = 0.0


class Fleet:
    """N workers on one ledger, and what was seen of their effects."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.dice = random.Random(seed)
        self.clock = ManualClock()
        self.ledger = SqliteLedger(path, clock=self.clock, linger_s=0)
        self.workers = [Worker(f"w{n}-0") for n in range(self.dice.randint(1, 3))]
        self.accepted: Counter[int] = Counter()
        self.fences: Counter[int] = Counter()
        self.refused = 0

    def enqueue(self) -> list[int]:
        jobs = []
        for n in range(self.dice.randint(3, 8)):
            needs = [f"a:{self.dice.randrange(n)}"] if n and self.dice.random() < 0.3 else []
            host = self.dice.choice([None, None, "one.example", "two.example"])
            priority = self.dice.randint(0, 1)
            jobs.append(NewJob(f"a:{n}", {}, depends_on=needs, host_key=host, priority=priority, max_attempts=50))
        return [answer.job_id for answer in self.ledger.enqueue_many(jobs)]

    def run(self) -> int:
        """Until every job has ended; how many steps that took."""
        for step in range(3000):
            if not any(self.ledger.stats()[state] for state in ("pending", "queued", "in_progress")):
                return step
            self.clock.advance(self.dice.choice([0.1, 1, 5]))
            worker = self.dice.choice(self.workers)
            if self.clock.monotonic() >= worker.asleep_until:
                self.step(worker)
            self.mishap()
        raise AssertionError(f"jobs are stuck: {self.ledger.stats()}")

    def mishap(self) -> None:
        chance = self.dice.random()
        worker = self.dice.choice(self.workers)
        if chance < 0.03:
            self.crash(worker)
        elif chance < 0.06:
            worker.asleep_until = self.clock.monotonic() + self.dice.choice([1, TTL_S + 1, 3 * TTL_S])
        elif chance < 0.08:
            self.clock.step(-self.dice.choice([10, 3600]))
        elif chance < 0.09:
            self.ledger.close()
            self.ledger = SqliteLedger(self.path, clock=self.clock, linger_s=0)

    def crash(self, worker: Worker) -> None:
        """The process is gone with all it knew; a newcomer has another id, and may find out by the dead one's lock."""
        if self.dice.random() < 0.5:
            self.ledger.release_worker(worker.name)
        number = int(worker.name.rsplit("-")[-1]) + 1
        self.workers[self.workers.index(worker)] = Worker(f"{worker.name.rsplit('-')[0]}-{number}")

    def step(self, worker: Worker) -> None:
        if not worker.held or self.dice.random() < 0.2:
            self.lease(worker)
        elif self.dice.random() < 0.2:
            kept = self.ledger.heartbeat(worker.name, TTL_S)
            if self.dice.random() < 0.5:  # a worker that does not look learns at its next write
                worker.held = [job for job in worker.held if job.lease_id in kept]
        else:
            self.work(worker, self.dice.choice(worker.held))

    def lease(self, worker: Worker) -> None:
        for job in self.ledger.lease(worker.name, self.dice.randint(1, 3), TTL_S):
            assert job.fence > self.fences[job.job_id], "a fence was given twice"
            self.fences[job.job_id] = job.fence
            worker.held.append(job)

    def work(self, worker: Worker, job: LeasedJob) -> None:
        names = (job.job_id, job.fence, job.lease_id)
        try:
            if job.lease_id not in worker.begun:
                self.ledger.progress(Progress(*names, "fetch"))
                worker.begun.add(job.lease_id)
                self.written(job)
                return
            self.settle(names)
            self.written(job)
        except LeaseLost:
            self.refused += 1
        worker.held.remove(job)

    def written(self, job: LeasedJob) -> None:
        assert job.fence == self.fences[job.job_id], "a write of an earlier owner was accepted"

    def settle(self, names: tuple[int, int, str]) -> None:
        roll = self.dice.random()
        if roll < 0.15:
            self.ledger.fail(Fail(*names, delay_s=self.dice.choice([0, 7]), max_attempts=50, last_error="no"))
        elif roll < 0.3:
            self.ledger.release(Release(*names, delay_s=self.dice.choice([0, 7]), host_key="two.example"))
        else:
            end = Finish(*names, self.dice.choice(ENDS), "told")
            if self.ledger.finish(end) == "applied":
                self.accepted[names[0]] += 1
            if self.dice.random() < 0.3:  # the answer was lost on the way, and the worker asks again
                assert self.ledger.finish(end) == "already"


def check(fleet: Fleet, job_ids: list[int]) -> None:
    for job_id in job_ids:
        job = fleet.ledger.job(job_id)
        assert job.state in TERMINAL
        by_need = job.outcome == "dependency_failed"
        assert fleet.accepted[job_id] == (0 if by_need else 1)
        assert job.fence == fleet.fences[job_id]
        rows = fleet.ledger.history(job_id)
        assert sum(row.to_state in TERMINAL for row in rows) == 1
        assert all(after.from_state == before.to_state for before, after in pairwise(rows))
        assert [row.at for row in rows] == sorted(row.at for row in rows)
    assert fleet.ledger.verify_history()


def simulate(folder: Path, seed: int) -> Fleet:
    fleet = Fleet(folder / f"{seed}.sqlite", seed)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: fleet.ledger.close())
        job_ids = fleet.enqueue()
        fleet.run()
        check(fleet, job_ids)
    with closing(sqlite3.connect(fleet.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("SELECT count(*) FROM dependency_changes").fetchone() == (0,)
    return fleet


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(10))
def test_every_job_ends_once_whatever_happens_to_the_workers(tmp_path: Path, tenth: int) -> None:
    """QUE-08, QUE-09, QUE-20: one accepted end for each job, fences that only grow, a chain that verifies."""
    refused = 0
    for seed in range(tenth * SEEDS // 10, (tenth + 1) * SEEDS // 10):
        try:
            refused += simulate(tmp_path, seed).refused
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert refused > 0, "no worker ever came too late, so the fence was not tried"
