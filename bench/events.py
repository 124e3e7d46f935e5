"""What events cost: the ledger with and without somebody to tell, and how fast they reach a webhook.

Jobs are enqueued, leased and finished on a new SQLite ledger, without a target and with one, in turns. Then what has
gathered is carried to a receiver on loopback, in a process of its own, which answers at once and proves nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.facts import report
from DocsToKG.Orchestrator.events.notifier import Notifier
from DocsToKG.Orchestrator.events.outbox import Subscription
from DocsToKG.Orchestrator.events.webhook import Webhook
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.keyring import KeyFolder

_BATCH = 50
_SECRET = b"a secret of the measurement, and of nobody else"
_RECEIVER = """
import http.server, sys
class Taker(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
print(server.server_port, flush=True)
server.serve_forever()
"""


def work(ledger: SqliteLedger, jobs: int) -> None:
    ledger.enqueue_many([NewJob(f"doi:10.5555/{n}", {"n": n}) for n in range(jobs)])
    while leased := ledger.lease("bench", _BATCH, 600.0):
        ends = [Finish(job.job_id, job.fence, job.lease_id, JobState.DONE) for job in leased]
        ledger.submit_finishes(ends).result(60)


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    began, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - began, time.process_time() - cpu


def measure(jobs: int, rounds: int) -> list[dict[str, Any]]:
    """The best of some rounds for each: changes without a target, changes with one, and deliveries."""
    best: dict[str, dict[str, Any]] = {}
    receiver = subprocess.Popen([sys.executable, "-c", _RECEIVER], stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(receiver.stdout.readline())}/"
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as name:
                for row in one_round(Path(name), url, jobs):
                    known = best.get(row["what"], row)
                    best[row["what"]] = min(known, row, key=lambda found: found["seconds"])
    finally:
        receiver.terminate()
        receiver.wait(10)
    return list(best.values())


def one_round(folder: Path, url: str, jobs: int) -> list[dict[str, Any]]:
    with SqliteLedger(folder / "quiet.sqlite") as ledger:
        quiet = timed(lambda: work(ledger, jobs))
    keys = KeyFolder(folder / "keys")
    keys.new("bench", time.time())
    hook = Webhook("hook", url, secret=_SECRET, private_hosts=["127.0.0.1"])
    with SqliteLedger(folder / "told.sqlite") as ledger:
        notifier = Notifier(ledger, [Subscription("hook", "webhook")], [hook], signers=keys.signers(time.time()))
        notifier.register()
        told = timed(lambda: work(ledger, jobs))
        sent: list[int] = []
        carried = timed(lambda: sent.append(notifier.run_once()))
    if sent != [3 * jobs]:
        raise RuntimeError(f"{sent[0]} of {3 * jobs} events were taken")
    return [
        _row("changes, nobody to tell", 3 * jobs, quiet),
        _row("changes, one target", 3 * jobs, told),
        _row("deliveries", 3 * jobs, carried),
    ]


def _row(what: str, events: int, cost: tuple[float, float]) -> dict[str, Any]:
    seconds, cpu_s = cost
    return {
        "what": what, "events": events, "seconds": round(seconds, 2), "per_second": round(events / seconds),
        "cpu_us_each": round(cpu_s / events * 1e6, 1),
    }  # fmt: skip


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.events", description=__doc__)
    words.add_argument("--jobs", type=int, default=3000, help="jobs, of which each makes three events")
    words.add_argument("--rounds", type=int, default=2)
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    report("Events: what they cost a change, and how fast they go", measure(given.jobs, given.rounds), out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
