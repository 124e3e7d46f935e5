"""A whole pull over the sandbox's web, with its faults: what is obtained, at what cost to the hosts, and how fast.

Beside it stands an oracle: somebody who makes the very same requests, knows every limit that is configured or told,
pauses among them, and loses no moment. Where one may ask only once at a time, an answer that a host draws out keeps it
waiting too. It is done when the busiest host is, so `share` says how much of the time went to limits alone. Both are
judged at one moment, as soon as the last paper is there: what is given up may be so later, when a host that was away
has been asked for the last time, and those requests count for neither.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from bench.facts import aim, report
from bench.settings import cpu_s
from DocsToKG.ContentDownload.api.types import DownloadOutcome
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.limits import Limits
from DocsToKG.Sandbox.profile import SandboxServer

_APART_S = 0.5


class Moment(NamedTuple):
    """What the hosts had counted at a time, by the clock of the wall and by the steady one."""

    wall: float
    at: float
    seen: Mapping[str, Any]


class Latest:
    """The counters as they stood right after the latest paper. Asked for beside the run and at most twice a second,
    since ten thousand questions would be felt; so the moment may be that much after the paper."""

    def __init__(self, counters: Callable[[], Mapping[str, Any]]) -> None:
        self._counters = counters
        self._is_new, self._is_over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self.moment: Moment | None = None

    def __enter__(self) -> Latest:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._look()

    def paper(self) -> None:
        self._is_new.set()

    def _follow(self) -> None:
        while not self._is_over.wait(_APART_S):
            self._look()

    def _look(self) -> None:
        if self._is_new.is_set():
            self._is_new.clear()
            seen = self._counters()
            self.moment = Moment(time.time(), time.monotonic(), seen)


def oracle_s(requests: Mapping[str, int], limits: Limits, lost: Mapping[str, float]) -> tuple[float, str]:
    """The least time in which each host may be asked so often, with what it `lost` us itself, and which takes it."""
    needed = {
        host: (count - limits.of(host).burst) / limits.of(host).rate_per_s + lost.get(host, 0.0)
        for host, count in requests.items()
    }
    slowest = max(needed, key=lambda host: needed[host])
    return max(0.0, needed[slowest]), slowest


def announced_pauses(record: Path, until_s: float) -> dict[str, float]:
    """By host: for how long it had said not to be asked, up to a time."""
    sql = "SELECT host, ts, retry_after_s FROM http_events WHERE retry_after_s IS NOT NULL ORDER BY ts"
    seconds: dict[str, float] = {}
    until: dict[str, float] = {}
    with closing(sqlite3.connect(f"{record.as_uri()}?mode=ro", uri=True)) as db:
        for host, moment, pause_s in db.execute(sql):
            told = datetime.fromisoformat(moment).timestamp()
            begin = min(max(told, until.get(host, 0.0)), until_s)
            until[host] = min(max(begin, told + pause_s), until_s)
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
    kept: dict[str, Path] = {}
    ends: list[float] = []

    def ended(work_id: str, outcome: DownloadOutcome) -> None:
        ends.append(time.monotonic())
        if outcome.ok:
            kept[work_id] = Path(folder, str(outcome.path))
            latest.paper()

    with (
        tempfile.TemporaryDirectory() as folder,
        SandboxServer(works=works, files=Files.plain(), rate_factor=rate_factor, size_bytes=20_000) as server,
    ):
        before_s, began = cpu_s(), time.monotonic()
        with (
            DownloadRun(config(server, Path(folder), workers=workers), on_outcome=ended) as run,
            Latest(server.counters) as latest,
        ):
            run.process_artifacts(server.identifiers(works))
        used_s = cpu_s() - before_s
        if latest.moment is None:
            raise RuntimeError("no paper was obtained")
        with Catalog(Path(folder) / "manifest.sqlite") as catalog:
            figures = catalog.figures()
        pauses = announced_pauses(Path(folder) / "manifest.sqlite", latest.moment.wall)
        seen, violations = server.counters(), json.loads(server.ask("/violations.json"))["total"]
        truth = server.truth()["works"]
        wrong = len(wrong_files(kept, truth))
    took_s, then = latest.moment.at - began, latest.moment.seen
    drawn_out = {host: lane["drawn_out_s"] for host, lane in then["hosts"].items()}
    lost = {host: pauses.get(host, 0.0) + drawn_out.get(host, 0.0) for host in then["by_host"]}
    least_s, slowest = oracle_s(then["by_host"], Limits(rate_factor=rate_factor), lost)
    too_many = seen["by_status"].get("429", 0)
    reachable = sum(work["reachable"] for work in truth)
    return {
        "works": works,
        "obtained": figures.obtained,
        "yield": figures.yield_ratio,
        "of_open": figures.yield_of_open,
        "of_reachable": figures.yield_of_reachable,
        "of_truth": round(figures.obtained / reachable, 4),
        "wrong": wrong,
        "requests_each": round(seen["requests"] / max(1, figures.obtained), 2),
        "ratio_429": round(figures.ratio_429 or 0.0, 5),
        "ratio_429_earned": round((too_many - seen["by_fault"].get("rate_limited", 0)) / max(1, seen["requests"]), 5),
        "violations": violations,
        "ttfp_p50_s": figures.ttfp_p50_s,
        "ttfp_p95_s": figures.ttfp_p95_s,
        "catalog_write_p95_ms": figures.catalog_write_p95_ms,
        "cpu_ms_each": round(1000 * used_s / works, 1),
        "took_s": round(took_s, 1),
        "ended_s": round(max(ends) - began, 1),
        "oracle_s": round(least_s, 1),
        "slowest": slowest,
        "its_pauses_s": round(pauses.get(slowest, 0.0), 1),
        "its_slow_answers_s": round(drawn_out.get(slowest, 0.0), 1),
        "share": round(min(1.0, least_s / took_s), 3),
    }


def wrong_files(kept: Mapping[str, Path], truth: Sequence[Mapping[str, Any]]) -> list[str]:
    """The works whose file is none of those that the world has for them."""
    by_work: dict[str, Sequence[str]] = {}
    for work in truth:
        for line in coerce_works([work["spelling"]]):
            if line.work is not None:
                by_work[line.work.work_id] = work["sha256"]
    digests = {work_id: hashlib.sha256(path.read_bytes()).hexdigest() for work_id, path in kept.items()}
    return [work_id for work_id, digest in digests.items() if digest not in by_work.get(work_id, ())]


def aims(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        aim("share", row["share"], least=0.9),
        aim("ratio_429_earned", row["ratio_429_earned"], most=0.01),
        aim("violations", row["violations"], most=0),
        aim("wrong", row["wrong"], most=0),
        aim("catalog_write_p95_ms", row["catalog_write_p95_ms"], most=50),
    ]


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.web", description=__doc__)
    words.add_argument("--works", type=int, default=1000)
    words.add_argument("--workers", type=int, default=32)
    words.add_argument("--rate_factor", type=float, default=20.0, help="how much faster than outside one may ask")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    row = measure(given.works, workers=given.workers, rate_factor=given.rate_factor)
    shown = [{"what": name, "found": str(value)} for name, value in row.items()]
    title = "A pull over the sandbox's web, beside an oracle that knows every limit"
    report(title, shown, out=given.out, aims=aims(row), row=row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
