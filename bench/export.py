"""How fast is a bundle written and proved, and in how much memory? A ledger with a long history is the example.

The history is made by the ledger itself: jobs come, are leased and finished. Writing and proving are each a process of
their own, so that the memory told is theirs; the interpreter and SQLite's caches are included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.facts import most_mb, report, rss_mb
from DocsToKG.Orchestrator.audit.export import export
from DocsToKG.Orchestrator.audit.range_reader import Range
from DocsToKG.Orchestrator.audit.verify import verify
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.keyring import KeyFolder, read_trust
from DocsToKG.Orchestrator.signing.keys import Trust

_PAGE = 2000
_PER_JOB = 3  # enqueued, leased, done


def fill(path: Path, rows: int) -> None:
    """A history of so many rows, made as work makes it."""
    with SqliteLedger(path) as ledger:
        left = rows // _PER_JOB
        while left > 0:
            page = min(left, _PAGE)
            ledger.enqueue_many([NewJob(f"doi:10.5555/{left - n}", {"n": n}) for n in range(page)])
            leased = ledger.lease("bench", page, 600.0)
            ends = [Finish(job.job_id, job.fence, job.lease_id, JobState.DONE) for job in leased]
            ledger.submit_finishes(ends).result(60)
            left -= page


def write(folder: Path) -> dict[str, Any]:
    signers = KeyFolder(folder / "keys").signers(time.time())
    with SqliteLedger(folder / "ledger.sqlite") as ledger:
        start = time.monotonic()
        now = ledger.read(lambda tx: tx.now_ms)
        made = export(ledger, Range(0, now, None), signers, folder / "bundle.tar.zst")
    return _figures("export", made.rows["history.jsonl"], start)


def prove(folder: Path) -> dict[str, Any]:
    start = time.monotonic()
    found = verify(folder / "bundle.tar.zst", Trust(read_trust(folder / "keys"), time.time()))
    if not found.proved:
        raise RuntimeError(f"the bundle is not proved: {found.problems[:3]}")
    return _figures("verify", found.rows["history.jsonl"], start)


def _figures(what: str, rows: int, start: float) -> dict[str, Any]:
    took = time.monotonic() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "what": what, "rows": rows, "seconds": round(took, 2), "rows_per_second": round(rows / took),
        "cpu_us_per_row": round((used.ru_utime + used.ru_stime) / rows * 1e6, 1), "rss_mb": rss_mb(),
        "most_mb": most_mb(),
    }  # fmt: skip


def measure(rows: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "ledger.sqlite", rows)
        KeyFolder(folder / "keys").new("bench", time.time())
        return [_alone(part, folder) for part in ("write", "prove")]


def _alone(part: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.export", f"--{part}={folder}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    size = (folder / "bundle.tar.zst").stat().st_size
    return {**figures, "bytes_per_row": round(size / figures["rows"], 1)}


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.export", description=__doc__)
    words.add_argument("--rows", default="100000,1000000", help="rows of history, one run each")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    for part in ("write", "prove"):
        words.add_argument(f"--{part}", type=Path, help=argparse.SUPPRESS)
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if given.write or given.prove:
        print(json.dumps(write(given.write) if given.write else prove(given.prove)))
        return 0
    rows = [row for size in given.rows.split(",") for row in measure(int(size))]
    report("A bundle written and proved, by the length of its history", rows, out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
