"""Real processes on one record of limits, judged by the server they ask."""

from __future__ import annotations

import contextlib
import http.server
import json
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.politeness import complaints
from tests.waiting import eventually
from tests.warm import WarmPrograms

from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # seconds of real sockets and processes; part of `make test`

SLACK_S = 0.1  # a thread may be stopped between a decision and what it says of it

# Three threads that ask `limits` by `clock`, and then the server at `port`, `number` times in all. A request says when
# it may go, by the clock that all processes of a machine have: how late it then comes is the machine's matter.
AT_WORK = """
import http.client, threading, time
from DocsToKG.ContentDownload.api.gates import Gate, NotYet

left = threading.Semaphore(int(number))

def permit():
    while True:
        answer = limits.ask(Gate("https://a.org/", "unpaywall", "artifact"))
        if not isinstance(answer, NotYet):
            if answer.start() == 0.0:
                return answer
            answer.refund()
            answer.release()
        time.sleep(min(0.05, max(0.001, (answer.at or 0) - clock.monotonic())) if isinstance(answer, NotYet) else 0.01)

def work():
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    while left.acquire(blocking=False):
        mine = permit()
        connection.request("GET", "/", headers={"Sent-At": repr(time.monotonic())})
        mine.on_sent()
        connection.getresponse().read()
        mine.release()
    connection.close()

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
limits.close()
"""

ASKING = f"""
import sys
from pathlib import Path
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import SystemClock

path, port, number, interval_s, slots = Path(sys.argv[1]), *map(float, sys.argv[2:])
clock = SystemClock()
limit = HostLimit(int(slots), {{"*": (Rate(1, interval_s),)}})
limits = HostLimits(clock=clock, default_host=limit, store=SqliteLimitStore(path, clock=clock))
sys.stdin.readline()
{AT_WORK}"""


class CountingServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer_s: float) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answer_s = answer_s
        self.lock = threading.Lock()
        self.starts: list[float] = []
        self.active = self.most = 0


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CountingServer

    def do_GET(self) -> None:
        counts = self.server
        with counts.lock:
            counts.starts.append(float(self.headers["Sent-At"]))
            counts.active += 1
            counts.most = max(counts.most, counts.active)
        time.sleep(counts.answer_s)
        with counts.lock:
            counts.active -= 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def counting() -> Iterator[CountingServer]:
    server = CountingServer(answer_s=0.2)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_together_keep_interval_and_cap_at_the_server(
    counting: CountingServer, warm: WarmPrograms, tmp_path: Path, processes: int
) -> None:
    """LIM-06, LIM-13: three threads in each process, as fast as they may."""
    interval_s, slots, each = 0.15, 2, 12 // processes
    words = [str(tmp_path / "limits.sqlite"), counting.server_port, each, interval_s, slots]
    crowd = [
        subprocess.Popen([*warm.words("python"), "-c", ASKING, *map(str, words)], stdin=subprocess.PIPE)
        for _ in range(processes)
    ]
    try:
        for process in crowd:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for process in crowd:
            process.communicate(timeout=60)
    finally:
        for process in crowd:
            process.kill()
            process.wait()
    starts = sorted(counting.starts)
    assert len(starts) == each * processes
    assert counting.most == slots
    assert min(later - earlier for earlier, later in pairwise(starts)) > interval_s - SLACK_S
    assert starts[-1] - starts[0] > (len(starts) - 1) * interval_s - SLACK_S


PULLING = """
import json, sys
from pathlib import Path
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.runner import DownloadRun

settings = json.loads(Path(sys.argv[1]).read_text())
config = load_config(None, settings["config"], environ={}, user_file=Path(sys.argv[1]).with_name("none"))
with DownloadRun(config) as run:
    result = run.process_artifacts(settings["ids"])
print(json.dumps({"successful": result.successful, "failed": result.failed}))
"""


class Puller:
    """One `DownloadRun` in a process and a folder of its own, on the limits that all share."""

    def __init__(
        self, server: SandboxServer, warm: WarmPrograms, root: Path, name: str, ids: list[str], *, workers: int = 16
    ) -> None:
        folder = root / name
        folder.mkdir(parents=True)
        profile = server.profile()
        config = {
            **profile,
            "orchestrator": {"max_workers": workers, "retry_backoff_seconds": 1, "jitter_seconds": 0},
            "robots": {"unreachable_seconds": 1},
            # A body that stalls holds the one slot of its host for this long.
            "policies": {source: {"timeout_s": 5} for source in ("arxiv", "unpaywall", "landing", "doi_redirect")},
            "telemetry": {"manifest_path": str(folder / "manifest.jsonl")},
            "storage": {"root_dir": str(folder), "min_free_bytes": 0},
            "queue": {"path": str(folder / "state" / "ledger.sqlite")},
            "hishel": {"base_path": str(folder / "state" / "cache")},
            "limits": {**profile["limits"], "store_path": str(root / "limits.sqlite")},
        }
        self.folder = folder
        self._warm = warm
        self._settings = root / f"{name}.json"
        self._settings.write_text(json.dumps({"config": config, "ids": ids}))
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [*self._warm.words("python"), "-c", PULLING, str(self._settings)], stdout=subprocess.PIPE, text=True
        )

    def kill_after_files(self, number: int) -> float:
        """The machine's time of its end."""
        assert self._process is not None
        eventually(lambda: len(list(self.folder.glob("PDF/*"))) >= number)
        assert self._process.poll() is None
        self._process.kill()
        self._process.communicate()
        return time.monotonic()

    def result(self, *, within_s: float = 200) -> dict[str, int]:
        assert self._process is not None
        out, _ = self._process.communicate(timeout=within_s)
        assert self._process.returncode == 0
        return dict(json.loads(out))

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(ValueError):  # what it said has been read
                self._process.communicate()


_UNREAD_S = 0.3


def violations_of(server: SandboxServer, pullers: Iterable[Puller]) -> list[str]:
    found = complaints(server.violations(), [puller.folder / "manifest.sqlite" for puller in pullers])
    return [json.dumps(one) for one in found]


@pytest.mark.timeout(240)
def test_two_pulls_at_once_are_as_polite_as_one(warm: WarmPrograms, tmp_path: Path) -> None:
    """Two runs of 50 works each with 16 workers each; the server finds nothing to complain about."""
    with SandboxServer(works=100, seed=5) as server:
        ids = server.identifiers(100)
        pullers = [Puller(server, warm, tmp_path, f"run{n}", ids[n * 50 : (n + 1) * 50]) for n in range(2)]
        try:
            for puller in pullers:
                puller.start()
            results = [puller.result() for puller in pullers]
        finally:
            for puller in pullers:
                puller.stop()
        assert violations_of(server, pullers) == []
        assert min(result["successful"] for result in results) > 40


@pytest.mark.timeout(240)
def test_a_killed_pull_forgets_no_pause_and_no_interval(warm: WarmPrograms, tmp_path: Path) -> None:
    """FAIL-01, NET-06: killed three times and started again at once, while another pull goes on."""
    with SandboxServer(works=100, seed=11) as server:
        ids = server.identifiers(100)
        killed = Puller(server, warm, tmp_path, "killed", ids[:50])
        steady = Puller(server, warm, tmp_path, "steady", ids[50:])
        try:
            steady.start()
            kills = []
            for files in (4, 10, 18):
                killed.start()
                kills.append(killed.kill_after_files(files))
            killed.start()
            results = [puller.result() for puller in (killed, steady)]
        finally:
            killed.stop()
            steady.stop()
        # What a host says to one who is killed before it could read it, nobody knows.
        left = [json.loads(found) for found in violations_of(server, (killed, steady))]
        assert [found for found in left if found["kind"] != "retry-after" or
                not any(-_UNREAD_S < found["told_at_s"] - kill < 0.05 for kill in kills)] == []  # fmt: skip
        assert min(result["successful"] for result in results) > 35


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_five_thousand_papers_with_sixty_four_in_flight_break_no_rule(warm: WarmPrograms, tmp_path: Path) -> None:
    """LIM-06, LIM-13: two processes of 32; the server counts, and every 429 is one that it was told to send."""
    number = 5000
    with SandboxServer(works=number, seed=5) as server:
        ids = server.identifiers(number)
        pullers = [Puller(server, warm, tmp_path, f"run{n}", ids[n::2], workers=32) for n in range(2)]
        try:
            for puller in pullers:
                puller.start()
            results = [puller.result(within_s=1400) for puller in pullers]
        finally:
            for puller in pullers:
                puller.stop()
        assert violations_of(server, pullers) == []
        counters = server.counters()
        earned = counters["by_status"].get("429", 0) - counters["by_fault"].get("rate_limited", 0)
        assert earned <= 0.01 * counters["requests"]
        assert sum(result["successful"] for result in results) > 0.8 * number
