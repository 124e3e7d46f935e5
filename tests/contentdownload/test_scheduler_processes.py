"""A run in several processes: one result, one record, one Ctrl+C (EXT-07)."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.orchestrator.processes import Boss, Crew, Member, Word, word_of
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import SystemClock
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
LONG_S = 60.0
SPEAKS = """
import struct, sys
(length,) = struct.unpack(">I", sys.stdin.buffer.read(4))
order = sys.stdin.buffer.read(length).decode()
print('{"up": "%s"}' % order, flush=True)
sys.exit(0 if sys.stdin.readline().startswith("stop") else 5)
"""

FAILS = """
import sys, threading, time
from DocsToKG.ContentDownload.orchestrator.member import own_input, own_output
from DocsToKG.ContentDownload.orchestrator.processes import Boss
boss = Boss(own_input(), own_output())
boss.order()
threading.Thread(target=boss.wait_for_stop, daemon=True).start()
time.sleep(0.2)
boss.say({"failed": {"kind": "DiskFull", "text": "no room"}})
sys.exit(1)
"""


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def file_urls(server: SandboxServer, count: int) -> list[str]:
    copies = [copy for work in server.truth()["works"] for copy in work["copies"] if copy["kind"] == "repository"]
    return [copy["url"] for copy in copies if copy["good"]][:count]


def test_a_process_that_fails_while_it_listens_to_its_boss_ends_in_order() -> None:
    """FAIL-11: on a full disk the one thing to read is why, and not how Python came down."""
    with subprocess.Popen(
        [sys.executable, "-c", FAILS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"\0\0\0\0")
        process.stdin.flush()  # and stays open, as that of a boss who lives
        assert json.loads(process.stdout.read())["failed"]["text"] == "no room"
        assert (process.wait(LONG_S), process.stderr.read()) == (1, b"")


def test_what_is_gathered_is_said_in_order_and_before_what_is_said_at_once() -> None:
    said = io.BytesIO()
    boss = Boss(io.BytesIO(), said)
    boss.gather("outcomes", 1)
    boss.gather("outcomes", 2)
    assert not said.getvalue()
    boss.say({"notes": []})
    boss.gather("outcomes", 3)
    boss.say_gathered()
    assert [json.loads(line) for line in said.getvalue().splitlines()] == [
        {"outcomes": [1, 2]}, {"notes": []}, {"outcomes": [3]},
    ]  # fmt: skip
    assert not boss.has_gathered.is_set()


@pytest.mark.parametrize("said", ["\ud800 alone", 2**70, {"n": [1.5, None, True]}, Path("a")])
def test_whatever_a_work_ends_with_is_heard(said: object) -> None:
    """Titles come from outside, and not every text of Python's can be written as UTF-8."""
    pipe = io.BytesIO()
    Boss(io.BytesIO(), pipe).say({"outcome": said})
    assert word_of(pipe.getvalue()) == {"outcome": "a" if isinstance(said, Path) else said}


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def crew_of(heard):
    """`crew_of(program, count)`: a crew that is gone at the end."""
    crews = []

    def make(program: str, count: int = 1, **more) -> Crew:
        def hear(member: Member, word: Word) -> None:
            heard.append(word.get("up", ""))

        crew = Crew([sys.executable, "-c", program], b"x", count=count, on_word=hear, **more)
        crews.append(crew)
        crew.start()
        return crew

    yield make
    for crew in crews:
        crew.kill()


def test_a_member_that_dies_is_replaced_and_a_stop_ends_all(crew_of, heard):
    deaths = []
    crew = crew_of(SPEAKS, 2, on_death=lambda: deaths.append(1))
    eventually(lambda: len(heard) == 2)
    crew.members[0].process.kill()
    eventually(lambda: len(heard) == 3)
    pids = [member.process.pid for member in crew.members]
    crew.stop(0.0)
    assert (len(pids), len(deaths), crew.deaths) == (2, 1, 1)
    assert not any(map(is_there, pids))


def test_members_that_cannot_begin_fail_the_crew_instead_of_starting_for_ever(crew_of):
    failures = []
    crew = crew_of("raise SystemExit(4)", on_failure=lambda kind, text: failures.append(text))
    eventually(lambda: bool(failures))
    crew.stop(0.0)
    assert failures == ["worker processes end before they begin (exit code 4)"]
    assert crew.deaths == 3


def test_members_that_cannot_even_be_started_fail_the_crew_too():
    failures = []
    crew = Crew(
        ["/no/such/program"], b"x", count=1, on_word=lambda member, word: None,
        on_failure=lambda kind, text: failures.append(text),
    )  # fmt: skip
    crew.start()
    eventually(lambda: bool(failures))
    crew.stop(0.0)
    assert failures == ["worker processes end before they begin (No such file or directory)"]


def test_a_member_that_does_not_stop_is_killed(crew_of, heard):
    stubborn = SPEAKS.replace("sys.exit(", "import time; time.sleep(600); sys.exit(")
    crew = crew_of(stubborn)
    eventually(lambda: len(heard) == 1)
    [pid] = [member.process.pid for member in crew.members]
    crew.stop(0.0, patience_s=0.1)
    assert not is_there(pid)


@pytest.mark.slow
def test_several_processes_obtain_what_one_would(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """EXT-07: files, rows, figures and the text files of the record are those of one run."""
    urls, told = file_urls(calm_sandbox, 25), []
    cfg = make_config(calm_sandbox, tmp_path, orchestrator={"processes": 2, "lookahead": 4})
    with DownloadRun(cfg, on_outcome=lambda work_id, outcome: told.append(work_id)) as run:
        result = run.process_artifacts(urls)
        status, figures = run.status(), run.figures()
    assert (result.successful, result.already, result.failed, result.pending) == (25, 0, 0, 0)
    assert (status.total, status.done, status.failed, status.left) == (25, 25, 0, 0)
    assert status.bytes == figures.bytes > 0
    assert len(told) == len(set(told)) == 25
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    with closing(sqlite3.connect(tmp_path / "manifest.sqlite")) as db:
        rows = db.execute("SELECT doc_id, worker_id, run_id FROM manifests ORDER BY id").fetchall()
        events = db.execute("SELECT COUNT(*) FROM http_events").fetchone()[0]
    assert [(line["doc_id"], line["worker_id"], line["run_id"]) for line in lines] == rows
    assert len((tmp_path / "attempts.csv").read_text().splitlines()) - 1 == events > 0
    assert len({worker for _, worker, _ in rows}) == 2
    assert len({run_id for _, _, run_id in rows}) == 1
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        again = run.process_artifacts(urls)
    assert (again.successful, again.already) == (25, 25)


@pytest.mark.slow
def test_a_run_survives_the_death_of_a_process(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """EXT-07, FAIL-01: what it held is free at once, long before its leases run out; the counts are right."""
    urls = file_urls(calm_sandbox, 25)
    cfg = make_config(calm_sandbox, tmp_path, orchestrator={"processes": 2}, limits={"rate_factor": 1.0})
    cfg.limits.hosts.clear()
    with DownloadRun(cfg) as run:
        run.enqueue(coerce_works(urls))
        run.start()
        eventually(lambda: run.status().done >= 1)
        victim = run.processes[0]
        os.kill(victim, signal.SIGKILL)
        run.wait()
        run.stop()
        result, status = run.result(), run.status()
    assert (result.successful, result.already, result.failed, result.pending) == (25, 0, 0, 0)
    assert (status.done, status.left) == (25, 0)
    assert not is_there(victim)


@pytest.mark.slow
def test_an_error_of_the_run_in_one_process_ends_it_in_all(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAIL-11: the error is the one the process met, and the jobs are kept."""
    monkeypatch.setattr(LocalStore, "check_space", lambda *_: None)  # here there is room, in the other processes not
    cfg = make_config(calm_sandbox, tmp_path, orchestrator={"processes": 2}, storage={"min_free_bytes": 1 << 60})
    with DownloadRun(cfg) as run:
        run.enqueue(coerce_works(file_urls(calm_sandbox, 6)))
        run.start()
        run.wait()
        with pytest.raises(RunError, match="MiB free"):
            run.stop()
    with WorkQueue(tmp_path / "state" / "ledger.sqlite") as queue:
        assert queue.stats()["queued"] == 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ValueError, KeyError])
def test_whoever_is_told_of_outcomes_and_fails_ends_the_run(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, kind: type[Exception]
) -> None:
    """As with one process: the processes go on being heard, and the run ends with what went wrong."""

    def spoil(work_id: str, outcome: DownloadOutcome) -> None:
        raise kind("of the caller's own")

    with DownloadRun(make_config(calm_sandbox, tmp_path, orchestrator={"processes": 2}), on_outcome=spoil) as run:
        run.enqueue(coerce_works(file_urls(calm_sandbox, 6)))
        run.start()
        run.wait()
        with pytest.raises(kind, match="of the caller's own"):
            run.stop()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_drains_all_processes(calm_sandbox, make_config, clean_environment, tmp_path, number):
    """ORC-11, ORC-12: no lease, no process and no lock are left."""
    root = tmp_path / "run"
    cfg = make_config(calm_sandbox, root, limits={"rate_factor": 1.0})
    settings = tmp_path / "run.json"
    settings.write_text(cfg.model_dump_json(exclude_defaults=True))
    with WorkQueue(root / "state" / "ledger.sqlite") as queue:
        queue.bulk_import((f"url:{n}", {"pdf_urls": [url]}, None) for n, url in enumerate(file_urls(calm_sandbox, 25)))
    words = ["queue", "run", "--processes", "2", "-c", str(settings)]
    with subprocess.Popen(
        [sys.executable, "-m", "DocsToKG.ContentDownload", *words],
        env=clean_environment,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as command:
        members = root / "state" / "ledger.sqlite.workers"
        # A file is there a moment before its number is.
        eventually(lambda: members.exists() and [bool(path.read_text()) for path in members.iterdir()] == [True] * 3)
        pids = [int(path.read_text().split()[0]) for path in members.iterdir()]
        with WorkQueue(root / "state" / "ledger.sqlite") as queue:
            eventually(lambda: queue.stats()["done"] >= 1)
            os.killpg(command.pid, number)  # as a terminal does
            said = command.communicate(timeout=LONG_S)[1]
            stats = queue.stats()
    assert command.returncode == 0, said
    assert "Stopping" in said
    assert (stats["in_progress"], stats["error"]) == (0, 0)
    assert stats["queued"] + stats["done"] + stats["skipped"] == 25
    assert not any(map(is_there, pids))
    assert list(members.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("as_ours", ["", "from DocsToKG.core.process import declare_ours; declare_ours()"])
def test_when_the_run_is_killed_its_processes_end_and_the_folder_is_free(calm_sandbox, make_config, tmp_path, as_ours):
    """ORC-12: until the last of them is gone, nobody else may work in the folder. In a program of ours they are copies
    of it, in others they are started anew."""
    program = f"""
import pickle, sys
{as_ours}
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.inputs import coerce_works
cfg, urls = pickle.load(sys.stdin.buffer)
with DownloadRun(cfg) as run:
    run.enqueue(coerce_works(urls))
    run.start()
    run.wait()
"""
    cfg = make_config(calm_sandbox, tmp_path, orchestrator={"processes": 2}, limits={"rate_factor": 1.0})
    urls = file_urls(calm_sandbox, 25)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as command:
        assert command.stdin is not None
        command.stdin.write(pickle.dumps((cfg, urls)))
        command.stdin.close()
        members = tmp_path / "state" / "ledger.sqlite.workers"
        eventually(lambda: members.exists() and len(list(members.iterdir())) == 3)
        command.kill()
        # At once, and before anybody asked how it ended: those who are about to go are waited for.
        with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
            assert run.process_artifacts(urls).complete
    assert list(members.iterdir()) == []


def test_no_thread_is_left_after_a_crew(crew_of, heard):
    before = set(threading.enumerate())  # some of them of other tests, and about to go
    crew = crew_of(SPEAKS, 2)
    eventually(lambda: len(heard) == 2)
    crew.stop(0.0)
    assert set(threading.enumerate()) <= before


def test_a_guest_writes_rows_and_the_host_the_files_and_the_summary(tmp_path):
    """TEL: one record, however many write to it; a guest may be gone without a word."""

    def record(work_id: str) -> ManifestRecord:
        outcome = DownloadOutcome(True, "success", path="x.pdf", reason="ok", meta={"sha256": "a" * 64})
        return ManifestRecord.of(WorkArtifact(work_id), outcome, lease_id=f"lease_{work_id}", path="x.pdf")

    def lines() -> list[str]:
        return [json.loads(line)["doc_id"] for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]

    common = {"run_id": "r", "config_hash": "c", "clock": SystemClock()}
    with (
        RunTelemetry(tmp_path, share="host", **common) as host,
        RunTelemetry(tmp_path, share="guest", **common) as guest,
    ):
        guest.finish(record("a"))
        guest.flush()
        assert lines() == []
        host.follow()
        host.flush()
        assert lines() == ["a"]
        host.finish(record("b"))
        guest.finish(record("c"))
        guest.flush()
        host.flush()
        assert sorted(lines()) == ["a", "b", "c"]
        guest.finish(record("d"))
        guest.close()
    assert sorted(lines()) == ["a", "b", "c", "d"]
    assert json.loads((tmp_path / "summary.json").read_text())["obtained"] == 4
    with RunTelemetry(tmp_path, **common) as again:
        assert again.repairs == ()
