"""The time that a job waits for a place is told with what was lacking, and the steps pass through unchanged."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.steps import Gate, NotYet, Race, Steps, Wait
from DocsToKG.ContentDownload.frontier.frontier import Frontier
from DocsToKG.ContentDownload.net.limit_store import MemoryStore
from DocsToKG.ContentDownload.net.limits import HostLimit, Limits
from DocsToKG.ContentDownload.net.shared import SharedStore
from DocsToKG.ContentDownload.telemetry.waits import SlotWaits
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock, ManualClock, SystemClock

A_PDF = Gate("https://files.example.org/a.pdf", "unpaywall", "download")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def keeper(clock: Clock, **limits: Any) -> SlotWaits:
    host = HostLimit(**{"max_concurrent": 1, **limits.pop("host", {})})
    return SlotWaits(Limits(clock=clock, default_host=host, store=MemoryStore(), **limits), clock)


def stepped(steps: Steps[Any], clock: ManualClock, gate: SlotWaits, frees: Mapping[int, Callable[[], None]]) -> Any:
    """Drive one work by hand: each time it is sent away a second goes by; `frees` says what happens then."""
    step = steps.send(None)
    for second in range(60):
        answer = gate.ask(step)  # type: ignore[arg-type]
        if not isinstance(answer, NotYet):
            try:
                steps.send(answer)
            except StopIteration as end:
                answer.release()
                return end.value
        clock.advance(1.0)
        frees.get(second, lambda: None)()
    raise AssertionError("never let in")


async def asks(gate: Gate) -> str:
    await gate
    return "in"


def granted(gate: SlotWaits, what: Gate) -> Any:
    permit = gate.ask(what)
    assert not isinstance(permit, NotYet)
    return permit


@pytest.mark.parametrize(
    ("taken", "limits", "told"),
    [
        (Gate("https://files.example.org/b", "other", "download"), {}, ("host", "files.example.org")),
        (
            Gate("https://elsewhere.org/b", "unpaywall", "download"),
            {"resolver_slots": {"unpaywall": 1}},
            ("resolver", "unpaywall"),
        ),
    ],
)
def test_the_time_without_a_place_is_told_with_what_was_lacking(taken, limits, told, clock):
    """LIM-19, on the real limits."""
    gate = keeper(clock, **limits)
    other = granted(gate, taken)
    waits: list[Any] = []
    steps = gate.watched(asks(A_PDF), lambda *wait: waits.append(wait))
    assert stepped(steps, clock, gate, {2: other.release}) == "in"
    assert waits == [(*told, pytest.approx(3.0))]


def test_a_place_that_another_process_holds_is_told_too(clock, tmp_path):
    """Nobody tells us when such a place is free, so it is looked for at times; it is a wait for a place even so."""
    path = tmp_path / "limits.sqlite"
    one, two = (
        Limits(clock=clock, default_host=HostLimit(max_concurrent=1), store=SharedStore(path, clock=clock))
        for _ in range(2)
    )
    with contextlib.closing(one), contextlib.closing(two):
        other, gate = granted(SlotWaits(one, clock), A_PDF), SlotWaits(two, clock)
        waits: list[Any] = []
        steps = gate.watched(asks(A_PDF), lambda *wait: waits.append(wait))
        assert stepped(steps, clock, gate, {1: other.release}) == "in"
    assert waits == [("host", "files.example.org", pytest.approx(2.0))]


def test_a_wait_for_a_rate_is_not_told_as_a_wait_for_a_place(clock):
    gate = keeper(clock, host={"max_concurrent": 4}, resolver_rates={"unpaywall": Rate(1, 5.0)})
    granted(gate, A_PDF).release()
    waits: list[Any] = []
    assert stepped(gate.watched(asks(A_PDF), lambda *wait: waits.append(wait)), clock, gate, {}) == "in"
    assert waits == []


def test_an_open_gate_tells_nothing(clock):
    gate = keeper(clock)
    waits: list[Any] = []
    assert stepped(gate.watched(asks(A_PDF), lambda *wait: waits.append(wait)), clock, gate, {}) == "in"
    assert waits == []
    assert gate.watching == 0


def test_steps_pass_through_unchanged(clock):
    """Values, exceptions and the closing of a generator reach the work as without a watcher."""
    gate, heard = keeper(clock), []

    async def work() -> str:
        heard.append(await Wait(1.0, "x"))
        try:
            await Wait(2.0, "y")
        except Cancelled as error:
            heard.append(error)
        try:
            await Wait(3.0, "z")
        finally:
            heard.append("closed")
        return "unreached"

    steps = gate.watched(work(), lambda *wait: None)
    assert steps.send(None) == Wait(1.0, "x")
    assert steps.send("value") == Wait(2.0, "y")
    error = Cancelled()
    assert steps.throw(error) == Wait(3.0, "z")
    steps.close()
    assert heard == ["value", error, "closed"]


def test_an_exception_of_the_work_leaves_it(clock):
    async def work() -> str:
        await Wait(1.0, "x")
        raise ValueError("of the work")

    steps = keeper(clock).watched(work(), lambda *wait: None)
    steps.send(None)
    with pytest.raises(ValueError, match="of the work"):
        steps.send(None)


def test_on_a_real_frontier_works_in_line_and_branches_of_races_are_told():
    """Three works race through one place of a host: the second and third wait, in line and unasked."""
    clock = SystemClock()
    gate = keeper(clock, default_resolver_slots=9)
    waits: list[tuple[int, str, str, float]] = []
    inside = threading.Semaphore(1)

    async def branch(cancel: CancelToken) -> str:
        permit = await A_PDF
        assert inside.acquire(blocking=False)
        await Wait(clock.monotonic() + 0.05, "the transfer")
        inside.release()
        permit.release()
        return "in"

    async def work() -> str:
        return await Race([branch], 1, CancelToken())

    over = threading.Semaphore(0)
    with Frontier(gate=gate, clock=clock, threads=4) as frontier:
        for n in range(3):
            steps = gate.watched(work(), lambda kind, key, seconds, n=n: waits.append((n, kind, key, seconds)))
            frontier.submit(steps, cancel=CancelToken(), on_done=lambda ended: over.release())
        assert all(over.acquire(timeout=20) for _ in range(3))
    assert sorted(kind for _, kind, _, _ in waits) == ["host", "host"]
    assert {key for _, _, key, _ in waits} == {"files.example.org"}
    shorter, longer = sorted(seconds for *_, seconds in waits)
    assert 0.04 <= shorter < longer
    assert longer >= 0.09
