"""Thousands of exchanges at once: none is lost, the loop is not held, and little memory is used."""

from __future__ import annotations

import asyncio
import resource
from typing import ClassVar

import httpx2
import pytest
from tests import needs
from tests.transport.curl_support import ask, get, open_engine, run

from DocsToKG.transport.connect import ConnectTo


class SlowServer(asyncio.Protocol):
    """Answers each request after a while, in the tests' own loop."""

    opened: ClassVar[set[asyncio.Transport]] = set()
    seconds = 0.5

    def connection_made(self, transport):
        self.transport = transport
        self.opened.add(transport)

    def connection_lost(self, error):
        self.opened.discard(self.transport)

    def data_received(self, data):
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        asyncio.get_running_loop().call_later(self.seconds, self.transport.write, b"hello")


def fetch_at_once(count):
    async def main():
        server = await asyncio.get_running_loop().create_server(SlowServer, "127.0.0.1", 0, backlog=4096)
        connect_to = ConnectTo({"*": f"plain://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
        async with open_engine(connect_to=connect_to, max_idle=count) as engine:
            bodies = await asyncio.gather(*(get(engine, f"http://h{n % 50}.org/{n}") for n in range(count)))
            assert bodies == [b"hello"] * count
            assert engine.holding().exchanges == 0
        server.close()
        for transport in SlowServer.opened:
            transport.abort()
        await asyncio.sleep(0.01)

    run(main(), 60)


SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
WANTED = 12_000
opens_many = needs.system(HARD == resource.RLIM_INFINITY or HARD >= WANTED, f"{WANTED} open files")


@pytest.fixture
def many_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(SOFT, WANTED), HARD))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))


@opens_many
def test_a_thousand_slow_exchanges_at_once(many_descriptors):
    fetch_at_once(1000)


@opens_many
@pytest.mark.slow
def test_five_thousand_slow_exchanges_at_once(many_descriptors):
    fetch_at_once(5000)


def test_exchanges_are_started_a_few_in_each_turn_of_the_loop(monkeypatch):
    """Adding 5,000 at once to libcurl holds the loop for 0.4 s."""
    turn, started_in = 0, []

    def refuse(*about, **more):
        started_in.append(turn)
        raise ConnectionRefusedError(111, "blocked by the test")

    async def main():
        loop = asyncio.get_running_loop()

        def count_turns():
            nonlocal turn
            turn += 1
            loop.call_soon(count_turns)

        async with open_engine(connect_to=ConnectTo({"*": "plain://127.0.0.1:9"})) as engine:
            count_turns()
            with monkeypatch.context() as patch:
                patch.setattr("DocsToKG.transport.curl.handle.socket.socket", refuse)
                tasks = [asyncio.ensure_future(get(engine, f"http://h{n}.org/")) for n in range(500)]
                await asyncio.gather(*tasks, return_exceptions=True)
        assert len(started_in) == 500
        assert max(started_in.count(number) for number in set(started_in)) <= 64

    run(main())


def test_tasks_that_are_cancelled_before_their_turn_start_nothing(serve):
    server = serve(lambda talk: talk.wait_until_client_leaves())

    async def main():
        async with open_engine(server) as engine:
            tasks = [asyncio.ensure_future(get(engine)) for _ in range(200)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.01)
            assert engine.holding().exchanges == 0

    run(main())
    assert server.connections <= 64


def test_handles_and_pins_do_not_pile_up_over_many_hosts():
    async def main():
        async with open_engine(connect_to=ConnectTo({"*": "plain://127.0.0.1:9"})) as engine:
            for number in range(600):
                with pytest.raises(httpx2.ConnectError):
                    await engine.fetch(ask(f"http://h{number}.org/"))
            assert engine.holding().idle_handles <= 256
            assert (engine.holding().exchanges, engine.holding().pins) == (0, 0)

    run(main())
