"""Many threads and processes on one ledger: every job is owned once at a time and, without failures, runs once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path

import pytest

from DocsToKG.Orchestrator.control.workers.liveness import Presence, free_dead
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

START = """
import os, sys
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob, Progress
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.control.workers.liveness import Presence
path, worker = sys.argv[1:]
"""


def start(script: str, path: Path, worker: str) -> subprocess.Popen[str]:
    """A real process that runs `script`; it says its words on standard output."""
    command = [sys.executable, "-c", START + textwrap.dedent(script), str(path), worker]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def start_together(script: str, path: Path) -> list[subprocess.Popen[str]]:
    """Four processes that say `ready`, and go on only when all have."""
    processes = [start(script, path, worker) for worker in "abcd"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


def end(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=60)
    return output


def work_off(ledger: SqliteLedger, worker: str, done: list[int]) -> None:
    while jobs := ledger.lease(worker, 3, 60):
        for job in jobs:
            done.append(job.job_id)
            ledger.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))


def test_threads_run_every_job_exactly_once(path):
    """QUE-08."""
    with SqliteLedger(path) as ledger:
        ids = [answer.job_id for answer in ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(300)])]
        done: list[int] = []
        threads = [threading.Thread(target=work_off, args=(ledger, f"w{n}", done)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert sorted(done) == ids
    with SqliteLedger(path) as ledger:
        assert (ledger.stats()["done"], ledger.verify_history()) == (300, True)


@pytest.mark.slow
def test_processes_run_every_job_exactly_once(path):
    """QUE-08: four processes, two of them adding the same jobs while all work."""
    script = """
    with SqliteLedger(path) as ledger:
        print("ready", flush=True); sys.stdin.readline()
        for start in range(0, 200, 20):
            if worker in "ab":
                ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(start, start + 20)])
            for job in ledger.lease(worker, 20, 60):
                print("ran", job.job_id)
                ledger.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    """
    SqliteLedger(path).close()
    processes = start_together(script, path)
    ran = Counter(line for process in processes for line in end(process).splitlines())
    rest: list[int] = []
    with SqliteLedger(path) as ledger:
        work_off(ledger, "last", rest)
    ran.update(f"ran {job_id}" for job_id in rest)
    assert (len(ran), set(ran.values())) == (200, {1})
    with SqliteLedger(path) as ledger:
        assert (ledger.stats()["total"], ledger.stats()["done"], ledger.verify_history()) == (200, 200, True)


@pytest.mark.slow
def test_processes_that_make_the_file_at_once_all_succeed(path):
    script = """
    print("ready", flush=True); sys.stdin.readline()
    with SqliteLedger(path) as ledger:
        ledger.enqueue_many([NewJob("a:1", {}), NewJob(f"b:{worker}", {})])
    """
    processes = start_together(script, path)
    for process in processes:
        end(process)
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    with SqliteLedger(path) as ledger:
        assert (ledger.stats()["queued"], ledger.verify_history()) == (5, True)


def killed_worker(path: Path, script: str) -> None:
    """A process that says `ready` when it holds what the test wants, and is then killed without a chance to tidy up."""
    process = start(script + '\n    print("ready", flush=True); sys.stdin.readline()', path, "victim")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    end(process)


def test_after_kill_9_the_leases_are_free_at_once(path):
    """QUE-20: the next process goes on without waiting for the lease to run out, and no job pays an attempt."""
    with SqliteLedger(path) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}) for n in range(3)])
    script = """
    presence = Presence(path, worker); presence.__enter__()
    ledger = SqliteLedger(path)
    job = ledger.lease(worker, 3, 600)[0]
    ledger.progress(Progress(job.job_id, job.fence, job.lease_id, "fetch"))"""
    killed_worker(path, script)
    with SqliteLedger(path) as ledger, Presence(path, "successor"):
        assert ledger.lease("successor", 9, 600) == []
        assert free_dead(ledger) == 3
        assert [job.attempts for job in ledger.lease("successor", 9, 600)] == [0, 0, 0]
        assert ledger.verify_history()


def test_a_job_in_hand_when_its_process_was_killed_twice_is_a_suspect_although_nobody_was_told_of_it(path):
    """What kills its worker within milliseconds must be found, or it would do so for ever."""
    with SqliteLedger(path) as ledger:
        ledger.enqueue_many([NewJob(f"a:{n}", {}, max_attempts=3) for n in range(4)])
    script = """
    presence = Presence(path, worker); presence.__enter__()
    first, deadly, *others = SqliteLedger(path).lease(worker, 4, 600)
    in_hand = presence.in_hand()
    in_hand.drop(in_hand.take(first.job_id))
    assert in_hand.take(deadly.job_id) is not None"""
    for life in range(1, 3):
        killed_worker(path, script)
        with SqliteLedger(path) as ledger, Presence(path, f"successor-{life}"):
            assert free_dead(ledger) == 4
            jobs = ledger.list_jobs()
            assert [(job.attempts, job.crashes) for job in jobs] == [(0, 0), (0, life), (0, 0), (0, 0)]
            assert (jobs[1].last_error or "").startswith("worker_lost")
            assert ledger.verify_history()
    assert [job.state for job in jobs] == ["queued", "pending", "queued", "queued"]


@pytest.mark.slow
def test_kill_9_in_the_middle_of_writing_loses_no_acknowledged_job(path):
    """QUE-20: what was answered is there, the file is whole, and the rest can be done."""
    script = """
    ledger = SqliteLedger(path)
    for n in range(100000):
        ledger.enqueue_many([NewJob(f"a:{n}", {})])
        print(n, flush=True)
        for job in ledger.lease(worker, 1, 600) if n % 2 else []:
            ledger.submit_finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
    """
    for _ in range(3):
        process = start(script, path, "victim")
        assert process.stdout is not None
        answered = [int(process.stdout.readline()) for _ in range(40)]
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate(timeout=60)
        answered += [int(line) for line in rest.splitlines() if line]
        with SqliteLedger(path) as ledger:
            assert all(ledger.find(f"a:{n}") is not None for n in answered)
            assert ledger.read(lambda tx: tx.execute("PRAGMA integrity_check")) == [("ok",)]
            assert ledger.verify_history()
            counted = ledger.read(lambda tx: tx.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
            assert {state: ledger.stats()[state] for state, _ in counted} == dict(counted)


@pytest.mark.slow
def test_a_frozen_process_finds_its_lease_gone(path):
    """SIGSTOP past the lease, another worker takes over, SIGCONT: the late finish is refused."""
    with SqliteLedger(path) as ledger:
        ledger.enqueue_many([NewJob("a:1", {})])
        script = """
        ledger = SqliteLedger(path)
        [job] = ledger.lease(worker, 1, 0.2)
        print("ready", flush=True); sys.stdin.readline()
        try:
            print(ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.ERROR)))
        except Exception as error:
            print(type(error).__name__)
        """
        process = start(script, path, "frozen")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGSTOP)
        taken: list[object] = []
        while not taken:
            ledger.wait_for_work(5)
            taken += ledger.lease("owner", 1, 600)
        os.kill(process.pid, signal.SIGCONT)
        assert end(process) == "LeaseLost\n"
        assert ledger.job(1).state == "in_progress"


def test_a_full_disk_is_an_error_of_its_own_and_heals(path):
    """A file size limit stands in for the disk's end. No half job is left, and work goes on when there is room."""
    script = """
    import resource
    ledger = SqliteLedger(path)
    ledger.enqueue_many([NewJob("first", {})])
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    answered = 0
    try:
        for n in range(1000):
            answered += len(ledger.enqueue_many([NewJob(f"a:{n}", {"text": "x" * 5000})]))
    except Exception as error:
        print(type(error).__name__, 0 < answered < 1000, ledger.stats()["total"] - answered)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(ledger.enqueue_many([NewJob("last", {})])[0].created, ledger.verify_history())
    """
    assert end(start(script, path, "full")) == "LedgerUnusable True 1\nTrue True\n"
