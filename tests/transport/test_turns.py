"""Whoever waits for a server lets other threads of its pool run, and comes back on every way out."""

from __future__ import annotations

import threading

import httpx2
import pytest

from DocsToKG.core.turns import join_pool
from DocsToKG.transport.names import SystemNames

URL = "http://papers.example.org/a.pdf"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Turn:
    """Counts; taking and leaving must alternate."""

    def __init__(self):
        self.left = self.taken = 0

    def leave(self):
        assert self.left == self.taken
        self.left += 1

    def take(self):
        self.taken += 1
        assert self.left == self.taken


@pytest.fixture
def turn():
    found = Turn()
    join_pool(found)
    yield found
    join_pool(None)


def later(answer, seconds=0.05):
    def script(talk):
        while talk.read_request():
            threading.Event().wait(seconds)
            talk.send(answer)

    return script


def test_waiting_for_an_answer_gives_way(serve, reach, turn):
    client = reach(serve(later(OK)))
    for _ in range(3):
        before = turn.left
        assert client.get(URL).content == b"hi"
        assert turn.left == turn.taken > before


def test_a_wait_that_fails_takes_its_turn_back(serve, reach, turn):
    client = reach(serve(later(OK, seconds=0.3)))
    with pytest.raises(httpx2.ReadTimeout):
        client.get(URL, timeout=0.05)
    assert turn.left == turn.taken > 0


def test_a_slow_look_up_gives_way(turn):
    def slowly(host, port, type):
        threading.Event().wait(0.05)
        return [(None, None, None, "", ("93.184.216.34", port))]

    names = SystemNames(getaddrinfo=slowly)
    assert names.resolve("a.org", 80, timeout_s=5.0, cancel=None) == ["93.184.216.34"]
    assert turn.left == turn.taken == 1
    assert names.resolve("a.org", 80, timeout_s=5.0, cancel=None) == ["93.184.216.34"]
    assert turn.left == 1
