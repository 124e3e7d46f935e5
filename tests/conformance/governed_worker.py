"""A process of its own that leases under rules, for tests: threads that lease, hold a while, and end jobs.

Words: the database's address, the schema, the name of this instance, the number of threads, and what to do: a number
leases and ends until so many jobs are done by all; `probe` leases a few times with every thread and holds on. It begins
with a word on its standard input, and tells one line of JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from functools import partial

from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger


def main() -> None:
    url, schema, name, threads, deed = sys.argv[1:]
    told: list[object] = []
    with PostgresLedger(url, schema_name=schema, poll_s=0.05) as ledger:
        print("ready", flush=True)
        sys.stdin.readline()
        work = probe if deed == "probe" else partial(crowd, int(deed))
        crew = [threading.Thread(target=work, args=(ledger, f"{name}-{n}", told)) for n in range(int(threads))]
        for each in crew:
            each.start()
        for each in crew:
            each.join()
        print(json.dumps(told), flush=True)
        sys.stdin.readline()  # leases are held until the test has looked


def crowd(enough: int, ledger: PostgresLedger, worker: str, told: list[object]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        jobs = ledger.lease(worker, 3, 600)
        if not jobs:
            if ledger.stats()["done"] >= enough:
                return
            time.sleep(0.02)
        for job in jobs:
            told.append([job.job_id, job.tenant])
            time.sleep(0.002)
            ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))


def probe(ledger: PostgresLedger, worker: str, told: list[object]) -> None:
    for _ in range(5):
        told += [job.job_id for job in ledger.lease(worker, 4, 600)]


if __name__ == "__main__":
    main()
