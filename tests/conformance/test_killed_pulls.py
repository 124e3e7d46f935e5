"""Killed is not guilty: a pull that is killed again and again, then left alone, has every reachable paper.

On SQLite and on PostgreSQL, with one to four processes. A seed decides who is killed and when: everything at once, the
process that was started, or one of those that it has started. `KILLED_SEED` is that seed. No process that tries a
suspect alone is picked by itself: that its parent lives on is what tells its end from a kill.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.conftest import client_settings
from tests.contentdownload.test_run_deadly import DIES, check_put_aside, works

from DocsToKG.Orchestrator.ledger.base import JobFilter
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
from DocsToKG.Orchestrator.ledger.opening import open_ledger
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("KILLED_SEED", "22"))
PROGRAM = str(Path(sys.executable).parent / "content")
KINDS = ("all at once", "the first", "one member")
PATIENCE_S = 60.0


class Pull:
    """One corpus, and the command that gathers it."""

    def __init__(
        self, folder: Path, sandbox: SandboxServer, database: str | None, ids: Sequence[str] | None = None
    ) -> None:
        """Of all works, or of those with these `ids`."""
        self.run = folder / "run"
        self.state = self.run / "state"
        (folder / "ids.txt").write_text("\n".join(ids or sandbox.identifiers(sandbox.world.count, mix=False)))
        queue: dict[str, Any] = {"path": str(self.state / "ledger.sqlite")}
        if database is not None:
            queue |= {"backend": "postgres", "connection_string": database}
        settings = client_settings(sandbox, self.run, queue=queue, limits={"rate_factor": 4.0})
        (folder / "settings.json").write_text(json.dumps(settings))
        self._folder, self._database = folder, database
        self._env = {**os.environ, "HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "machine")}

    def start(self, processes: int) -> subprocess.Popen[bytes]:
        words = ["pull", "ids.txt", "-c", "settings.json", "--out", "run", "--processes", str(processes)]
        with (self._folder / "output.txt").open("ab") as log:
            return subprocess.Popen(
                [PROGRAM, *words], cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env
            )

    def ledger(self) -> DatabaseLedger:
        return open_ledger(self.state / "ledger.sqlite", url=self._database)

    def workers(self) -> set[int]:
        """The processes that show that they live, by the first line of their files; some may be dead already. A process
        that tries suspects alone is shown by its parent."""
        found = set()
        for path in self.state.glob("ledger.sqlite.workers/*.lock"):
            with suppress(OSError, ValueError):
                found.add(int(path.read_bytes()[:20]))
        return found

    def said(self) -> str:
        return (self._folder / "output.txt").read_text(errors="replace")[-2000:]


def children_of(pid: int) -> set[int]:
    with suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return {int(child) for task in tasks for child in (task / "children").read_text().split()}
    return set()


def kill(process: subprocess.Popen[bytes], pull: Pull, kind: str) -> None:
    children = children_of(process.pid)
    if kind == "one member":
        doomed = sorted(children & pull.workers())[:1]
    else:
        doomed = [process.pid, *(sorted(children) if kind == "all at once" else [])]
    for pid in doomed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until_it_works(process: subprocess.Popen[bytes], pull: Pull) -> None:
    """Until a worker shows that it lives; a run that has nothing to do ends before."""
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and not pull.workers() & {process.pid, *children_of(process.pid)}:
        assert time.monotonic() < until, pull.said()
        time.sleep(0.01)


def kill_again_and_again(pull: Pull, kills: int, chance: random.Random, *, longest_s: float) -> Counter[str]:
    """So many kills, each within `longest_s` of a worker's beginning; who was killed."""
    made: Counter[str] = Counter()
    process: subprocess.Popen[bytes] | None = None
    while sum(made.values()) < kills:
        if process is None or process.poll() is not None:
            processes = chance.randint(1, 4)
            process = pull.start(processes)
        wait_until_it_works(process, pull)
        time.sleep(chance.uniform(0.0, longest_s))
        if process.poll() is not None:
            made["had ended"] += 1
            continue
        kind = chance.choice(KINDS if processes > 1 else KINDS[:1])
        kill(process, pull, kind)
        made[kind] += 1
        if kind != "one member":
            process.wait(PATIENCE_S)
    if process is not None and process.poll() is None:
        kill(process, pull, "all at once")
        process.wait(PATIENCE_S)
    return made


def check_complete(pull: Pull, sandbox: SandboxServer) -> Counter[str]:
    """Every reachable paper is there, and nothing was held against any work; how the jobs ended, for whoever looks."""
    truth = sandbox.truth()["works"]
    with open(pull.run / "results.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    reachable = [
        row for row in rows if {"unpaywall", "arxiv", "doi"} & set(truth[int(row["line"]) - 1]["reachable_by"])
    ]
    assert {row["input"]: row["reason"] for row in reachable if row["outcome"] != "success"} == {}
    with pull.ledger() as ledger:
        jobs = ledger.list_jobs(limit=10_000, wanted=JobFilter(job_type="content.download"))
        assert [job.last_error for job in jobs if "ended_worker" in (job.last_error or "")] == []
        assert {job.state.value for job in jobs} <= {"done", "skipped", "error"}
        assert ledger.verify_history()
        events: Counter[str] = Counter()
        for job in jobs:
            history = ledger.history(job.job_id)
            assert job.attempts == sum(row.event == "failed" for row in history), "a death has cost an attempt"
            events.update(row.event for row in history)
    return events


def pull_that_is_killed(
    folder: Path, database: str | None, *, works: int, kills: int, longest_s: float, within_s: float
) -> None:
    chance = random.Random(f"{SEED} {kills} {database is None}")
    with SandboxServer(works=works, seed=SEED, faults=Faults.none()) as sandbox:
        pull = Pull(folder, sandbox, database)
        began = time.monotonic()
        made = kill_again_and_again(pull, kills, chance, longest_s=longest_s)
        killed_s = time.monotonic() - began
        with pull.ledger() as ledger:
            ended = ledger.stats()
        last = pull.start(chance.randint(1, 4))
        assert last.wait(within_s) in (0, 3), pull.said()
        events = check_complete(pull, sandbox)
        print(
            f"seed {SEED}: {dict(made)} in {killed_s:.0f} s, when {ended['done'] + ended['skipped']} works were done;"
        )
        print(f"all after {time.monotonic() - began:.0f} s: {dict(events)}")


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_database(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.mark.timeout(400)
def test_a_pull_that_is_killed_again_and_again_gets_every_paper(tmp_path: Path, ledger_database: str | None) -> None:
    """QUE-20, QUE-21, FAIL-01."""
    pull_that_is_killed(tmp_path, ledger_database, works=24, kills=6, longest_s=1.0, within_s=200)


def make_deadly(folder: Path, doi: str, by: str, patch: pytest.MonkeyPatch) -> None:
    """From here on each process of the program that proves this work's file dies."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(DIES)
    patch.setenv("PYTHONPATH", f"{folder / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    patch.setenv("DEADLY_BY", by)
    patch.setenv("DEADLY", f"doi:{doi}")


@pytest.mark.timeout(300)
def test_a_work_that_ends_its_process_is_put_aside_on_either_ledger(
    tmp_path: Path, ledger_database: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QUE-21."""
    with SandboxServer(works=12, seed=SEED, faults=Faults.none()) as sandbox:
        [deadly] = works(sandbox, 1)
        make_deadly(tmp_path, deadly, "segv", monkeypatch)
        pull = Pull(tmp_path, sandbox, ledger_database)
        assert pull.start(2).wait(200) == 3, pull.said()
        with pull.ledger() as ledger:
            job = ledger.find(f"doi:{deadly}")
            assert job is not None
            assert (job.state, job.attempts, job.crashes) == ("error", 0, 4)
            result = json.loads(job.result_json or "{}")
            assert (result["signal"], result["stage"], len(result["sha256"])) == ("SIGSEGV", "verify", 64)
            assert Path(result["kept"]).stat().st_size == result["size_bytes"]
            events = [row.event for row in ledger.history(job.job_id)]
            assert Counter(events)["isolated"] >= 2  # a try alone that is given back is followed by another
            ledger.retry_failed()
            assert ledger.verify_history()
        monkeypatch.setenv("DEADLY", "nobody")
        assert Pull(tmp_path, sandbox, ledger_database).start(1).wait(200) in (0, 3)
        check_complete(pull, sandbox)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_thirty_kills_of_a_pull_of_three_hundred_works(tmp_path: Path, ledger_database: str | None) -> None:
    """QUE-20, QUE-21, FAIL-01."""
    pull_that_is_killed(tmp_path, ledger_database, works=300, kills=30, longest_s=5.0, within_s=900)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("processes", [1, 4])
def test_one_of_three_hundred_works_is_put_aside_and_all_others_arrive(
    tmp_path: Path, ledger_database: str | None, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """QUE-21: one process dies of it twice, and is started again; several get past it by themselves."""
    with SandboxServer(works=360, seed=SEED, faults=Faults.none()) as sandbox:
        wanted = works(sandbox, 300)
        assert len(wanted) == 300
        deadly = wanted[150]
        make_deadly(tmp_path, deadly, "kill", monkeypatch)
        pull = Pull(tmp_path, sandbox, ledger_database, wanted)
        began = time.monotonic()
        codes = [pull.start(processes).wait(400) for _ in range(3 if processes == 1 else 1)]
        print(f"{processes} processes, done after {time.monotonic() - began:.0f} s")
        assert codes == ([-9, -9, 3] if processes == 1 else [3]), pull.said()
        check_put_aside(pull.run, deadly, 299)
        with pull.ledger() as ledger:
            found = ledger.stats()
        assert found["done"] + found["skipped"] == 299, "skipped: its file was there when its process died"
