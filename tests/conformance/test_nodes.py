"""Nodes that come and go: what one that is told to end leaves to the others, and two that have one name. EXT-01.

The web is a server whose files stop in the middle until the test lets them go on, so that the order of things is the
test's and not the machine's.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from tests.waiting import eventually

from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.core.ids import node_of
from DocsToKG.Orchestrator.ledger.base import JobRecord, JobState, NewJob
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Sandbox.pdf import Paper, make_pdf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

WORKS = 8
PROGRAM = str(Path(sys.executable).parent / "contentdownload")


class SlowWeb:
    """`host<n>.example.org/paper.pdf`, half of it at once and the rest when `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.streams: set[tuple[str, str]] = set()  # that have begun: for whom, and from which host
        web = self

        class Page(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path != "/paper.pdf":
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                paper = Paper(f"A paper at {self.headers['Host']}", ("A. Writer",), 2024, None)
                body = make_pdf(paper, size_bytes=60_000, key=self.headers["Host"])
                self.send_response(200)
                self.send_header("Content-Type", "application/pdf")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:30_000])
                self.wfile.flush()
                web.streams.add((self.headers["User-Agent"], self.headers["Host"]))
                web.go_on.wait(600)
                self.wfile.write(body[30_000:])

            def log_message(self, *words: Any) -> None:
                return None

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *about: Any) -> None:
                """A client that was told to end cuts its streams."""

        self._server = Server(("127.0.0.1", 0), Page)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> SlowWeb:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Fleet:
    """One queue on a server, and the nodes that were started on it."""

    def __init__(self, stack: ExitStack, root: Path, database: str, web: SlowWeb) -> None:
        self._stack = stack
        self._root = root
        self._database = database
        self.web = web
        self.ledger = stack.enter_context(PostgresLedger(database))
        works = [line.work for line in coerce_works(map(url, range(WORKS))) if line.work is not None]
        self.ledger.enqueue_many([NewJob(work.work_id, work.to_dict()) for work in works])

    def _config(self, folder: str, node: str, orchestrator: dict[str, Any]) -> Path:
        root = self._root / folder
        settings = {
            "contact": "demo@sandbox.invalid",
            "http": {
                "connect_to": {"*": f"plain://127.0.0.1:{self.web.port}"},
                "names": {"*": ["93.184.216.34"]},
                "user_agent": folder,
                "timeout_read_s": 300,
                "timeout_stall_s": 300,
            },
            "limits": {"rate_factor": 100.0},
            "orchestrator": {"max_workers": 2, "retry_backoff_seconds": 1, "jitter_seconds": 0, **orchestrator},
            "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
            "storage": {"root_dir": str(root), "min_free_bytes": 0},
            "queue": {
                "backend": "postgres",
                "connection_string": self._database,
                "node_id": node,
                "path": str(root / "state" / "queue"),
            },
            "hishel": {"base_path": str(root / "state" / "cache")},
        }
        path = self._root / f"{folder}.json"
        path.write_text(json.dumps(settings))
        return path

    def run(self, *words: str, config: Path) -> str:
        done = subprocess.run(
            [PROGRAM, *words, "-c", str(config)], capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, folder: str, node: str | None = None, **orchestrator: Any) -> Node:
        config = self._config(folder, node or folder, orchestrator)
        node_here = Node(self._root / folder, config)
        self._stack.callback(node_here.kill)
        eventually(node_here.is_up, f"{folder} is up")
        return node_here

    def jobs(self) -> list[JobRecord]:
        return self.ledger.list_jobs(limit=100)

    def held_by(self, node: str) -> set[int]:
        return {job.job_id for job in self.jobs() if node_of(job.worker_id) == node}

    def holds_only_streams(self, node: str) -> bool:
        """At one moment: every job is held, and of those that the node holds each file has begun to come for it."""
        jobs = self.jobs()
        hosts = {host for agent, host in set(self.web.streams) if agent == node}
        streams = {job.job_id for job in jobs if urlsplit(job.artifact_id.removeprefix("url:")).netloc in hosts}
        held = {job.job_id for job in jobs if node_of(job.worker_id) == node}
        return held == streams and all(job.state == JobState.IN_PROGRESS for job in jobs)

    def leases(self) -> dict[int, str]:
        return {job.job_id: job.lease_id for job in self.jobs() if job.lease_id is not None}

    def all_are_held(self) -> bool:
        return all(job.state == JobState.IN_PROGRESS for job in self.jobs())

    def events(self, job_id: int) -> list[tuple[str, str | None]]:
        """What happened to a job, and by which node; what is said of a lease is said by the one that took it."""
        rows = self.ledger.history(job_id)
        owners = {row.fence: row.actor for row in rows if row.event == "leased"}
        return [(row.event, node_of(owners.get(row.fence, row.actor))) for row in rows]

    def all_are_done(self) -> bool:
        return all(job.state == JobState.DONE for job in self.jobs())


class Node:
    """`queue run` in a process of its own."""

    def __init__(self, root: Path, config: Path) -> None:
        self._workers = root / "state" / "queue.workers"
        self.config = config
        self.process = subprocess.Popen(
            [PROGRAM, "queue", "run", "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def is_up(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        return any(self._workers.glob("*.lock"))

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ended(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=200)
        return self.process.returncode, said

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def url(number: int) -> str:
    return f"https://host{number}.example.org/paper.pdf"


@contextmanager
def own_database(postgres_url: str) -> Iterator[str]:
    name = f"d_{uuid4().hex[:16]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def fleet(postgres_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        database = stack.enter_context(own_database(postgres_url))
        web = stack.enter_context(SlowWeb())
        yield Fleet(stack, tmp_path, database, web)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_node_that_is_told_to_end_finishes_what_streams_and_leaves_the_rest_to_others_at_once(
    fleet: Fleet, processes: int
) -> None:
    threads = 2 * processes
    leaving = fleet.start("leaving", drain_seconds=600, processes=processes)
    eventually(lambda: len(fleet.web.streams) >= 2, "downloads stream")
    eventually(lambda: len(fleet.held_by("leaving")) > threads, "more is held than can stream")
    fleet.start("staying", max_workers=WORKS)
    eventually(fleet.all_are_held, "nothing is left to take but what the other holds")
    held = fleet.held_by("leaving")
    leaving.terminate()
    # Nothing that streams can end yet, so what is taken over now is taken over while the other still drains.
    eventually(lambda: fleet.holds_only_streams("leaving"), "all but what streams is taken over")
    streaming, taken = fleet.held_by("leaving"), held & fleet.held_by("staying")
    assert leaving.process.poll() is None
    assert streaming
    assert streaming | taken == held
    fleet.web.go_on.set()
    code, said = leaving.ended()
    assert code == 0, said
    assert fleet.held_by("leaving") == set(), "no lease is left behind"
    eventually(fleet.all_are_done, "all is done")
    for job_id in streaming:
        events = fleet.events(job_id)
        assert ("finished", "leaving") in events, events
        assert "staying" not in [node for _, node in events]
    for job_id in taken:
        events = fleet.events(job_id)
        released, leased = events.index(("released", "leaving")), events.index(("leased", "staying"))
        assert released < leased < events.index(("finished", "staying")), events
    assert {job.attempts for job in fleet.jobs()} == {0}
    assert fleet.ledger.verify_history()


def test_what_streams_for_longer_than_the_drain_is_cut_and_begun_anew_elsewhere(fleet: Fleet) -> None:
    leaving = fleet.start("leaving", drain_seconds=0.2)
    eventually(lambda: len(fleet.web.streams) >= 2, "downloads stream")
    staying = fleet.start("staying", max_workers=WORKS)
    leaving.terminate()
    code, said = leaving.ended()
    assert code == 0, said
    assert fleet.held_by("leaving") == set()
    eventually(lambda: len(fleet.held_by("staying")) == WORKS, "everything is taken over")
    fleet.web.go_on.set()
    eventually(fleet.all_are_done, "all is done")
    assert {job.attempts for job in fleet.jobs()} == {0}, "to be cut short is no try of the paper"
    staying.terminate()
    assert staying.ended()[0] == 0


def test_two_nodes_of_one_name_never_touch_each_others_jobs(fleet: Fleet) -> None:
    first = fleet.start("first", "twin")
    eventually(lambda: len(fleet.web.streams) == 2, "downloads stream")
    held = fleet.leases()
    second = fleet.start("second", "twin")
    eventually(fleet.all_are_held, "the second has taken what was left")
    told = json.loads(fleet.run("queue", "stats", "--json", config=first.config))
    assert told["nodes"] == {"twin": WORKS}
    second.terminate()
    code, said = second.ended()
    assert code == 0, said
    assert held.items() <= fleet.leases().items(), "what the other holds stays with it"
    fleet.web.go_on.set()
    eventually(fleet.all_are_done, "all is done")
    ends = [event for job in fleet.jobs() for event in fleet.events(job.job_id) if event[0] == "finished"]
    assert ends == [("finished", "twin")] * WORKS
    first.terminate()
    assert first.ended()[0] == 0
