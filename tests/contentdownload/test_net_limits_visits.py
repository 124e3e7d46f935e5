"""How often the shared record is visited: each visit lets every other thread in between, so it must be needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import ManualClock

GATE = Gate("https://a.org/x.pdf", "unpaywall", Role.ARTIFACT)


class Process:
    """What one process has of the limits."""

    def __init__(self, path: Path, clock: ManualClock, rate: str | None = None) -> None:
        rates = {"*": (Rate.parse(rate),)} if rate else {}
        self.store = SqliteLimitStore(path, clock=clock, boot_id="b1")
        self.limits = HostLimits(clock=clock, default_host=HostLimit(1, rates), store=self.store)

    def ask(self) -> HostPermit:
        answer = self.limits.ask(GATE)
        assert isinstance(answer, HostPermit), answer
        return answer

    def is_refused(self) -> bool:
        return isinstance(self.limits.ask(GATE), NotYet)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.sqlite"


@pytest.fixture
def alone(path: Path, clock: ManualClock) -> Iterator[Process]:
    process = Process(path, clock)
    yield process
    process.limits.close()


def test_a_slot_passes_to_our_own_next_request_in_one_visit(alone: Process) -> None:
    permit = alone.ask()
    for _ in range(20):
        assert alone.is_refused()
        before = alone.store.visits
        permit.release()
        permit = alone.ask()
        # A slow machine may bring the timer in between, which then writes the release by itself.
        assert alone.store.visits - before <= 2
    assert alone.store.visits < 41


def test_a_slot_passes_to_our_own_next_request_without_a_visit_where_no_distance_is_kept(alone: Process) -> None:
    """Unless a slow machine brings the timer in between, which then writes the release by itself."""
    alone.ask().release()
    before = alone.store.visits
    for _ in range(50):
        alone.ask().release()
    assert alone.store.visits - before < 25
    alone.ask()
    assert alone.is_refused()  # the slot is taken all the same


def test_a_visit_for_one_host_leaves_the_slots_at_others_to_our_own_next_requests(alone: Process) -> None:
    """Many hosts in turn: were every visit to write all freed slots, each next request would need a visit again."""
    gates = [Gate(f"https://host-{n}.org/x.pdf", "unpaywall", Role.ARTIFACT) for n in range(20)]

    def ask_all() -> None:
        for gate in gates:
            answer = alone.limits.ask(gate)
            assert isinstance(answer, HostPermit), answer
            answer.release()

    ask_all()
    before = alone.store.visits
    for _ in range(5):
        ask_all()
    assert alone.store.visits - before < 50  # of a hundred requests; a slow machine's timer may write in between


def test_slots_that_are_free_but_not_written_yet_do_not_shut_their_source(path: Path, clock: ManualClock) -> None:
    """The record still counts them; whoever freed them knows better."""
    store = SqliteLimitStore(path, clock=clock, boot_id="b1")
    limits = HostLimits(clock=clock, default_host=HostLimit(1, {}), default_resolver_slots=3, store=store)
    for n in range(12):
        answer = limits.ask(Gate(f"https://host-{n}.org/x.pdf", "unpaywall", Role.ARTIFACT))
        assert isinstance(answer, HostPermit), (n, answer)
        answer.release()
    held = [limits.ask(Gate(f"https://held-{n}.org/x.pdf", "unpaywall", Role.ARTIFACT)) for n in range(4)]
    assert [isinstance(answer, HostPermit) for answer in held] == [True, True, True, False]
    limits.close()


def test_a_distance_is_kept_in_the_record_by_every_request(path: Path, clock: ManualClock) -> None:
    process = Process(path, clock, "10/second")
    for _ in range(3):
        before = process.store.visits
        process.ask().release()
        assert process.store.visits > before
        assert process.is_refused()
        clock.advance(0.2)
    process.limits.close()


def test_the_record_is_seen_at_least_every_quarter_of_a_second(alone: Process, path: Path, clock: ManualClock) -> None:
    """So that a newcomer's pause for a host, or a record that is gone, is noticed soon."""
    alone.ask().release()
    other = Process(path, clock)
    try:
        other.limits.hold("a.org", clock.monotonic() + 30, "a pause")
        clock.advance(0.3)
        assert alone.is_refused()
    finally:
        other.limits.close()


def test_a_hold_of_our_own_is_kept_although_a_slot_is_at_hand(alone: Process, clock: ManualClock) -> None:
    alone.ask().release()
    alone.limits.hold("a.org", clock.monotonic() + 30, "a pause")
    assert alone.is_refused()


@pytest.mark.parametrize("is_there_before", [False, True])
def test_a_slot_that_nobody_takes_up_is_free_for_others_soon(
    alone: Process, path: Path, clock: ManualClock, is_there_before: bool
) -> None:
    """The waiting request may have been called off; then nothing of ours comes to carry the release."""
    others = [Process(path, clock)] if is_there_before else []
    permit = alone.ask()
    assert alone.is_refused()
    permit.release()
    others = others or [Process(path, clock)]
    try:
        eventually(lambda: not others[0].is_refused())
    finally:
        others[0].limits.close()


def test_a_slot_passes_to_our_own_next_request_also_while_others_are_there(
    alone: Process, path: Path, clock: ManualClock
) -> None:
    other = Process(path, clock)
    try:
        alone.ask().release()
        before = alone.store.visits
        for _ in range(20):
            alone.ask().release()
        # The release may have been written in the meantime; then the next request visits the record too.
        assert alone.store.visits - before <= 20
    finally:
        other.limits.close()


def test_whoever_has_no_slot_gets_one_from_a_process_that_passes_its_own_on(
    alone: Process, path: Path, clock: ManualClock
) -> None:
    """LIM-06: no process keeps a host to itself, however much it has to ask of it."""
    other = Process(path, clock)
    try:
        permit = alone.ask()
        assert other.is_refused()
        permit.release()
        assert alone.is_refused()
        other.ask().release()
    finally:
        other.limits.close()


def test_a_pause_that_another_process_was_asked_for_holds_at_once(
    alone: Process, path: Path, clock: ManualClock
) -> None:
    """NET-06: also for one that has a slot at hand and needs no look at the record."""
    other = Process(path, clock)
    try:
        alone.ask().release()
        alone.ask().release()
        other.limits.hold("a.org", clock.monotonic() + 30, "a pause")
        assert alone.is_refused()
    finally:
        other.limits.close()


def test_signals_that_cannot_be_had_cost_visits_and_nothing_else(path: Path, clock: ManualClock) -> None:
    (path.parent / "limits.sqlite-signals").mkdir()
    one, two = Process(path, clock), Process(path, clock)
    try:
        one.ask().release()
        two.limits.hold("a.org", clock.monotonic() + 30, "a pause")
        assert one.is_refused()
    finally:
        one.limits.close()
        two.limits.close()


def test_closing_forgets_no_release(path: Path, clock: ManualClock) -> None:
    process = Process(path, clock)
    permit = process.ask()
    assert process.is_refused()
    permit.release()
    process.limits.close()
    other = Process(path, clock)
    other.ask().release()
    other.limits.close()


@pytest.mark.parametrize(("rate", "visits"), [(None, 0), ("100000/second", 0), ("10/second", 2)])
def test_coming_late_matters_only_where_a_distance_is_kept(
    path: Path, clock: ManualClock, rate: str | None, visits: int
) -> None:
    """The late start is counted anew, and then from the moment it was on the wire."""
    process = Process(path, clock, rate)
    permit = process.ask()
    clock.advance(1.0)
    before = process.store.visits
    assert permit.start() == 0.0
    clock.advance(1.0)
    permit.on_sent()
    assert process.store.visits - before == visits
    permit.release()
    process.limits.close()
