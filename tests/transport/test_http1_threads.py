"""Many threads on many hosts share one transport, and nothing is left open after."""

from __future__ import annotations

import gc
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.http1 import LeanTransport
from DocsToKG.transport.names import StaticNames


def open_descriptors():
    gc.collect()
    return len(os.listdir("/dev/fd"))


def echo(talk):
    """Answers each path with itself, in one of the framings, and misbehaves where the path says so."""
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


@pytest.mark.slow
def test_many_threads_on_many_hosts_each_get_their_own_answer(serve, reach):
    """NET-01: one client for all threads."""
    client = reach(serve(echo), max_idle=20, max_idle_per_host=3)
    dice = random.Random(7)
    endings = [dice.choice(["plain", "chunked", "short", "reset", "closed-early"]) for _ in range(600)]

    def ask(number):
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
        assert all(pool.map(ask, range(600)))
    assert len(client._transport._idle) <= 20


@pytest.mark.slow
def test_nothing_stays_open_after_success_failure_and_cancel(serve):
    server = serve(echo)
    before = open_descriptors()
    transport = LeanTransport(
        guard=AddressGuard(),
        names=StaticNames({"*": ["93.184.216.34"]}),
        connect_to=ConnectTo({"*": f"plain://127.0.0.1:{server.port}", "dead.org": "plain://127.0.0.1:1"}),
    )
    with httpx2.Client(transport=transport, trust_env=False) as client:
        for ending in ("plain", "short", "reset", "chunked") * 5:
            try:
                client.get(f"http://a.org/{ending}")
            except httpx2.TransportError:
                assert ending in ("short", "reset")
        with pytest.raises(httpx2.ConnectError):
            client.get("http://dead.org/")
        held = client.send(client.build_request("GET", "http://b.org/x"), stream=True)
        held.close()
    server.close()
    assert open_descriptors() <= before - 1, "the listener is closed now, and nothing else may have come"


def test_cancelling_at_any_moment_ends_in_an_answer_or_in_cancelled(serve, reach):
    """A cancel may meet a connection that was just given back and taken by another; that other must not notice."""
    client = reach(serve(echo), max_idle_per_host=2)
    dice = random.Random(11)
    delays = [dice.random() * 0.002 for _ in range(150)]

    def ask(number):
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
        assert all(pool.map(ask, range(150)))
