"""Instances of the service are killed while workers lease through them: no job is lost and none ends twice. OPS-01."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from tests.chaos.scores import note
from tests.waiting import eventually

from DocsToKG.Orchestrator.client import OrchestratorClient
from DocsToKG.Orchestrator.errors import LeaseLost, LedgerError
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

SEED = int(os.environ.get("KILLED_SEED", "8"))
SECRET = "a secret of the tests, and of nobody else"
JOBS = int(os.environ.get("KILLED_JOBS", "20000"))
KILLS = int(os.environ.get("KILLED_TIMES", "12"))
INSTANCES = 3
LEASE_S = 8.0
PATIENCE_S = 60.0


class Instance:
    """One process of the service; killed and started again under the same settings."""

    def __init__(self, settings: Path) -> None:
        self._settings = settings
        self.url, self.is_up = "", False
        self.start()

    def start(self) -> None:
        program = str(Path(sys.executable).parent / "docstokg-orchestrator")
        self._process = subprocess.Popen(
            [program, "serve", "-c", str(self._settings)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        eventually(lambda: _answers(url), within_s=PATIENCE_S, every_s=0.05)
        self.url, self.is_up = url, True

    def kill(self) -> None:
        self.is_up = False
        self._process.send_signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        self._process.terminate()
        self._gone()

    def _gone(self) -> None:
        self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/healthz", timeout=5):
            return True
    except (URLError, OSError, ValueError):
        return False


@contextmanager
def instances(database: str, folder: Path) -> Iterator[list[Instance]]:
    key = folder / "key"
    key.write_text(SECRET)
    key.chmod(0o600)
    settings = {
        "connection_string": database, "port": 0, "ledger": str(folder / "none.sqlite"),
        "limits": {"requests_per_second": 100000, "burst": 100000},
        "auth": {"keys": [{"file": str(key), "algorithm": "HS256"}]},
    }  # fmt: skip
    file = folder / "server.json"
    file.write_text(json.dumps(settings))
    file.chmod(0o600)
    running = [Instance(file) for _ in range(INSTANCES)]
    try:
        yield running
    finally:
        for one in running:
            one.stop()


class Worker(threading.Thread):
    """Leases through any instance that answers, and says how each job ended until somebody has heard it."""

    def __init__(self, number: int, running: list[Instance], token: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._chance = random.Random(number)
        self._running, self._token, self._over = running, token, over
        self.name = f"w{number}"
        self.ended: list[int] = []
        self._client = self._another()

    def run(self) -> None:
        while not self._over.is_set():
            for lease in self._ask(lambda client: client.lease(self.name, limit=10, lease_s=LEASE_S, wait_s=0.5)) or ():
                try:
                    done = self._ask(lambda client, lease=lease: client.complete(lease.lease_id, "succeeded"))
                except LeaseLost:
                    continue  # it ran out while nobody answered, and is another's now
                if done is not None:
                    self.ended.append(lease.job_id)
        self._client.close()

    def _ask(self, call: Any) -> Any:
        for _ in range(200):
            try:
                return call(self._client)
            except LeaseLost:
                raise
            except LedgerError:
                self._client.close()
                self._client = self._another()
                if self._over.wait(0.02):
                    return None
        return None

    def _another(self) -> OrchestratorClient:
        chosen = self._chance.choice(self._running).url
        return OrchestratorClient(chosen, self._token, tries=1, timeout_s=10.0)


def leased_and_killed(database: str, folder: Path, *, jobs: int, workers: int, kills: int) -> None:
    claims = {"sub": "worker", "exp": time.time() + 3600, "scope": "orch:operate", "tenant": "default"}
    token = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET))
    with PostgresLedger(database) as ledger:
        for start in range(0, jobs, 1000):
            some = range(start, min(jobs, start + 1000))
            ledger.enqueue_many([NewJob(f"job:{n}", {"n": n}, max_attempts=100) for n in some])
        over, chance, coming = threading.Event(), random.Random(SEED), list[threading.Thread]()
        recovery_s: list[float] = []
        with instances(database, folder) as running:
            crew = [Worker(number, running, token, over) for number in range(workers)]
            for worker in crew:
                worker.start()
            deadline, killed = time.monotonic() + PATIENCE_S + jobs / 20, 0
            while (stats := ledger.stats())["done"] < jobs and time.monotonic() < deadline:  # what is left is counted
                if killed < kills and stats["done"] > (killed + 1) * jobs / (kills + 2):
                    victim = chance.choice([one for one in running if one.is_up])
                    victim.kill()
                    killed += 1
                    coming.append(threading.Thread(target=come_back, args=(victim, recovery_s)))
                    coming[-1].start()
                time.sleep(0.02)
            over.set()
            for thread in (*crew, *coming):
                thread.join(PATIENCE_S)
        finished, done = _count(database, "event = 'finished'"), ledger.stats()["done"]
        note("instances", jobs=jobs, faults={"instance killed": killed}, recovery_s=recovery_s,
             lost=max(0, jobs - finished), doubled=max(0, finished - jobs), stuck=jobs - done,
             wrong=int(not (is_whole := ledger.verify_history())))  # fmt: skip
        assert finished == jobs == done
        assert killed == kills
        heard = [job for worker in crew for job in worker.ended]
        assert len(set(heard)) >= jobs - workers * 10 * kills  # an answer that was lost was not heard, and no more
        assert _count(database, "event = 'leased'") >= jobs
        assert is_whole


def come_back(victim: Instance, recovery_s: list[float]) -> None:
    began = time.monotonic()
    victim.start()
    recovery_s.append(round(time.monotonic() - began, 2))


def _count(database: str, words: str) -> int:
    with psycopg.connect(database) as connection:
        return int(connection.execute(f"SELECT count(*) FROM orchestrator.job_history WHERE {words}").fetchone()[0])


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_no_job_is_lost_and_none_ends_twice_when_instances_are_killed(database: str, tmp_path: Path) -> None:
    leased_and_killed(database, tmp_path, jobs=240, workers=3, kills=2)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_twenty_thousand_leases_while_instances_are_killed(database: str, tmp_path: Path) -> None:
    leased_and_killed(database, tmp_path, jobs=JOBS, workers=8, kills=KILLS)
