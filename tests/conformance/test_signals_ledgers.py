"""Every ledger with every signal: work of another process is found at once, and found without any broker. (QUE-24)

The ledger that waits asks by itself only every half a minute where a wake-up is to be shown, so that it is the signal
that wakes it. The monotonic clock is one for all processes of a machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats
import psycopg
import pytest
import redis
from tests.conformance.test_signals import broker_signal, given_broker, running_broker, until

from DocsToKG.ContentDownload.telemetry.metrics import SIGNAL_LISTENING, SIGNAL_TROUBLES, Gauges
from DocsToKG.ContentDownload.telemetry.spans import view_of
from DocsToKG.ContentDownload.telemetry.tally import Tally
from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.ledger.base import Finish, JobState
from DocsToKG.Orchestrator.ledger.postgres.ledger import PostgresLedger
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.slow

_PRODUCER = """
import sys, time
from contextlib import closing
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.opening import open_ledger
from DocsToKG.Orchestrator.signal.choice import open_signal

path, url, schema, kind, address = sys.argv[1:]
more = {"schema_name": schema} if url else {}
with closing(open_signal({"nats-core": "nats"}.get(kind, kind), address)) as signal:
    with open_ledger(path, url=url or None, signal=signal, **more) as ledger:
        print("ready", flush=True)
        for line in sys.stdin:
            ledger.enqueue_many([NewJob(line.strip(), {})])
            print(time.monotonic(), flush=True)
"""


@dataclass
class Pair:
    """One ledger, one broker, and another process that adds work."""

    path: Path
    url: str
    schema: str
    kind: str
    broker: Any
    address: str
    stack: contextlib.ExitStack
    producer: subprocess.Popen[str] | None = None

    def waiting_ledger(self, poll_s: float) -> tuple[Any, Any]:
        signal: Any = self.stack.enter_context(contextlib.closing(broker_signal(self.kind, self.address)))
        ledger: Any
        if self.url:
            ledger = PostgresLedger(self.url, schema_name=self.schema, signal=signal, poll_s=poll_s)
        else:
            ledger = SqliteLedger(self.path, signal=signal, poll_s=poll_s)
        self.stack.enter_context(ledger)
        signal.mark()
        assert until(lambda: self.kind == "local" or signal.is_listening)
        return ledger, signal

    def begin(self) -> None:
        if self.producer is None:
            words = [str(self.path), self.url, self.schema, self.kind, self.address]
            self.producer = self.stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", _PRODUCER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            self.stack.callback(self.producer.stdin.close)
            assert self.producer.stdout.readline() == "ready\n"

    def enqueue(self, name: str) -> float:
        """When it was there, by the clock of the machine."""
        self.producer.stdin.write(f"{name}\n")
        self.producer.stdin.flush()
        return float(self.producer.stdout.readline())


@contextlib.contextmanager
def a_pair(ledger: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path, server: Any) -> Iterator[Pair]:
    url = request.getfixturevalue("postgres_url") if ledger == "postgres" else ""
    schema = f"s_{uuid4().hex[:20]}"
    with contextlib.ExitStack() as servers:
        broker, address = (None, "") if kind == "local" else servers.enter_context(server(kind))
        if url:
            servers.callback(drop, url, schema)
        with contextlib.ExitStack() as stack:
            yield Pair(tmp_path / "q.sqlite", url, schema, kind, broker, address, stack)


def drop(url: str, schema: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture(params=["sqlite", "postgres"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Iterator[Pair]:
    with a_pair(request.param, kind, request, tmp_path, given_broker) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def own_pair(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Iterator[Pair]:
    """With a broker that may be stopped."""
    with a_pair(request.param, kind, request, tmp_path, running_broker) as made:
        yield made


def late(pair: Pair, ledger: Any, name: str) -> float:
    """How long after the enqueue a thread that waits already has it; the job is leased once and finished."""
    pair.begin()

    def wait() -> float:
        assert ledger.wait_for_work(60)
        return time.monotonic()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        time.sleep(0.1)
        assert not waiting.done()
        committed = pair.enqueue(name)
        noticed = waiting.result(timeout=90)
    [job] = ledger.lease("w", 10, 600)
    assert job.artifact_id == name
    assert ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"
    return noticed - committed


@pytest.mark.parametrize("kind", ["pg_notify", "redis", "nats", "nats-core"])
def test_an_enqueue_of_another_process_wakes_within_a_quarter_of_a_second(pair):
    ledger, signal = pair.waiting_ledger(poll_s=30)
    times = [late(pair, ledger, f"a:{n}") for n in range(8)]
    assert sorted(times)[4] < 0.25
    assert ledger.stats()["done"] == 8
    assert signal.notices >= 1
    assert signal.troubles == 0


@pytest.mark.parametrize("kind", ["local"])
def test_without_a_broker_the_work_of_another_process_is_found_by_asking(pair):
    ledger, _ = pair.waiting_ledger(poll_s=0.1)
    assert sorted(late(pair, ledger, f"a:{n}") for n in range(4))[2] < 0.5


@pytest.mark.parametrize("kind", ["pg_notify", "redis", "nats", "nats-core"])
def test_while_the_broker_is_away_work_is_found_by_asking_and_once_it_is_back_at_once(own_pair):
    """The broker is killed, work comes and is done, the broker comes back with nothing, work comes."""
    patient, signal = own_pair.waiting_ledger(poll_s=30)
    asking, _ = own_pair.waiting_ledger(poll_s=0.2)
    assert late(own_pair, patient, "a:before") < 5
    own_pair.broker.stop()
    assert until(lambda: not signal.is_listening)
    assert [late(own_pair, asking, f"a:{n}") < 5 for n in range(3)] == [True] * 3
    assert signal.troubles > 0
    own_pair.broker.start()
    assert until(lambda: signal.is_listening)
    time.sleep(2.5)  # the other process may still be on its way back
    times = [late(own_pair, patient, f"b:{n}") for n in range(5)]
    assert sorted(times)[2] < 0.5
    assert patient.stats() == {**patient.stats(), "done": 9, "total": 9}
    assert signal.reconnects >= 1
    assert patient.verify_history()


_NAMES = {"redis": "docstokg:signal", "nats": "docstokg-signal"}


def forget(pair: Pair) -> None:
    """The broker loses what was said, and who listens."""
    if pair.kind == "redis":
        with redis.Redis.from_url(pair.address) as client:
            client.flushall()
    elif pair.kind == "nats":
        asyncio.run(_with_nats(pair.address, lambda client: client.jetstream().delete_stream(_NAMES["nats"])))
    elif pair.kind == "pg_notify":
        ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'docstokg-listen'"
        with psycopg.connect(pair.address, autocommit=True) as connection:
            connection.execute(ends)


def repeat(pair: Pair, times: int) -> None:
    """Notices that nobody gave, or that were given before."""
    if pair.kind == "redis":
        with redis.Redis.from_url(pair.address) as client:
            for _ in range(times):
                client.xadd(_NAMES["redis"], {"lane": "content.download", "from": "somebody"})
    elif pair.kind == "pg_notify":
        with psycopg.connect(pair.address, autocommit=True) as connection:
            for _ in range(times):
                connection.execute("SELECT pg_notify('docstokg_jobs', 'content.download')")
    else:

        async def send(client: Any) -> None:
            for _ in range(times):
                await client.publish(f"{_NAMES['nats']}.content-download", b"somebody content.download")

        asyncio.run(_with_nats(pair.address, send))


async def _with_nats(address: str, deed: Any) -> None:
    client = await nats.connect(address)
    try:
        await deed(client)
        await client.flush()
    finally:
        await client.close()


@pytest.mark.parametrize("kind", ["pg_notify", "redis", "nats"])
def test_a_broker_that_forgets_costs_latency_alone_and_the_metrics_show_it(own_pair):
    patient, _ = own_pair.waiting_ledger(poll_s=30)
    asking, _ = own_pair.waiting_ledger(poll_s=0.2)
    assert late(own_pair, patient, "a:before") < 20
    tally = Tally()
    Gauges(tally).show(view_of(patient, held=lambda: 0, active=lambda: 0, clock=SystemClock()))
    forget(own_pair)
    assert until(lambda: tally.gauges(SIGNAL_TROUBLES)[()] >= 1, 60)
    assert [late(own_pair, asking, f"a:{n}") < 20 for n in range(3)] == [True] * 3
    assert until(lambda: tally.gauges(SIGNAL_LISTENING) == {(): 1.0}, 60)
    assert late(own_pair, patient, "b:after") < 20, "not after the half minute in which it asks by itself"
    assert patient.stats() == {**patient.stats(), "done": 5, "total": 5}
    assert patient.verify_history()


@pytest.mark.parametrize("kind", ["pg_notify", "redis", "nats", "nats-core"])
def test_notices_that_come_twice_or_for_nothing_hand_out_no_job_twice(own_pair):
    ledgers = [own_pair.waiting_ledger(poll_s=30) for _ in range(2)]
    own_pair.begin()
    for n in range(10):
        repeat(own_pair, 5)
        own_pair.enqueue(f"a:{n}")
        repeat(own_pair, 5)
    taken: list[str] = []

    def work(ledger: Any, name: str) -> None:
        while ledger.stats()["done"] < 10:
            ledger.wait_for_work(0.2)
            for job in ledger.lease(name, 2, 600):
                taken.append(job.artifact_id)
                assert ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE)) == "applied"

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(work, ledger, f"w{n}") for n, (ledger, _) in enumerate(ledgers)]:
            future.result(timeout=90)
    assert sorted(taken) == sorted(f"a:{n}" for n in range(10))
    assert all(signal.notices >= 1 for _, signal in ledgers)
    assert ledgers[0][0].verify_history()
