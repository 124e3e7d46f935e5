"""Deadlines hold whatever the server does, and a call can be called off from another thread."""

from __future__ import annotations

import socket
import threading
import time

import httpx2
import pytest

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.errors import DeadlineExceeded

PATIENCE_S = 4.0  # for a busy machine; what is not ended lasts for five seconds and more
URL = "http://papers.example.org/a.pdf"
SLOW_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nstart"


def drip(prefix):
    """Sends `prefix`, then a byte every 10 ms: no read ever waits long."""

    def script(talk):
        talk.read_request()
        talk.send(prefix)
        for _ in range(1000):
            talk.send(b"x")
            if talk.server.client_left.wait(0.01):
                return

    return script


def stall(prefix):
    def script(talk):
        talk.read_request()
        talk.send(prefix)
        talk.wait_until_client_leaves()

    return script


def seconds(call):
    start = time.monotonic()
    with pytest.raises((httpx2.TransportError, Cancelled)) as error:
        call()
    return time.monotonic() - start, error.value


@pytest.mark.parametrize(
    "prefix",
    [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", SLOW_BODY, b"HTTP/1.1 200 OK\r\n\r\n"],
    ids=["status-line", "header", "body-by-length", "body-until-close"],
)
@pytest.mark.parametrize("play", [drip, stall])
def test_deadline_ends_the_whole_exchange(serve, reach, prefix, play):
    """A socket timeout never stops a server that sends a byte now and then; the deadline does."""
    client = reach(serve(play(prefix)))
    deadline = time.monotonic() + 0.2
    took, error = seconds(lambda: client.get(URL, extensions={"deadline": deadline}))
    assert isinstance(error, DeadlineExceeded)
    assert 0.15 < took < PATIENCE_S


def test_deadline_in_the_past_sends_nothing(serve, reach):
    server = serve(stall(b""))
    with pytest.raises(DeadlineExceeded):
        reach(server).get(URL, extensions={"deadline": time.monotonic() - 1})
    assert server.connections == 0


def test_read_timeout_ends_a_silent_wait_before_the_deadline(serve, reach):
    """NET-16."""
    client = reach(serve(stall(SLOW_BODY)))
    timeout = httpx2.Timeout(5, read=0.1)
    took, error = seconds(lambda: client.get(URL, timeout=timeout, extensions={"deadline": time.monotonic() + 10}))
    assert type(error) is httpx2.ReadTimeout
    assert took < PATIENCE_S


def test_deadline_that_is_kept_disturbs_nothing(answering, reach):
    server = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert reach(server).get(URL, extensions={"deadline": time.monotonic() + 10}).content == b"ok"


@pytest.fixture
def full_backlog():
    """A listening port that takes no more connections: connecting to it waits."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        yield ConnectTo({"*": f"plain://127.0.0.1:{listener.getsockname()[1]}"})
        for filler in fillers:
            filler.close()


def test_connecting_ends_with_its_timeout(full_backlog, reach):
    client = reach(connect_to=full_backlog)
    took, error = seconds(lambda: client.get(URL, timeout=httpx2.Timeout(5, connect=0.15)))
    assert type(error) is httpx2.ConnectTimeout
    assert took < PATIENCE_S


def test_connecting_ends_with_the_deadline(full_backlog, reach):
    client = reach(connect_to=full_backlog)
    took, error = seconds(lambda: client.get(URL, extensions={"deadline": time.monotonic() + 0.15}))
    assert isinstance(error, DeadlineExceeded)
    assert took < PATIENCE_S


def test_sending_ends_with_its_timeout(serve, reach):
    server = serve(lambda talk: talk.server.client_left.wait(5))
    client = reach(server)
    body = iter([b"x" * 1_000_000] * 64)
    took, error = seconds(lambda: client.post(URL, content=body, timeout=httpx2.Timeout(5, write=0.1)))
    server.client_left.set()
    assert type(error) is httpx2.WriteTimeout
    assert took < PATIENCE_S


def assert_cancel_frees(call):
    """Within 100 ms of cancelling. A busy machine gets six tries; a reader left blocked needs seconds in each."""
    for _ in range(6):
        took, ended = cancel_while_blocked(call)
        assert [type(error) for error in ended] == [Cancelled]
        if took < 0.1:
            return
    pytest.fail(f"cancelling took {took:.3f} s")


def cancel_while_blocked(call):
    """Seconds from cancelling to the end of the call, and how it ended."""
    token, ended = CancelToken(), []

    def run():
        try:
            call({"cancel": token})
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)
    start = time.monotonic()
    token.cancel()
    thread.join(5)
    return time.monotonic() - start, ended


@pytest.mark.parametrize("prefix", [b"", b"HTTP/1.1 200 OK\r\n", SLOW_BODY, b"HTTP/1.1 200 OK\r\n\r\npart"])
def test_cancel_from_another_thread_frees_a_blocked_reader_at_once(serve, reach, prefix):
    server = serve(stall(prefix))
    client = reach(server)
    assert_cancel_frees(lambda extensions: client.get(URL, extensions=extensions))
    assert server.client_left.wait(5)


def test_cancel_frees_a_caller_that_is_still_connecting(full_backlog, reach):
    client = reach(connect_to=full_backlog)
    assert_cancel_frees(lambda extensions: client.get(URL, extensions=extensions))


def test_cancelled_request_is_not_sent(serve, reach):
    server = serve(stall(b""))
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        reach(server).get(URL, extensions={"cancel": token})
    assert server.connections == 0


def test_cancelling_a_finished_exchange_leaves_the_connection_to_its_next_user(serve, reach):
    def script(talk):
        while talk.read_request():
            talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    server = serve(script)
    client = reach(server)
    first = CancelToken()
    client.get(URL, extensions={"cancel": first})
    with client.stream("GET", URL) as response:
        first.cancel()
        assert response.read() == b"ok"
    assert client.get(URL).content == b"ok"
    assert server.connections == 1
    assert first._callbacks == {}


def test_abort_that_comes_late_does_not_touch_the_next_exchange(serve, reach):
    """A cancel that had already picked its callback when the exchange ended must not shut the connection down."""
    picked = []

    class LateToken(CancelToken):
        def on_cancel(self, callback):
            picked.append(callback)
            return super().on_cancel(callback)

    def script(talk):
        while talk.read_request():
            talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    server = serve(script)
    client = reach(server)
    client.get(URL, extensions={"cancel": LateToken()})
    picked[0]()
    assert client.get(URL).content == b"ok"
    assert server.connections == 1


def test_closing_a_cancelled_answer_raises_nothing(serve, reach):
    client = reach(serve(stall(SLOW_BODY)))
    token = CancelToken()
    response = client.send(client.build_request("GET", URL, extensions={"cancel": token}), stream=True)
    token.cancel()
    response.close()
    with pytest.raises(httpx2.StreamClosed):
        next(response.iter_raw())
