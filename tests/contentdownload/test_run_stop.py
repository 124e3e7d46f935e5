"""A run that is stopped, fails or must wait for long loses nothing and leaves nothing behind."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import needs
from tests.waiting import eventually

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import DiskFull
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.Orchestrator.errors import LedgerError
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]


def states(root: Path) -> dict[str, int]:
    queue = WorkQueue(str(root / "state" / "ledger.sqlite"))
    try:
        return {state: count for state, count in queue.stats().items() if count and state not in ("total", "leased")}
    finally:
        queue.close()


def file_urls(server: SandboxServer, count: int) -> list[str]:
    """Addresses of good files: works of one tier alone, so that nothing comes after it."""
    copies = [copy for work in server.truth()["works"] for copy in work["copies"] if copy["kind"] == "repository"]
    return [copy["url"] for copy in copies if copy["good"]][:count]


@pytest.mark.slow
def test_a_stopped_run_gives_waiting_works_back(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """TEST-11, CLI-21, ORC-11: works that stood before a gate are waiting again, not failed."""
    urls = file_urls(calm_sandbox, 25)
    slow = make_config(calm_sandbox, tmp_path, limits={"rate_factor": 1.0})
    with DownloadRun(slow) as run:
        run.enqueue(coerce_works(urls))
        run.start()
        eventually(lambda: run.status().done >= 2)
        run.stop(grace_s=0.2)
        result = run.result()
    assert states(tmp_path).keys() <= {"done", "queued"}
    assert result.pending == len(urls) - result.successful > 0
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        assert run.process_artifacts(urls).complete


@pytest.mark.slow
def test_no_lease_is_left_when_stopping_is_interrupted(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """ORC-12: a second Ctrl+C ends at once, and the next run need not wait for a lease to run out."""

    class Impatient(DownloadRun):
        def stop(self, grace_s: float = 8.0) -> None:
            raise KeyboardInterrupt

    slow = make_config(calm_sandbox, tmp_path, limits={"rate_factor": 1.0})
    urls = file_urls(calm_sandbox, 10)

    def interrupted_twice() -> None:
        with Impatient(slow) as run:
            run.enqueue(coerce_works(urls))
            run.start()
            eventually(lambda: run.status().done >= 1)

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert "in_progress" not in states(tmp_path)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_keeps_the_jobs(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAIL-11."""
    urls = file_urls(calm_sandbox, 6)
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:

        def no_room(*_: object, **__: object) -> None:
            raise DiskFull("no room left on the disk")

        monkeypatch.setattr(LocalStore, "storing", no_room)
        run.enqueue(coerce_works(urls))
        run.start()
        run.wait()
        with pytest.raises(DiskFull):
            run.stop()
    monkeypatch.undo()
    assert states(tmp_path) == {"queued": 6}
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        assert run.process_artifacts(urls).complete


@pytest.mark.slow
def test_a_ledger_that_was_full_holds_nobody_up_afterwards(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAIL-11: what could not be given back is free when there is room again, not when its lease runs out."""
    urls = file_urls(calm_sandbox, 6)

    def no_room(*_: object, **__: object) -> None:
        raise LedgerError("database or disk is full")

    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        run.enqueue(coerce_works(urls))
        run.queue.ledger.lease(run.worker_id, len(urls), 600.0)
        monkeypatch.setattr(run.queue.ledger.__class__, "release_worker", no_room)
    monkeypatch.undo()
    assert states(tmp_path) == {"in_progress": 6}
    began = time.monotonic()
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        assert run.process_artifacts(urls).complete
    assert time.monotonic() - began < 60  # a lease is longer


@pytest.mark.slow
def test_works_that_another_process_has_are_named_and_not_waited_for_beyond_patience(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    urls = file_urls(calm_sandbox, 3)
    seen: list[str] = []
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        run.enqueue(coerce_works(urls))
        run.queue.ledger.lease("elsewhere", 2, 600.0)
        run.start()
        run.wait(lambda status: seen.extend(status.waits), patience_s=0.3, every_s=0.05)
        run.stop()
        assert run.result().pending == 2
    assert any(words.startswith("another process that may have them until 20") for words in seen)


def test_a_ledger_that_fails_while_the_run_is_watched_is_told(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A display must not make the run look drained."""
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:

        def is_away(*_: object) -> None:
            raise LedgerError("the ledger is away")

        monkeypatch.setattr(Orchestrator, "wait_until_drained", is_away)
        run.start()
        with pytest.raises(LedgerError, match="is away"):
            run.wait(lambda status: None, every_s=0.05)
        run.stop()


class Busy(http.server.BaseHTTPRequestHandler):
    """Answers robots.txt, and everything else with a time far away."""

    asked: list[str]

    def do_GET(self) -> None:
        if self.path != "/robots.txt":
            self.asked.append(self.path)
        self.send_response(404 if self.path == "/robots.txt" else 429)
        self.send_header("Retry-After", "3600")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def busy_host() -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (Busy,), {"asked": asked})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port, asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_a_host_that_says_come_back_in_an_hour_holds_nobody_up(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, busy_host: tuple[int, list[str]]
) -> None:
    """NET-06: its works go back to the ledger with that time, one request is enough to know, others go on."""
    port, asked = busy_host
    http_settings = calm_sandbox.profile()["http"]
    http_settings["connect_to"] = {"busy.example": f"plain://127.0.0.1:{port}", **http_settings["connect_to"]}
    config = make_config(calm_sandbox, tmp_path, http=http_settings, orchestrator={"max_workers": 2, "lookahead": 8})
    busy = [f"https://busy.example/{n}.pdf" for n in range(20)]
    good = file_urls(calm_sandbox, 3)
    with DownloadRun(config) as run:
        run.enqueue(coerce_works([*busy, *good]))
        run.start()
        began = time.monotonic()
        run.wait(patience_s=1)
        run.stop()
        result = run.result()
    assert time.monotonic() - began < 600  # of the hour
    assert (result.successful, result.pending) == (3, 20)
    assert len(asked) <= 2
    assert "may be had from" in (result.rows[0].reason or "")


@pytest.mark.slow
def test_resume_tries_again_what_was_missed_while_the_services_were_away(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    """The works have ended, with words on how to go on; what no source knows is not asked for again."""
    with SandboxServer(works=5, seed=7, faults=Faults.none(), thread=True) as server:
        ids = open_works(server, 1)
        tiers = [{"name": "direct_oa", "sources": ["unpaywall"]}]
        retry = {"max_job_attempts": 1, "retry_backoff_seconds": 1, "jitter_seconds": 0}
        same = {"tiers": tiers, "orchestrator": retry, "hishel": {"enabled": False}}
        config = make_config(server, tmp_path, **same)
        with DownloadRun(config) as run:
            assert run.process_artifacts(["10.9999/nothing.here"]).failed == 1
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # and does not listen
            places = {"connect_to": {"*": f"plain://127.0.0.1:{nobody.getsockname()[1]}"}}
            with DownloadRun(make_config(server, tmp_path, http=places, **same)) as run:
                missed = run.process_artifacts(["10.9999/nothing.here", *ids], retry_failed=False)
        assert [row.outcome for row in missed.rows] == ["error"] * 2
        assert "pull` or" not in (missed.rows[0].reason or "")
        assert "Run `content pull` or `content resume` again." in (missed.rows[1].reason or "")
        with DownloadRun(config) as run:
            run.take_up()
            assert run.status().left == 1
            run.start()
            run.wait(patience_s=60)
            run.stop()
            rows = run.result().rows
            assert [row.outcome for row in rows] == ["error", "success"], rows


def open_works(server: SandboxServer, count: int) -> list[str]:
    return [work["doi"] for work in server.truth()["works"] if "unpaywall" in work["reachable_by"]][:count]


# In a mount namespace of its own: a disk of the size given, the same pull on it before and after it grows, and what lay
# there in between.
FULL = textwrap.dedent("""
    import hashlib, json, os, subprocess, sys
    from pathlib import Path

    disk, size, program, config, *works = sys.argv[1:]
    corpus = Path(disk) / "papers"

    def mount(*words):
        subprocess.run(["mount", *words, disk], check=True)

    def pull():
        words = [program, "pull", *works, "--out", str(corpus), "-c", config, "--quiet"]
        done = subprocess.run(words, capture_output=True, text=True)
        files = corpus.glob("PDF/*")
        return {
            "code": done.returncode, "said": done.stdout + done.stderr,
            "files": sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in files),
            "left": os.listdir(corpus / ".tmp"),
        }

    mount("-t", "tmpfs", "-o", f"size={size}", "none")
    full = pull()
    mount("-o", "remount,size=256m")
    print(json.dumps([full, pull()]))
""")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", ["1m", "2m"])
def test_a_pull_that_fills_its_disk_says_so_and_goes_on_when_there_is_room(
    calm_sandbox: SandboxServer, config_file: Callable[..., Path], clean_environment: dict[str, str], tmp_path: Path,
    size: str,
) -> None:  # fmt: skip
    """FAIL-11: a real file system that is really full, first for the state of a run, then for its papers."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        needs.lacks("the right to mount a small disk (unshare -rm)")
    works = [work for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"]][:24]
    known = {digest for work in works for digest in work["sha256"]}
    program, config = Path(sys.executable).parent / "content", config_file(calm_sandbox)
    (disk := tmp_path / "disk").mkdir()
    words = [
        "unshare",
        "-rm",
        sys.executable,
        "-c",
        FULL,
        disk,
        size,
        program,
        config,
        *(work["doi"] for work in works),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=clean_environment)
    assert done.returncode == 0, done.stderr[-2000:]
    full, roomy = json.loads(done.stdout)
    assert full["code"] == 1
    assert re.search(r"^Error: .*(no space left|is full)", full["said"], re.MULTILINE), full["said"]
    assert "Traceback" not in full["said"]
    assert len(full["files"]) < len(works)
    assert set(full["files"]) <= known
    assert (roomy["code"], len(roomy["files"])) == (0, len(works)), roomy["said"]
    assert set(roomy["files"]) <= known
    assert full["left"] == roomy["left"] == []
