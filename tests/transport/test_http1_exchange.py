"""One request, one answer: what is sent, what comes back, what is kept."""

from __future__ import annotations

import contextlib
import logging
import threading
import time

import httpx2
import pytest

from DocsToKG.core.clock import ManualClock
from DocsToKG.transport.client import silence_request_log

URL = "http://papers.example.org/a.pdf?x=1"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def play(answer, times=100):
    def script(talk):
        for _ in range(times):
            if not talk.read_request():
                return
            talk.send(answer)

    return script


def test_request_goes_out_exactly_as_httpx2_wrote_it(serve, reach):
    server = serve(play(OK))
    client = reach(server)
    request = client.build_request("GET", URL, headers={"X-Case": "Kept"})
    client.send(request)
    expected = [b"GET /a.pdf?x=1 HTTP/1.1", *(b"%s: %s" % pair for pair in request.headers.raw)]
    assert server.requests[0].split(b"\r\n") == expected
    assert b"Host: papers.example.org" in expected


def test_answer_carries_status_headers_body_and_peer(serve, reach):
    server = serve(play(b"HTTP/1.1 404 Nothing Here\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nno"))
    response = reach(server).get(URL)
    assert (response.status_code, response.reason_phrase, response.content) == (404, "Nothing Here", b"no")
    assert response.headers.get_list("x-a") == ["1", "2"]
    assert response.extensions["peer"] == "127.0.0.1"


def test_kept_connection_is_used_again(serve, reach):
    """NET-01: wrappers share the connections of one client."""
    server = serve(play(OK))
    client = reach(server)
    assert [client.get(URL).content for _ in range(5)] == [b"hello"] * 5
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nmore",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
    ids=["close", "http-1.0", "extra-bytes", "bytes-after-last-chunk", "length-and-chunked"],
)
def test_doubtful_connection_is_not_used_again(serve, reach, answer):
    server = serve(play(answer))
    client = reach(server)
    assert [client.get(URL).content for _ in range(2)] == [b"hello"] * 2
    assert server.connections == 2


def test_http_1_0_connection_is_kept_when_the_server_says_so(serve, reach):
    server = serve(play(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"))
    client = reach(server)
    assert client.get(URL).content + client.get(URL).content == b"hellohello"
    assert server.connections == 1


def test_connection_closed_while_idle_is_replaced_unseen(serve, reach):
    server = serve(play(OK, times=1), play(OK))
    client = reach(server)
    client.get(URL)
    server.sockets[0].close()
    assert client.get(URL).content == b"hello"
    assert server.connections == 2


def test_idle_connection_on_which_the_server_speaks_up_is_replaced(serve, reach):
    spoken = threading.Event()

    def script(talk):
        talk.read_request()
        talk.send(OK)
        spoken.wait(5)
        talk.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        spoken.clear()
        talk.wait_until_client_leaves()

    server = serve(script, play(OK))
    client = reach(server)
    client.get(URL)
    spoken.set()
    while spoken.is_set():
        time.sleep(0.001)
    assert client.get(URL).status_code == 200
    assert server.connections == 2


def close_on_second_request(talk):
    talk.read_request()
    talk.send(OK)
    talk.read_request()


def reset_on_second_request(talk):
    close_on_second_request(talk)
    talk.reset()


@pytest.mark.parametrize("first", [close_on_second_request, reset_on_second_request])
def test_connection_that_dies_under_a_second_request_is_retried_once_on_a_fresh_one(serve, reach, first):
    server = serve(first, play(OK))
    client = reach(server)
    client.get(URL)
    assert client.get(URL).content == b"hello"
    assert server.connections == 2
    assert len(server.requests) == 3


def test_a_post_is_never_sent_twice(serve, reach):
    server = serve(close_on_second_request, play(OK))
    client = reach(server)
    client.get(URL)
    with pytest.raises(httpx2.ReadError):
        client.post(URL, content=b"order")
    assert server.connections == 1


def test_a_fresh_connection_that_says_nothing_is_not_retried(serve, reach):
    server = serve(lambda talk: talk.read_request() and None)
    with pytest.raises(httpx2.RemoteProtocolError):
        reach(server).get(URL)
    assert server.connections == 1


def test_half_an_answer_on_a_kept_connection_is_an_error_not_a_retry(serve, reach):
    def script(talk):
        close_on_second_request(talk)
        talk.send(b"HTTP/1.1 200")

    server = serve(script, play(OK))
    client = reach(server)
    client.get(URL)
    with pytest.raises(httpx2.RemoteProtocolError):
        client.get(URL)


def test_idle_connection_expires(serve, reach):
    clock = ManualClock()
    server = serve(play(OK))
    client = reach(server, clock=clock, idle_expiry_s=30)
    client.get(URL)
    clock.advance(29)
    client.get(URL)
    assert server.connections == 1
    clock.advance(31)
    client.get(URL)
    assert server.connections == 2


def test_no_more_idle_connections_than_allowed(serve, reach):
    server = serve(play(OK))
    client = reach(server, max_idle=2, max_idle_per_host=1)
    for host in "abcd":
        streams = [client.send(client.build_request("GET", f"http://{host}.org/"), stream=True) for _ in range(2)]
        for response in streams:
            response.read()
    assert server.connections == 8
    assert len(client._transport._idle) == 2


def test_idle_connections_make_room_for_those_in_use(serve, reach):
    server = serve(play(OK))
    client = reach(server, max_open=3)
    idle = client._transport._idle
    for host in "abc":
        client.get(f"http://{host}.org/")
    assert (len(idle), idle._in_use) == (3, 0)
    held = [client.send(client.build_request("GET", f"http://{host}.org/"), stream=True) for host in "de"]
    assert (len(idle), idle._in_use) == (1, 2)
    client.get("http://c.org/")  # the youngest is the one that was spared
    assert server.connections == 5
    for response in held:
        response.read()
    assert (len(idle), idle._in_use) == (3, 0)


@pytest.mark.parametrize(
    "answer",
    [OK, b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b"", OK + b"stray"],
)
def test_every_end_of_an_exchange_is_counted(serve, reach, answer):
    """A count that drifts would close good connections, or keep too many."""

    def once(talk):
        talk.read_request()
        talk.send(answer)

    client = reach(serve(once), max_open=2)
    idle = client._transport._idle
    for _ in range(3):
        with contextlib.suppress(httpx2.TransportError):
            client.get(URL)
        assert idle._in_use == 0
    with contextlib.suppress(httpx2.TransportError):
        response = client.send(client.build_request("GET", URL), stream=True)
        response.close()
        response.close()
    with pytest.raises(httpx2.TransportError):
        client.get(URL, extensions={"deadline": 0.0})
    assert idle._in_use == 0


def test_hosts_do_not_share_connections(serve, reach):
    server = serve(play(OK))
    client = reach(server)
    for url in ("http://a.org/", "http://b.org/", "http://a.org:8080/", "https://a.org/"):
        client.get(url)
    assert server.connections == 4


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    ],
)
def test_answers_without_a_body_need_no_reading(serve, reach, method, answer):
    server = serve(play(answer))
    client = reach(server)
    for _ in range(2):
        assert client.request(method, URL).content == b""
    assert server.connections == 1


def test_interim_answers_are_skipped(serve, reach):
    server = serve(play(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK))
    client = reach(server)
    assert client.get(URL).content == b"hello"


def test_interim_answers_without_end_are_an_error(answering, reach):
    server = answering(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, stay=True)
    with pytest.raises(httpx2.RemoteProtocolError):
        reach(server).get(URL)


def test_unasked_protocol_switch_is_an_error(answering, reach):
    server = answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", stay=True)
    with pytest.raises(httpx2.RemoteProtocolError):
        reach(server).get(URL)


def test_redirects_are_not_followed_and_their_connection_is_kept(serve, reach):
    """NET-12: each hop is somebody's decision; closing the unread page does not cost the connection."""
    server = serve(play(b"HTTP/1.1 302 Found\r\nLocation: http://other.org/\r\nContent-Length: 4\r\n\r\npage"))
    client = reach(server)
    for _ in range(2):
        with client.stream("GET", URL) as response:
            assert response.status_code == 302
    assert server.connections == 1
    assert all(b"Host: papers.example.org" in request for request in server.requests)


def test_closing_an_unfinished_body_closes_its_connection(serve, reach):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin")
        talk.wait_until_client_leaves()

    server = serve(script)
    client = reach(server)
    with client.stream("GET", URL) as response:
        assert next(response.iter_raw()) == b"begin"
    assert server.client_left.wait(5)


def test_body_is_sent_by_length_and_in_chunks(serve, reach):
    received = []

    def script(talk):
        talk.read_request()
        received.append(talk.read_bytes(5))
        talk.send(OK)
        talk.read_request()
        received.append(talk.read_bytes(23))
        talk.send(OK)

    client = reach(serve(script))
    client.post(URL, content=b"12345")
    client.post(URL, content=iter([b"abc", b"", b"defgh"]))
    assert received == [b"12345", b"3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n"]


@pytest.mark.parametrize("content", [b"long enough", b"x"])
def test_body_that_is_not_as_long_as_announced_is_an_error(serve, reach, content):
    client = reach(serve(play(OK)))
    with pytest.raises(httpx2.LocalProtocolError):
        client.post(URL, content=iter([content]), headers={"Content-Length": "5"})


def test_header_that_would_split_the_request_is_refused_without_its_value(serve, reach):
    """SEC-04: the text of the error holds no header value."""
    server = serve(play(OK))
    client = reach(server)
    with pytest.raises(httpx2.LocalProtocolError) as error:
        client.get(URL, headers={"X-Key": "secret\r\nX-Evil: 1"})
    assert "secret" not in str(error.value)
    assert "X-Key" in str(error.value)
    assert server.requests == []


def test_request_without_host_is_refused(serve, reach):
    client = reach(serve(play(OK)))
    request = client.build_request("GET", URL)
    del request.headers["Host"]
    with pytest.raises(httpx2.LocalProtocolError):
        client.send(request)


def test_other_schemes_are_refused(reach):
    with pytest.raises(httpx2.UnsupportedProtocol):
        reach().get("ftp://papers.example.org/")


def test_cookies_of_one_answer_do_not_reach_the_next_request(serve, reach):
    server = serve(play(b"HTTP/1.1 200 OK\r\nSet-Cookie: session=1; Path=/\r\nContent-Length: 0\r\n\r\n"))
    client = reach(server)
    client.get(URL)
    client.get(URL)
    assert b"ookie" not in server.requests[1]


def test_urls_with_keys_are_not_logged_once_the_log_is_silenced(serve, reach, caplog):
    """SEC-04: httpx2 writes every URL it asks for into its log."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx2").setLevel(logging.NOTSET)
    client = reach(serve(play(OK)))
    client.get(URL, params={"key": "shown"})
    silence_request_log()
    client.get(URL, params={"key": "hunter2"})
    logging.getLogger("httpx2").setLevel(logging.NOTSET)
    assert "shown" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("length", ["five", "-5", "5, 5"])
def test_a_content_length_of_our_own_that_makes_no_sense_is_refused(serve, reach, length):
    client = reach(serve(play(OK)))
    with pytest.raises(httpx2.LocalProtocolError):
        client.post(URL, content=iter([b"12345"]), headers={"Content-Length": length})


def test_closed_transport_keeps_no_connection(serve, reach):
    server = serve(play(OK))
    client = reach(server)
    with client.stream("GET", URL) as response:
        client.close()
        assert response.read() == b"hello"
    assert len(client._transport._idle) == 0
