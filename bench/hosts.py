"""A whole run over many hosts of unequal size: how much of what the caps allow is reached?

Every item goes the way of a real pull: ledger, loop, limits, transport, proof, storage, record. The hosts answer
after a fixed time, so the shortest possible run is known: no host can be done before its items have passed its
connections, and all items must pass the workers. The input is sorted by host, which is the worst order, or shuffled.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.facts import aim, report, rss_mb
from bench.origin import Origin
from bench.scratch import fresh_folder
from bench.settings import config, cpu_s
from bench.watched import Memory
from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.core.process import ours_alone

SKEW = 0.65  # shares fall with rank ** -SKEW; with 40 hosts the largest then has an eighth of all items
TARGETS = {8: 0.90, 160: 0.85}
ORDERS = ("sorted", "shuffled")  # of the input, by host


def shares(items: int, hosts: int) -> list[int]:
    """How many items each host has, unequal and in no order of size; they sum to `items`."""
    weights = [rank**-SKEW for rank in range(1, hosts + 1)]
    counts = [int(items * weight / sum(weights)) for weight in weights]
    for place in range(items - sum(counts)):
        counts[place % hosts] += 1
    random.Random(7).shuffle(counts)
    return counts


def shortest_s(counts: Sequence[int], *, workers: int, per_host: int, delay_s: float) -> float:
    """No run can be shorter: the slowest host needs its rounds, and all items need theirs through the workers."""
    by_host = max(math.ceil(count / per_host) for count in counts) * delay_s
    places = min(workers, per_host * len(counts))
    return max(by_host, math.ceil(sum(counts) / places) * delay_s)


def works(counts: Sequence[int], order: str) -> Iterator[WorkArtifact]:
    """In one of `ORDERS`."""
    hosts = [host for host, count in enumerate(counts) for _ in range(count)]
    if order == "shuffled":
        random.Random(7).shuffle(hosts)
    for number, host in enumerate(hosts, 1):
        url = f"https://host-{host:03}.bench.test/papers/{number}.pdf"
        yield WorkArtifact(f"url:{url}", pdf_urls=(url,))


def measure(
    *, items: int, hosts: int, workers: int, processes: int, per_host: int, delay_s: float, size_bytes: int, order: str
) -> dict[str, Any]:
    """One run. Timed from the first paper that is asked for to the last that is on the ledger: start-up is left out."""
    counts = shares(items, hosts)
    ends: list[tuple[float, bool]] = []

    def ended(work_id: str, outcome: DownloadOutcome) -> None:
        ends.append((time.monotonic(), outcome.ok))

    with fresh_folder() as folder, Origin(delay_s=delay_s, size_bytes=size_bytes) as origin:
        cfg = config(folder, port=origin.port, workers=workers, processes=processes, per_host=per_host)
        with DownloadRun(cfg, on_outcome=ended) as run:
            run.enqueue(coerce_works(works(counts, order)))
            before_s = cpu_s()
            with Memory(rss_mb) as memory, ours_alone():  # as the commands do
                run.start()
                run.wait()
                run.stop()
            used_s = cpu_s() - before_s
        seen = origin.counts()
    took_s = max(at for at, _ in ends) - seen["first_at"]
    bound_s = shortest_s(counts, workers=workers, per_host=per_host, delay_s=delay_s)
    return {
        "workers": workers,
        "processes": processes,
        "items": items,
        "hosts": hosts,
        "order": order,
        "done": sum(ok for _, ok in ends),
        "took_s": round(took_s, 3),
        "per_s": round(items / took_s, 1),
        "bound_per_s": round(items / bound_s, 1),
        "share": round(bound_s / took_s, 3),
        "cpu_ms_each": round(1000 * used_s / items, 3),
        "most_per_host": seen["most_at_once"],
        "connections": seen["connections"],
        "rss_mb": memory.samples[-1] if memory.samples else rss_mb(),
        "rss_over_time_mb": memory.thinned(),
    }


def measure_apart(given: argparse.Namespace, workers: int, order: str) -> dict[str, Any]:
    """One run in a process of its own, so that no run finds the memory or the threads of another."""
    words = [
        f"--{name}={getattr(given, name)}" for name in ("items", "hosts", "processes", "per_host", "delay", "size")
    ]
    command = [sys.executable, "-m", "bench.hosts", "--alone", f"--workers={workers}", f"--order={order}", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def aims(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        aim(f"share with {row['workers']} workers, {row['order']}", row["share"], least=TARGETS[row["workers"]])
        for row in rows
        if row["workers"] in TARGETS
    ]


def _best(runs: Sequence[dict[str, Any]], workers: int, order: str) -> dict[str, Any]:
    alike = (run for run in runs if (run["workers"], run["order"]) == (workers, order))
    return max(alike, key=lambda run: float(run["share"]))


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.hosts", description=__doc__)
    words.add_argument("--items", type=int, default=5000)
    words.add_argument("--hosts", type=int, default=40)
    words.add_argument("--workers", default="8,160", help="numbers of workers, one run each")
    words.add_argument("--processes", type=int, default=1, help="processes that share the workers")
    words.add_argument("--per_host", type=int, default=4, help="connections per host")
    words.add_argument("--delay", type=float, default=0.05, help="seconds until a host answers")
    words.add_argument("--order", default="sorted,shuffled", help="orders of the input by host, one run each")
    words.add_argument("--size", type=int, default=20_000, help="bytes of a paper")
    words.add_argument("--runs", type=int, default=1, help="runs per number of workers; the best counts")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    words.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    numbers = [int(word) for word in given.workers.split(",")]
    if given.alone:
        shape = {"items": given.items, "hosts": given.hosts, "per_host": given.per_host, "processes": given.processes}
        more = {"delay_s": given.delay, "size_bytes": given.size, "order": given.order}
        print(json.dumps(measure(workers=numbers[0], **shape, **more)))
        return 0
    ways = [(workers, order) for workers in numbers for order in given.order.split(",")]
    runs = [measure_apart(given, workers, order) for workers, order in ways for _ in range(given.runs)]
    best = [_best(runs, workers, order) for workers, order in ways]
    rows = [{name: value for name, value in run.items() if name != "rss_over_time_mb"} for run in best]
    title = f"A run over many hosts, as a share of what the caps allow; processes: {given.processes}"
    report(title, rows, out=given.out, aims=aims(rows), runs=runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
