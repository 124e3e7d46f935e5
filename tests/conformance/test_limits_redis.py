"""The limits of a fleet on a real Valkey: what holds for the processes of one machine holds for nodes, too."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.conformance.conftest import PASSWORD, Server
from tests.contentdownload.asked_limits import Moves, any_moves, gate, granted, granted_soon, judge_together, refused
from tests.contentdownload.test_net_shared import (  # noqa: F401 (the same promises, kept by another store)
    test_a_late_thread_alone_goes_at_once_and_counts_from_then,
    test_a_refund_is_felt_by_the_others,
    test_a_sandbox_does_not_disturb_the_world_or_another_sandbox,
    test_a_thread_late_to_its_grant_does_not_meet_another_process,
    test_crawl_delay_is_learned_for_all,
    test_forgotten_slots_of_a_closed_process_are_free,
    test_retry_after_is_seen_by_all_and_outlives_a_restart,
    test_setting_the_wall_clock_changes_nothing,
    test_several_windows_hold_at_once_and_across_processes,
    test_two_processes_keep_a_host_cap_together,
    test_two_processes_keep_a_sources_slots_and_rate_together,
    test_two_processes_keep_the_interval_together,
    test_what_a_host_announces_and_its_weakness_are_known_to_all,
)
from tests.examples import examples
from tests.many_machines.relay import Wires
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.gates import NotYet
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.host_patterns import quiet_times
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.limits.rates import BucketSpec
from DocsToKG.ContentDownload.net.limits.stores.redis import RedisLimitStore
from DocsToKG.ContentDownload.net.limits.stores.redis_times import ServerTime
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock, ManualClock, SystemClock

Open = Callable[..., HostLimits]
BEAT_S = 0.2
SETTLE_S = 3 * BEAT_S + 0.25


class StandingTime(ServerTime):
    """A server whose clock goes with the one moved by hand, and whose memory is old."""

    @property
    def offset_s(self) -> float:
        return 4e9

    def heard(self, server_s: float, asked_at: float, answered_at: float) -> bool:
        return True


@pytest.fixture
def open_limits(redis_url: str, clock: ManualClock) -> Iterator[Open]:
    """Each call is what another node would be."""
    opened: list[HostLimits] = []
    world = uuid.uuid4().hex

    def open_one(
        rate: str | None = None,
        *,
        slots: int = 9,
        space: str = "",
        at: Clock = clock,
        soon_s: float = 0.0,
        **more: object,
    ) -> HostLimits:
        rates = {"*": (Rate.parse(rate),)} if rate else {}
        store = RedisLimitStore(redis_url, clock=at, space=f"{world}{space}", soon_s=soon_s, times=StandingTime())
        opened.append(HostLimits(clock=at, default_host=HostLimit(slots, rates), store=store, **more))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for limits in opened:
        limits.close()


class ClockThatIsSet(ServerTime):
    """What is heard of a server whose clock somebody sets by `ahead_s`."""

    ahead_s = 3600.0

    def heard(self, server_s: float, asked_at: float, answered_at: float) -> bool:
        return super().heard(server_s + self.ahead_s, asked_at, answered_at)


@pytest.fixture
def open_node(own_valkey: tuple[Server, str]) -> Iterator[Open]:
    """A node in real time, on a server of the test's own."""
    opened: list[HostLimits] = []

    def open_one(
        rate: str | None = None, *, slots: int = 9, lease_s: float = 1.0, interval_s: float = 0.0, **more: Any
    ) -> HostLimits:
        rates = {"*": (Rate.parse(rate),)} if rate else {}
        clock = SystemClock()
        store = RedisLimitStore(
            own_valkey[1], clock=clock, beat_s=BEAT_S, lease_s=lease_s, interval_s=lambda key: interval_s, **more
        )
        opened.append(HostLimits(clock=clock, default_host=HostLimit(slots, rates), store=store))
        return opened[-1]

    yield open_one
    for limits in opened:
        limits.close()


def soon(
    limits: HostLimits,
    host: str = "a.org",
) -> HostPermit:
    return granted_soon(limits, gate(host))


def why(limits: HostLimits, host: str = "a.org") -> str:
    return refused(limits.ask(gate(host))).why


def raw(url: str) -> redis.Redis:
    return redis.Redis.from_url(url)


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as made:
        yield made


@pytest.mark.slow
@given(
    burst=st.integers(1, 3),
    slots=st.integers(1, 3),
    moves=any_moves(40),
)
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nodes_together_stay_within_rate_burst_and_slots_in_any_order(
    redis_url: str, burst: int, slots: int, moves: Moves
) -> None:
    """LIM-09, for three nodes; slots are given back a little later than they are freed."""
    clock, world = ManualClock(), uuid.uuid4().hex
    limit = HostLimit(slots, {"*": (Rate(1, 1),)}, burst)
    stores = [RedisLimitStore(redis_url, clock=clock, space=world, times=StandingTime()) for _ in range(3)]
    three = [HostLimits(clock=clock, default_host=limit, store=store) for store in stores]
    judge_together(three, clock, moves, slots=slots, burst=burst)


def test_a_grant_takes_one_round_trip(open_limits: Open, redis_url: str) -> None:
    """With one node, and the slot given back in the same one as the next grant."""
    limits = open_limits("1000/second", soon_s=0.02)
    granted(limits.ask(gate())).release()
    with raw(redis_url) as client:
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]  # type: ignore[index]
        for number in range(50):
            granted(limits.ask(gate(f"h{number}.org"))).release()
        after = client.info("commandstats")["cmdstat_evalsha"]["calls"]  # type: ignore[index]
    assert 50 <= after - before < 80  # a few more by the pulse of the node; a hundred if each went by itself


def test_an_empty_server_is_waited_on_before_the_first_grant(open_node: Open) -> None:
    limits = open_node()
    began = time.monotonic()
    assert "told anew" in why(limits)
    soon(limits)
    assert time.monotonic() - began > SETTLE_S - 0.1


@pytest.mark.slow
def test_a_flushed_server_grants_nothing_before_the_interval_and_forgets_nothing(
    open_node: Open, own_valkey: tuple[Server, str]
) -> None:
    one, two = (open_node("1/second", slots=2, interval_s=1.0) for _ in range(2))
    running = soon(one, "busy.org")
    soon(two, "busy.org")
    one.set_crawl_delay("slow.org", 7.0)
    two.hold("held.org", SystemClock().monotonic() + 60, "Retry-After of 60 s")
    soon(one, "slow.org").release()
    with raw(own_valkey[1]) as client:
        client.flushall()
    flushed = time.monotonic()
    fresh = open_node("1/second", slots=2, interval_s=1.0)
    soon(fresh, "a.org").release()
    assert time.monotonic() - flushed > 1.0 + SETTLE_S - 0.1
    assert "2 requests running" in why(fresh, "busy.org")
    assert refused(fresh.ask(gate("slow.org"))).at > time.monotonic() + 3  # type: ignore[operator]
    assert "Retry-After of 60 s" in why(fresh, "held.org")
    running.release()
    soon(fresh, "busy.org")


@pytest.mark.slow
def test_a_server_that_is_away_stops_every_start_and_is_taken_up_again(
    open_node: Open, own_valkey: tuple[Server, str]
) -> None:
    server, _ = own_valkey
    one, two = open_node(slots=1), open_node(slots=1)
    held = soon(one)
    server.stop()
    for limits in (one, two):
        wait = refused(limits.ask(gate("b.org")))
        assert "cannot be read" in wait.why
        assert PASSWORD not in wait.why
    held.release()  # told when the server is back
    running = granted_or_none(one)
    assert running is None
    server.start()
    soon(two)


def granted_or_none(limits: HostLimits) -> HostPermit | None:
    answer = limits.ask(gate())
    return None if isinstance(answer, NotYet) else granted(answer)


@pytest.mark.slow
def test_a_paused_server_frees_nobodys_slots(open_node: Open, own_valkey: tuple[Server, str]) -> None:
    """Leases that nobody could renew were not given up."""
    server, _ = own_valkey
    one, two = open_node(slots=1, lease_s=1.0), open_node(slots=1, lease_s=1.0)
    held = soon(one)
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    paused = time.monotonic()
    while time.monotonic() - paused < 1.5:
        assert granted_or_none(two) is None
        time.sleep(0.05)
    os.kill(server.process.pid, signal.SIGCONT)
    while time.monotonic() - paused < 3.5:  # twice the lease
        assert granted_or_none(two) is None
        time.sleep(0.02)
    held.release()
    soon(two)


@pytest.mark.slow
def test_a_server_whose_clock_was_set_begins_anew(open_node: Open, own_valkey: tuple[Server, str]) -> None:
    """By what the nodes see of it: the distance between its clock and theirs has changed."""
    times = [ClockThatIsSet(), ClockThatIsSet()]
    one, two = (open_node("1/2 seconds", times=each) for each in times)
    soon(one).release()
    before = bases(own_valkey[1])
    for each in times:
        each.ahead_s = 0.0
    began = time.monotonic()
    soon(two)
    assert 1.5 < time.monotonic() - began < 15.0  # what was granted before is still known
    assert len(bases(own_valkey[1]) - before) == 1


def bases(url: str) -> set[str]:
    """From where the server's records count time."""
    with raw(url) as client:
        return {name.decode().split(":")[4] for name in client.scan_iter(match="*:host:*")}


def test_a_bad_address_is_told_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"rate_limit\.redis_url") as caught:
        RedisLimitStore("http://:planted-password@nowhere", clock=SystemClock())
    assert PASSWORD not in str(caught.value)


@pytest.mark.slow
def test_a_server_that_comes_back_with_old_memory_is_told_what_it_forgot(
    open_node: Open, own_valkey: tuple[Server, str]
) -> None:
    server, url = own_valkey
    one = open_node("1/20 seconds", slots=1)
    soon(one, "old.org").release()
    time.sleep(0.1)
    with raw(url) as client:
        client.save()
    one.set_crawl_delay("old.org", 40.0)
    soon(one, "new.org")
    server.stop()
    server.start()
    two = open_node("1/20 seconds", slots=1)
    soon(two, "other.org")
    for host, at_least_s, at_most_s in (("old.org", 21, 40), ("new.org", 5, 20)):
        wait = refused(two.ask(gate(host)))
        assert wait.at is not None
        assert at_least_s < wait.at - time.monotonic() <= at_most_s
        assert "interval" in wait.why


def test_a_spoiled_record_makes_its_host_wait_and_no_other(
    open_limits: Open, redis_url: str, clock: ManualClock
) -> None:
    limits = open_limits()
    granted(limits.ask(gate())).release()
    with raw(redis_url) as client:
        for name in client.scan_iter(match="{docstokg:limits}*host:a.org"):
            client.set(name, "x.y.1 [not a record")
    assert "told anew" in why(open_limits())
    assert "told anew" in why(limits)
    granted(limits.ask(gate("b.org")))
    clock.advance(4.0)
    granted(limits.ask(gate()))


@pytest.mark.slow
def test_a_dropped_connection_leaks_no_slot(open_node: Open, own_valkey: tuple[Server, str]) -> None:
    limits = open_node(slots=2)
    first = soon(limits)
    for _ in range(3):
        with raw(own_valkey[1]) as client:
            client.client_kill_filter(_type="normal", skipme=True)
        assert granted_or_none(limits) is None
        soon(limits).release()
    second = soon(limits)
    refused(limits.ask(gate()))
    first.release()
    second.release()
    soon(limits)


def test_each_key_is_quiet_for_its_own_interval() -> None:
    quiet_s = quiet_times(
        default_host=HostLimit(1, {"*": (Rate(1, 1),), "artifact": (Rate(1, 3), Rate(1000, 86400))}),
        hosts={"*.slow.org": HostLimit(1, {"*": (Rate(1, 10),)}), "free.org": HostLimit(1)},
        groups={"*.house.org": HostLimit(1, {"*": (Rate(1, 4),)})},
        sources={"index": Rate(2, 1), "api": BucketSpec(100, 0.5)},
        factor=2.0,
    )
    keys = ("host:a.org", "host:b.slow.org", "host:free.org", "group:*.house.org", "resolver:index", "resolver:api")
    assert [quiet_s(key) for key in keys] == [1.5, 5.0, 0.0, 2.0, 0.25, 1.0]
    assert quiet_s("resolver:unheard-of") == 0.0


HOLDER = """
import sys, time
from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.stores.redis import RedisLimitStore
from DocsToKG.core.clock import SystemClock
clock = SystemClock()
store = RedisLimitStore(sys.argv[1], clock=clock, beat_s=0.2, lease_s=1.0)
limits = HostLimits(clock=clock, default_host=HostLimit(1), store=store)
while isinstance(permit := limits.ask(Gate("https://a.org/x.pdf", "unpaywall", "artifact")), NotYet):
    time.sleep(0.02)
permit.start()
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_the_slots_of_a_killed_node_come_back_after_its_lease(open_node: Open, own_valkey: tuple[Server, str]) -> None:
    """FAIL-01"""
    limits = open_node(slots=1)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, own_valkey[1]], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        began = time.monotonic()
        while time.monotonic() - began < 1.5:  # longer than the lease, which the living renew
            refused(limits.ask(gate()))
            time.sleep(0.05)
        process.kill()
        process.wait()
        process.stdout.close()
        died = time.monotonic()
        soon(limits).release()
        assert 0.5 < time.monotonic() - died < 15.0  # its process would live for a minute
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_slot_whose_lease_ran_out_while_the_node_was_cut_off_is_not_believed(own_valkey: tuple[Server, str]) -> None:
    """The other node has it by then: the late one sends nothing, also once it is back, until there is room."""
    server, url = own_valkey
    with Wires() as wires, contextlib.ExitStack() as stack:
        wire = wires.lead_to(server.port)

        def node(port: int) -> tuple[HostLimits, RedisLimitStore]:
            address = urlsplit(url)._replace(netloc=f":{PASSWORD}@127.0.0.1:{port}").geturl()
            store = RedisLimitStore(address, clock=SystemClock(), beat_s=BEAT_S, lease_s=2.0)
            limits = HostLimits(clock=SystemClock(), default_host=HostLimit(1), store=store)
            return stack.enter_context(contextlib.closing(limits)), store

        (late, of_late), (other, _) = node(wire.port), node(server.port)
        mine = soon(late)
        wire.cut("hang")
        theirs = soon(other)
        assert theirs.start() == 0.0
        assert mine.start() > 0
        wire.mend()
        eventually(lambda: of_late.tenure != -1)
        assert mine.start() > 0
        assert isinstance(late.ask(gate()), NotYet)
        theirs.release()
        eventually(lambda: mine.start() == 0)
        assert isinstance(other.ask(gate()), NotYet)
        mine.release()


@pytest.mark.slow
def test_a_slot_is_not_believed_while_the_server_is_silent_for_longer_than_its_lease(
    own_valkey: tuple[Server, str], stack: contextlib.ExitStack
) -> None:
    server, url = own_valkey
    store = RedisLimitStore(url, clock=SystemClock(), beat_s=BEAT_S, lease_s=1.0)
    node = stack.enter_context(
        contextlib.closing(HostLimits(clock=SystemClock(), default_host=HostLimit(1), store=store))
    )
    permit = soon(node)
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        eventually(lambda: store.tenure == -1)
        assert permit.start() > 0
        assert permit.start() > 0
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    eventually(lambda: permit.start() == 0)  # nobody else was there to take it
    permit.release()


def test_an_event_loop_is_not_held_up_by_a_server_that_hangs(
    own_valkey: tuple[Server, str], stack: contextlib.ExitStack
) -> None:
    """LIM-15, LIM-18: tasks that want permits, free slots and report answers wait for it; the loop does not."""
    server, url = own_valkey
    clock = SystemClock()
    store = RedisLimitStore(url, clock=clock, beat_s=2.0, lease_s=20.0)
    limits = stack.enter_context(contextlib.closing(HostLimits(clock=clock, default_host=HostLimit(1), store=store)))
    held = soon(limits)
    assert server.process is not None
    process = server.process

    async def scene() -> float:
        queues, longest_s, last = PermitQueues(limits, clock=clock), 0.0, time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        tasks = [asyncio.create_task(queues.permit(gate(host), Call(host))) for host in ("b.org", "c.org")]
        try:
            for turn in range(50):
                await asyncio.sleep(0.02)
                if turn == 10:
                    limits.on_answer("a.org", 429, {}, 0.1)
                    limits.hold("a.org", clock.monotonic() + 0.1, "busy")
                    held.release()
                longest_s, last = max(longest_s, time.monotonic() - last), time.monotonic()
            assert not any(task.done() for task in tasks)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        for permit in await asyncio.wait_for(asyncio.gather(*tasks), 60):
            assert permit.start() == 0.0
            permit.release()
        return longest_s

    assert asyncio.run(scene()) < 1.0, "a question to the server takes two seconds to fail"
