"""What the pages show is run, line by line, in a folder such as a reader would have, against the sandbox's web.

One shell per page, so that what a page exports holds for its later lines. `./dev run` is left out, ports and paths that
only exist elsewhere are replaced, and what would go on for ever is interrupted once it works, as a reader would.
Python is run too, and every setting that is shown is read by the program it is for. Decision 41.
"""

from __future__ import annotations

import csv
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contentdownload.collector import Collector
from tests.docs.conftest import Reader, service_of, wrong
from tests.docs.reading import (
    EVERYWHERE,
    NOT_HERE,
    NOT_RUN,
    ON_THEIR_PAGES,
    PAGES,
    ROOT,
    blocks,
    is_elsewhere,
    kinds,
    lines_of,
    name_of,
    shown_lines,
)

from DocsToKG.ContentDownload.config import load_config
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.settings import ServerSettings
from DocsToKG.Sandbox.profile import SandboxServer

HOWTO = ROOT / "docs" / "howto"
# Run below, or in a file of their own, since they need more than the folder and the web.
WITH_MORE = {
    HOWTO / "prove-what-happened.md", HOWTO / "runbook.md", HOWTO / "send-events.md", HOWTO / "serve-the-ledger.md",
    HOWTO / "watch-the-queue.md", ROOT / "docs" / "tutorial" / "first-corpus.md",
}  # fmt: skip
# The tutorial promises ten minutes, set-up and reading among them; this is for what its commands take.
TUTORIAL_S = 240.0
# These need servers, which a page names by invented addresses: run in test_pages_with_servers.py.
WITH_SERVERS = {
    HOWTO / "keep-files-in-s3.md", HOWTO / "run-on-many-machines.md", HOWTO / "share-limits-with-redis.md",
    HOWTO / "share-the-record.md", HOWTO / "wake-ups.md",
}  # fmt: skip
# By page: lines that end otherwise here, and why.
OTHERWISE: Mapping[str, Mapping[str, set[int]]] = {
    "docs/howto/serve-the-ledger.md": {"docstokg-orchestrator token revoke": {1}},  # the id is an example
    "docs/howto/settle-unproved-files.md": {
        "content catalog unproved doi:": {1},  # no file is unproved there
        "content catalog unproved 3f9c0a71": {1},
    },
}
# Lines that no test types; more of them than this need a reason that stands.
MOST_ELSEWHERE = 6


def pages() -> Iterator[Any]:
    for page in PAGES:
        if lines_of(page) and page not in WITH_MORE | WITH_SERVERS:
            yield pytest.param(page, id=name_of(page))


def test_few_lines_are_left_out_and_each_has_its_reason() -> None:
    left_out = [line for page in PAGES for line in shown_lines(page) if is_elsewhere(line)]
    assert len(left_out) <= MOST_ELSEWHERE, left_out
    assert all(any(line.startswith(start) for line in left_out) for start in NOT_HERE)
    named = [word for reason in NOT_HERE.values() for word in re.findall(r"[\w./-]+/[\w./-]*\w", reason)]
    assert len(named) > 3
    assert [word for word in named if not (ROOT / word).is_file()] == []


def test_every_block_is_run_or_has_nothing_to_run() -> None:
    others = {name_of(page): left for page in PAGES if (left := kinds(page) - EVERYWHERE)}
    assert others == {**ON_THEIR_PAGES, **{name: {""} for name in NOT_RUN}}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", list(pages()))
def test_every_line_of_a_page_does_what_it_says(page: Path, reader: Reader, sandbox: SandboxServer) -> None:
    instead = {
        "127.0.0.1:8080": f"127.0.0.1:{sandbox.port}", "--port 8080": "--port 0", "--papers 200": "--papers 20",
        "--profile sandbox.yaml": "--profile second.yaml",  # the first goes on in another terminal
        "docstokg-orchestrator serve": "docstokg-orchestrator serve --port 0",
        "--metrics-port 9464": "--metrics-port 0",
        "primary_topic.id:t11995": "publication_year:2020",  # the sandbox's index has no topics
    }  # fmt: skip
    reader = replace(reader, instead=instead)
    assert wrong(reader.types(lines_of(page)), OTHERWISE.get(name_of(page), {})) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_tutorial_keeps_what_it_promises(reader: Reader) -> None:
    """Every paper of the small web is had, each line of the list has its row, and it does not take long."""
    demo = "content demo --papers 20 --out first-corpus"
    lines, began = lines_of(ROOT / "docs" / "tutorial" / "first-corpus.md"), time.monotonic()
    ended = reader.types(lines)
    assert time.monotonic() - began < TUTORIAL_S
    assert wrong(ended, {}) == []
    assert [code for line, code, _ in ended if demo in line] == [0]
    assert len(list((reader.folder / "first-corpus" / "PDF").iterdir())) == 20
    given = (reader.folder / "ids.txt").read_text().split()
    with (reader.folder / "papers" / "results.csv").open(newline="") as rows:
        assert [row["input"] for row in csv.DictReader(rows)] == given
    assert len(given) == 20
    again = reader.types([demo])
    assert [code for _, code, _ in again] == [0]
    assert "20 were there already" in again[0][2]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_ledger_is_served_as_the_page_says(reader: Reader) -> None:
    page = HOWTO / "serve-the-ledger.md"
    with service_of(reader) as reader:
        reader = replace(reader, instead={**reader.instead, "orchestrator serve": "orchestrator serve --port 0"})
        ended = reader.types(lines_of(page))
    assert wrong(ended, OTHERWISE[name_of(page)]) == []
    asked = [output for line, _, output in ended if line.startswith("curl")]
    jobs, figures, stream = asked
    assert '"artifactId"' in jobs or '"jobId"' in jobs, jobs
    assert "backlogSeconds" in figures
    assert "retry: " in stream


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_happened_is_proved_as_the_page_says(reader: Reader) -> None:
    instead = {
        "2026-10-01": "2020-02-01", "2026-11-01": "2020-03-01", "--run corpus": "--run papers",
        "operations.2a95d65fe66c68fa.pub.json": "state/keys/operations.*.pub.json",
    }  # fmt: skip
    reader = replace(reader, instead=instead)
    first, *others = lines_of(HOWTO / "prove-what-happened.md")
    earlier = "docstokg-orchestrator audit export --from 2020-01-01 --to 2020-02-01 -o september.tar.zst"
    assert wrong(reader.types([first, earlier]), {}) == []
    with service_of(reader) as reader:
        ended = reader.types(others)
    assert wrong(ended, {}) == []
    told = "\n".join(output for _, _, output in ended)
    assert told.count("proved  ") == 3  # two bundles and an answer of the service
    assert "NOT PROVED" not in told


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_is_watched_as_the_page_says(reader: Reader) -> None:
    collector = Collector()
    try:
        instead = {"/var/lib/node_exporter/": "./", "--metrics-port 9464": "--metrics-port 0"}
        instead |= {
            "http://127.0.0.1:4318 contentdownload queue run": f"{collector.address} contentdownload queue drain"
        }
        reader = replace(reader, instead=instead)
        ended = reader.types(lines_of(HOWTO / "watch-the-queue.md"))
        assert wrong(ended, {}) == []
    finally:
        collector.close()
    assert any("Figures of this run: http://127.0.0.1:" in output for _, _, output in ended)
    assert collector.figures
    assert "contentdownload_queue_depth" in (reader.folder / "docstokg.prom").read_text()
    assert all(json.loads(line) for line in (reader.folder / "corpus" / "run.log").read_text().splitlines())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_events_are_sent_and_received_as_the_page_says(reader: Reader) -> None:
    page = HOWTO / "send-events.md"
    lines, received = lines_of(page), _Received()
    began = next(number for number, line in enumerate(lines) if "events run" in line) + 1
    try:
        _write_targets(reader.folder / "server.yaml", blocks(page, "yaml")[0], received.url)
        *ended, (_, _, secret) = reader.types([*lines[:began], "echo $CRM_SECRET"])
        assert wrong(ended, {}) == []
        _finish_a_job(reader.folder / "state" / "workqueue.sqlite")
        sending = [f"export CRM_SECRET={secret.strip()}", "docstokg-orchestrator events run --once -c server.yaml"]
        assert wrong(reader.types([*sending, *lines[began:]]), {}) == []
    finally:
        received.close()
    names: dict[str, Any] = {}
    exec(blocks(page, "python")[0], names)
    [(headers, body)] = received.requests
    assert names["event_of"](headers, body, secret.strip().encode())["eventType"] == "job.completed"
    with pytest.raises(ValueError, match="not from us"):
        names["event_of"](headers, body + b" ", secret.strip().encode())


def _write_targets(file: Path, shown: str, url: str) -> None:
    """The settings of the page, with a receiver that is here and a broker that is not."""
    settings = yaml.safe_load(shown)
    hook, bus = settings["events"]["targets"]
    hook |= {"url": url, "private_hosts": ["127.0.0.1"]}
    bus |= {"url": "nats://127.0.0.1:1"}
    file.write_text(yaml.safe_dump(settings))


def _finish_a_job(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        [job] = ledger.lease("w-1", 1, 60)
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))


class _Received:
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        requests = self.requests

        class Takes(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hooks/papers"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


# Python


@pytest.mark.slow
def test_the_python_of_the_readme_pulls_papers(reader: Reader) -> None:
    """TEST-13: through `DownloadRun`, as somebody who writes Python does."""
    [snippet] = blocks(ROOT / "README.md", "python")
    done = reader.python(snippet)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Saved 1 / 2\n"  # the second is of the real web


@pytest.mark.slow
def test_providers_that_are_set_are_used(reader: Reader) -> None:
    [snippet] = blocks(HOWTO / "watch-the-queue.md", "python")
    before = """
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, figures = InMemorySpanExporter(), InMemoryMetricReader()
my_tracer_provider, my_meter_provider = TracerProvider(), MeterProvider([figures])
my_tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
"""
    after = """
assert figures.get_metrics_data().resource_metrics
print(sorted(span.name for span in spans.get_finished_spans()))
"""
    done = reader.python(before + snippet + after)
    assert done.returncode == 0, done.stderr
    assert "worker_execute" in done.stdout


# settings


# Addresses hold passwords, so the pages have them in the environment.
KEPT_OUTSIDE = {
    "DOCSTOKG_CONTENT_CONTACT": "you@your-university.edu",
    "DOCSTOKG_CONTENT_STORAGE__CONNECTION_STRING": "postgresql://docstokg:secret@db.internal/docstokg",
    "DOCSTOKG_CONTENT_RATE_LIMIT__REDIS_URL": "rediss://docstokg:secret@valkey.internal:6379/0",
    "DOCSTOKG_CONTENT_QUEUE__SIGNAL_URL": "tls://docstokg:secret@nats.internal:4222",
}


def shown_settings() -> Iterator[Any]:
    for page in PAGES:
        for number, block in enumerate(blocks(page, "yaml")):
            yield pytest.param(yaml.safe_load(block), id=f"{name_of(page)} {number + 1}")


@pytest.mark.parametrize("shown", list(shown_settings()))
def test_every_setting_that_is_shown_is_understood(shown: dict[str, Any], tmp_path: Path) -> None:
    if {"ledger", "auth"} & set(shown):
        ServerSettings.model_validate(shown)
    else:
        load_config(None, shown, environ=KEPT_OUTSIDE, user_file=tmp_path / "none")
