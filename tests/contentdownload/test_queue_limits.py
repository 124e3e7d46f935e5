from __future__ import annotations

import threading
import time

import pytest

from DocsToKG.ContentDownload.orchestrator import limits
from DocsToKG.ContentDownload.orchestrator.limits import KeyedLimiter
from DocsToKG.core import urls


def test_a_key_has_its_own_limit_or_the_default_and_at_least_one():
    """LIM-01."""
    limiter = KeyedLimiter(0, {"unpaywall": 2, "doi": -3})
    assert [limiter.limit(key) for key in ("unpaywall", "doi", "other")] == [2, 1, 1]


def test_keys_do_not_affect_each_other():
    """LIM-02."""
    limiter = KeyedLimiter(1)
    assert limiter.acquire("a")
    assert limiter.acquire("b", blocking=False)
    assert not limiter.acquire("a", blocking=False)
    limiter.release("a")
    assert limiter.acquire("a", blocking=False)


def test_holders_never_exceed_the_limit():
    """LIM-02: many threads, one key."""
    limiter, lock = KeyedLimiter(8, {"host": 3}), threading.Lock()
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(20):
            with limiter.holding("host"):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.0005)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert (most, limiter.in_use("host")) == (3, 0)


def test_a_waiting_thread_goes_on_when_a_place_is_freed():
    limiter, entered = KeyedLimiter(1), threading.Event()
    limiter.acquire("a")

    def wait_for_place() -> None:
        limiter.acquire("a")
        entered.set()

    thread = threading.Thread(target=wait_for_place)
    thread.start()
    assert not entered.wait(0.05)
    limiter.release("a")
    assert entered.wait(10)
    thread.join(timeout=10)


def test_a_raised_limit_lets_a_waiting_thread_in():
    """EXT-04: a changed limit holds for live keys."""
    limiter = KeyedLimiter(1)
    limiter.acquire("a")
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(limiter.acquire("a", timeout=10)))
    thread.start()
    limiter.set_limit("a", 2)
    thread.join(timeout=20)
    assert (answers, limiter.in_use("a")) == ([True], 2)


def test_a_lowered_limit_holds_as_soon_as_places_are_freed():
    """EXT-04"""
    limiter = KeyedLimiter(3)
    for _ in range(3):
        limiter.acquire("a")
    limiter.set_limit("a", 1)
    limiter.release("a")
    limiter.release("a")
    assert not limiter.acquire("a", blocking=False)
    limiter.release("a")
    assert limiter.acquire("a", blocking=False)


def test_waiting_can_be_bounded():
    limiter = KeyedLimiter(1)
    limiter.acquire("a")
    assert not limiter.acquire("a", timeout=0.01)


def test_a_place_that_was_not_taken_cannot_be_freed():
    limiter = KeyedLimiter(1)
    with pytest.raises(ValueError, match="'a'"):
        limiter.release("a")


def test_a_place_is_freed_also_when_the_body_fails():
    limiter = KeyedLimiter(1)
    with pytest.raises(RuntimeError), limiter.holding("a"):
        raise RuntimeError
    assert limiter.in_use("a") == 0


def test_host_key_is_the_one_of_core():
    """LIM-03."""
    assert limits.host_key is urls.host_key
    assert limits.host_key("https://User:pw@Example.ORG:443/x") == "example.org"
