"""httpx2 over the engine: for threads, which share one loop, and for tasks."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from tests.transport.curl_support import OK, PUBLIC, URL, CountingToken, open_engine, run

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.transport.adapters import AsyncEngineTransport, EngineTransport, guarded_transport
from DocsToKG.transport.client import build_client, silence_request_log
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl import CurlEngine
from DocsToKG.transport.errors import AddressRefused, BodyTooShort, ConnectionWentStale, DeadlineExceeded
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames

SLOW_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nstart"


@pytest.fixture
def reach_by_engine():
    clients = []

    def build(server, **options):
        options.setdefault("connect_to", ConnectTo({"*": f"plain://127.0.0.1:{server.port}"}))

        def open_one():
            return CurlEngine(guard=AddressGuard(), names=StaticNames({"*": [PUBLIC]}), **options)

        client = build_client(EngineTransport(open_one), user_agent="test/1", timeout_connect_s=60, timeout_read_s=60)
        clients.append(client)
        return client

    yield build
    for client in clients:
        client.close()


def answer_all(talk):
    while talk.read_request():
        talk.send(OK)


def echo(talk):
    """Answers each path with itself, and misbehaves where the path says so."""
    while request := talk.read_request():
        path = request.split(b" ", 2)[1]
        if path.endswith(b"short"):
            talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + path)
            return
        if path.endswith(b"reset"):
            talk.reset()
            return
        if path.endswith(b"chunked"):
            talk.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(path), path))
        else:
            talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path))


def test_request_and_response_are_httpx2s(serve, reach_by_engine):
    server = serve(answer_all)
    client = reach_by_engine(server)
    request = client.build_request("GET", URL, headers={"X-Case": "Kept"})
    response = client.send(request)
    assert (response.status_code, response.content, response.reason_phrase) == (200, b"hello", "OK")
    assert (response.http_version, response.extensions["peer"]) == ("HTTP/1.1", "127.0.0.1")
    lines = server.requests[0].split(b"\r\n")
    assert lines[0] == b"GET /a.pdf?x=1 HTTP/1.1"
    assert sorted(lines[1:]) == sorted(b"%s: %s" % pair for pair in request.headers.raw)


def test_compressed_pages_are_decoded_by_httpx2(serve, reach_by_engine):
    import gzip

    body = gzip.compress(b"page")
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def script(talk):
        talk.read_request()
        talk.send(answer)

    assert reach_by_engine(serve(script)).get(URL).content == b"page"


def test_body_is_sent_by_its_length(serve, reach_by_engine):
    received = []

    def script(talk):
        for size in (5, 8):
            talk.read_request()
            received.append(talk.read_bytes(size))
            talk.send(OK)

    server = serve(script)
    client = reach_by_engine(server)
    client.post(URL, content=b"12345")
    client.post(URL, content=iter([b"abc", b"", b"defgh"]))
    assert received == [b"12345", b"abcdefgh"]
    assert b"Content-Length: 8" in server.requests[1]
    assert b"chunked" not in server.requests[1]


@pytest.mark.parametrize("length", ["4", "five", "-5", "5, 5"])
def test_a_length_of_our_own_that_is_wrong_is_refused(serve, reach_by_engine, length):
    client = reach_by_engine(serve(answer_all))
    with pytest.raises(httpx2.LocalProtocolError):
        client.post(URL, content=iter([b"12345"]), headers={"Content-Length": length})


def test_a_post_is_never_sent_twice(serve, reach_by_engine):
    def script(talk):
        talk.read_request()
        talk.send(OK)
        talk.read_request()

    server = serve(script, answer_all)
    client = reach_by_engine(server)
    client.get(URL)
    with pytest.raises(ConnectionWentStale):
        client.post(URL, content=b"order")
    assert sum(request.startswith(b"POST") for request in server.requests) == 1


def test_deadline_and_timeouts_hold(serve, reach_by_engine):
    def script(talk):
        talk.read_request()
        talk.send(SLOW_BODY)
        talk.wait_until_client_leaves()

    client = reach_by_engine(serve(script))
    with pytest.raises(DeadlineExceeded):
        client.get(URL, extensions={"deadline": time.monotonic() + 0.1})
    with pytest.raises(httpx2.ReadTimeout):
        client.get(URL, timeout=httpx2.Timeout(5, read=0.1))
    with pytest.raises(httpx2.ReadTimeout):
        client.get(URL, extensions={"timeout": {"connect": 5, "read": 5, "silence": 0.1}})


@pytest.mark.parametrize("prefix", [b"", b"HTTP/1.1 200 OK\r\n", SLOW_BODY, b"HTTP/1.1 200 OK\r\n\r\npart"])
def test_cancel_from_another_thread_frees_a_blocked_reader(serve, reach_by_engine, prefix):
    def script(talk):
        talk.read_request()
        talk.send(prefix)
        talk.wait_until_client_leaves()

    server = serve(script)
    token = CountingToken()
    threading.Timer(0.05, token.cancel).start()
    start = time.monotonic()
    with pytest.raises(Cancelled):
        reach_by_engine(server).get(URL, extensions={"cancel": token})
    assert time.monotonic() - start < 30.0
    assert token.held == 0
    assert server.client_left.wait(5)


def test_cancelled_request_is_not_sent(serve, reach_by_engine):
    server = serve(answer_all)
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        reach_by_engine(server).get(URL, extensions={"cancel": token})
    assert server.connections == 0


def test_cancelling_a_finished_exchange_leaves_the_connection_to_its_next_user(serve, reach_by_engine):
    server = serve(answer_all)
    client = reach_by_engine(server)
    first = CancelToken()
    client.get(URL, extensions={"cancel": first})
    with client.stream("GET", URL) as response:
        first.cancel()
        assert response.read() == b"hello"
    assert client.get(URL).content == b"hello"
    assert server.connections == 1


def test_closing_ends_what_is_under_way_and_what_comes_later(serve, reach_by_engine):
    def script(talk):
        talk.read_request()
        talk.wait_until_client_leaves()

    port = serve(script).port
    transport, request = (
        guarded_transport(allow_hosts=["127.0.0.1"]),
        httpx2.Request("GET", f"http://127.0.0.1:{port}/"),
    )
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(transport.handle_request, request)
        time.sleep(0.1)
        start = time.monotonic()
        transport.close()
        with pytest.raises(httpx2.TransportError):
            waiting.result(60)
        assert time.monotonic() - start < 30.0
    with pytest.raises(httpx2.TransportError):
        transport.handle_request(request)


def test_closing_a_cancelled_response_raises_nothing(serve, reach_by_engine):
    def script(talk):
        talk.read_request()
        talk.send(SLOW_BODY)
        talk.wait_until_client_leaves()

    server = serve(script)
    client, token = reach_by_engine(server), CancelToken()
    response = client.send(client.build_request("GET", URL, extensions={"cancel": token}), stream=True)
    token.cancel()
    response.close()
    assert server.client_left.wait(5)
    with pytest.raises(httpx2.StreamClosed):
        next(response.iter_raw())


def test_urls_with_keys_are_not_logged_once_the_log_is_silenced(serve, reach_by_engine, caplog):
    """SEC-04: httpx2 writes every URL it asks for into its log."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx2").setLevel(logging.NOTSET)
    client = reach_by_engine(serve(answer_all))
    client.get(URL, params={"key": "shown"})
    silence_request_log()
    client.get(URL, params={"key": "hunter2"})
    logging.getLogger("httpx2").setLevel(logging.NOTSET)
    assert "shown" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.slow
def test_many_threads_on_many_hosts_each_get_their_own_answer(serve, reach_by_engine):
    """NET-01: one client for all threads."""
    client = reach_by_engine(serve(echo), max_idle=20)
    dice = random.Random(7)
    endings = [dice.choice(["plain", "chunked", "short", "reset", "closed-early"]) for _ in range(400)]

    def ask_one(number):
        path = f"/{number}-{endings[number]}"
        url = f"http://h{number % 23}.example.org{path}"
        if endings[number] == "closed-early":
            with client.stream("GET", url) as response:
                return response.status_code == 200
        try:
            return client.get(url).text == path
        except httpx2.TransportError:
            return endings[number] in ("short", "reset")

    with ThreadPoolExecutor(24) as pool:
        assert all(pool.map(ask_one, range(400)))


def test_cancelling_at_any_moment_ends_in_an_answer_or_in_cancelled(serve, reach_by_engine):
    client = reach_by_engine(serve(echo))
    dice = random.Random(11)
    delays = [dice.random() * 0.004 for _ in range(100)]

    def ask_one(number):
        token = CancelToken()
        timer = threading.Timer(delays[number], token.cancel) if number % 2 else None
        if timer is not None:
            timer.start()
        try:
            return client.get(f"http://a.org/{number}", extensions={"cancel": token}).text == f"/{number}"
        except Cancelled:
            return timer is not None
        finally:
            if timer is not None:
                timer.join()

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask_one, range(100)))


def open_descriptors():
    gc.collect()
    return len(os.listdir("/dev/fd"))


def test_nothing_stays_open_after_success_failure_and_close(serve, reach_by_engine):
    server = serve(echo)
    before = open_descriptors()
    client = reach_by_engine(
        server,
        connect_to=ConnectTo({"*": f"plain://127.0.0.1:{server.port}", "dead.org": "plain://127.0.0.1:1"}),
    )
    for ending in ("plain", "short", "reset", "chunked") * 5:
        try:
            client.get(f"http://a.org/{ending}")
        except httpx2.TransportError:
            assert ending in ("short", "reset")
    with pytest.raises(httpx2.ConnectError):
        client.get("http://dead.org/")
    held = client.send(client.build_request("GET", "http://b.org/x"), stream=True)
    held.close()
    client.close()
    server.close()
    assert open_descriptors() <= before - 1, "the listener is closed now, and nothing else may have come"


def test_an_asynchronous_client_works_over_the_engine(serve):
    sent = []

    async def main():
        async with (
            open_engine(serve(answer_all)) as engine,
            httpx2.AsyncClient(transport=AsyncEngineTransport(engine), trust_env=False) as client,
        ):
            response = await client.get(URL, extensions={"sent": lambda: sent.append(1)})
            assert (response.status_code, response.content) == (200, b"hello")
            async with client.stream("POST", URL, content=b"x") as response:
                assert [block async for block in response.aiter_raw()] == [b"hello"]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(client.get(URL)) for _ in range(5)]
            assert {task.result().content for task in tasks} == {b"hello"}

    run(main())
    assert sent == [1]


def test_a_small_body_that_is_cut_is_an_error_where_it_is_read_after_what_came(answering, reach_by_engine):
    client = reach_by_engine(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this"))
    with client.stream("GET", URL) as response:
        assert response.status_code == 200
        blocks = response.iter_raw()
        assert next(blocks) == b"only this"
        with pytest.raises(BodyTooShort):
            next(blocks)


def test_a_body_that_nobody_asks_for_is_not_silent(serve, reach_by_engine):
    """Nobody runs the loop meanwhile: only who waits for bytes may find them late."""

    def script(talk):
        talk.read_request()
        talk.send(SLOW_BODY)
        time.sleep(0.5)
        talk.send(b"x" * (100_000 - len(b"start")))

    client = reach_by_engine(serve(script))
    with client.stream("GET", URL, extensions={"timeout": {"connect": 5, "read": 0.3}}) as response:
        time.sleep(0.6)
        assert len(response.read()) == 100_000


def test_a_guarded_transport_reaches_public_addresses_and_the_hosts_that_are_named(serve):
    server = serve(answer_all)
    url = f"http://127.0.0.1:{server.port}/"
    for allowed, outcome in (((), AddressRefused), (("127.0.0.1",), None)):
        transport = guarded_transport(allow_hosts=allowed)
        with build_client(transport, user_agent="test/1", timeout_connect_s=60, timeout_read_s=60) as client:
            if outcome is None:
                assert client.get(url).content == b"hello"
            else:
                with pytest.raises(outcome):
                    client.get(url)
    assert server.connections == 1
