"""SEC-05: only judged addresses, on new and on kept connections, however hosts are spelled or reached."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time

import httpx2
import pytest
from tests import needs
from tests.transport.curl_support import OK, PUBLIC, ask, get, open_engine, run

from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl.routes import Routes
from DocsToKG.transport.errors import AddressRefused, DeadlineExceeded, NameNotFound
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames, SystemNames

LOOPBACK = AddressGuard(allow_networks=["127.0.0.0/8", "::1/128"])


def answer_all(talk):
    while talk.read_request():
        talk.send(OK)


@pytest.fixture
def packets(monkeypatch):
    """What libcurl wants to connect to is written down and refused below the guard, so that a guard that fails sends
    no packet."""
    tried = []
    real = socket.socket

    def refuse(family=-1, type=-1, proto=-1, fileno=None):
        if fileno is None and threading.current_thread() is threading.main_thread():
            tried.append(family)
            raise ConnectionRefusedError(111, "blocked by the test")
        return real(family, type, proto, fileno)

    def start(main):
        async def patched():
            with monkeypatch.context() as patch:
                patch.setattr("DocsToKG.transport.curl.handle.socket.socket", refuse)
                await main()

        run(patched())
        return tried

    return start


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:7f00:1]/",
        "http://169.254.169.254/latest/meta-data/",
        "https://localhost/",
        "http://rebound.example.org/",
        "http://mapped.example.org/",
        "http://１２７.０.０.１/",
    ],
)
def test_no_packet_goes_to_a_private_address(packets, url):
    table = {
        "localhost": ["127.0.0.1", "::1"],
        "rebound.example.org": ["10.0.0.7"],
        "mapped.example.org": ["::ffff:127.0.0.1"],
    }

    async def main():
        async with open_engine(names=StaticNames(table)) as engine:
            with pytest.raises((AddressRefused, httpx2.InvalidURL)):
                await engine.fetch(ask(url))

    assert packets(main) == []


@pytest.fixture
def without_pins(monkeypatch):
    """From now on libcurl looks names up itself, as if their pins had been lost."""
    pinned = Routes.known

    def start():
        monkeypatch.setattr(Routes, "known", lambda routes, route: pinned(routes, route)._replace(pins=()))

    return start


def test_the_hook_refuses_what_nobody_judged_even_if_libcurl_came_upon_it(packets, without_pins):
    async def main():
        without_pins()
        async with open_engine(names=StaticNames({"*": [PUBLIC]})) as engine:
            with pytest.raises(AddressRefused):
                await engine.fetch(ask("http://localhost:9/"))

    assert packets(main) == []


def test_public_addresses_are_tried_and_private_ones_of_a_mixed_answer_are_not(packets):
    async def main():
        names = StaticNames({"*": ["10.0.0.1", PUBLIC, "fe80::1"]})
        async with open_engine(names=names) as engine:
            with pytest.raises(httpx2.ConnectError):
                await engine.fetch(ask("http://mixed.example.org:8080/"))

    assert packets(main) == [socket.AF_INET]


def test_the_next_address_is_tried_when_one_does_not_answer(serve):
    server = serve(answer_all)

    async def main():
        names = StaticNames({"*": ["127.0.0.2", "127.0.0.3", "127.0.0.1"]})
        async with open_engine(names=names, guard=LOOPBACK) as engine:
            response = await engine.fetch(ask(f"http://papers.example.org:{server.port}/"))
            assert (response.peer, await response.read()) == ("127.0.0.1", b"hello")

    run(main())


def test_literal_addresses_are_reached_where_they_are_allowed(serve):
    server = serve(answer_all)

    async def main():
        async with open_engine(guard=LOOPBACK) as engine:
            for host in ("127.0.0.1", "2130706433", "0x7f.1"):
                assert await get(engine, f"http://{host}:{server.port}/") == b"hello"

    run(main())


def test_ipv6_is_reached(serve):
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        needs.lacks("IPv6 on loopback")

    def answer():
        with listener, listener.accept()[0] as sock:
            sock.recv(65536)
            sock.sendall(OK)

    thread = threading.Thread(target=answer, daemon=True)
    port = listener.getsockname()[1]
    thread.start()

    async def main():
        async with open_engine(guard=LOOPBACK, names=StaticNames({"*": ["::1"]})) as engine:
            response = await engine.fetch(ask(f"http://six.example.org:{port}/"))
            assert (response.peer, await response.read()) == ("::1", b"hello")

    run(main())
    thread.join(5)


def test_a_silent_ipv6_address_does_not_hold_up_ipv4(serve):
    """Both are tried beside each other, the second soon after the first (RFC 8305)."""
    server = serve(answer_all)
    try:
        silent = socket.create_server(("::1", server.port), family=socket.AF_INET6, backlog=0)
    except OSError:
        needs.lacks("IPv6 on loopback")
    with silent, contextlib.ExitStack() as stack:
        for _ in range(4):  # with these its queue is full, and it answers no further connection
            filler = stack.enter_context(socket.socket(socket.AF_INET6))
            filler.setblocking(False)
            filler.connect_ex(silent.getsockname()[:2])

        async def main():
            names = StaticNames({"*": ["::1", "127.0.0.1"]})
            async with open_engine(guard=LOOPBACK, names=names) as engine:
                response = await engine.fetch(ask(f"http://both.example.org:{server.port}/", connect_s=20.0))
                assert (response.peer, await response.read()) == ("127.0.0.1", b"hello")

        start = time.monotonic()
        run(main())
        assert time.monotonic() - start < 5


def test_connect_to_does_not_spare_a_name_the_guard(packets):
    async def main():
        names = StaticNames({"rebound.example.org": ["10.0.0.7"]})
        async with open_engine(names=names, connect_to=ConnectTo({"*": "plain://127.0.0.1:9"})) as engine:
            with pytest.raises(AddressRefused):
                await engine.fetch(ask("http://rebound.example.org/"))

    assert packets(main) == []


class Table:
    """A resolver that is asked nothing twice."""

    def __init__(self, answers):
        self.answers = answers

    def known(self, host):
        return self.answers.get(host) or self.answers["*"]


class Changing:
    """A resolver whose answer changes."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def known(self, host):
        return None

    async def lookup(self, host, port, *, timeout_s):
        return [self.answers.pop(0)]


def test_a_kept_connection_is_judged_again_at_every_request(serve):
    """OPENSOCKETFUNCTION is not asked on reuse."""
    server = serve(answer_all)

    class Changed(AddressGuard):
        refusing = False

        def judge(self, host, addresses):
            if self.refusing and list(addresses) == ["127.0.0.1"]:
                raise AddressRefused("changed")
            return list(addresses)

    async def main():
        guard = Changed()
        names = Changing("127.0.0.1", "127.0.0.9")
        async with open_engine(names=names, guard=guard) as engine:
            url = f"http://papers.example.org:{server.port}/"
            await get(engine, url)
            guard.refusing = True
            with pytest.raises(httpx2.ConnectError):
                await get(engine, url)

    run(main())
    assert len(server.requests) == 1


def test_a_pin_goes_with_its_request(serve, without_pins):
    """RESOLVE holds for the whole multi handle, and outlives the handle it was set on."""
    server = serve(answer_all)

    async def main():
        answers = {"localhost": ["127.0.0.2"], "*": ["127.0.0.1"]}
        async with open_engine(names=Table(answers), guard=LOOPBACK) as engine:
            with pytest.raises(httpx2.ConnectError):
                await get(engine, f"http://localhost:{server.port}/")
            await get(engine, f"http://other.example.org:{server.port}/")
            answers["localhost"] = ["127.0.0.1"]
            without_pins()
            assert await get(engine, f"http://localhost:{server.port}/") == b"hello"  # libcurl's own answer

    run(main())


def test_a_new_answer_for_a_name_counts_at_once(serve):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")

    server = serve(script)

    async def main():
        async with open_engine(names=Changing("127.0.0.1", "127.0.0.9", "127.0.0.1"), guard=LOOPBACK) as engine:
            url = f"http://papers.example.org:{server.port}/"
            assert await get(engine, url) == b"hello"
            with pytest.raises(httpx2.ConnectError):
                await get(engine, url)
            assert await get(engine, url) == b"hello"

    run(main())


def test_hosts_do_not_share_connections(serve):
    server = serve(answer_all)

    async def main():
        async with open_engine(server) as engine:
            for url in ("http://a.org/", "http://b.org/", "http://a.org:8080/", "https://a.org/"):
                await get(engine, url)

    run(main())
    assert server.connections == 4


# names


class Resolver:
    """Stands in for the C library's: `dead` names block until they are let go."""

    def __init__(self):
        self.let_go = threading.Event()
        self.asked = []

    def __call__(self, host, port, type):
        self.asked.append(host)
        if host.startswith("dead"):
            self.let_go.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return [(socket.AF_INET, type, 6, "", (PUBLIC, port))]


@pytest.fixture
def resolver():
    made = Resolver()
    yield made
    made.let_go.set()


def test_dead_names_do_not_hold_up_good_ones_nor_the_end(serve, resolver):
    server = serve(answer_all)

    async def main():
        names = SystemNames(getaddrinfo=resolver, threads=4, patience_s=0.1)
        async with open_engine(server, names=names) as engine:
            dead = [asyncio.ensure_future(engine.fetch(ask(f"http://dead{n}.example.org/"))) for n in range(12)]
            await asyncio.sleep(0)
            async with asyncio.timeout(60):
                assert await get(engine, "http://good.example.org/") == b"hello"
            start = time.monotonic()
            for task in dead:
                task.cancel()
            await asyncio.gather(*dead, return_exceptions=True)
            await engine.aclose()
            assert time.monotonic() - start < 60  # the dead ones answer when the test is over

    run(main())


def test_a_dead_name_meets_the_time_to_connect_or_the_deadline(resolver):
    async def main():
        async with open_engine(names=SystemNames(getaddrinfo=resolver)) as engine:
            with pytest.raises(httpx2.ConnectTimeout):
                await engine.fetch(ask("http://dead.example.org/", connect_s=0.1))
            with pytest.raises(DeadlineExceeded):
                await engine.fetch(ask("http://dead.example.org/", deadline=time.monotonic() + 0.1))

    run(main())


def test_a_name_is_asked_for_once_by_all_who_want_it(serve, resolver):
    async def main():
        async with open_engine(serve(answer_all), names=SystemNames(getaddrinfo=resolver)) as engine:
            await asyncio.gather(*(get(engine, "http://good.example.org/") for _ in range(10)))

    run(main())
    assert resolver.asked == ["good.example.org"]


def test_an_unknown_name_is_not_found():
    async def main():
        async with open_engine(names=StaticNames({})) as engine:
            with pytest.raises(NameNotFound, match=r"gone\.example\.org"):
                await engine.fetch(ask("http://gone.example.org/"))

    run(main())


def test_a_name_that_nobody_waits_for_any_more_is_not_asked_for(resolver):
    names = SystemNames(getaddrinfo=resolver, threads=1, max_threads=1)

    async def main():
        for host in ("dead.example.org", "good.example.org"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await names.lookup(host, 80, timeout_s=5)
        resolver.let_go.set()
        assert await names.lookup("last.example.org", 80, timeout_s=5) == [PUBLIC]

    run(main())
    assert resolver.asked == ["dead.example.org", "last.example.org"]


def test_a_pin_that_was_taken_back_is_set_again_for_the_next_request(serve):
    """A handle that served this host before is told again what was forgotten meanwhile."""

    def script(talk):
        asked = talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhel")
        if b"held" in asked:
            talk.wait_until_client_leaves()
        talk.send(b"lo")

    server = serve(script)

    async def main():
        async with open_engine(names=StaticNames({"*": ["127.0.0.1"]}), guard=LOOPBACK) as engine:
            url = f"http://a.example.org:{server.port}/"
            assert await get(engine, url) == b"hello"
            held = await engine.fetch(ask(f"http://held.example.org:{server.port}/"))
            assert await get(engine, url) == b"hello"
            await held.aclose()

    run(main())
