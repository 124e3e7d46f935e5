"""What every promise costs a paper: processor time of a pull, split by what it was spent on.

Small papers come from nginx on loopback, as in `bench.download`. py-spy looks some hundred times a second who has the
interpreter and where: at the innermost frame of ours, whose module tells the promise. What runs beside the interpreter
(flushing, SQLite, hashing, sending) counts as such. A share below one in a hundred means little.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.download import publish
from bench.download_ours import HOSTS, Set
from bench.facts import report
from bench.nginx import Nginx
from bench.programs import are_there, environment, peers_option
from bench.scratch import fresh_folder

_RATE = 400
_OURS = "DocsToKG/"
_RUNS = "LoopThread._run"  # at the root of what the event loop does
# The first whose path holds the words; frames of libraries count for the module of ours that called them.
PROMISES = (
    ("robots.txt", ("net/robots",)),
    ("breakers", ("breaker",)),
    ("limits shared by processes, retry-after", ("net/limits", "core/bucket", "core/rates")),
    ("HTTP cache", ("net/cache", "net/entries", "net/stores", "net/offers", "net/pending", "net/rewording",
                    "net/held", "net/rfc9111")),
    ("attempts, record and metrics", ("telemetry/", "net/journal", "catalog/")),
    ("whole and undamaged PDF", ("validation/pdf/",)),
    ("identity and other proofs", ("validation/",)),
    ("file: hash, store, names", ("storage/", "download_execution")),
    ("search: sources, tiers, candidates", ("fallback/", "resolvers/", "pipeline", "maintenance/")),
    ("engine: libcurl, address guard, deadlines", ("transport/",)),
    ("retries, redirects, URL policy, bounded bodies", ("net/",)),
    ("lease, fence, stages, ledger", ("Orchestrator/", "orchestrator/")),
)  # fmt: skip


def promise_of(stack: str) -> str:
    """What the innermost frame of ours works for."""
    for frame in reversed(stack.split(";")):
        _, found, module = frame.partition(_OURS)
        if found:
            return next((name for name, words in PROMISES if any(word in module for word in words)), "tasks")
    return "start-up" if _RUNS not in stack else "tasks"


def spent(lines: Iterable[str]) -> Counter[str]:
    """Samples by promise, from py-spy's lines of a stack and a number; without what came before the run."""
    counted: Counter[str] = Counter()
    for line in lines:
        stack, _, number = line.rpartition(" ")
        if "MainThread" in stack:
            continue  # it enqueues before the measured part, and waits in it
        where = "loop" if _RUNS in stack else "other threads"
        counted[f"{where}: {promise_of(stack)}"] += int(number)
    return counted


def prices(samples: Counter[str], used_s: float, papers: int) -> list[dict[str, Any]]:
    """A row for each promise, the dearest first. `used_s`: the processor's time of the measured part."""
    held_s = sum(samples.values()) / _RATE
    scale = min(1.0, used_s / held_s)  # on a busy machine a sample is longer than its share of the processor
    rows = [(name, count / _RATE * scale) for name, count in samples.most_common()]
    rows.append(("beside the interpreter", used_s - held_s * scale))
    rows.append(("all", used_s))
    return [{"what": name, "us_each": round(1e6 * s / papers, 1), "share": round(s / used_s, 3)} for name, s in rows]


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.prices", description=__doc__)
    words.add_argument("--papers", type=int, default=10_000, help="papers of 20 KB")
    words.add_argument("--workers", type=int, default=64)
    peers_option(words, "py-spy")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if not are_there(given.peers, "py-spy"):
        return 0
    papers = Set("small", given.papers, 20_000)
    with fresh_folder() as home, fresh_folder() as folder:
        publish(home / "www", papers)
        spy = [str(given.peers.with_name("py-spy")), "record", "--gil", "--threads", f"--rate={_RATE}"]
        spy += ["--format=raw", f"--output={home / 'stacks'}", "--", sys.executable, "-m", "bench.download_ours"]
        with Nginx(home / "nginx", root=home / "www", hosts=HOSTS) as nginx:
            numbers = map(str, (papers.items, papers.size_bytes, nginx.port, given.workers, 1))
            done = subprocess.run(
                [*spy, str(folder), papers.name, *numbers], env=environment(sys.executable), check=True, stdout=-1
            )
        told = json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith(b"{")))
        samples = spent((home / "stacks").read_text().splitlines())
    report("What every promise costs a paper of 20 KB", prices(samples, told["cpu_s"], papers.items), out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
