"""A whole pull over the sandbox's web, with its faults: what is obtained, at what cost to the hosts, and how fast.

Beside it stands an oracle: somebody who makes the very same requests, knows every limit that is configured or told,
pauses among them, and loses no moment. Where one may ask only once at a time, an answer that a host draws out keeps it
waiting too. It is done when the busiest host is, so `share` says how much of the time went to limits alone. The time is
that until the last paper: what is given up may be so later, when a host that was away has been asked for the last time.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.facts import report
from bench.hosts import cpu_s
from DocsToKG.ContentDownload.api.types import DownloadOutcome
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.limits import Limits
from DocsToKG.Sandbox.profile import SandboxServer

TARGETS = {"share": 0.9, "of_ours_429": 0.01}


def oracle_s(requests: Mapping[str, int], limits: Limits, lost: Mapping[str, float]) -> tuple[float, str]:
    """The least time in which each host may be asked so often, with what it `lost` us itself, and which takes it."""
    needed = {
        host: (count - limits.of(host).burst) / limits.of(host).rate_per_s + lost.get(host, 0.0)
        for host, count in requests.items()
    }
    slowest = max(needed, key=lambda host: needed[host])
    return max(0.0, needed[slowest]), slowest


def announced_pauses(record: Path) -> dict[str, float]:
    """By host: for how long it had said not to be asked."""
    sql = "SELECT host, ts, retry_after_s FROM http_events WHERE retry_after_s IS NOT NULL ORDER BY ts"
    seconds: dict[str, float] = {}
    until: dict[str, float] = {}
    with closing(sqlite3.connect(f"{record.as_uri()}?mode=ro", uri=True)) as db:
        for host, moment, pause_s in db.execute(sql):
            begin = max(datetime.fromisoformat(moment).timestamp(), until.get(host, 0.0))
            until[host] = max(begin, datetime.fromisoformat(moment).timestamp() + pause_s)
            seconds[host] = seconds.get(host, 0.0) + until[host] - begin
    return seconds


def config(server: SandboxServer, root: Path, *, workers: int) -> ContentDownloadConfig:
    """As shipped, but pointed at the sandbox, with a second instead of a minute between tries."""
    settings = {
        **server.profile(),
        "orchestrator": {"max_workers": workers, "retry_backoff_seconds": 1, "jitter_seconds": 0},
        "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
        "storage": {"root_dir": str(root), "min_free_bytes": 0},
        "queue": {"path": str(root / "state" / "ledger.sqlite")},
        "hishel": {"base_path": str(root / "state" / "cache")},
    }
    return load_config(None, settings, environ={}, user_file=root / "no-such-file")


def measure(works: int, *, workers: int, rate_factor: float) -> dict[str, Any]:
    ends: list[tuple[float, bool]] = []

    def ended(work_id: str, outcome: DownloadOutcome) -> None:
        ends.append((time.monotonic(), outcome.ok))

    with (
        tempfile.TemporaryDirectory() as folder,
        SandboxServer(works=works, rate_factor=rate_factor, size_bytes=20_000) as server,
    ):
        before_s, began = cpu_s(), time.monotonic()
        with DownloadRun(config(server, Path(folder), workers=workers), on_outcome=ended) as run:
            run.process_artifacts(server.identifiers(works))
        used_s = cpu_s() - before_s
        with Catalog(Path(folder) / "manifest.sqlite") as catalog:
            figures = catalog.figures()
        pauses = announced_pauses(Path(folder) / "manifest.sqlite")
        seen, violations = server.counters(), len(server.violations())
        truth = server.truth()["works"]
    took_s, ended_s = (max(at for at, ok in ends if ok or not papers) - began for papers in (True, False))
    drawn_out = {host: lane["drawn_out_s"] for host, lane in seen["hosts"].items()}
    lost = {host: pauses.get(host, 0.0) + drawn_out.get(host, 0.0) for host in seen["by_host"]}
    least_s, slowest = oracle_s(seen["by_host"], Limits(rate_factor=rate_factor), lost)
    reachable = sum(work["reachable"] for work in truth)
    return {
        "works": works,
        "obtained": figures.obtained,
        "yield": figures.yield_ratio,
        "of_open": figures.yield_of_open,
        "of_reachable": figures.yield_of_reachable,
        "of_truth": round(figures.obtained / reachable, 4),
        "requests_each": round(seen["requests"] / max(1, figures.obtained), 2),
        "ratio_429": round(figures.ratio_429 or 0.0, 5),
        "of_ours_429": round(violations / max(1, seen["requests"]), 5),
        "violations": violations,
        "ttfp_p50_s": figures.ttfp_p50_s,
        "ttfp_p95_s": figures.ttfp_p95_s,
        "cpu_ms_each": round(1000 * used_s / works, 1),
        "took_s": round(took_s, 1),
        "ended_s": round(ended_s, 1),
        "oracle_s": round(least_s, 1),
        "slowest": slowest,
        "its_pauses_s": round(pauses.get(slowest, 0.0), 1),
        "its_slow_answers_s": round(drawn_out.get(slowest, 0.0), 1),
        "share": round(min(1.0, least_s / took_s), 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    words = argparse.ArgumentParser(prog="bench.web", description=__doc__)
    words.add_argument("--works", type=int, default=1000)
    words.add_argument("--workers", type=int, default=32)
    words.add_argument("--rate_factor", type=float, default=20.0, help="how much faster than outside one may ask")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    given = words.parse_args(arguments)
    row = measure(given.works, workers=given.workers, rate_factor=given.rate_factor)
    lines = [{"what": name, "found": value, "wanted": TARGETS.get(name)} for name, value in row.items()]
    shown = [{**line, "found": str(line["found"])} for line in lines]
    report("A pull over the sandbox's web, beside an oracle that knows every limit", shown, out=given.out, row=row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
