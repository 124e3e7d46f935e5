"""Both sides of a measurement, whatever database: a ledger, and raw SQL that writes the same rows.

Knows what each side is asked to do and what a job then costs. Does not know how a side does it.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bench.facts import spread
from DocsToKG.core.digest import sha256_hex
from DocsToKG.core.process import ours_alone
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, Finish, LeasedJob, NewJob
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger

LEDGER, FLOOR = "ledger", "floor"
LEASE_S = 600.0


class Cost(NamedTuple):
    """What one job cost."""

    wall_s: float
    cpu_s: float


class Sides(ABC):
    """A ledger that is kept at a given size while both sides work on it. `open` and `floor` are for a `with`."""

    def __init__(self, *, jobs: int, batch: int) -> None:
        self.jobs = jobs
        self._batch = batch
        self._number = itertools.count()

    @abstractmethod
    def open(self) -> DatabaseLedger: ...

    @abstractmethod
    def floor(self) -> Any: ...

    def enqueue(self, side: str) -> Cost:
        """The jobs stay, so that as many wait for `work_off`."""
        raw = self.raw(self.jobs)
        if side == FLOOR:
            with self.floor() as floor:
                return self.timed(lambda: floor.enqueue(raw))
        new = [NewJob(name, json.loads(payload)) for name, payload, _ in raw]
        with self.open() as ledger:
            return self.timed(lambda: ledger.enqueue_many(new))

    def work_off(self, side: str) -> Cost:
        if side == FLOOR:
            with self.floor() as floor:
                return self.timed(lambda: floor.work_off(self.jobs, batch=self._batch))
        with self.open() as ledger:
            return self.timed(lambda: self._lease_and_finish(ledger))

    def _lease_and_finish(self, ledger: DatabaseLedger) -> None:
        """One batch is finished while the next is leased, and the last waits for nobody, as with the orchestrator."""
        pending: Any = None
        done = 0
        while done < self.jobs:
            jobs = ledger.lease("bench", min(self._batch, self.jobs - done), LEASE_S, job_type=DEFAULT_JOB_TYPE)
            if not jobs:
                raise RuntimeError("the ledger ran out of jobs")
            if pending is not None:
                pending.result()
            done += len(jobs)
            pending = ledger.submit_finishes([ended(job) for job in jobs], patient=done < self.jobs)
        pending.result()

    def timed(self, action: Callable[[], object]) -> Cost:
        with ours_alone():  # as the commands do
            began, cpu_s = time.perf_counter(), time.process_time()
            action()
            return Cost((time.perf_counter() - began) / self.jobs, (time.process_time() - cpu_s) / self.jobs)

    def raw(self, count: int) -> list[tuple[str, str, str]]:
        """Name, payload and digest of so many new jobs."""
        return [raw_job(number) for number in itertools.islice(self._number, count)]


def ended(job: LeasedJob) -> Finish:
    return Finish(job.job_id, job.fence, job.lease_id, JobState.DONE, result={"x": 1}, outcome="success")


def raw_job(number: int) -> tuple[str, str, str]:
    payload = f'{{"doi":"10.1/{number}"}}'
    return f"doi:10.1/{number}", payload, sha256_hex(payload.encode())


def in_turns(sides: Sides, rows: int, *, finished: bool, rounds: int) -> list[dict[str, Any]]:
    """Both measures of both sides, who begin by turns; `rows` wait, or are finished, beside the jobs."""
    costs: dict[tuple[str, str], list[Cost]] = {}
    for turn in range(rounds):
        for side in (LEDGER, FLOOR) if turn % 2 else (FLOOR, LEDGER):
            costs.setdefault(("enqueue", side), []).append(sides.enqueue(side))
            costs.setdefault(("lease and finish", side), []).append(sides.work_off(side))
    return [
        _row(what, rows, finished, costs[what, LEDGER], costs[what, FLOOR]) for what in ("lease and finish", "enqueue")
    ]


def _row(what: str, rows: int, finished: bool, ours: Sequence[Cost], floor: Sequence[Cost]) -> dict[str, Any]:
    mine, raw = spread([1 / cost.wall_s for cost in ours]), spread([1 / cost.wall_s for cost in floor])
    pairs = [f.wall_s / o.wall_s for o, f in zip(ours, floor, strict=True)]
    cpu_s, floor_cpu_s = min(cost.cpu_s for cost in ours), min(cost.cpu_s for cost in floor)
    return {
        "what": what,
        "rows": rows,
        "beside": "finished" if finished else "waiting",
        "jobs_per_s": round(mine["best"]),
        "median": round(mine["median"]),
        "floor_per_s": round(raw["best"]),
        "floor_median": round(raw["median"]),
        "ratio": round(mine["best"] / raw["best"], 3),
        "ratio_median": round(statistics.median(pairs), 3),
        "cpu_us": round(cpu_s * 1e6, 1),
        "floor_cpu_us": round(floor_cpu_s * 1e6, 1),
        "cpu_ratio": round(floor_cpu_s / cpu_s, 3),
    }
