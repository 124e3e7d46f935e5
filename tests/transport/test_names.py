"""Names to addresses: deadlines on a resolver that cannot be interrupted, sharing, remembering."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from tests.waiting import eventually

from DocsToKG.core.clock import ManualClock
from DocsToKG.transport.errors import NameNotFound
from DocsToKG.transport.names import StaticNames, SystemNames, in_turn


class FakeSystem:
    """Stands in for the C library's resolver: counts calls, and blocks until let go."""

    def __init__(self, addresses=("93.184.216.34",), *, blocked=False):
        self.addresses = addresses
        self.asked = []
        self.let_go = threading.Event()
        if not blocked:
            self.let_go.set()

    def __call__(self, host, port, type):
        self.asked.append(host)
        self.let_go.wait(10)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, type, 6, "", (address, port)) for address in self.addresses]


@pytest.fixture
def blocked():
    system = FakeSystem(blocked=True)
    yield system
    system.let_go.set()


def resolve(names, host="a.example.org", timeout_s=5.0):
    return asyncio.run(names.lookup(host, 443, timeout_s=timeout_s))


def wait_for_quiet():
    eventually(lambda: all(thread.name != "name-look-up" for thread in threading.enumerate()))


def test_the_machines_resolver_knows_localhost():
    assert "127.0.0.1" in resolve(SystemNames(), "localhost")
    wait_for_quiet()


def test_waiting_for_a_stuck_resolver_ends_in_time(blocked):
    start = time.monotonic()
    with pytest.raises(httpx2.ConnectTimeout):
        resolve(SystemNames(getaddrinfo=blocked), timeout_s=0.05)
    assert time.monotonic() - start < 30


def test_stuck_look_ups_never_use_more_threads_than_allowed(blocked):
    names = SystemNames(getaddrinfo=blocked, threads=3, max_threads=3)
    for number in range(8):
        with pytest.raises(httpx2.ConnectTimeout):
            resolve(names, f"h{number}.example.org", timeout_s=0.01)
    assert len(blocked.asked) == 3
    blocked.let_go.set()
    assert resolve(names, "later.example.org") == ["93.184.216.34"]
    wait_for_quiet()
    assert len(blocked.asked) == 4, "look-ups that everybody gave up on are not made"


def test_all_who_ask_for_one_name_share_one_look_up(blocked):
    """Whatever thread or event loop they are in."""
    names = SystemNames(getaddrinfo=blocked)
    with ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(resolve, names) for _ in range(6)]
        eventually(lambda: blocked.asked)
        blocked.let_go.set()
        assert [one.result(5) for one in asking] == [["93.184.216.34"]] * 6
    assert blocked.asked == ["a.example.org"]


def test_an_answer_that_comes_after_everybody_left_is_remembered(blocked):
    names = SystemNames(getaddrinfo=blocked)
    with pytest.raises(httpx2.ConnectTimeout):
        resolve(names, timeout_s=0.02)
    blocked.let_go.set()
    wait_for_quiet()
    assert resolve(names) == ["93.184.216.34"]
    assert len(blocked.asked) == 1


def test_where_the_system_gave_no_thread_the_next_asker_has_one(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    names = SystemNames(getaddrinfo=FakeSystem())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(httpx2.ConnectTimeout):
            resolve(names, timeout_s=0.01)
    assert resolve(names) == ["93.184.216.34"]
    wait_for_quiet()


def test_answers_are_asked_for_again_when_they_are_old():
    clock, system = ManualClock(), FakeSystem()
    names = SystemNames(getaddrinfo=system, clock=clock, ttl_s=60)
    resolve(names)
    clock.advance(59)
    resolve(names)
    assert len(system.asked) == 1
    clock.advance(2)
    resolve(names)
    assert len(system.asked) == 2


def test_an_unknown_name_is_remembered_for_a_short_while():
    clock, system = ManualClock(), FakeSystem(addresses=())
    names = SystemNames(getaddrinfo=system, clock=clock, failure_ttl_s=5)
    for _ in range(2):
        with pytest.raises(NameNotFound):
            resolve(names)
    clock.advance(6)
    with pytest.raises(NameNotFound):
        resolve(names)
    assert len(system.asked) == 2


def test_a_name_with_an_impossible_label_is_not_found():
    with pytest.raises(NameNotFound):
        resolve(SystemNames(), "a" * 64 + ".example.org")


def test_no_more_names_are_remembered_than_allowed():
    names = SystemNames(getaddrinfo=FakeSystem(), max_names=10)
    hosts = [f"h{number}.example.org" for number in range(25)]
    for host in hosts:
        resolve(names, host)
    assert [host for host in hosts if names.known(host)] == hosts[15:]


def test_families_take_turns():
    assert in_turn(["2001:a::1", "2001:a::2", "1.1.1.1", "2001:a::1"]) == ["2001:a::1", "1.1.1.1", "2001:a::2"]
    assert in_turn([]) == []


def test_a_table_answers_by_name_suffix_and_star():
    names = StaticNames({"A.example.org": ["1.1.1.1"], "*.example.org": ["2.2.2.2"], "*": ["3.3.3.3"]})
    hosts = ("a.example.org", "A.EXAMPLE.ORG.", "b.example.org", "c.b.example.org", "example.org", "elsewhere.net")
    assert [resolve(names, host)[0] for host in hosts] == ["1.1.1.1"] * 2 + ["2.2.2.2"] * 2 + ["3.3.3.3"] * 2


def test_a_table_without_an_answer_asks_its_fallback():
    first = StaticNames({"a.example.org": ["1.1.1.1"]}, fallback=StaticNames({"b.example.org": ["2.2.2.2"]}))
    assert resolve(first, "b.example.org") == ["2.2.2.2"]
    with pytest.raises(NameNotFound):
        resolve(first, "c.example.org")
