"""Real processes are killed, stopped, cut off from their disk and their clock: every job still ends exactly once.

The jobs are real, and so are ledger, record, presence and crew; the pipeline is a stand-in whose effect is one line in
a file outside the ledger. A job may be done twice when its worker died; it never ends twice, and an effect without an
accepted end is that of a worker that died or lost its lease. `CHAOS_KILLS` sets how many kills the last test makes, in
batches of fifty; `CHAOS_SEED` decides who is killed, and all moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.scores import Recovery, bad_of, note
from tests.waiting import eventually

from DocsToKG.ContentDownload.orchestrator.processes import Crew, Member, Word
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.control.workers.liveness import free_dead
from DocsToKG.Orchestrator.ledger.base import NewJob

pytestmark = pytest.mark.slow

WORKER = str(Path(__file__).with_name("worker.py"))
LONG_S = 100.0
BATCH = 50
SEED = int(os.environ.get("CHAOS_SEED", "7"))
KILLS = max(BATCH, int(os.environ.get("CHAOS_KILLS", "50")))


class Band:
    """A folder with jobs, and processes that work on them. Each process may get an order of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queue = WorkQueue(folder / "q.sqlite")
        self.host = RunTelemetry(folder, run_id="r", config_hash="c", clock=SystemClock(), share="host")
        self.crews: list[Crew] = []
        self.names: dict[int, str] = {}  # worker ids by process
        self.gone: set[str] = set()  # workers that were killed
        self.failures: list[tuple[str, str]] = []
        self.chance = random.Random(SEED)

    def add_jobs(self, count: int, **body: Any) -> None:
        jobs = [NewJob(f"test:{n}", body, max_attempts=90) for n in range(count)]
        self.queue.ledger.enqueue_many(jobs)

    def begin(self, count: int = 1, **order: Any) -> Crew:
        crew = Crew(
            [sys.executable, WORKER],
            json.dumps({"folder": str(self.folder), **order}).encode(),
            count=count,
            on_word=self._hear,
            on_death=lambda: free_dead(self.queue.ledger) and None,
            on_failure=lambda kind, text: self.failures.append((kind, text)),
        )
        self.crews.append(crew)
        crew.start()
        return crew

    def _hear(self, member: Member, word: Word) -> None:
        if "up" in word:
            self.names[member.process.pid] = word["up"]

    def name_of(self, pid: int) -> str:
        """The worker id of a process; it may lease before its word of it has arrived here."""
        eventually(lambda: pid in self.names)
        return self.names[pid]

    def kill_one(self, crew: Crew) -> bool:
        """Kill a process that works, while another one does: a slow machine would only see them begin."""
        up = [member for member in crew.members if member.process.pid in self.names]
        if len(up) < 2:
            return False
        victim = self.chance.choice(up)
        self.gone.add(self.names[victim.process.pid])
        victim.process.kill()
        return True

    def freeze(self, pid: int) -> None:
        """Stop a process between two writes: one that stands still inside a transaction holds everybody up."""

        def is_frozen() -> bool:
            os.kill(pid, signal.SIGSTOP)
            if all(_is_free(self.folder / name) for name in ("q.sqlite", "manifest.sqlite")):
                return True
            os.kill(pid, signal.SIGCONT)
            return False

        eventually(is_frozen)

    def done(self) -> int:
        return self.queue.stats()["done"]

    def work_off(self, jobs: int) -> None:
        """Until all are done. What is left when patience is over is counted later, as stuck."""
        with suppress(AssertionError):
            eventually(lambda: self.done() == jobs, within_s=LONG_S)

    def leases(self) -> int:
        return self.queue.stats()["in_progress"]

    def effects(self) -> dict[str, list[str]]:
        found, file = defaultdict(list), self.folder / "effects.txt"
        for line in file.read_text().splitlines() if file.exists() else ():
            work_id, worker_id = line.split()
            found[work_id].append(worker_id)
        return found

    def accepted(self) -> dict[str, list[str]]:
        """By work: the workers whose end of it counted."""
        sql = """
            SELECT j.artifact_id, l.actor FROM job_history f JOIN jobs j ON j.id = f.job_id
              JOIN job_history l ON l.job_id = f.job_id AND l.event = 'leased' AND l.fence = f.fence
             WHERE f.event = 'finished'
        """
        found = defaultdict(list)
        with closing(sqlite3.connect(self.folder / "q.sqlite")) as db:
            for work_id, worker_id in db.execute(sql):
                found[work_id].append(worker_id)
        return found


def _is_free(path: Path) -> bool:
    """Whether nobody is writing to the database; a stop takes a moment to reach its process."""
    time.sleep(0.05)
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


@pytest.fixture
def band(tmp_path: Path) -> Iterator[Band]:
    """At the end no process, lease, file of a worker, descriptor or thread is left, and both databases are whole."""
    descriptors, threads = _descriptors(), set(threading.enumerate())
    children = _children()
    with ExitStack() as stack:
        made = Band(tmp_path)
        stack.callback(made.queue.close)
        stack.enter_context(made.host)
        stack.callback(lambda: [crew.stop(8.0) for crew in made.crews])
        yield made
        for crew in made.crews:
            crew.stop(8.0)
        free_dead(made.queue.ledger)
        assert made.leases() == 0
        assert made.queue.ledger.verify_history()
    assert_whole(tmp_path)
    assert list((tmp_path / "q.sqlite.workers").iterdir()) == []
    # Those of other tests, servers among them, may have gone meanwhile.
    assert _descriptors() <= descriptors
    assert set(threading.enumerate()) <= threads
    assert _children() <= children


def assert_whole(folder: Path) -> None:
    for name in ("q.sqlite", "manifest.sqlite"):
        with closing(sqlite3.connect(folder / name)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def judge(band: Band, jobs: int, blamed: set[str], faults: Mapping[str, int], recovery_s: Sequence[float] = ()) -> None:
    """One accepted end per job, which has an effect; other effects are of workers who are to blame."""
    found = note("processes", jobs=jobs, faults=faults, recovery_s=recovery_s, **counted(band, jobs, blamed))
    assert bad_of(found) == {}, (band.queue.stats(), band.failures)


def counted(band: Band, jobs: int, blamed: set[str]) -> dict[str, int]:
    stats, effects, accepted = band.queue.stats(), band.effects(), band.accepted()
    others = {work_id: Counter(workers) - Counter(accepted.get(work_id, ())) for work_id, workers in effects.items()}
    return {
        "lost": jobs - stats["total"] + sum(work_id not in effects for work_id in accepted),
        "doubled": sum(
            len(owners) > 1 or bool(set(others.get(name, ())) - blamed) for name, owners in accepted.items()
        ),
        "stuck": stats["queued"] + stats["in_progress"],
        "wrong": stats["error"] + abs(stats["done"] - len(accepted)) + (not band.queue.ledger.verify_history()),
    }


def assert_recorded(folder: Path, jobs: int) -> None:
    """The record has every job, each lease once, and its text file the same lines."""
    with closing(sqlite3.connect(folder / "manifest.sqlite")) as db:
        rows = db.execute("SELECT doc_id, lease_id FROM manifests ORDER BY id").fetchall()
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    assert len({doc_id for doc_id, _ in rows}) == jobs
    assert len({lease for _, lease in rows}) == len(rows)
    assert [line["lease_id"] for line in lines] == [lease for _, lease in rows]


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def _children() -> set[str]:
    """Processes of ours, dead ones that nobody has looked after included."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    return {pid for task in tasks.glob("*/children") for pid in task.read_text().split()}


@contextmanager
def again_and_again(
    act: Callable[[], bool], done: Callable[[], int], chance: random.Random, *, every: int
) -> Iterator[None]:
    """About each second, or whenever up to `every` more are done, so that a quick machine is not spared."""
    over = threading.Event()

    def loop() -> None:
        acted_at, before, share = time.monotonic(), done(), chance.uniform(0.3, 1.0)
        while not over.wait(0.05):
            if (time.monotonic() - acted_at >= share or done() - before >= every * share) and act():
                acted_at, before, share = time.monotonic(), done(), chance.uniform(0.3, 1.0)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("jobs", [4_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_thousands_of_jobs_survive_a_kill_each_second(band: Band, jobs: int) -> None:
    """EXT-07, TEST-03, FAIL-01: three processes, one of them killed every second or sooner."""
    band.add_jobs(jobs)
    with Recovery(band.done) as recovery:
        crew = band.begin(3)

        def kill() -> bool:
            if not band.kill_one(crew):
                return False
            recovery.mark()
            return True

        with again_and_again(kill, band.done, band.chance, every=jobs // 7):
            band.work_off(jobs)
        crew.stop(8.0)
    judge(band, jobs, band.gone, {"worker killed at work": len(band.gone)}, recovery.seconds)
    assert len(band.gone) >= 3
    band.host.close()
    assert_recorded(band.folder, jobs)


def test_a_process_that_was_stopped_past_its_lease_finishes_nothing(band: Band) -> None:
    """ORC-10: it wakes up with files nobody waits for; it drops them, or the ledger refuses them."""
    band.add_jobs(4, seconds=band.chance.uniform(1.0, 1.6))
    order = {"ttl_s": band.chance.uniform(1.2, 2.0), "heartbeat_s": band.chance.uniform(0.2, 0.4)}
    sleeper = band.begin(1, **order)
    eventually(lambda: band.leases() == 4)
    [member] = sleeper.members
    stopped = band.name_of(member.process.pid)
    with Recovery(band.done) as recovery:
        band.freeze(member.process.pid)
        recovery.mark()
        band.begin(1, **order)
        band.work_off(4)
    os.kill(member.process.pid, signal.SIGCONT)
    sleeper.stop(8.0)
    judge(band, 4, {stopped}, {"process stopped past its lease": 1}, recovery.seconds)
    assert all(owner != stopped for [owner] in band.accepted().values())


def test_a_process_whose_heartbeat_is_blocked_loses_its_jobs_to_another(band: Band) -> None:
    """ORC-10: its late ends are refused."""
    band.add_jobs(4, seconds=band.chance.uniform(2.0, 2.6))
    order = {"ttl_s": band.chance.uniform(0.8, 1.2), "heartbeat_s": 0.2}
    deaf = band.begin(1, **order, deaf=True)
    eventually(lambda: band.leases() == 4)
    [member] = deaf.members
    lost = band.name_of(member.process.pid)
    with Recovery(band.done) as recovery:
        recovery.mark()
        band.begin(1, **order)
        band.work_off(4)
    deaf.kill()
    judge(band, 4, {lost}, {"heartbeat blocked": 1}, recovery.seconds)


def test_a_full_disk_stops_the_process_and_costs_no_job(band: Band) -> None:
    """FAIL-11: files of the process may not grow any more, so that its writes fail as on a full disk."""
    jobs = 3_000
    band.add_jobs(jobs)
    size = (band.folder / "q.sqlite").stat().st_size
    crew = band.begin(1, largest_file=size + band.chance.randrange(100_000, 300_000))
    eventually(lambda: bool(band.failures))
    crew.stop(1.0)
    kind, text = band.failures[0]
    assert kind in ("RecordError", "DiskFull", "LedgerUnusable"), text
    cut_off = set(band.names.values())
    free_dead(band.queue.ledger)
    stats = band.queue.stats()
    assert stats["error"] == 0
    assert stats["queued"] + stats["done"] == jobs
    assert stats["queued"] > 0
    with Recovery(band.done) as recovery:
        recovery.mark()
        band.begin(2)
        band.work_off(jobs)
    for crew in band.crews:
        crew.stop(8.0)
    judge(band, jobs, cut_off, {"disk full": 1}, recovery.seconds)


def test_a_clock_set_back_by_an_hour_loses_and_doubles_nothing(band: Band) -> None:
    """QUE-09: two processes, one of which is suddenly an hour behind."""
    jobs = 2_000
    band.add_jobs(jobs, seconds=0.001)
    crews = [band.begin(1), band.begin(1, clock="step")]
    enough = band.chance.randrange(50, 1_000)
    eventually(lambda: band.done() > enough)
    with Recovery(band.done) as recovery:
        (band.folder / "step").touch()
        recovery.mark()
        band.work_off(jobs)
    for crew in crews:
        crew.stop(8.0)
    judge(band, jobs, set(), {"clock set back": 1}, recovery.seconds)
    with closing(sqlite3.connect(band.folder / "q.sqlite")) as db:
        at = [moment for (moment,) in db.execute("SELECT at FROM job_history ORDER BY seq")]
    assert at == sorted(at)


def test_when_the_boss_dies_its_processes_give_everything_back_and_end(band: Band) -> None:
    """ORC-12: whoever started them is gone; nobody would tell them to stop. Somebody else goes on later."""
    jobs = 8
    band.add_jobs(jobs, seconds=band.chance.uniform(0.4, 0.8))
    crew = band.begin(1)
    eventually(lambda: band.leases() == jobs)
    [member] = crew.members
    crew.replace_nobody()  # its death is no reason to send another
    assert member.process.stdin is not None
    member.process.stdin.close()
    eventually(lambda: not crew.members)
    assert member.process.returncode == 0
    stats = band.queue.stats()
    assert (stats["in_progress"], stats["queued"] + stats["done"]) == (0, jobs)
    assert stats["queued"] >= 4
    with Recovery(band.done) as recovery:
        recovery.mark()
        band.begin(1)
        band.work_off(jobs)
    judge(band, jobs, set(), {"boss dead": 1}, recovery.seconds)


@pytest.mark.parametrize("batch", range(KILLS // BATCH))
def test_kills_at_any_moment_leave_both_databases_whole(tmp_path: Path, batch: int) -> None:
    """TEST-03, FAIL-01: each kill comes at another point; what is left is whole, and every job ends once."""
    kills, chance = BATCH, random.Random(f"{SEED} {batch}")
    band = Band(tmp_path)
    jobs = 40 * kills
    band.add_jobs(jobs)
    with Recovery(band.done) as recovery:
        with subprocess.Popen(
            [sys.executable, WORKER, "zygote", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as zygote:
            assert zygote.stdin is not None
            assert zygote.stdout is not None
            for left in range(kills - 1, -1, -1):
                zygote.stdin.write("go\n")
                zygote.stdin.flush()
                pid = int(zygote.stdout.readline())
                if not left:  # on a busy machine none of the others may have come to anything
                    eventually(lambda: band.done() > 0)
                time.sleep(chance.uniform(0.0, 0.12))
                os.kill(pid, signal.SIGKILL)
                assert int(zygote.stdout.readline()) == -signal.SIGKILL, "it ended by itself"
                if (tmp_path / "manifest.sqlite").exists():
                    assert_whole(tmp_path)
                free_dead(band.queue.ledger)
                recovery.mark()
            zygote.stdin.write("enough\n")
        done_by_the_killed = {worker for workers in band.effects().values() for worker in workers}
        assert band.done() > 0, "they were killed before they did anything"
        with band.host:
            band.begin(2)
            band.work_off(jobs)
            for crew in band.crews:
                crew.stop(8.0)
    free_dead(band.queue.ledger)
    judge(band, jobs, done_by_the_killed, {"worker killed at any moment": kills}, recovery.seconds)
    band.queue.close()
    assert_recorded(tmp_path, jobs)


def test_what_is_lost_doubled_or_stuck_is_counted(band: Band) -> None:
    """Planted, for each of these is 0 wherever all is well."""
    band.add_jobs(4)
    band.begin(1)
    band.work_off(4)
    band.crews[0].stop(8.0)
    assert not any(counted(band, 4, set()).values())
    file = band.folder / "effects.txt"
    _, second, *others = file.read_text().splitlines()
    file.write_text("\n".join([f"{second.split()[0]} a-stranger", second, *others]))
    assert counted(band, 5, set()) == {"lost": 2, "doubled": 1, "stuck": 0, "wrong": 0}
    assert counted(band, 4, {"a-stranger"}) == {"lost": 1, "doubled": 0, "stuck": 0, "wrong": 0}
    band.add_jobs(6)  # two of them are new
    assert counted(band, 6, {"a-stranger"})["stuck"] == 2
