"""HTTP/2: many exchanges on one connection, each cut by itself, and none lost when the server asks to go."""

from __future__ import annotations

import asyncio
import time

import httpx2
import pytest
from tests.transport.certificates import make_certificate
from tests.transport.curl_support import OK, ask, get, open_engine, run
from tests.transport.http2_server import BODY, serve_http2

from DocsToKG.transport.errors import DeadlineExceeded, NotSent

BASE = "https://papers.example.org"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("h2"), "papers.example.org")


@pytest.fixture
def with_http2(certificate):
    """Runs a test's coroutine with a server and an engine."""

    def start(main, **options):
        async def both():
            async with (
                serve_http2(certificate.server_side("h2", "http/1.1")) as server,
                open_engine(server, tls=True, trust=certificate.trust, **options) as engine,
            ):
                return await main(server, engine)

        return run(both())

    return start


def test_many_exchanges_share_one_connection(with_http2):
    async def main(server, engine):
        await get(engine, f"{BASE}/first")
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(engine.fetch(ask(f"{BASE}/{number}"))) for number in range(40)]
        responses = [task.result() for task in tasks]
        for number, response in enumerate(responses):
            assert (response.status, response.http_version) == (200, "HTTP/2")
            assert response.headers["x-path"] == f"/{number}"
            assert await response.read() == BODY
        assert server.connections == 1
        assert server.most_at_once > 20

    with_http2(main)


def test_exchanges_that_start_together_wait_for_one_connection(with_http2):
    async def main(server, engine):
        await asyncio.gather(*(get(engine, f"{BASE}/{number}") for number in range(20)))
        assert server.connections == 1

    with_http2(main)


def test_without_http2_the_same_server_is_spoken_to_in_http_1_1(certificate, serve):
    def script(talk):
        talk.start_tls(certificate.server_side("h2", "http/1.1"))
        assert talk.sock.selected_alpn_protocol() == "http/1.1"
        talk.read_request()
        talk.send(OK)

    async def main():
        async with open_engine(serve(script), tls=True, trust=certificate.trust) as engine:
            response = await engine.fetch(ask(f"{BASE}/", http2=False))
            assert (response.http_version, await response.read()) == ("HTTP/1.1", b"hello")

    run(main())


def test_one_exchange_is_cut_and_the_others_go_on(with_http2):
    async def main(server, engine):
        slow = await engine.fetch(ask(f"{BASE}/slow"))
        assert await anext(slow) == b"drop"
        others = [asyncio.ensure_future(get(engine, f"{BASE}/{number}")) for number in range(5)]
        await slow.aclose()
        assert await asyncio.gather(*others) == [BODY] * 5
        await server.reset_came.wait()
        assert server.connections == 1

    with_http2(main)


def test_a_cancelled_exchange_is_cut_alone(with_http2):
    async def main(server, engine):
        slow = await engine.fetch(ask(f"{BASE}/slow"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await slow.read()
        assert await get(engine, f"{BASE}/x") == BODY
        assert server.connections == 1

    with_http2(main)


async def read_slowly(engine):
    slow = await engine.fetch(ask(f"{BASE}/slow", deadline=time.monotonic() + 0.1))
    return await slow.read()


def test_a_deadline_cuts_one_exchange_alone(with_http2):
    async def main(server, engine):
        await get(engine, f"{BASE}/x")
        with pytest.raises(DeadlineExceeded):  # at its head or in its body
            await read_slowly(engine)
        assert await get(engine, f"{BASE}/x") == BODY
        assert server.connections == 1

    with_http2(main)


@pytest.mark.parametrize("path", ["/goaway", "/refused"])
@pytest.mark.parametrize("warm", [False, True])
def test_a_get_that_the_server_did_not_take_is_asked_again(with_http2, path, warm):
    async def main(server, engine):
        if warm:
            await get(engine, f"{BASE}/x")
        assert await get(engine, BASE + path) == BODY
        assert [asked for _, asked in server.requests].count(path) == 2

    with_http2(main)


def test_a_post_that_the_server_did_not_take_is_not_asked_again(with_http2):
    async def main(server, engine):
        with pytest.raises(httpx2.TransportError):
            await get(engine, f"{BASE}/goaway", "POST", body=b"x")
        assert [asked for _, asked in server.requests].count("/goaway") == 1

    with_http2(main)


def test_a_stream_that_is_reset_in_its_body_is_an_error_after_what_came(with_http2):
    async def main(server, engine):
        response = await engine.fetch(ask(f"{BASE}/reset"))
        with pytest.raises(httpx2.RemoteProtocolError):
            await response.read()

    with_http2(main)


def test_a_request_that_is_taken_back_leaves_the_other_exchanges_alone(with_http2):
    async def main(server, engine):
        slow = await engine.fetch(ask(f"{BASE}/slow"))
        with pytest.raises(NotSent):
            await engine.fetch(ask(f"{BASE}/x", before_send=lambda: False))
        assert await anext(slow)
        assert await anext(slow)
        await slow.aclose()
        assert [path for _, path in server.requests] == ["/slow"]

    with_http2(main)


def test_a_reader_that_does_not_ask_does_not_hold_up_the_others(with_http2):
    async def main(server, engine):
        held = await engine.fetch(ask(f"{BASE}/held"))
        for number in range(5):
            assert await get(engine, f"{BASE}/{number}") == BODY
        assert await held.read() == BODY

    with_http2(main)


def test_exchanges_beyond_what_a_server_takes_at_once_are_all_answered(certificate):
    """libcurl's own time limits would run while an exchange waits in its queue; none waits there."""

    async def main():
        async with (
            serve_http2(certificate.server_side("h2"), most_streams=2) as server,
            open_engine(server, tls=True, trust=certificate.trust) as engine,
        ):
            await get(engine, f"{BASE}/first")
            bodies = await asyncio.gather(*(get(engine, f"{BASE}/{n}", connect_s=5.0) for n in range(12)))
            assert bodies == [BODY] * 12
            assert server.connections <= 6

    run(main())
