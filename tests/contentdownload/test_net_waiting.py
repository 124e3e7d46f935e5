"""Tasks wait for permits in queues: who goes first, when the gatekeeper is asked, and what a wait leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.gates import Gate, GateShut, NotYet, Permit
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.api.waits import WorkWaits
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.ContentDownload.orchestrator.limits import KeyedLimiter
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock, ManualClock, SystemClock
from DocsToKG.core.urls import BadUrl

LONG_S = 20.0


class Watched:
    """The real limits, and what was asked of them and granted, in order."""

    def __init__(self, behind: HostLimits) -> None:
        self.behind = behind
        self.asked: list[str] = []
        self.granted: list[str] = []
        self.faults: set[str] = set()
        self.afterwards: Callable[[], None] = lambda: None  # right after an answer, before anybody hears of it

    def ask(self, gate: Gate) -> Permit | NotYet:
        self.asked.append(gate.url)
        if gate.url in self.faults:
            raise LookupError(gate.url)
        answer = self.behind.ask(gate)
        if not isinstance(answer, NotYet):
            self.granted.append(gate.url)
        self.afterwards()
        return answer

    @property
    def executor(self) -> Executor | None:
        return self.behind.executor

    def on_free(self, callback: Callable[[str], None]) -> None:
        self.behind.on_free(callback)


class Desk:
    """A waiting room over real limits, and tasks that want permits."""

    def __init__(self, *, most: int | None = None, slots: int = 1, clock: Clock | None = None, **limits: Any) -> None:
        self.clock = clock or SystemClock()
        self.limits = HostLimits(clock=self.clock, **{"default_host": HostLimit(slots), **limits})
        self.keeper = Watched(self.limits)
        self.room = PermitQueues(self.keeper, clock=self.clock, most=most)
        self.held: dict[str, Permit] = {}
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[Permit]] = []

    async def permit(self, url: str, call: Call | None = None, resolver: str = "one") -> Permit:
        """`url` without its scheme."""
        permit = await self.room.permit(Gate(f"https://{url}", resolver, Role.ARTIFACT), call or Call(url))
        self.order.append(url)
        return permit

    async def hold(self, *urls: str) -> None:
        for url in urls:
            self.held[url] = await self.permit(url)

    def free(self, url: str) -> None:
        self.held.pop(url).release()

    def waits(self, url: str, call: Call | None = None, resolver: str = "one") -> asyncio.Task[Permit]:
        self.tasks.append(asyncio.create_task(self.permit(url, call, resolver)))
        return self.tasks[-1]

    async def visit(self, url: str, *, times: int = 1, resolver: str = "one") -> None:
        for _ in range(times):
            permit = await self.permit(url, resolver=resolver)
            await asyncio.sleep(0)
            permit.release()


async def settled() -> None:
    """Whatever could go on by itself has done so."""
    for _ in range(5):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(LONG_S):
            return await work

    return asyncio.run(bounded())


# who goes first


def test_waiters_of_one_host_are_served_in_the_order_in_which_they_came() -> None:
    desk = Desk()

    async def crowd() -> None:
        await asyncio.gather(*(desk.visit(f"a.org/{number}") for number in range(20)))

    run(crowd())
    assert desk.order == [f"a.org/{number}" for number in range(20)]


def test_slots_and_exchanges_at_once_are_never_exceeded() -> None:
    """LIM-06, ORC-04: of a host, of a source, and in all."""
    desk = Desk(most=5, slots=2, resolver_slots={"narrow": 3})
    by_host, by_source, most = Counter[str](), Counter[str](), Counter[str]()

    async def visit(url: str, resolver: str) -> None:
        permit = await desk.permit(url, resolver=resolver)
        host = url.partition("/")[0]
        by_host[host] += 1
        by_source[resolver] += 1
        most["all"] = max(most["all"], by_host.total())
        most["host"] = max(most["host"], by_host[host])
        most[resolver] = max(most[resolver], by_source[resolver])
        await settled()
        by_host[host] -= 1
        by_source[resolver] -= 1
        permit.release()

    async def crowd() -> None:
        visits = [(f"h{n % 3}.org/{n}", "narrow" if n % 2 else "wide") for n in range(300)]
        await asyncio.gather(*(visit(*one) for one in visits))

    run(crowd())
    assert (most["all"], most["host"], most["narrow"]) == (5, 2, 3)
    assert desk.room.used == desk.room.waiting == 0


def test_a_busy_host_does_not_hold_up_another() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("slow.org/")
        waiting = [desk.waits(f"slow.org/{number}") for number in range(40)]
        await desk.visit("quick.org/")
        assert not any(task.done() for task in waiting)
        desk.free("slow.org/")
        for task in waiting:
            (await task).release()

    run(crowd())


def test_the_longest_queue_goes_first() -> None:
    """It is done last."""
    desk = Desk(most=1, slots=9)

    async def crowd() -> None:
        await desk.hold("z.org/")
        lengths = {"short.org": 1, "long.org": 9, "middle.org": 4}
        visits = [desk.visit(f"{host}/{number}") for host, length in lengths.items() for number in range(length)]
        visiting = asyncio.gather(*visits)
        await settled()
        desk.free("z.org/")
        await visiting

    run(crowd())
    hosts = [url.partition("/")[0] for url in desk.order[1:]]
    assert hosts[:5] == ["long.org"] * 5
    assert Counter(hosts) == {"short.org": 1, "long.org": 9, "middle.org": 4}


def test_nobody_is_passed_over_for_long() -> None:
    """However long another queue stays the longest."""
    desk = Desk(most=1, slots=2)

    async def crowd() -> None:
        await desk.hold("z.org/")
        often = [asyncio.create_task(desk.visit("often.org/", times=400)) for _ in range(4)]
        once = asyncio.create_task(desk.visit("once.org/"))
        await settled()
        desk.free("z.org/")
        await once
        for task in often:
            task.cancel()

    run(crowd())
    assert 1 <= desk.order.count("often.org/") <= 300


def test_who_asks_again_and_again_does_not_go_before_those_who_wait() -> None:
    """The one place goes from hand to hand."""
    desk = Desk(most=1)

    async def crowd() -> None:
        await asyncio.gather(*(desk.visit(f"h{number}.org/", times=10) for number in range(3)))

    run(crowd())
    gaps = [b - a for a, b in zip(places(desk.order, "h2.org/"), places(desk.order, "h2.org/")[1:], strict=False)]
    assert max(gaps) <= 4, desk.order


def places(order: list[str], url: str) -> list[int]:
    return [place for place, one in enumerate(order) if one == url]


# how often the gatekeeper is asked


def test_a_permit_is_asked_for_only_when_its_task_can_use_it() -> None:
    """While every place is taken nobody is asked for, however many stand there."""
    desk = Desk(most=2, slots=9)

    async def crowd() -> None:
        await desk.hold("a.org/1", "a.org/2")
        tasks = [desk.waits(f"h{number}.org/") for number in range(10)]
        await settled()
        assert len(desk.keeper.asked) == 2
        desk.free("a.org/1")
        await settled()
        assert len(desk.keeper.asked) == 3
        for task in tasks:
            task.cancel()

    run(crowd())


def test_a_queue_is_asked_for_its_first_alone_and_when_something_has_moved() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/held")
        tasks = [desk.waits(f"a.org/{number}") for number in range(50)]
        await settled()
        before = len(desk.keeper.asked)
        await asyncio.sleep(0.01)
        assert len(desk.keeper.asked) == before <= 3
        desk.free("a.org/held")
        await settled()
        assert desk.order == ["a.org/held", "a.org/0"]
        assert set(desk.keeper.asked[before:]) <= {"a.org/0", "https://a.org/0", "https://a.org/1"}
        for task in tasks:
            task.cancel()

    run(crowd())


def test_who_lacks_another_slot_than_those_in_front_does_not_hold_up_their_queue() -> None:
    """The first at a host whose source is full goes to the queue of the source; the next may go at once."""
    desk = Desk(slots=1, resolver_slots={"full": 1})

    async def crowd() -> None:
        permit = await desk.permit("b.org/", resolver="full")
        await desk.hold("a.org/held")
        stuck = desk.waits("a.org/stuck", resolver="full")
        free = desk.waits("a.org/free")
        await settled()
        desk.free("a.org/held")
        await settled()
        assert free.done()
        assert not stuck.done()
        assert set(desk.room.waits()) == {"full has 1 requests running"}
        free.result().release()
        permit.release()
        (await stuck).release()

    run(crowd())


# time


def test_a_rule_of_time_is_waited_for_and_not_a_moment_less() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock, default_host=HostLimit(9, {"*": (Rate(1, 3.0),)}))

    async def crowd() -> None:
        (await desk.permit("a.org/1")).release()
        later = [desk.waits(f"a.org/{number}") for number in (2, 3)]
        await settled()
        assert clock.next_wake == pytest.approx(clock.monotonic() + 3.0)
        clock.advance(2.99)
        await settled()
        assert not later[0].done()
        clock.advance(0.02)
        await settled()
        assert [task.done() for task in later] == [True, False]
        clock.advance(3.01)
        await settled()
        assert [task.done() for task in later] == [True, True]

    run(crowd())


def test_a_sooner_time_is_not_slept_through() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock)

    async def crowd() -> None:
        desk.limits.hold("late.org", clock.monotonic() + 50, "busy")
        late = desk.waits("late.org/")
        await settled()
        desk.limits.hold("soon.org", clock.monotonic() + 2, "busy")
        soon = desk.waits("soon.org/")
        await settled()
        clock.advance(2.1)
        await settled()
        assert (soon.done(), late.done()) == (True, False)
        clock.advance(48)
        await settled()
        assert late.done()

    run(crowd())


def test_a_gate_that_stays_shut_for_more_than_a_minute_is_not_stood_before() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock)
    waits = WorkWaits(clock)

    async def crowd() -> None:
        desk.limits.hold("a.org", clock.monotonic() + 3600, "Retry-After of 3600 s")
        with pytest.raises(GateShut, match="3600") as shut:
            await desk.permit("a.org/", Call("w", waits=waits))
        assert shut.value.at == pytest.approx(clock.monotonic() + 3600)

    run(crowd())
    assert waits.shut_host == "a.org"
    assert desk.room.waiting == 0


def test_those_who_stand_before_a_gate_that_is_shut_for_long_are_sent_away() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock)
    waits = WorkWaits(clock)

    async def crowd() -> None:
        await desk.hold("a.org/held")
        tasks = [desk.waits(f"a.org/{number}", Call("w", waits=waits)) for number in range(3)]
        await settled()
        desk.limits.hold("a.org", clock.monotonic() + 90, "Retry-After")
        desk.free("a.org/held")
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [GateShut] * 3

    run(crowd())
    assert waits.shut_host == "a.org"
    assert desk.room.waiting == 0


# what moves from elsewhere


def test_a_slot_that_another_thread_frees_lets_the_next_in() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/")
        waiting = desk.waits("a.org/1")
        await settled()
        await asyncio.to_thread(desk.free, "a.org/")
        (await waiting).release()

    run(crowd())
    assert desk.room.used == 0


def test_a_slot_that_is_freed_between_the_refusal_and_the_queue_is_not_missed() -> None:
    """By another thread, in the moment in which it hurts."""
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/")

        def freed_meanwhile() -> None:
            desk.keeper.afterwards = lambda: None
            thread = threading.Thread(target=desk.free, args=("a.org/",))
            thread.start()
            thread.join()

        desk.keeper.afterwards = freed_meanwhile
        (await desk.permit("a.org/1")).release()

    run(crowd())


def test_a_pause_that_ends_early_is_heard_of() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock)

    async def crowd() -> None:
        desk.limits.pause_source("one", 30.0, "an operator's word")
        waiting = desk.waits("a.org/")
        await settled()
        assert not waiting.done()
        desk.limits.resume_source("one")
        (await waiting).release()

    run(crowd())


# faults and calling off


def test_a_fault_of_the_gatekeeper_ends_the_work_that_asked_and_no_other() -> None:
    desk = Desk()

    async def crowd() -> None:
        desk.keeper.faults = {"https://a.org/bad"}
        for url in ("a.org/bad", "[", f"{'a' * 300}.org/"):
            with pytest.raises((LookupError, BadUrl)):
                await desk.permit(url)
        await desk.visit("a.org/good")

    run(crowd())
    assert desk.room.used == desk.room.waiting == 0


def test_a_fault_for_one_who_waits_lets_the_next_in() -> None:
    desk = Desk()

    async def crowd() -> list[object]:
        await desk.hold("a.org/held")
        urls = [f"a.org/{kind}{number}" for number in range(4) for kind in ("good", "bad")]
        desk.keeper.faults = {f"https://{url}" for url in urls if "bad" in url}
        visits = [asyncio.create_task(desk.visit(url)) for url in urls]
        await settled()
        desk.free("a.org/held")
        return await asyncio.gather(*visits, return_exceptions=True)

    ends = run(crowd())
    assert [type(end) for end in ends] == [type(None), LookupError] * 4
    assert desk.room.used == desk.room.waiting == 0


def test_who_is_called_off_leaves_its_queue() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/")
        tasks = [desk.waits(f"a.org/{number}") for number in range(3)]
        await settled()
        assert desk.room.waiting == 3
        for task in (tasks[1], tasks[0]):  # from the middle, and the first
            task.cancel()
            await asyncio.wait([task])
        assert desk.room.waiting == 1
        desk.free("a.org/")
        (await tasks[2]).release()

    run(crowd())
    assert (desk.room.used, desk.room.waiting, desk.room.waits().total()) == (0, 0, 0)


def test_a_permit_that_comes_to_one_who_is_called_off_goes_back() -> None:
    desk = Desk(clock=ManualClock(), default_host=HostLimit(1, {"*": (Rate(1, 30.0),)}, burst=2.0))

    async def crowd() -> None:
        await desk.hold("a.org/")
        late = desk.waits("a.org/late")
        await settled()
        desk.free("a.org/")
        await asyncio.sleep(0)  # it is granted
        assert desk.room.used == 1
        late.cancel()
        await asyncio.wait([late])
        assert desk.room.used == 0
        (await desk.permit("a.org/next")).release()  # neither the slot nor the token is lost

    run(crowd())


def test_one_who_is_called_off_as_its_turn_comes_takes_nothing_and_the_next_one_does() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/")
        first, second = desk.waits("a.org/1"), desk.waits("a.org/2")
        await settled()
        desk.free("a.org/")
        first.cancel()  # in the same turn of the loop
        (await second).release()
        assert first.cancelled()

    run(crowd())
    assert desk.room.used == 0


@pytest.mark.parametrize("seed", range(8))
def test_whoever_is_called_off_at_whatever_moment_nothing_is_lost(seed: int) -> None:
    """No slot, no place, and nobody is left in a queue."""
    chance = random.Random(seed)
    desk = Desk(most=3, slots=2, resolver_slots={"one": 4, "two": 1})

    async def visit(url: str, resolver: str, turns: int) -> None:
        permit = await desk.permit(url, resolver=resolver)
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
        finally:
            permit.release()

    async def crowd() -> None:
        visits = [
            asyncio.create_task(visit(f"h{n % 5}.org/{n}", chance.choice(["one", "two"]), chance.randrange(3)))
            for n in range(200)
        ]
        while not all(task.done() for task in visits):
            for task in chance.sample(visits, 2):
                task.cancel()
            await asyncio.sleep(0)
        cut = sum(task.cancelled() for task in visits)
        assert 0 < cut < 200
        assert (desk.room.used, desk.room.waiting, desk.room.waits().total()) == (0, 0, 0)
        for n in range(5):  # every slot is free again
            await desk.hold(f"h{n}.org/a")
            desk.free(f"h{n}.org/a")
        await desk.visit("h1.org/", resolver="two")

    run(crowd())


# the end


def test_while_the_room_closes_nobody_comes_to_stand_and_who_may_pass_passes() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/")
        standing = desk.waits("a.org/1")
        await settled()
        desk.room.is_closing = True
        with pytest.raises(Cancelled):
            await desk.permit("a.org/2")
        await desk.visit("free.org/")
        assert not standing.done()
        desk.free("a.org/")
        (await standing).release()

    run(crowd())


def test_what_is_freed_after_the_loop_is_gone_harms_nobody() -> None:
    desk = Desk()

    async def crowd() -> None:
        await desk.hold("a.org/")

    run(crowd())
    desk.free("a.org/")
    threading.Thread(target=desk.limits.hold, args=("a.org", 1.0, "x")).start()


# what is told


def test_people_see_what_is_waited_for_and_how_many() -> None:
    desk = Desk(most=2, slots=1)

    async def crowd() -> None:
        await desk.hold("a.org/", "b.org/")
        tasks = [desk.waits(f"{host}/1") for host in ("a.org", "a.org", "c.org")]
        await settled()
        assert desk.room.waits() == {"a free worker": 3}
        desk.free("b.org/")
        await settled()
        assert desk.room.waits() == {"a.org has 1 requests running": 2}
        assert (desk.room.waiting, desk.room.blocked, desk.room.is_idle) == (2, 2, False)
        tasks[2].result().release()
        await settled()
        assert desk.room.is_idle
        for task in tasks:
            task.cancel()

    run(crowd())


def told_by(desk: Desk, waits: list[tuple[str, str, float]]) -> Call:
    return Call("w", waits=WorkWaits(desk.clock, on_slot_wait=lambda *wait: waits.append(wait)))


@pytest.mark.parametrize(
    ("taken", "resolver", "limits", "told"),
    [
        ("a.org/", "other", {}, ("host", "a.org")),
        ("b.org/", "one", {"resolver_slots": {"one": 1}}, ("resolver", "one")),
    ],
)
def test_the_time_without_a_slot_is_told_with_what_was_lacking(taken, resolver, limits, told) -> None:  # type: ignore[no-untyped-def]
    """LIM-19."""
    clock = ManualClock()
    desk, waits = Desk(clock=clock, **limits), list[tuple[str, str, float]]()

    async def crowd() -> None:
        other = await desk.permit(taken, resolver=resolver)
        task = desk.waits("a.org/x", told_by(desk, waits))
        await settled()
        clock.advance(3.0)
        other.release()
        (await task).release()

    run(crowd())
    assert waits == [(*told, pytest.approx(3.0))]


def test_a_slot_that_another_process_holds_is_lacking_too(tmp_path: Path) -> None:
    """Nobody tells us when such a slot is free, so it is looked for at times."""
    clock = ManualClock()
    path, waits = tmp_path / "limits.sqlite", list[tuple[str, str, float]]()
    one, two = (Desk(clock=clock, store=SqliteLimitStore(path, clock=clock)) for _ in range(2))

    async def crowd() -> None:
        await one.hold("a.org/")
        task = two.waits("a.org/x", told_by(two, waits))
        await settled()
        for _ in range(20):
            clock.advance(0.1)
            await settled()
        one.free("a.org/")
        while not task.done():
            clock.advance(0.1)
            await settled()
        task.result().release()

    with contextlib.closing(one.limits), contextlib.closing(two.limits):
        run(crowd())
    assert waits == [("host", "a.org", pytest.approx(2.1, abs=0.2))]


def test_who_stands_behind_others_lacks_what_they_lack() -> None:
    """Nobody asks on its behalf before it is first."""
    clock = ManualClock()
    desk = Desk(clock=clock)
    told: list[list[tuple[str, str, float]]] = [[], [], []]

    async def crowd() -> None:
        await desk.hold("a.org/")
        tasks = []
        for waits in told:
            tasks.append(desk.waits("a.org/x", told_by(desk, waits)))
            await settled()
            clock.advance(1.0)
        desk.free("a.org/")
        for task in tasks:
            permit = await task
            clock.advance(10.0)
            permit.release()

    run(crowd())
    assert told == [[("host", "a.org", pytest.approx(seconds))] for seconds in (3.0, 12.0, 21.0)]


def test_a_wait_for_a_rule_of_time_is_not_told_as_one_for_a_slot() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock, default_host=HostLimit(1, {"*": (Rate(1, 5.0),)}))
    waits: list[tuple[str, str, float]] = []

    async def crowd() -> None:
        permit = await desk.permit("a.org/")
        task = desk.waits("a.org/x", told_by(desk, waits))
        await settled()
        clock.advance(5.01)
        await settled()  # the rate would let it go now
        clock.advance(2.0)
        permit.release()
        (await task).release()

    run(crowd())
    assert waits == [("host", "a.org", pytest.approx(2.0))]


def test_a_wait_for_a_place_of_ours_and_an_open_gate_tell_nothing() -> None:
    desk = Desk(most=1)
    waits: list[tuple[str, str, float]] = []

    async def crowd() -> None:
        (await desk.permit("a.org/1", told_by(desk, waits))).release()
        await desk.hold("b.org/")
        task = desk.waits("a.org/2", told_by(desk, waits))
        await asyncio.sleep(0.01)
        desk.free("b.org/")
        (await task).release()

    run(crowd())
    assert waits == []


def test_the_wait_of_one_who_is_called_off_is_told_too() -> None:
    clock = ManualClock()
    desk, waits = Desk(clock=clock), list[tuple[str, str, float]]()

    async def crowd() -> None:
        await desk.hold("a.org/")
        task = desk.waits("a.org/x", told_by(desk, waits))
        await settled()
        clock.advance(4.0)
        task.cancel()
        await asyncio.wait([task])

    run(crowd())
    assert waits == [("host", "a.org", pytest.approx(4.0))]


def test_a_work_counts_as_waiting_while_it_stands_in_a_queue() -> None:
    """SLO-01."""
    clock = ManualClock()
    desk, waits = Desk(clock=clock), WorkWaits(clock)

    async def crowd() -> None:
        await desk.hold("a.org/")
        with waits.branch():
            task = desk.waits("a.org/x", Call("w", waits=waits))
            await settled()
            assert waits.is_parked
            clock.advance(4.0)
            desk.free("a.org/")
            (await task).release()
            clock.advance(2.0)
        assert not waits.is_parked

    run(crowd())
    assert waits.waited_s == 4.0


# parting with some


async def standing(desk: Desk, lengths: dict[str, int]) -> dict[CancelToken, str]:
    """Works in queues of these lengths, by host."""
    tokens: dict[CancelToken, str] = {}
    for host, length in lengths.items():
        await desk.hold(f"{host}/held")
        for number in range(length):
            token = CancelToken()
            tokens[token] = f"{host}/{number}"
            desk.waits(tokens[token], Call("w", token))
    await settled()
    return tokens


def test_of_the_longest_queues_the_last_ones_make_room() -> None:
    """ORC-03, EXT-06: short queues leave their share to others."""
    desk = Desk()

    async def crowd() -> None:
        works = await standing(desk, {"long.org": 9, "middle.org": 4, "short.org": 1})
        parted = sorted(works[crowded.cancel] for crowded in desk.room.crowds(8, lambda _: True))
        assert parted == [*(f"long.org/{n}" for n in range(3, 9)), "middle.org/3"]
        [one] = desk.room.crowds(13, lambda _: True)
        assert (one.host, one.why) == ("long.org", "long.org has 1 requests running")
        assert desk.room.crowds(14, lambda _: True) == []
        assert [works[one.cancel] for one in desk.room.crowds(8, lambda token: works[token] == "long.org/5")] == [
            "long.org/5"
        ]

    run(crowd())


def test_where_there_are_more_gates_than_may_be_waited_for_those_shut_for_longest_go_without() -> None:
    """ORC-03, EXT-06."""
    clock = ManualClock()
    desk = Desk(clock=clock)

    async def crowd() -> None:
        works: dict[CancelToken, str] = {}
        for host, hold_s in (("far.org", 55.0), ("soon.org", 1.0), ("slot.org", None)):
            if hold_s is None:
                await desk.hold(f"{host}/held")
            else:
                desk.limits.hold(host, clock.monotonic() + hold_s, "busy")
            token = CancelToken()
            works[token] = host
            desk.waits(f"{host}/", Call("w", token))
        await settled()
        parted = {keep: [works[one.cancel] for one in desk.room.crowds(keep, lambda _: True)] for keep in (3, 2, 1, 0)}
        assert parted[3] == []
        assert parted[2] == ["far.org"]
        assert parted[1] == ["far.org", "soon.org"]  # shut, and then perhaps busy, while a slot may be free any moment
        assert sorted(parted[0]) == ["far.org", "slot.org", "soon.org"]

    run(crowd())


def test_how_long_one_may_still_wait_is_told_by_the_pace_of_its_queue() -> None:
    clock = ManualClock()
    desk = Desk(clock=clock)

    async def crowd() -> None:
        await desk.hold("a.org/")
        tokens = [CancelToken() for _ in range(30)]
        waiting = [desk.waits(f"a.org/{n}", Call("w", token)) for n, token in enumerate(tokens)]
        await settled()
        desk.free("a.org/")
        for task in waiting[:20]:  # one in two seconds
            permit = await task
            clock.advance(2.0)
            permit.release()
        await settled()
        last = max(desk.room.crowds(1, lambda _: True), key=lambda one: one.wait_s)
        assert last.cancel is tokens[-1]
        assert 8.0 <= last.wait_s <= 18.0

    run(crowd())


# the caller's own caps


def test_the_callers_own_slots_are_given_back_however_an_exchange_ends() -> None:
    """LIM-04."""
    desk = Desk(slots=9)
    resolvers, hosts = KeyedLimiter(1), KeyedLimiter(9, {"b.org": 1})
    desk.room.cap(resolvers, hosts)

    async def crowd() -> None:
        desk.keeper.faults = {"https://a.org/bad"}
        with pytest.raises(LookupError):
            await desk.permit("a.org/bad")
        desk.limits.hold("late.org", desk.clock.monotonic() + 3600, "busy")
        with pytest.raises(GateShut):
            await desk.permit("late.org/")
        assert (resolvers.in_use("one"), hosts.in_use("a.org"), hosts.in_use("late.org")) == (0, 0, 0)
        permit = await desk.permit("b.org/")
        other = desk.waits("b.org/2", resolver="two")
        same = desk.waits("c.org/", resolver="one")
        await asyncio.sleep(0.05)
        assert not other.done()
        assert not same.done()
        assert (resolvers.in_use("one"), resolvers.in_use("two"), hosts.in_use("b.org")) == (1, 0, 1)
        permit.refund()
        permit.release()
        permit.release()
        for task in (other, same):
            (await task).release()
        assert (resolvers.in_use("one"), hosts.in_use("b.org"), hosts.in_use("c.org")) == (0, 0, 0)

    run(crowd())


def test_a_slot_of_the_callers_is_free_for_others_while_a_work_waits_for_the_host() -> None:
    """Nobody holds one slot while it waits for another."""
    desk = Desk(slots=1)
    resolvers = KeyedLimiter(1)
    desk.room.cap(resolvers, None)

    async def crowd() -> None:
        permit = await desk.permit("a.org/", resolver="two")
        waiting = desk.waits("a.org/1", resolver="one")
        await settled()
        assert resolvers.in_use("one") == 0
        (await desk.permit("b.org/", resolver="one")).release()
        permit.release()
        (await waiting).release()

    run(crowd())


def test_many_files_that_wait_for_their_proof_hold_back_new_requests() -> None:
    """Each is in memory until it is proved: what has come goes before what could be fetched."""

    async def main() -> None:
        room = PermitQueues(HostLimits(clock=SystemClock(), default_host=HostLimit(100)), clock=SystemClock(), most=2)
        with contextlib.ExitStack() as files:
            for _ in range(18):
                files.enter_context(room.keeping())
            asking = asyncio.create_task(room.permit(Gate("https://a.org/x", "t", Role.ARTIFACT), Call("w")))
            await asyncio.sleep(0)
            assert room.waiting == 1
            assert not asking.done()
        (await asking).release()

    asyncio.run(main())
