"""The console on a large ledger: when a view is painted first, and how long each of its calls takes.

A SQLite ledger is filled with jobs of which most are over, `docstokg-orchestrator serve` answers, and Chromium opens
each view anew several times. Times are the browser's own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.facts import aim, report
from bench.floor import Floor
from bench.sides import raw_job
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

VIEWS = ("overview", "jobs", "jobs?status=succeeded", "jobs?search=10.1/77", "job/{some}", "sources", "quotas")
FIRST_PAINT_MS = 1000.0
CALL_MS = 200.0
_FILL = 100_000
_WAITING_SHARE = 0.2
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_CALLS = """performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/') && one.duration > 0
  && !one.name.includes('/streams/')).map((one) => [new URL(one.name).pathname, one.responseEnd - one.requestStart])"""


def fill(path: Path, rows: int) -> None:
    SqliteLedger(path).close()
    number = itertools.count()
    waiting = max(1, round(rows * _WAITING_SHARE))
    with Floor(path) as floor:
        for count, is_over in ((rows - waiting, True), (waiting, False)):
            for start in range(0, count, _FILL):
                floor.enqueue([raw_job(next(number)) for _ in range(min(_FILL, count - start))], durable=False)
            if is_over:
                floor.end_all()


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address that opens the console of a service over the ledger."""
    command = [sys.executable, "-c", "from DocsToKG.Orchestrator.main import main; main()"]
    process = subprocess.Popen(
        [*command, "serve", "--ledger", str(path), "--port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        yield next(line for line in process.stderr if line.startswith("Console: ")).removeprefix("Console: ").strip()
    finally:
        process.terminate()
        process.wait(30)


def measure(address: str, rows: int, rounds: int) -> list[dict[str, Any]]:
    from playwright.sync_api import sync_playwright

    origin = address.partition("/console/")[0]
    with tempfile.TemporaryDirectory(prefix="browser") as home, sync_playwright() as play:
        env = {**os.environ, "HOME": home}  # where it keeps certificates, fonts and reports
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS, env=env)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(address)
        page.wait_for_selector("#main h1")
        return [_one(page, f"{origin}/console/{view.format(some=rows // 2)}", view, rounds) for view in VIEWS]


def _one(page: Any, address: str, view: str, rounds: int) -> dict[str, Any]:
    paints, calls = [], list[tuple[str, float]]()
    for _ in range(rounds):
        page.goto(address)
        page.wait_for_selector("#main h1")
        page.wait_for_timeout(500)
        paints.append(page.evaluate(_PAINT))
        calls += page.evaluate(_CALLS)
    slowest = max(calls, key=lambda call: call[1])
    times = sorted(took for _, took in calls)
    return {
        "view": view,
        "first paint ms": round(sorted(paints)[len(paints) // 2]),
        "calls": len(calls),
        "median ms": round(times[len(times) // 2], 1),
        "slowest ms": round(slowest[1], 1),
        "of": slowest[0].rpartition("/orchestrator")[2],
    }


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.console", description=__doc__)
    words.add_argument("--rows", type=int, default=1_000_000, help="jobs on the ledger")
    words.add_argument("--rounds", type=int, default=5, help="how often each view is opened")
    words.add_argument("--out", type=Path, help="file for the figures")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        fill(path, given.rows)
        with served(path) as address:
            rows = measure(address, given.rows, given.rounds)
    judged = [
        aim("first paint of any view, ms", max(row["first paint ms"] for row in rows), most=FIRST_PAINT_MS),
        aim("slowest call of any view, ms", max(row["slowest ms"] for row in rows), most=CALL_MS),
    ]
    report(f"The console over {given.rows:,} jobs", rows, out=given.out, aims=judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
