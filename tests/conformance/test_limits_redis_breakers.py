"""The breakers of a fleet on a real Valkey: open for one is open for all, and tests are counted together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
import redis
from tests.conformance.conftest import Server

from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.net.limits.admission import Admission
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.limits.redis_breakers import RedisBreakers
from DocsToKG.ContentDownload.net.limits.stores.redis_times import ServerTime
from DocsToKG.core.breaker import Breaker, BreakerSettings, BreakerState, Transition
from DocsToKG.core.clock import ManualClock, SystemClock

SETTINGS = BreakerSettings(min_samples=4, open_s=30.0, test_count=3)
Node = Callable[..., tuple[Breaker, list[Transition]]]


class StandingTime(ServerTime):
    """A server whose clock goes with the one moved by hand."""

    @property
    def offset_s(self) -> float:
        return 1e9

    def heard(self, server_s: float, asked_at: float, answered_at: float) -> bool:
        return True


@pytest.fixture
def node(redis_url: str, clock: ManualClock) -> Iterator[Node]:
    """The breaker of one host on another node with each call, and what it told."""
    opened: list[RedisBreakers] = []
    world = uuid.uuid4().hex

    def open_one(url: str = redis_url) -> tuple[Breaker, list[Transition]]:
        told: list[Transition] = []
        opened.append(RedisBreakers(url, clock=clock, space=world, patience_s=0.2, times=StandingTime()))
        return opened[-1].make(SETTINGS, clock, key="host:a.org", on_transition=told.append), told

    yield open_one
    for fleet in opened:
        fleet.close()


def fail(breaker: Breaker, times: int = 4) -> None:
    for _ in range(times):
        breaker.record_failure(ticket=breaker.check().ticket)


def test_a_host_that_fails_for_several_nodes_together_is_open_for_all(node: Node, clock: ManualClock) -> None:
    (one, told_one), (two, told_two) = node(), node()
    fail(one, 2)
    fail(two, 2)
    assert [one.check().allowed, two.check().allowed] in ([True, False], [False, False])
    clock.advance(0.3)
    for breaker in (one, two):
        result = breaker.check()
        assert not result.allowed
        assert result.retry_in_s == pytest.approx(29.7)
    assert [change.new for change in told_one + told_two] == [BreakerState.OPEN]  # told by the one who saw it


def test_no_more_tests_run_than_allowed_whichever_nodes_ask(node: Node, clock: ManualClock) -> None:
    nodes = [node()[0] for _ in range(4)]
    fail(nodes[0])
    clock.advance(31)
    tickets = [[breaker.check().ticket for _ in range(3)] for breaker in nodes]
    let_through = [
        (breaker, ticket) for breaker, mine in zip(nodes, tickets, strict=True) for ticket in mine if ticket is not None
    ]
    assert len(let_through) == SETTINGS.test_count
    for breaker, ticket in let_through:
        breaker.record_success(ticket=ticket)
    clock.advance(0.3)
    assert all(breaker.state is BreakerState.CLOSED for breaker in nodes if breaker.look())


def test_tests_are_counted_exactly_when_threads_of_all_nodes_ask_at_once(node: Node, clock: ManualClock) -> None:
    nodes = [node()[0] for _ in range(4)]
    fail(nodes[0])
    clock.advance(31)
    passed: list[object] = []
    start = threading.Barrier(8)

    def ask(breaker: Breaker) -> None:
        start.wait()
        for _ in range(5):
            passed.extend([ticket] if (ticket := breaker.check().ticket) is not None else [])

    threads = [threading.Thread(target=ask, args=(nodes[number % 4],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == SETTINGS.test_count
    assert len(set(passed)) == SETTINGS.test_count


def test_a_failed_test_on_one_node_opens_for_longer_on_all(node: Node, clock: ManualClock) -> None:
    (one, _), (two, _) = node(), node()
    fail(one)
    clock.advance(31)
    two.record_failure(ticket=two.check().ticket)
    result = one.check()
    assert (result.allowed, result.tested) == (False, True)
    assert result.retry_in_s == pytest.approx(60.0)


def test_good_news_of_one_node_is_weighed_against_bad_news_of_another(node: Node, clock: ManualClock) -> None:
    (one, _), (two, _) = node(), node()
    for _ in range(20):
        one.record_success(ticket=one.check().ticket)
    clock.advance(0.3)
    one.look()
    fail(two, 10)
    assert two.look().allowed
    fail(two, 10)
    assert not two.look().allowed


def test_a_forced_state_holds_for_all(node: Node, clock: ManualClock) -> None:
    (one, _), (two, _) = node(), node()
    two.look()
    one.force_open("maintenance")
    clock.advance(0.3)
    assert two.check().retry_in_s is None
    two.unforce("done")
    assert one.look().state is BreakerState.HALF_OPEN


def test_a_flushed_server_does_not_close_what_a_node_knows_to_be_open(
    node: Node, clock: ManualClock, own_valkey: tuple[Server, str]
) -> None:
    (one, _), (two, _) = node(own_valkey[1]), node(own_valkey[1])
    fail(one)
    with redis.Redis.from_url(own_valkey[1]) as client:
        client.flushall()
    assert two.check().allowed
    two.record_failure()
    assert not one.check().allowed
    clock.advance(0.3)
    assert not two.check().allowed


def test_without_a_server_a_node_goes_by_what_it_knows_and_tells_it_later(
    node: Node, clock: ManualClock, own_valkey: tuple[Server, str]
) -> None:
    server, url = own_valkey
    (one, told), (two, _) = node(url), node(url)
    assert one.check().allowed
    server.stop()
    fail(one)
    assert not one.check().allowed
    assert not one.look().allowed
    assert [change.new for change in told] == [BreakerState.OPEN]
    server.start()
    clock.advance(2)
    assert not one.check().allowed
    assert not two.check().allowed
    assert [change.new for change in told] == [BreakerState.OPEN]


def test_the_clock_of_a_node_does_not_matter(redis_url: str) -> None:
    class Wrong(SystemClock):
        def now(self) -> float:
            return super().now() + 3600

        def monotonic(self) -> float:
            return super().monotonic() + 3600

    world, told = uuid.uuid4().hex, []
    right, wrong = (RedisBreakers(redis_url, clock=clock, space=world) for clock in (SystemClock(), Wrong()))
    try:
        one, two = (
            fleet.make(SETTINGS, SystemClock(), key="host:a.org", on_transition=told.append) for fleet in (right, wrong)
        )
        fail(one)
        assert two.check().retry_in_s == pytest.approx(30.0, abs=1.0)
    finally:
        right.close()
        wrong.close()


def test_an_event_loop_is_not_held_up_by_a_server_that_hangs(own_valkey: tuple[Server, str]) -> None:
    """Requests that look at a breaker wait for it; the loop does not, nor whoever reports a failure."""
    server, url = own_valkey
    clock = SystemClock()
    assert server.process is not None
    process = server.process

    async def scene(shared: RedisBreakers) -> float:
        breakers = Breakers(clock=clock, settings=SETTINGS, sink=NullSink(), make=shared.make, executor=shared.executor)
        limits = HostLimits(clock=clock, default_host=HostLimit(9))
        admission = Admission(
            gates=PermitQueues(limits, clock=clock), clock=clock, attempts=NullSink(), breakers=breakers
        )
        first = await admission.enter("https://a.org/1", "arxiv", "artifact", Call("first"))
        os.kill(process.pid, signal.SIGSTOP)
        try:
            task = asyncio.create_task(admission.enter("https://b.org/1", "arxiv", "artifact", Call("second")))
            began = last = time.monotonic()
            longest_s = 0.0
            while time.monotonic() - began < 1.0:
                await asyncio.sleep(0.02)
                first.report.answered(503)
                longest_s, last = max(longest_s, time.monotonic() - last), time.monotonic()
        finally:
            os.kill(process.pid, signal.SIGCONT)
        first.release()
        (await task).release()
        return longest_s

    with contextlib.closing(RedisBreakers(url, clock=clock, patience_s=2.0)) as shared:
        assert asyncio.run(scene(shared)) < 1.0, "a question to the server takes two seconds to fail"
