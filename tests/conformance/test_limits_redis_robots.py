"""robots.txt is read once for a whole fleet."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator

import httpx2
import pytest
from tests.conformance.conftest import PASSWORD, Server
from tests.contentdownload.test_net_robots import PAGE, Held, Scene, rules

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.net.robots.check import CachedAnswer, RobotsVerdict
from DocsToKG.ContentDownload.net.robots.redis_cache import RedisRobotsCache

Node = Callable[..., Scene]


@pytest.fixture
def node(redis_url: str) -> Iterator[Node]:
    """The robots of another node with each call."""
    shelves: list[RedisRobotsCache] = []
    scenes: list[Scene] = []
    world = uuid.uuid4().hex

    def open_one(url: str = redis_url, **knobs: float) -> Scene:
        scene = Scene()
        shelves.append(RedisRobotsCache(url, space=world, patience_s=0.3, claim_s=0.5))
        scene.shared_cache = shelves[-1]
        scene.use(scene.limits, shared_cache=shelves[-1], **knobs)
        scenes.append(scene)
        return scene

    yield open_one
    for shared_cache in shelves:
        shared_cache.close()
    for scene in scenes:
        scene.run(scene.stack.aclose())
        scene.runner.close()


def test_what_one_node_has_read_holds_for_all_without_asking(node: Node) -> None:
    one, two = node(), node()
    one.answer = lambda request: rules(b"User-agent: *\nCrawl-delay: 7\nDisallow: /article/\n")
    verdicts = [scene.check() for scene in (one, two)]
    assert [verdict.state for verdict in verdicts] == ["blocked", "blocked"]
    assert [verdict.crawl_delay_s for verdict in verdicts] == [7.0, 7.0]
    assert (len(one.asked), len(two.asked)) == (1, 0)
    assert two.limits.interval_s("pub.org", "artifact") == 7.0  # heard by its limits, too


def test_a_refusal_is_shared_for_as_long_as_it_lasts(node: Node) -> None:
    one, two = node(deny_s=60.0), node(deny_s=60.0)
    one.answer = lambda request: httpx2.Response(503)
    assert one.check().transient_s == pytest.approx(60.0, abs=0.1)
    verdict = two.check()
    assert (verdict.allowed, verdict.state, two.asked) == (False, "unreachable", [])
    assert 50 < (verdict.transient_s or 0.0) <= 60.1  # clocks are read twice


def test_one_node_reads_while_the_others_wait(node: Node) -> None:
    one, two = node(), node()
    two.clock.stands = waits = asyncio.Event()

    async def ask() -> tuple[RobotsVerdict, RobotsVerdict]:
        held = Held(one)
        first = asyncio.create_task(one.robots.check(PAGE, Call("w")))
        await held.asked.wait()
        second = asyncio.create_task(two.robots.check("https://pub.org/x", Call("w")))
        await waits.wait()
        held.free.set()
        verdict = await first
        two.clock.advance(1.0)
        return verdict, await second

    first, second = asyncio.run(ask())
    assert (first.allowed, second.allowed) == (True, False)
    assert two.asked == []


def test_a_node_that_dies_while_reading_is_not_waited_for_long(node: Node) -> None:
    one, two = node(), node()
    one.shared_cache.claim("https://pub.org")  # and never comes back
    two.clock.stands = waits = asyncio.Event()

    async def ask() -> RobotsVerdict:
        asking = asyncio.create_task(two.robots.check(PAGE, Call("w")))
        await waits.wait()
        await asyncio.sleep(0.6)
        two.clock.advance(1.0)
        return await asking

    assert asyncio.run(ask()).allowed
    assert len(two.asked) == 1


def test_one_that_was_called_off_makes_room_at_once(node: Node) -> None:
    one, two = node(), node()

    async def call_off() -> None:
        held = Held(one)
        off = asyncio.create_task(one.robots.check(PAGE, Call("w")))
        await held.asked.wait()
        off.cancel()
        with pytest.raises(asyncio.CancelledError):
            await off

    asyncio.run(call_off())
    assert two.check().allowed
    assert len(two.asked) == 1


def test_without_the_server_each_node_reads_for_itself(node: Node, own_valkey: tuple[Server, str]) -> None:
    server, url = own_valkey
    one, two = node(url), node(url)
    server.stop()
    for scene in (one, two):
        assert scene.check().allowed
        assert len(scene.asked) == 1


def test_strangers_cannot_fill_the_server(redis_url: str) -> None:
    shared_cache = RedisRobotsCache(redis_url, space=uuid.uuid4().hex)
    shared_cache.put("https://big.org", CachedAnswer(200, "allowed", os.urandom(400_000), None), 60.0)
    assert shared_cache.find("https://big.org") is None
    shared_cache.put("https://small.org", CachedAnswer(200, "allowed", b"x" * 400_000, None), 60.0)
    found = shared_cache.find("https://small.org")
    assert found is not None
    assert found[0].body == b"x" * 400_000
    assert PASSWORD not in repr(shared_cache)
    shared_cache.close()
