"""One request, one response on libcurl: what is sent, what comes back, what is kept, what never happens twice."""

from __future__ import annotations

import asyncio
import threading
import time

import httpx2
import pytest
from tests.transport.curl_support import HEADERS, OK, URL, ask, get, open_engine, run

from DocsToKG.transport.errors import BodyTooLarge, BodyTooShort, ClosedEarly, ConnectionWentStale, NotSent


def play(answer, times=1000):
    def script(talk):
        for _ in range(times):
            if not talk.read_request():
                return
            talk.send(answer)

    return script


def fetch(server, url=URL, method="GET", **given):
    async def main():
        async with open_engine(server) as engine:
            response = await engine.fetch(ask(url, method, **given))
            return response, await response.read()

    return run(main())


def fetch_many(server, *requests, **options):
    async def main():
        async with open_engine(server, **options) as engine:
            return [await get(engine, **request) for request in requests]

    return run(main())


def test_request_goes_out_exactly_as_it_was_written(serve):
    server = serve(play(OK))
    fetch(server, headers=[*HEADERS, ("X-Case", "Kept"), ("X-Empty", "")])
    lines = server.requests[0].split(b"\r\n")
    assert lines[0] == b"GET /a.pdf?x=1 HTTP/1.1"
    assert sorted(lines[1:]) == sorted(
        [
            b"Host: papers.example.org",
            b"User-Agent: test/1",
            b"Accept: */*",
            b"X-Case: Kept",
            b"X-Empty:",
            b"Accept-Encoding: identity",
        ]
    )


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("https://papers.example.org/x", b"GET /x ", b"Host: papers.example.org"),
        ("https://papers.example.org:8443/x", b"GET /x ", b"Host: papers.example.org:8443"),
        ("http://papers.example.org/a/../b//c?q=%2F&r=a b#part", b"GET /b//c?q=%2F&r=a%20b ", b"Host: papers"),
        ("http://bücher.example/ü", b"GET /%C3%BC ", b"Host: xn--bcher-kva.example"),
        ("https://papers.example.org./x", b"GET /x ", b"Host: papers.example.org"),
        ("http://user:hunter2@papers.example.org/", b"GET / ", b"Host: papers.example.org"),
    ],
    ids=["https-in-plain", "port", "path", "idn", "root-dot", "userinfo"],
)
def test_the_server_sees_the_logical_host_and_a_clean_path(serve, url, target, host):
    server = serve(play(OK))
    fetch(server, url)
    assert server.requests[0].startswith(target)
    assert host in server.requests[0]
    assert b"hunter2" not in server.requests[0]


def test_response_carries_status_headers_body_and_peer(serve):
    server = serve(play(b"HTTP/1.1 404 Nothing Here\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nno"))
    response, body = fetch(server)
    assert (response.status, response.reason, response.http_version, body) == (404, "Nothing Here", "HTTP/1.1", b"no")
    assert response.headers["x-a"] == "1, 2"
    assert response.headers.get_list("X-A") == ["1", "2"]
    assert (response.headers.get("nope"), "X-a" in response.headers) == (None, True)
    assert response.peer == "127.0.0.1"
    assert response.timings.first_byte is not None
    assert 0 < response.timings.first_byte <= response.timings.total


def test_kept_connection_is_used_again(serve):
    """NET-01: all share the connections of one engine."""
    server = serve(play(OK))
    assert fetch_many(server, *[{}] * 5) == [b"hello"] * 5
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
    ids=["close", "http-1.0", "extra-bytes", "chunks-in-http-1.0", "length-and-chunked"],
)
def test_doubtful_connection_is_not_used_again(serve, answer):
    server = serve(play(answer))
    assert fetch_many(server, {}, {}) == [b"hello"] * 2
    assert server.connections == 2


def test_http_1_0_connection_is_kept_when_the_server_says_so(serve):
    server = serve(play(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"))
    assert fetch_many(server, {}, {}) == [b"hello"] * 2
    assert server.connections == 1


def test_connection_closed_while_idle_is_replaced_unseen(serve):
    server = serve(play(OK, times=1), play(OK))

    async def main():
        async with open_engine(server) as engine:
            await get(engine)
            server.sockets[0].close()
            assert await get(engine, "http://papers.example.org/", "POST", body=b"") == b"hello"

    run(main())
    assert server.connections == 2
    assert len(server.requests) == 2


def test_idle_connection_on_which_the_server_speaks_up_is_replaced(serve):
    speak, spoken = threading.Event(), threading.Event()

    def script(talk):
        talk.read_request()
        talk.send(OK)
        speak.wait(5)
        talk.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        spoken.set()
        talk.wait_until_client_leaves()

    server = serve(script, play(OK))

    async def main():
        async with open_engine(server) as engine:
            await get(engine)
            speak.set()
            assert await asyncio.to_thread(spoken.wait, 5)
            assert await get(engine) == b"hello"

    run(main())
    assert server.connections == 2


@pytest.mark.slow
def test_idle_connection_expires(serve):
    """libcurl counts whole seconds."""
    server = serve(play(OK))

    async def main():
        async with open_engine(server, idle_expiry_s=1.0) as engine:
            await get(engine)
            await get(engine)
            assert server.connections == 1
            await asyncio.sleep(2.5)
            await get(engine)
            assert server.connections == 2

    run(main())


def test_no_more_idle_connections_are_kept_than_allowed(serve):
    left = threading.Semaphore(0)

    def script(talk):
        play(OK)(talk)
        left.release()

    server = serve(script)

    async def main():
        async with open_engine(server, max_idle=2) as engine:
            for host in "abcdef":
                await get(engine, f"http://{host}.org/")
            for _ in range(4):
                assert await asyncio.to_thread(left.acquire, timeout=5)
            assert not left.acquire(blocking=False)
            await get(engine, "http://f.org/")

    run(main())
    assert server.connections == 6


def test_half_a_response_on_a_kept_connection_is_an_error_not_a_second_try(serve):
    def script(talk):
        close_on_second_request(talk)
        talk.send(b"HTTP/1.1 200 OK\r\nX-Half")

    server = serve(script, play(OK))
    with pytest.raises(httpx2.TransportError):
        fetch_many(server, {}, {})
    assert server.connections == 1


@pytest.mark.parametrize("unchanged", [True, False])
def test_a_file_goes_on_where_it_broke_off_if_it_is_the_same(serve, unchanged):
    """libcurl's own way to resume takes the whole file that a changed one is answered with for an error."""
    part = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 3-4/5\r\nContent-Length: 2\r\n\r\nlo"
    server = serve(play(part if unchanged else OK))
    resuming = [*HEADERS, ("Range", "bytes=3-"), ("If-Range", '"first"')]
    response, body = fetch(server, headers=resuming)
    assert (response.status, body) == ((206, b"lo") if unchanged else (200, b"hello"))
    assert b"Range: bytes=3-" in server.requests[0]
    assert b'If-Range: "first"' in server.requests[0]


@pytest.mark.parametrize("size", [5, 5000, 16_000, 50_000])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_bytes_left_over_on_a_kept_connection_never_become_the_next_response(serve, size, late, framing):
    """A second response that the server sends unasked would be taken under the next request's URL: 20 of 20 times."""
    evil = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
    whole = {
        "length": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (size, b"x" * size),
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size),
    }[framing]
    said = threading.Semaphore(0)

    def script(talk):
        while talk.read_request():
            if late:
                talk.send(whole)
                time.sleep(0.005)
                talk.arrive(evil)
            else:
                talk.arrive(whole + evil)
            said.release()

    async def main(server):
        async with open_engine(server) as engine:
            for _ in range(20):
                assert await get(engine) == b"x" * size
                assert await asyncio.to_thread(said.acquire, timeout=5)

    run(main(serve(script)))


def close_on_second_request(talk):
    talk.read_request()
    talk.send(OK)
    talk.read_request()


def reset_on_second_request(talk):
    close_on_second_request(talk)
    talk.reset()


@pytest.mark.parametrize("first", [close_on_second_request, reset_on_second_request])
def test_connection_that_dies_under_a_second_request_is_replaced_by_a_fresh_one(serve, first):
    server = serve(first, play(OK))
    assert fetch_many(server, {}, {}) == [b"hello"] * 2
    assert server.connections == 2


@pytest.mark.parametrize("first", [close_on_second_request, reset_on_second_request])
def test_a_post_is_never_sent_twice(serve, first):
    server = serve(first, play(OK))
    with pytest.raises(ConnectionWentStale):
        fetch_many(server, {}, {"method": "POST", "body": b"order"})
    assert sum(request.startswith(b"POST") for request in server.requests) == 1


def test_a_fresh_connection_that_says_nothing_is_not_tried_again(serve):
    server = serve(lambda talk: talk.read_request() and None)
    with pytest.raises(ClosedEarly):
        fetch(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("reused", [False, True])
def test_before_send_may_take_the_request_back_and_nothing_goes_out(serve, reused):
    server = serve(play(OK))

    async def main():
        async with open_engine(server) as engine:
            if reused:
                await get(engine)
            with pytest.raises(NotSent):
                await engine.fetch(ask(before_send=lambda: False))
            assert await get(engine) == b"hello"

    run(main())
    assert len(server.requests) == 1 + reused


def test_before_send_and_on_sent_are_called_for_each_request(serve):
    server, calls = serve(play(OK)), []

    def before():
        calls.append("before")
        return True

    given = {"before_send": before, "on_sent": lambda: calls.append("sent")}
    fetch_many(server, given, given)
    assert calls == ["before", "sent"] * 2


@pytest.mark.parametrize("where", ["before_send", "on_sent"])
def test_an_error_in_a_hook_is_raised_to_its_caller_and_nothing_is_printed(serve, where, capfd):
    def hook():
        raise ZeroDivisionError("hook")

    with pytest.raises(ZeroDivisionError, match="hook"):
        fetch(serve(play(OK)), **{where: hook})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    ],
)
def test_responses_without_a_body_need_no_reading(serve, method, answer):
    server = serve(play(answer))
    assert fetch_many(server, *[{"method": method, "max_announced": 100}] * 2) == [b"", b""]
    assert server.connections == 1


def test_methods_may_follow_each_other_on_one_handle(serve):
    def script(talk):
        for number in range(5):
            talk.read_request()
            if number in (1, 3):
                assert talk.read_bytes(4) == b"body"
            talk.send(OK if number != 2 else b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")

    server = serve(script)
    methods = [{}, {"method": "POST", "body": b"body"}, {"method": "HEAD"}, {"method": "PUT", "body": b"body"}, {}]
    assert fetch_many(server, *methods) == [b"hello", b"hello", b"", b"hello", b"hello"]
    assert [request.split(b" ")[0] for request in server.requests] == [b"GET", b"POST", b"HEAD", b"PUT", b"GET"]
    assert b"Content-Length: 4" in server.requests[1]
    assert all(b"Content-Length" not in server.requests[number] for number in (0, 2, 4))
    assert server.connections == 1


def test_interim_responses_are_skipped(serve):
    server = serve(play(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK))
    response, body = fetch(server)
    assert body == b"hello"
    assert "link" not in response.headers


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"],
    ids=["endless-interim", "switch"],
)
def test_responses_that_never_come_to_the_point_are_an_error(answering, answer):
    with pytest.raises(httpx2.RemoteProtocolError):
        fetch(answering(answer, stay=True))


def test_redirects_are_not_followed_and_their_connection_is_kept(serve):
    """NET-12: each hop is somebody's decision."""
    server = serve(play(b"HTTP/1.1 302 Found\r\nLocation: http://other.org/\r\nContent-Length: 4\r\n\r\npage"))

    async def main():
        async with open_engine(server) as engine:
            for _ in range(2):
                response = await engine.fetch(ask())
                assert (response.status, response.headers["location"]) == (302, "http://other.org/")
                await response.aclose()

    run(main())
    assert server.connections == 1
    assert all(b"Host: papers.example.org" in request for request in server.requests)


def endless(talk):
    talk.read_request()
    talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin")
    talk.wait_until_client_leaves()


@pytest.mark.parametrize("how", ["aclose", "cancel-read", "cancel-fetch"])
def test_an_exchange_that_is_given_up_closes_its_connection(serve, how):
    server = serve(endless if how != "cancel-fetch" else lambda talk: talk.wait_until_client_leaves())

    async def main():
        async with open_engine(server) as engine:
            if how == "cancel-fetch":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await engine.fetch(ask())
            else:
                response = await engine.fetch(ask())
                assert await anext(response) == b"begin"
                if how == "aclose":
                    await response.aclose()
                else:
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.05):
                            await anext(response)
            assert engine.holding().exchanges == 0
            assert await asyncio.to_thread(server.client_left.wait, 5)

    run(main())


def test_cookies_of_one_response_do_not_reach_the_next_request(serve):
    server = serve(play(b"HTTP/1.1 200 OK\r\nSet-Cookie: session=1; Path=/\r\nContent-Length: 0\r\n\r\n"))
    fetch_many(server, {}, {})
    assert b"ookie" not in server.requests[1]


def test_header_that_would_split_the_request_is_refused_without_its_value(serve):
    """SEC-04: the text of the error holds no header value."""
    server = serve(play(OK))
    with pytest.raises(httpx2.LocalProtocolError) as error:
        fetch(server, headers=[("X-Key", "secret\r\nX-Evil: 1")])
    assert "secret" not in str(error.value)
    assert "X-Key" in str(error.value)
    assert server.requests == []


def test_other_schemes_are_refused(serve):
    with pytest.raises(httpx2.UnsupportedProtocol):
        fetch(serve(play(OK)), "ftp://papers.example.org/")


@pytest.mark.parametrize("limit", ["max_bytes", "max_announced"])
def test_a_body_that_is_too_large_is_not_taken(serve, limit):
    server = serve(play(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + b"x" * 50_000))
    with pytest.raises(BodyTooLarge) as error:
        fetch(server, **{limit: 49_999})
    assert error.value.announced == (50_000 if limit == "max_announced" else None)
    assert len(fetch(server, **{limit: 50_000})[1]) == 50_000


def test_body_shorter_than_its_length_raises_after_what_came(answering):
    server = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")

    async def main():
        async with open_engine(server) as engine:
            response = await engine.fetch(ask())
            assert await anext(response) == b"only this"
            await anext(response)

    with pytest.raises(BodyTooShort) as error:
        run(main())
    assert (error.value.expected, error.value.received) == (1000, 9)


def test_a_reader_that_does_not_ask_stops_the_server(serve):
    sent = []

    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
        for _ in range(500):
            talk.send(b"x" * 100_000)
            sent.append(1)

    async def main():
        async with open_engine(serve(script)) as engine:
            response = await engine.fetch(ask())
            for _ in range(100):
                before = len(sent)
                await asyncio.sleep(0.05)
                if len(sent) == before:
                    break
            assert len(sent) < 200
            assert sum([len(block) async for block in response]) == 50_000_000

    run(main())


def test_an_engine_that_is_closed_ends_what_is_under_way(serve):
    async def main():
        async with open_engine(serve(endless)) as engine:
            response = await engine.fetch(ask())
            reading = asyncio.ensure_future(response.read())
            await asyncio.sleep(0.02)
            await engine.aclose()
            with pytest.raises(httpx2.TransportError):
                await reading
            with pytest.raises(httpx2.TransportError):
                await engine.fetch(ask())

    run(main())
