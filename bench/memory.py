"""Does the memory of a run grow with its queue? The same number of papers is obtained while ever more others wait.

The queue is filled beforehand; the run itself is a process of its own, which is stopped after `--papers` papers. Its
memory is that of the whole process, the interpreter and SQLite's caches included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.facts import aim, report, rss_mb
from bench.origin import Origin
from bench.scratch import fresh_folder
from bench.settings import config
from bench.watched import Memory
from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.runner import DownloadRun

HOSTS = 40
PER_HOST = 4
SIZE_BYTES = 20_000
MORE_MB = 10.0  # what a run may hold more with a hundred times as many waiting


def fill(path: Path, rows: int) -> None:
    """Works that wait, each a paper of one of the hosts."""
    with WorkQueue(path) as queue:
        works = (WorkArtifact(f"url:{url}", pdf_urls=(url,)) for url in map(_url, range(rows)))
        queue.bulk_import((work.work_id, work.to_dict(), None) for work in works)


def _url(number: int) -> str:
    return f"https://host-{number % HOSTS:03}.bench.test/papers/{number}.pdf"


def run_part(root: Path, *, port: int, papers: int, workers: int) -> dict[str, Any]:
    """Obtain so many papers of a queue that is there, then stop; what the process held, before and at most."""
    ended = threading.Semaphore(0)
    done: list[bool] = []

    def on_outcome(work_id: str, outcome: DownloadOutcome) -> None:
        done.append(outcome.ok)
        ended.release()

    cfg = config(root, port=port, workers=workers, processes=1, per_host=PER_HOST)
    with DownloadRun(cfg, on_outcome=on_outcome) as run, Memory(rss_mb) as memory:
        before_mb = rss_mb()
        run.start()
        for _ in range(papers):
            if not ended.acquire(timeout=60):
                raise RuntimeError("the run stands still")
        held_mb = rss_mb()
        run.stop(grace_s=2.0)
    return {"papers": sum(done), "start_mb": before_mb, "rss_mb": held_mb, "most_mb": max([*memory.samples, held_mb])}


def measure(rows: int, *, papers: int, workers: int) -> dict[str, Any]:
    with fresh_folder() as folder, Origin(delay_s=0.01, size_bytes=SIZE_BYTES) as origin:
        fill(folder / "state" / "ledger.sqlite", rows)
        words = [f"--port={origin.port}", f"--papers={papers}", f"--workers={workers}"]
        command = [sys.executable, "-m", "bench.memory", f"--alone={folder}", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {"queue": rows, **json.loads(done.stdout.splitlines()[-1])}


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.memory", description=__doc__)
    words.add_argument("--rows", default="10000,1000000", help="papers that wait, one run each")
    words.add_argument("--papers", type=int, default=1500, help="papers that each run obtains")
    words.add_argument("--workers", type=int, default=8)
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    words.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    words.add_argument("--port", type=int, help=argparse.SUPPRESS)
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    words = parser()
    given = words.parse_args(arguments)
    if given.alone:
        print(json.dumps(run_part(given.alone, port=given.port, papers=given.papers, workers=given.workers)))
        return 0
    sizes = [int(word) for word in given.rows.split(",")]
    if min(sizes) < given.papers:
        words.error(
            f"--rows {given.rows}: at least --papers ({given.papers}) must wait, or the run would wait for more"
        )
    rows = [measure(size, papers=given.papers, workers=given.workers) for size in sizes]
    grown_mb = round(rows[-1]["most_mb"] - rows[0]["most_mb"], 1)
    judged = [aim("MB more with the longest queue", grown_mb, most=MORE_MB)]
    report("The memory of a run, by the length of its queue", rows, out=given.out, aims=judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
