"""The ledger against its floor: jobs a second for lease and finish, and for enqueueing, at growing sizes.

Ledger and floor take turns on one file, so that both meet the same disk, the same neighbours and the same number of
rows. Reported are the best and the middle of several rounds, and ratios: of the best, the middle of each round's pair,
and that of the processor's time, which hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.facts import report, spread
from bench.floor import Floor
from bench.programs import valkey
from DocsToKG.core.digest import sha256_hex
from DocsToKG.Orchestrator.domain.states import JobState
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, Finish, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

LEDGER, FLOOR = "ledger", "floor"
_FILL = 100_000
_LEASE_S = 600.0


class Cost(NamedTuple):
    """What one job cost."""

    wall_s: float
    cpu_s: float


class Bench:
    """One ledger file that is kept at a given size while both sides work on it."""

    def __init__(self, path: Path, *, jobs: int, batch: int) -> None:
        self._path = path
        self._jobs = jobs
        self._batch = batch
        self._number = itertools.count()
        SqliteLedger(path).close()

    def fill(self, rows: int, *, finished: bool) -> None:
        with Floor(self._path) as floor:
            for start in range(0, rows, _FILL):
                floor.enqueue(self._raw(min(_FILL, rows - start)), durable=False)
            if finished:
                floor.end_all()

    def enqueue(self, side: str) -> Cost:
        """The jobs stay, so that as many wait for `work_off`."""
        if side == FLOOR:
            raw = self._raw(self._jobs)
            with Floor(self._path) as floor:
                return self._timed(lambda: floor.enqueue(raw))
        new = [NewJob(name, json.loads(payload)) for name, payload, _ in self._raw(self._jobs)]
        with SqliteLedger(self._path) as ledger:
            return self._timed(lambda: ledger.enqueue_many(new))

    def work_off(self, side: str) -> Cost:
        if side == FLOOR:
            with Floor(self._path) as floor:
                return self._timed(lambda: floor.work_off(self._jobs, batch=self._batch))
        with SqliteLedger(self._path) as ledger:
            return self._timed(lambda: self._lease_and_finish(ledger))

    def _lease_and_finish(self, ledger: SqliteLedger) -> None:
        """One batch is finished while the next is leased, and the last waits for nobody, as with the orchestrator."""
        pending: Any = None
        done = 0
        while done < self._jobs:
            jobs = ledger.lease("bench", min(self._batch, self._jobs - done), _LEASE_S, job_type=DEFAULT_JOB_TYPE)
            if not jobs:
                raise RuntimeError("the ledger ran out of jobs")
            if pending is not None:
                pending.result()
            done += len(jobs)
            ends = [
                Finish(j.job_id, j.fence, j.lease_id, JobState.DONE, result={"x": 1}, outcome="success") for j in jobs
            ]
            pending = ledger.submit_finishes(ends, patient=done < self._jobs)
        pending.result()

    def _timed(self, action: Callable[[], object]) -> Cost:
        began, cpu_s = time.perf_counter(), time.process_time()
        action()
        return Cost((time.perf_counter() - began) / self._jobs, (time.process_time() - cpu_s) / self._jobs)

    def _raw(self, count: int) -> list[tuple[str, str, str]]:
        return [raw_job(number) for number in itertools.islice(self._number, count)]


def raw_job(number: int) -> tuple[str, str, str]:
    payload = f'{{"doi":"10.1/{number}"}}'
    return f"doi:10.1/{number}", payload, sha256_hex(payload.encode())


def measure(rows: int, *, finished: bool, jobs: int, batch: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Both measures with `rows` waiting or finished beside the jobs that are worked on."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "ledger.sqlite", jobs=jobs, batch=batch)
        bench.fill(rows, finished=finished)
        costs: dict[tuple[str, str], list[Cost]] = {}
        for turn in range(rounds):
            for side in (LEDGER, FLOOR) if turn % 2 else (FLOOR, LEDGER):
                costs.setdefault(("enqueue", side), []).append(bench.enqueue(side))
                costs.setdefault(("lease and finish", side), []).append(bench.work_off(side))
    for what in ("lease and finish", "enqueue"):
        yield row_of(what, rows, finished, costs[what, LEDGER], costs[what, FLOOR])


def row_of(what: str, rows: int, finished: bool, ours: Sequence[Cost], floor: Sequence[Cost]) -> dict[str, Any]:
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


def spans(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How far the ratio to the floor moves from the smallest to the largest ledger: 1 is not at all."""
    found = []
    for what in dict.fromkeys(row["what"] for row in rows):
        for ratio in ("ratio", "cpu_ratio"):
            values = [row[ratio] for row in rows if row["what"] == what]
            found.append(
                {"what": what, "of": ratio, "worst": min(values), "spread": round(max(values) / min(values), 3)}
            )
    return found


def peers(python: Path | None, jobs: int) -> list[dict[str, Any]]:
    """Other queues of one machine, in an environment of their own; what is missing there is said and left out."""
    if python is None or not python.exists():
        print("peers: left out, no environment for them (--peers; ./dev bench makes one)", file=sys.stderr)
        return []
    script = Path(__file__).with_name("peers.py")
    env = {**os.environ, "VALKEY_SERVER": valkey() or ""}
    done = subprocess.run(
        [str(python), str(script), str(jobs)], stdout=subprocess.PIPE, text=True, env=env, check=False
    )
    if done.returncode != 0:
        print("peers: left out, their script failed", file=sys.stderr)
        return []
    return [dict(json.loads(line)) for line in done.stdout.splitlines()]


def main(arguments: Sequence[str] | None = None) -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rows", default="10000,100000", help="rows waiting or finished beside the measured jobs")
    words.add_argument("--jobs", type=int, default=10_000, help="jobs measured in each round")
    words.add_argument("--batch", type=int, default=500, help="jobs leased and finished at once")
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--peers", type=Path, help="python of an environment with huey and persist-queue")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    given = words.parse_args(arguments)
    shape = {"jobs": given.jobs, "batch": given.batch, "rounds": given.rounds}
    sizes = [int(word) for word in given.rows.split(",")]
    rows = [row for size in sizes for done in (False, True) for row in measure(size, finished=done, **shape)]
    others, moved = peers(given.peers, min(given.jobs, 5000)), spans(rows)
    report("The ledger against raw SQL that writes the same rows", rows, out=given.out, spans=moved, peers=others)
    report("From the smallest to the largest ledger", moved, out=None)
    if others:
        report("Other queues of one machine, job by job", others, out=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
