"""The ledger against its floor: jobs a second for lease and finish, and for enqueueing, at growing sizes.

Ledger and floor take turns on one file, so that both meet the same disk, the same neighbours and the same number of
rows. Reported are the best and the middle of several rounds, and ratios: of the best, the middle of each round's pair,
and that of the processor's time, which hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.facts import aim, report, show
from bench.floor import Floor
from bench.programs import are_there, peers_option, valkey
from bench.sides import LEASE_S, Cost, Sides, ended, in_turns
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

_FILL = 100_000


class Bench(Sides):
    """One ledger file that is kept at a given size while both sides work on it."""

    def __init__(self, path: Path, *, jobs: int, batch: int) -> None:
        super().__init__(jobs=jobs, batch=batch)
        self._path = path
        self.open().close()

    def open(self) -> SqliteLedger:
        return SqliteLedger(self._path)

    def floor(self) -> Floor:
        return Floor(self._path)

    def fill(self, rows: int, *, finished: bool) -> None:
        with self.floor() as floor:
            for start in range(0, rows, _FILL):
                floor.enqueue(self.raw(min(_FILL, rows - start)), durable=False)
            if finished:
                floor.end_all()

    def one_by_one(self) -> tuple[Cost, Cost]:
        """Each job put by itself, then each taken by itself and ended as the next is taken: what its peers do."""
        new = [NewJob(name, json.loads(payload)) for name, payload, _ in self.raw(self.jobs)]
        with self.open() as ledger:
            put = self.timed(lambda: [ledger.enqueue_many([job]) for job in new])
            return put, self.timed(lambda: self._take_singly(ledger))

    def _take_singly(self, ledger: SqliteLedger) -> None:
        jobs = ledger.lease("bench", 1, LEASE_S, job_type=DEFAULT_JOB_TYPE)
        for _ in range(self.jobs):
            if not jobs:
                raise RuntimeError("the ledger ran out of jobs")
            _, jobs = ledger.finish_and_lease([ended(jobs[0])], "bench", 1, LEASE_S, job_type=DEFAULT_JOB_TYPE)


def measure(rows: int, *, finished: bool, jobs: int, batch: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Both measures with `rows` waiting or finished beside the jobs that are worked on."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "ledger.sqlite", jobs=jobs, batch=batch)
        bench.fill(rows, finished=finished)
        yield from in_turns(bench, rows, finished=finished, rounds=rounds)


def growth(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How far the cost of a job, and its ratio to the floor, move with the length of the queue and of the history:
    a `spread` of 1 is not at all."""
    found = []
    for what, beside in dict.fromkeys((row["what"], row["beside"]) for row in rows):
        own = sorted(
            (row for row in rows if (row["what"], row["beside"]) == (what, beside)), key=lambda row: row["rows"]
        )
        costs = [{**row, "us_each": 1e6 / row["jobs_per_s"]} for row in own]
        for of in ("us_each", "ratio", "cpu_ratio"):
            values = [cost[of] for cost in costs]
            found.append(
                {
                    "what": what, "with": beside, "of": of, "fewest": round(values[0], 3), "most": round(values[-1], 3),
                    "spread": round(max(values) / min(values), 3),
                }
            )  # fmt: skip
    return found


def beside_ours(rows: Sequence[dict[str, Any]], ours: str) -> list[dict[str, Any]]:
    """Each queue's jobs a second as a multiple of ours, in the same row of waiting jobs."""
    base = {row["waiting"]: row["jobs_per_s"] for row in rows if row["queue"] == ours}
    return [{**row, "x_ours": round(row["jobs_per_s"] / base[row["waiting"]], 3)} for row in rows]


SINGLY = "this ledger, one by one"


def peers(python: Path, jobs: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Other queues of one machine, in an environment of their own; what is missing there is said and left out."""
    if not are_there(python, "peers"):
        return []
    told = told_by([str(python), str(Path(__file__).with_name("peers.py")), str(jobs), *map(str, sizes)])
    return beside_ours([*(_singly(jobs, size) for size in sizes), *told], SINGLY) if told else []


def told_by(command: Sequence[str]) -> list[dict[str, Any]]:
    """A script's lines of JSON."""
    env = {**os.environ, "VALKEY_SERVER": valkey() or ""}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env, check=False)
    if done.returncode != 0:
        print("peers: left out, their script failed", file=sys.stderr)
        return []
    return [dict(json.loads(line)) for line in done.stdout.splitlines()]


def _singly(jobs: int, waiting: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "ledger.sqlite", jobs=jobs, batch=1)
        bench.fill(waiting, finished=False)
        put, run = (round(1 / cost.wall_s) for cost in bench.one_by_one())
    return {"queue": SINGLY, "waiting": waiting, "jobs": jobs, "enqueue_per_s": put, "jobs_per_s": run}


def aims(rows: Sequence[dict[str, Any]], moved: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    worked = [row for row in rows if row["what"] == "lease and finish"]
    put = [row["jobs_per_s"] for row in rows if row["what"] == "enqueue"]
    return [
        aim("lease and finish: jobs a second", min(row["jobs_per_s"] for row in worked), least=20_000),
        aim("lease and finish: ratio", min(row["ratio"] for row in worked), least=0.6),
        aim("enqueue: jobs a second", min(put), least=20_000),
        aim("spread of the ratio", max(row["spread"] for row in moved if row["of"] == "ratio"), most=1.3),
    ]


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.ledger", description=__doc__)
    words.add_argument("--rows", default="10000,100000", help="rows waiting or finished beside the measured jobs")
    words.add_argument("--jobs", type=int, default=10_000, help="jobs measured in each round")
    words.add_argument("--batch", type=int, default=500, help="jobs leased and finished at once")
    words.add_argument("--rounds", type=int, default=5)
    peers_option(words, "huey, persist-queue and dramatiq")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    shape = {"jobs": given.jobs, "batch": given.batch, "rounds": given.rounds}
    sizes = [int(word) for word in given.rows.split(",")]
    rows = [row for size in sizes for done in (False, True) for row in measure(size, finished=done, **shape)]
    others, moved = peers(given.peers, min(given.jobs, 5000), sizes), growth(rows)
    title, judged = "The ledger against raw SQL that writes the same rows", aims(rows, moved)
    report(title, rows, out=given.out, aims=judged, growth=moved, peers=others)
    show("The ledger, from the smallest to the largest", moved, out=given.out)
    if others:
        show("Other queues of one machine, job by job", others, out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
