"""Every signal that goes through a broker keeps the same promises. Two objects stand for two nodes. (QUE-24)"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import nats
import psycopg
import pytest
import redis
from tests import needs
from tests.conformance.conftest import (
    PASSWORD,
    Server,
    nats_url,
    running_nats,
    running_valkey,
    valkey_url,
)
from tests.conformance.postgres_server import NoPostgres, PostgresServer
from tests.ports import free_port
from tests.waiting import eventually

from DocsToKG.Orchestrator.errors import LedgerUnusable
from DocsToKG.Orchestrator.notifications.local import LocalSignal
from DocsToKG.Orchestrator.notifications.nats import NatsSignal
from DocsToKG.Orchestrator.notifications.opening import open_signal
from DocsToKG.Orchestrator.notifications.pg_notify import PgNotifySignal
from DocsToKG.Orchestrator.notifications.redis_streams import RedisSignal

LANE = "content.download"


@dataclass
class Broker:
    """A broker of the test's own, that it may stop, and the signals through it."""

    kind: str
    server: Any
    url: str
    nodes: contextlib.ExitStack

    def node(self) -> Any:
        """A signal that hears already."""
        made = checking_signal(self.kind, self.url, f"test_{self.kind}".replace("-", "_"))
        self.nodes.callback(made.close)
        made.mark()
        eventually(lambda: made.is_listening)
        return made

    def flush(self) -> None:
        """Forget everything that was said, and to whom."""
        if self.kind == "redis":
            with redis.Redis.from_url(self.url) as client:
                client.flushall()
        elif self.kind == "nats":
            asyncio.run(_delete_stream(self.url, "test_nats"))
        elif self.kind == "pg_notify":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'docstokg-listen'"
                )


def checking_signal(kind: str, url: str, channel: str) -> Any:
    """One that looks often whether it is still heard."""
    if kind == "redis":
        return RedisSignal(url, channel=channel, check_s=0.2)
    if kind.startswith("nats"):
        return NatsSignal(url, channel=channel, heartbeat_s=0.3)
    return PgNotifySignal(url, channel=channel, check_s=0.2)


async def _delete_stream(url: str, name: str) -> None:
    client = await nats.connect(url)
    await client.jetstream().delete_stream(name)
    await client.close()


@contextlib.contextmanager
def running_broker(kind: str) -> Iterator[tuple[Any, str]]:
    if kind == "redis":
        with running_valkey() as server:
            yield server, valkey_url(server)
    elif kind.startswith("nats"):
        with running_nats(jetstream=kind == "nats") as server:
            yield server, nats_url(server)
    else:
        try:
            postgres = PostgresServer()
        except NoPostgres as error:
            needs.lacks(str(error))
        try:
            yield postgres, postgres.url
        finally:
            postgres.close()


_GIVEN = {"redis": "TEST_REDIS_URL", "nats": "TEST_NATS_URL", "pg_notify": "TEST_POSTGRES_URL"}


@contextlib.contextmanager
def given_broker(kind: str) -> Iterator[tuple[Any, str]]:
    """One that runs already, where the environment names it, and which must not be stopped; else one of our own."""
    if given := os.environ.get(_GIVEN.get(kind, ""), ""):
        yield None, given
        return
    with running_broker(kind) as broker:
        yield broker


KINDS = ["redis", "nats", "nats-core", pytest.param("pg_notify", marks=pytest.mark.slow)]


@pytest.fixture(params=KINDS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with running_broker(request.param) as (server, url), contextlib.ExitStack() as nodes:
        yield Broker(request.param, server, url, nodes)


def heard(here: Any, there: Any) -> float:
    """How long a notice takes from one node to the other."""
    mark, began = there.mark(), time.monotonic()
    here.notify(LANE)
    assert there.wait(60, since=mark)
    return time.monotonic() - began


def ours() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith(("redis-", "nats-", "pg-"))}


def sockets() -> int:
    names = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(name).startswith("socket:") for name in names if os.path.islink(name))


def test_a_notice_reaches_another_node_at_once(broker):
    here, there = broker.node(), broker.node()
    assert min(heard(here, there) for _ in range(3)) < 0.25  # the best of some tries is not the machine's load
    assert min(heard(there, here) for _ in range(3)) < 0.25
    assert (here.troubles, there.troubles, here.reconnects, there.reconnects) == (0, 0, 0, 0)
    assert there.notices >= 1


def test_a_notice_of_another_node_between_asking_and_waiting_is_not_lost(broker):
    here, there = broker.node(), broker.node()
    mark = there.mark()
    here.notify(LANE)
    eventually(lambda: there.notices > 0)
    assert there.wait(0, since=mark)
    assert not there.wait(0)


def test_every_thread_of_every_node_hears_a_notice(broker):
    here, nodes = broker.node(), [broker.node(), broker.node()]
    answers: list[bool] = []
    waiters = []
    for node in [*nodes, here, *nodes]:
        mark = node.mark()
        waiters.append(threading.Thread(target=lambda n=node, m=mark: answers.append(n.wait(60, since=m))))
    for waiter in waiters:
        waiter.start()
    here.notify(LANE)
    for waiter in waiters:
        waiter.join(30)
    assert answers == [True] * 5


@pytest.mark.slow
def test_many_notices_go_out_as_few_and_the_last_one_is_never_among_the_lost(broker):
    here, there = broker.node(), broker.node()
    for _ in range(10):
        for _ in range(50):
            here.notify(LANE)
        mark = there.mark()
        here.notify(LANE)
        assert there.wait(60, since=mark)
    assert here.sent < 100


@pytest.mark.slow
def test_a_notice_given_while_one_of_its_lane_is_on_its_way_is_sent_too(broker):
    """Whoever heard the first may have looked before the second's work was there."""
    here, there = broker.node(), broker.node()
    for _ in range(8):
        seen = there.notices
        here.notify(LANE)
        eventually(lambda before=seen: there.notices > before)
        mark = there.mark()
        here.notify(LANE)  # at the very moment at which the first one is counted as sent
        assert there.wait(60, since=mark)


def test_a_notice_given_just_before_the_end_is_sent(broker):
    there = broker.node()
    here = broker.node()
    heard(here, there)
    mark = there.mark()
    here.notify(LANE)  # in the pause after the one before
    here.close()
    assert there.wait(60, since=mark)


@pytest.mark.slow
def test_a_broker_that_dies_and_comes_back_costs_latency_only(broker):
    here, there = broker.node(), broker.node()
    heard(here, there)
    eventually(lambda: here.sent == 1)
    broker.server.stop()
    eventually(lambda: not there.is_listening and not here.is_listening)
    mark = here.mark()
    here.notify(LANE)
    assert here.wait(0, since=mark)  # within the process nothing changes
    assert not there.wait(0.05)
    mark = there.mark()
    broker.server.start()
    assert there.wait(60, since=mark)  # woken once, as something may have been missed
    eventually(lambda: here.is_listening and there.is_listening)
    eventually(lambda: here.sent > 1)  # what could not be sent is sent
    assert min(heard(here, there) for _ in range(5)) < 0.25
    assert there.troubles >= 1
    assert there.reconnects == 1


@pytest.mark.slow
def test_a_flushed_broker_wakes_again(broker):
    """FLUSHALL, the stream deleted, the listener forgotten: no node stays deaf."""
    here, there = broker.node(), broker.node()
    heard(here, there)
    broker.flush()
    eventually(lambda: broker.kind == "nats-core" or there.troubles > 0)
    eventually(lambda: here.is_listening and there.is_listening)
    assert min(heard(here, there) for _ in range(5)) < 0.25


def test_a_broker_that_is_not_there_holds_nobody_up(broker):
    broker.server.stop()
    with contextlib.closing(broker_signal(broker.kind, broker.url)) as signal:
        began = time.monotonic()
        mark = signal.mark()
        signal.notify(LANE)
        assert signal.wait(0, since=mark)
        assert not signal.wait(0.01)
        assert time.monotonic() - began < 15
        eventually(lambda: signal.troubles > 0)
    assert time.monotonic() - began < 60


@contextlib.contextmanager
def answering(words: bytes) -> Iterator[int]:
    """A port where everyone who comes is told `words`, and nothing more."""
    with socket.socket() as listener, contextlib.ExitStack() as guests:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        listener.settimeout(0.05)
        is_over = threading.Event()

        def run() -> None:
            while not is_over.is_set():
                with contextlib.suppress(OSError):
                    guest = guests.enter_context(listener.accept()[0])
                    guest.sendall(words)

        server = threading.Thread(target=run)
        server.start()
        try:
            yield listener.getsockname()[1]
        finally:
            is_over.set()
            server.join(60)


@pytest.mark.parametrize("kind", ["redis", "nats"])
@pytest.mark.parametrize(
    "words",
    [
        b"\x00\xff\r\n" * 999,
        b"INFO {]\r\n",
        b"*1000000000\r\n$",
        b"INFO {}\r\n$99999999999\r\n",
        b"-ERR\r\n" * 999,
        b"",
    ],
    ids=["rubbish", "half json", "huge list", "huge word", "refusals", "mute"],
)
@pytest.mark.slow
def test_whatever_the_broker_answers_nobody_is_held_up_and_closing_ends(kind, words):
    with answering(words) as port:
        signal = broker_signal(kind, f"{kind}://127.0.0.1:{port}")
        began = time.monotonic()
        mark = signal.mark()
        signal.notify(LANE)
        assert signal.wait(0, since=mark)
        assert time.monotonic() - began < 15
        eventually(lambda: signal.troubles > 0)
        signal.close()
        assert time.monotonic() - began < 60
        eventually(lambda: ours() == set())


def broker_signal(kind: str, url: str) -> Any:
    return open_signal({"nats-core": "nats"}.get(kind, kind), url)  # type: ignore[arg-type]


def test_closing_sends_the_rest_and_leaves_no_thread_and_no_socket(broker):
    there = broker.node()
    threads, before = ours(), sockets()
    here = broker.node()
    mark = there.mark()
    here.notify(LANE)
    began = time.monotonic()
    here.close()
    here.close()
    assert time.monotonic() - began < 30
    assert there.wait(60, since=mark)
    assert ours() == threads
    assert sockets() == before
    here.notify(LANE)  # after the end it is as if nobody heard
    assert ours() == threads


def test_a_waiting_thread_ends_with_its_signal(broker):
    node = broker.node()
    answers: list[bool] = []
    mark = node.mark()
    waiter = threading.Thread(target=lambda: answers.append(node.wait(30, since=mark)))
    waiter.start()
    node.close()
    waiter.join(60)
    assert answers == [True]


# of one broker only


@pytest.fixture
def valkey() -> Iterator[tuple[Server, str]]:
    with running_valkey() as server:
        yield server, valkey_url(server)


@pytest.mark.slow
def test_a_stream_never_grows_beyond_its_bound_and_doubled_or_foreign_entries_do_no_harm(valkey):
    _, url = valkey
    with (
        redis.Redis.from_url(url) as client,
        contextlib.closing(RedisSignal(url, channel="s")) as here,
        contextlib.closing(RedisSignal(url, channel="s")) as there,
    ):
        there.mark()
        eventually(lambda: there.is_listening)
        for n in range(3000):
            client.xadd("s", {b"\xff": b"\x00" * 10, "lane": "x" * 5000} if n % 2 else {"from": "", "lane": ""})
        eventually(lambda: there.notices == 3000)
        heard(here, there)
        eventually(lambda: client.xlen("s") <= 1200)
        assert (there.troubles, there.reconnects) == (0, 0)


def test_a_stream_whose_newest_entry_goes_back_is_read_from_there(valkey):
    """A server that came back with an older clock: entries beyond those we saw may never come."""
    _, url = valkey
    with redis.Redis.from_url(url) as client, contextlib.closing(RedisSignal(url, channel="s", check_s=0.1)) as there:
        client.xadd("s", {"lane": ""}, id="9999999999999-0")
        there.mark()
        eventually(lambda: there.is_listening)
        client.delete("s")
        mark = there.mark()
        client.xadd("s", {"lane": LANE}, id="5-0")
        assert there.wait(60, since=mark)
        eventually(lambda: there.troubles == 1)
        heard_before = there.notices
        client.xadd("s", {"lane": LANE}, id="6-0")
        eventually(lambda: there.notices == heard_before + 1)


def test_a_key_that_is_no_stream_is_trouble_until_it_is_gone(valkey):
    _, url = valkey
    with redis.Redis.from_url(url) as client, contextlib.closing(RedisSignal(url, channel="s")) as signal:
        client.set("s", "something else")
        mark = signal.mark()
        signal.notify(LANE)
        assert signal.wait(0, since=mark)
        eventually(lambda: signal.troubles >= 2)
        client.delete("s")
        eventually(lambda: signal.is_listening and signal.sent == 1)


def test_a_stream_that_an_operator_made_is_used_as_it_is():
    with running_nats() as server:
        url = nats_url(server)

        async def make() -> None:
            client = await nats.connect(url)
            await client.jetstream().add_stream(name="mine", subjects=["mine.>"], max_msgs=5)
            await client.close()

        asyncio.run(make())
        with (
            contextlib.closing(NatsSignal(url, channel="mine")) as here,
            contextlib.closing(NatsSignal(url, channel="mine")) as there,
        ):
            there.mark()
            eventually(lambda: there.is_listening)
            heard(here, there)
            assert (there.mode, there.troubles) == ("jetstream", 0)


def test_nodes_with_and_without_jetstream_hear_each_other(monkeypatch):
    """An account that may not use it listens to the same subject."""
    with running_nats() as server, contextlib.ExitStack() as stack:
        url = nats_url(server)
        full, plain = (stack.enter_context(contextlib.closing(NatsSignal(url, channel="both"))) for _ in range(2))

        async def refuse(*_: Any) -> None:
            raise nats.js.errors.ServiceUnavailableError

        with monkeypatch.context() as patched:
            patched.setattr(nats.js.JetStreamContext, "add_consumer", refuse)
            plain.mark()
            eventually(lambda: plain.is_listening)
        full.mark()
        eventually(lambda: full.is_listening)
        assert (full.mode, plain.mode) == ("jetstream", "core")
        heard(full, plain)
        heard(plain, full)


def test_a_wrong_password_is_trouble_and_nothing_else(valkey, caplog):
    server, _ = valkey
    url = f"redis://:{PASSWORD}-wrong@127.0.0.1:{server.port}/0"
    with contextlib.closing(RedisSignal(url)) as signal:
        signal.notify(LANE)
        eventually(lambda: signal.troubles > 0)
    assert PASSWORD not in caplog.text


def test_a_wrong_password_for_nats_is_trouble_and_nothing_else(caplog):
    with running_nats() as server:
        url = f"nats://docstokg:{PASSWORD}-wrong@127.0.0.1:{server.port}"
        with contextlib.closing(NatsSignal(url)) as signal:
            signal.notify(LANE)
            eventually(lambda: signal.troubles > 0)
    assert PASSWORD not in caplog.text


def test_of_several_servers_one_that_answers_is_enough():
    with running_nats() as server:
        url = f"nats://127.0.0.1:{free_port()}, {nats_url(server)}"
        with contextlib.closing(NatsSignal(url, channel=f"t{uuid4().hex}")) as signal:
            signal.notify(LANE)
            eventually(lambda: signal.sent == 1)


@pytest.mark.parametrize("kind", ["redis", "nats", "nats-core"])
def test_two_queues_on_one_broker_do_not_wake_each_other(kind):
    with running_broker(kind) as (_, url), contextlib.ExitStack() as stack:
        word = kind.removesuffix("-core")
        ours_too, here, other = (
            stack.enter_context(contextlib.closing(open_signal(word, url, channel=name))) for name in ("a", "a", "b")
        )
        for signal in (ours_too, here, other):
            signal.mark()
            eventually(lambda signal=signal: signal.is_listening)
        mark = other.mark()
        for _ in range(5):
            heard(here, ours_too)
        assert other.notices == 0
        assert not other.wait(0, since=mark)
        heard(other, other)


# the choice


def test_the_local_signal_needs_no_address():
    assert isinstance(open_signal("local"), LocalSignal)


@pytest.mark.parametrize("kind", ["redis", "nats", "pg_notify"])
@pytest.mark.parametrize("url", [None, "", "http://host/", "secret-word", "nats://host:99999999", "redis://h:x/secret"])
def test_an_address_that_is_none_is_refused_without_repeating_it(kind, url):
    if kind == "pg_notify" and not url:
        return  # libpq takes its own environment then
    with pytest.raises(LedgerUnusable, match="signal") as refusal:
        open_signal(kind, url)
    assert "secret" not in str(refusal.value)
    assert ours() == set()
