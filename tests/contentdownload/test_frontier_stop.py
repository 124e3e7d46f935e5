"""When a frontier is stopped, what only waits ends at once, however long the threads are busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.steps import ExchangeOver, Gate, NotYet, Race, Steps, Wait
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.frontier.task import Ended
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock

THREADS = 2


class Shut:
    """A gatekeeper that lets nobody through."""

    def on_free(self, tell: Callable[[str], None]) -> None:
        return None

    def ask(self, gate: Gate) -> Any:
        return NotYet(key="host:shut.example.org", at=None, why="never")


class Busy:
    """A frontier whose threads all run works that end when the test says so."""

    def __init__(self) -> None:
        self.frontier = Frontier(gate=Shut(), clock=SystemClock(), threads=THREADS)
        self.go_on = threading.Event()
        self.ends: dict[str, Ended] = {}
        self.ended = threading.Condition()

    def submit(self, name: str, steps: Steps[Any]) -> None:
        def tell(how: Ended) -> None:
            with self.ended:
                self.ends[name] = how
                self.ended.notify_all()

        self.frontier.submit(steps, cancel=CancelToken(), on_done=tell)

    def fill(self, *, spare: int = 0) -> None:
        """Also the threads, `spare` of them, that prove what came while the others wait for the network."""
        begun = threading.Barrier(THREADS + spare + 1, timeout=60)

        def proving() -> Steps[str]:
            yield ExchangeOver()
            begun.wait()
            self.go_on.wait(60)
            return "finished"

        def busy() -> Steps[str]:
            begun.wait()
            self.go_on.wait(60)
            return "finished"
            yield Wait(0.0, "never")

        for number in range(spare):
            self.submit(f"busy spare {number}", proving())
        for number in range(THREADS):
            self.submit(f"busy {number}", busy())
        begun.wait()

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        with self.ended:
            return self.ended.wait_for(condition, 60)


@pytest.fixture
def busy() -> Iterator[Busy]:
    made = Busy()
    made.frontier.start()
    yield made
    made.go_on.set()
    made.frontier.stop(grace_s=60.0)


def waiting(step: Any) -> Steps[str]:
    yield step
    return "went on"


def long_wait() -> Wait:
    return Wait(SystemClock().monotonic() + 10_000, "a long time")


@pytest.mark.parametrize("spare", [0, 2])
def test_what_waits_is_given_back_while_every_thread_is_busy(busy: Busy, spare: int) -> None:
    parked = {
        "gate": Gate("https://shut.example.org/x", "arxiv", "artifact"),
        "time": long_wait(),
        "race": Race([lambda token: waiting(long_wait()) for _ in range(2)], 2, CancelToken()),
    }
    for name, step in parked.items():
        busy.submit(name, waiting(step))
    while len(busy.frontier._parked()) < 4:
        time.sleep(0.01)
    busy.fill(spare=spare)
    busy.submit("fresh", waiting(long_wait()))
    stopping = threading.Thread(target=busy.frontier.stop, kwargs={"grace_s": 60.0})
    stopping.start()
    assert busy.wait_for(lambda: {"fresh", *parked} <= set(busy.ends)), busy.ends
    assert not any(name.startswith("busy") for name in busy.ends), "they still run"
    assert {type(busy.ends[name].error) for name in ("fresh", *parked)} == {Cancelled}
    busy.go_on.set()
    stopping.join(60)
    assert not stopping.is_alive()
    assert [busy.ends[f"busy {number}"].value for number in range(THREADS)] == ["finished"] * THREADS
