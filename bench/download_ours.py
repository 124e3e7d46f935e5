"""Ours of `bench.download`: one run in a process of its own, which imports no more than a pull does.

    python -c "$START" FOLDER NAME ITEMS SIZE PORT WORKERS PROCESSES

Prints as JSON when the last paper was on the ledger, and the processor's time of the work.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.settings import config, cpu_s
from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.core.process import ours_alone

# Declared before anything is loaded, as the commands do.
START = (
    "from DocsToKG.core.process import declare_ours; declare_ours(); "
    "from bench.download_ours import main; raise SystemExit(main())"
)
HOSTS = 40
PER_HOST = 4
_BEGIN_S = 3.0  # within which all processes of a run have begun


class Set(NamedTuple):
    """So many papers of one size, spread evenly over the hosts."""

    name: str
    items: int
    size_bytes: int


def works(papers: Set) -> Iterator[WorkArtifact]:
    for number in range(papers.items):
        url = f"https://host-{number % HOSTS:03}.bench.test/{papers.name}/{number}.pdf"
        yield WorkArtifact(f"url:{url}", pdf_urls=(url,))


def run_ours(root: Path, papers: Set, *, port: int, workers: int, processes: int) -> dict[str, Any]:
    """In this process: from the first request, which the origin has noted, to the last paper that is on the ledger."""
    ends: list[tuple[float, bool]] = []

    def ended(work_id: str, outcome: DownloadOutcome) -> None:
        ends.append((time.time(), outcome.ok))

    cfg = config(root, port=port, workers=workers, processes=processes, per_host=PER_HOST)
    with DownloadRun(cfg, on_outcome=ended) as run:
        run.enqueue(coerce_works(works(papers)))
        before_s = cpu_s()
        with ours_alone():  # as the commands do
            run.start()
            if processes > 1 and papers.items == 1:  # start-up is measured, so nobody is stopped before he has begun
                time.sleep(_BEGIN_S)
            run.wait()
            run.stop()
        used_s = cpu_s() - before_s
    done = sum(ok for _, ok in ends)
    if done != papers.items:
        raise RuntimeError(f"only {done} of {papers.items} papers were obtained")
    return {"ended": max(at for at, _ in ends), "cpu_s": used_s}


def main() -> int:
    folder, name, *numbers = sys.argv[1:]
    items, size_bytes, port, workers, processes = map(int, numbers)
    papers = Set(name, items, size_bytes)
    print(json.dumps(run_ours(Path(folder), papers, port=port, workers=workers, processes=processes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
