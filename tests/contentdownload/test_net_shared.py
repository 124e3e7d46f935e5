"""One record of limits for every process of the machine: caps, spacing and pauses hold together and outlive a crash."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.asked_limits import Moves, any_moves, gate, granted, granted_soon, judge_together, refused
from tests.examples import examples
from tests.waiting import eventually
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.api.gates import NotYet
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.rates import BucketSpec
from DocsToKG.ContentDownload.net.limits.stores.base import MemoryLimitStore
from DocsToKG.ContentDownload.net.limits.stores.sqlite import (
    SqliteLimitStore,
    default_store_path,
    open_limit_store,
    space_of,
)
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import Clock, ManualClock, SystemClock

Open = Callable[..., HostLimits]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "limits.sqlite"


@pytest.fixture
def open_limits(path: Path, clock: ManualClock) -> Iterator[Open]:
    """Each call is what another process would be: a store of its own on the same file."""
    opened: list[HostLimits] = []

    def open_one(
        rate: str | None = None, *, slots: int = 9, space: str = "", boot_id: str = "b1", at: Clock = clock, **more
    ) -> HostLimits:
        rates = {"*": (Rate.parse(rate),)} if rate else {}
        store = SqliteLimitStore(path, clock=at, space=space, boot_id=boot_id)
        opened.append(HostLimits(clock=at, default_host=HostLimit(slots, rates), store=store, **more))
        return opened[-1]

    yield open_one
    for limits in opened:
        limits.close()


def test_two_processes_keep_a_host_cap_together(open_limits: Open, clock: ManualClock) -> None:
    """LIM-06"""
    one, two = open_limits(slots=1), open_limits(slots=1)
    running = granted(one.ask(gate()))
    wait = refused(two.ask(gate()))
    assert wait.key == "host:a.org"
    assert wait.at is not None
    assert 0.05 <= wait.at - clock.monotonic() <= 0.1
    assert refused(one.ask(gate())).at is None
    running.release()
    granted(two.ask(gate()))


def test_a_slot_is_freed_also_where_the_system_gives_no_thread(
    open_limits: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Freed slots are given to others a little later, by a thread; who waits here is told at once."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    one, told = open_limits(slots=1), list[str]()
    one.on_free(told.append)
    running = granted(one.ask(gate()))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        running.release()
    assert told == ["resolver:unpaywall", "host:a.org"]
    granted(one.ask(gate())).release()


def test_two_processes_keep_a_sources_slots_and_rate_together(open_limits: Open, clock: ManualClock) -> None:
    """LIM-07: one bucket per source, shared by all."""
    knobs = {"resolver_slots": {"unpaywall": 2}, "resolver_rates": {"unpaywall": BucketSpec(3, 0.1)}}
    one, two = open_limits(**knobs), open_limits(**knobs)
    first, second = granted(one.ask(gate("a.org"))), granted(two.ask(gate("b.org")))
    assert refused(one.ask(gate("c.org"))).key == "resolver:unpaywall"
    first.release()
    second.release()
    granted(two.ask(gate("c.org"))).release()
    assert refused(one.ask(gate("d.org"))).at == pytest.approx(clock.monotonic() + 10.0)


def test_two_processes_keep_the_interval_together(open_limits: Open, clock: ManualClock) -> None:
    """LIM-14"""
    one, two = open_limits("1/3 seconds"), open_limits("1/3 seconds")
    granted(one.ask(gate())).release()
    assert refused(two.ask(gate())).at == clock.monotonic() + 3.0
    clock.advance(3)
    granted(two.ask(gate())).release()
    assert refused(one.ask(gate())).at == clock.monotonic() + 3.0


@pytest.mark.slow
def test_several_windows_hold_at_once_and_across_processes(open_limits: Open, clock: ManualClock) -> None:
    rates = {"*": (Rate.parse("10/second"), Rate.parse("1000/day"))}
    both = [open_limits(hosts={"a.org": HostLimit(9, rates)}) for _ in range(2)]
    began = clock.monotonic()
    for number in range(1000):
        granted(both[number % 2].ask(gate())).release()
        clock.advance(0.1)
    assert clock.monotonic() - began == pytest.approx(100.0)
    wait = refused(both[0].ask(gate()))
    assert wait.at is not None
    # Nothing comes back before the first start has left the window; then it comes back in grains.
    assert began + 86400 <= wait.at <= began + 86400 + 86400 / 64


def test_retry_after_is_seen_by_all_and_outlives_a_restart(open_limits: Open, clock: ManualClock) -> None:
    """NET-06"""
    one, two = open_limits(), open_limits()
    one.hold("a.org", clock.monotonic() + 30, "Retry-After of 30 s")
    wait = refused(two.ask(gate()))
    assert (wait.at, wait.why) == (clock.monotonic() + 30, "a.org: Retry-After of 30 s")
    one.close()
    two.close()
    clock.advance(10)
    assert refused(open_limits().ask(gate())).at == clock.monotonic() + 20


def test_crawl_delay_is_learned_for_all(open_limits: Open, clock: ManualClock) -> None:
    """LIM-16, ROB-05"""
    one, two = open_limits(), open_limits()
    one.set_crawl_delay("a.org", 10.0)
    granted(one.ask(gate())).release()
    assert refused(two.ask(gate())).at == clock.monotonic() + 10


def test_what_a_host_announces_and_its_weakness_are_known_to_all(open_limits: Open, clock: ManualClock) -> None:
    one, two = open_limits("10/second"), open_limits("10/second")
    for latency_s in (0.1, 5.0):
        for _ in range(20):
            one.on_answer("a.org", 200, {}, latency_s)
    granted(two.ask(gate())).release()
    assert refused(two.ask(gate())).at == pytest.approx(clock.monotonic() + 0.2)
    one.on_answer("b.org", 200, {"x-rate-limit-limit": "1", "x-rate-limit-interval": "5s"}, 0.1)
    granted(two.ask(gate("b.org"))).release()
    assert refused(two.ask(gate("b.org"))).at == pytest.approx(clock.monotonic() + 5.0)


def test_a_sandbox_does_not_disturb_the_world_or_another_sandbox(open_limits: Open) -> None:
    spaces = [space_of({}), space_of({"*": "plain://127.0.0.1:1"}), space_of({"*": "plain://127.0.0.1:2"})]
    assert spaces[0] == ""
    assert len(set(spaces)) == 3
    for space in spaces:
        granted(open_limits("1/minute", slots=1, space=space).ask(gate()))


def test_a_thread_late_to_its_grant_does_not_meet_another_process(open_limits: Open, clock: ManualClock) -> None:
    one, two = open_limits("1/second"), open_limits("1/second")
    late = granted(one.ask(gate()))
    clock.advance(1.0)
    punctual = granted(two.ask(gate()))
    assert punctual.start() == 0.0
    assert late.start() == pytest.approx(1.0)
    late.refund()
    late.release()
    clock.advance(1.0)
    assert granted(one.ask(gate())).start() == 0.0


def test_a_late_thread_alone_goes_at_once_and_counts_from_then(open_limits: Open, clock: ManualClock) -> None:
    one, two = open_limits("1/second"), open_limits("1/second")
    late = granted(one.ask(gate()))
    clock.advance(0.9)
    assert late.start() == 0.0
    assert refused(two.ask(gate())).at == pytest.approx(clock.monotonic() + 1.0)


def test_a_refund_is_felt_by_the_others(open_limits: Open) -> None:
    """LIM-10"""
    one, two = open_limits("1/minute"), open_limits("1/minute")
    permit = granted(one.ask(gate()))
    permit.refund()
    permit.release()
    granted(two.ask(gate()))


def test_processes_take_turns_at_a_busy_host(open_limits: Open, clock: ManualClock) -> None:
    """Whoever frees a slot is faster to ask again than one who must look; without turns it would never let go."""
    one, two = open_limits(slots=1), open_limits(slots=1)
    served = {"one": 0, "two": 0}
    held = granted(one.ask(gate()))
    next_look = clock.monotonic()
    for _ in range(200):
        clock.advance(0.01)
        held.release()
        answer = one.ask(gate())
        name = "one"
        if isinstance(answer, NotYet) or clock.monotonic() >= next_look:
            other = two.ask(gate())
            if isinstance(other, NotYet):
                next_look = other.at or clock.monotonic()
            else:
                answer, name = other, "two"
        while isinstance(answer, NotYet):
            clock.advance(0.06)
            answer, name = one.ask(gate()), "one"
            if isinstance(answer, NotYet):
                answer, name = two.ask(gate()), "two"
        held = answer
        served[name] += 1
    assert min(served.values()) > 20


def test_forgotten_slots_of_a_closed_process_are_free(open_limits: Open) -> None:
    one, two = open_limits(slots=1), open_limits(slots=1)
    granted(one.ask(gate()))
    one.close()
    granted(two.ask(gate()))


HOLDER = """
import sys, time
from pathlib import Path
from DocsToKG.ContentDownload.api.gates import Gate
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.core.clock import SystemClock
clock = SystemClock()
limits = HostLimits(clock=clock, default_host=HostLimit(1), store=SqliteLimitStore(Path(sys.argv[1]), clock=clock))
permit = limits.ask(Gate("https://a.org/x.pdf", "unpaywall", "artifact"))
permit.start()
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_the_slots_of_a_killed_process_come_back_at_once(path: Path, warm: WarmPrograms) -> None:
    """FAIL-01: the lock of its file tells, not the time."""
    process = subprocess.Popen([*warm.words("python"), "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    clock = SystemClock()
    limits = HostLimits(clock=clock, default_host=HostLimit(1), store=SqliteLimitStore(path, clock=clock))
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        refused(limits.ask(gate()))
        process.kill()
        process.communicate()
        granted_soon(limits, gate()).release()
    finally:
        process.kill()
        process.wait()
        limits.close()
    assert list(path.with_name("limits.sqlite.workers").iterdir()) == []


@pytest.mark.slow
def test_a_record_locked_for_two_seconds_is_not_noticed(path: Path) -> None:
    """FAIL-12: nobody blocks, nothing is lost, and the answer comes as soon as the lock is gone."""
    clock = SystemClock()
    one, two = (
        HostLimits(clock=clock, default_host=HostLimit(1), store=SqliteLimitStore(path, clock=clock)) for _ in range(2)
    )
    held = granted(one.ask(gate()))
    rival = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    rival.execute("BEGIN IMMEDIATE")
    try:
        held.release()
        asked, unlock_at = 0, time.monotonic() + 2.0
        while time.monotonic() < unlock_at or asked < 3:  # the lock is let go of here: who waits for it waits for ever
            answer = two.ask(gate())
            assert isinstance(answer, NotYet)
            assert "cannot be read" not in answer.why
            assert answer.at is not None
            one.ask(gate("other.org"))
            asked += 1
            time.sleep(0.01)
        rival.execute("ROLLBACK")

        def is_granted() -> bool:
            answer = two.ask(gate())
            assert not isinstance(answer, NotYet) or "cannot be read" not in answer.why
            return not isinstance(answer, NotYet)

        eventually(is_granted)
    finally:
        rival.close()
        one.close()
        two.close()


def test_a_record_that_stays_locked_stops_new_requests_and_says_so(
    open_limits: Open, path: Path, clock: ManualClock
) -> None:
    limits = open_limits()
    with sqlite3.connect(path, isolation_level=None) as rival:
        rival.execute("BEGIN IMMEDIATE")
        for _ in range(6):
            wait = refused(limits.ask(gate()))
            clock.advance(1.0)
        assert "the shared limits cannot be read" in wait.why
        rival.execute("ROLLBACK")
    rival.close()
    clock.advance(1.0)
    granted(limits.ask(gate()))


def test_a_record_that_breaks_during_a_run_stops_it_until_it_is_back(
    open_limits: Open, path: Path, clock: ManualClock
) -> None:
    one = open_limits(slots=1)
    granted(one.ask(gate()))
    for file in path.parent.glob("limits.sqlite*"):
        if file.is_file():
            file.unlink()
    path.write_bytes(b"this is no database " * 500)
    clock.advance(1.0)
    for _ in range(3):
        assert "the shared limits cannot be read" in refused(one.ask(gate("b.org"))).why
        clock.advance(1.0)
    path.unlink()
    granted(one.ask(gate("b.org")))
    two = open_limits(slots=1)
    assert refused(two.ask(gate("a.org"))).key == "host:a.org"  # what ran before still counts


def test_a_removed_record_is_made_anew_and_holds_are_kept_by_those_who_know(
    open_limits: Open, path: Path, clock: ManualClock
) -> None:
    one = open_limits()
    one.hold("a.org", clock.monotonic() + 30, "Retry-After of 30 s")
    for file in path.parent.glob("limits.sqlite*"):
        if file.is_file():
            file.unlink()
    clock.advance(1.0)
    granted(one.ask(gate("b.org")))
    assert path.exists()
    assert refused(one.ask(gate("a.org"))).at == clock.monotonic() + 29


def test_a_place_that_cannot_be_written_means_limits_of_this_process_and_a_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file" / "limits.sqlite", tmp_path):
        store, note = open_limit_store(path, clock=SystemClock())
        assert isinstance(store, MemoryLimitStore)
        assert note is not None
        assert "this process only" in note
        assert str(path) in note
    store, note = open_limit_store(None, clock=SystemClock())
    assert "limits.store_path" in (note or "")


def test_a_record_of_a_later_version_is_left_alone(path: Path) -> None:
    SqliteLimitStore(path, clock=SystemClock()).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    _, note = open_limit_store(path, clock=SystemClock())
    assert "later version" in (note or "")


def test_the_record_lies_in_the_users_state_folder() -> None:
    assert default_store_path({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/docstokg/limits.sqlite")
    assert default_store_path({"HOME": "/h"}) == Path("/h/.local/state/docstokg/limits.sqlite")
    assert default_store_path({}) is None


class SteppedClock(ManualClock):
    """A wall clock that somebody sets, and a monotonic one that a restart of the machine resets."""

    def set_wall(self, seconds: float) -> None:
        self._now += seconds

    def restart(self, away_s: float) -> None:
        self._now += away_s
        self._monotonic = 5.0


def test_setting_the_wall_clock_changes_nothing(open_limits: Open) -> None:
    clock = SteppedClock()
    limits = open_limits("1/minute", at=clock)
    granted(limits.ask(gate())).release()
    for step in (-86400.0, 2 * 86400.0):
        clock.set_wall(step)
        assert refused(open_limits("1/minute", at=clock).ask(gate())).at == clock.monotonic() + 60


@pytest.mark.parametrize(("away_s", "left_s"), [(20.0, 280.0), (-3600.0, 300.0), (301.0, None)])
def test_a_pause_outlives_a_restart_of_the_machine(
    open_limits: Open, path: Path, away_s: float, left_s: float | None
) -> None:
    """With the wall clock set back meanwhile, it lasts as long as was left of it, and no longer."""
    clock = SteppedClock()
    before = open_limits(slots=1, at=clock)
    held = granted(before.ask(gate("b.org")))
    before.hold("a.org", clock.monotonic() + 300, "Retry-After of 300 s")
    clock.restart(away_s)
    after = open_limits(slots=1, at=clock, boot_id="b2")
    if left_s is None:
        granted(after.ask(gate("a.org")))
    else:
        assert refused(after.ask(gate("a.org"))).at == pytest.approx(clock.monotonic() + left_s, abs=0.01)
    granted(after.ask(gate("b.org")))  # nothing runs any more that ran before
    held.release()


@pytest.mark.slow
@given(
    burst=st.integers(1, 3),
    slots=st.integers(1, 3),
    moves=any_moves(50),
)
@examples(80)
def test_processes_together_stay_within_rate_burst_and_slots_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, burst: int, slots: int, moves: Moves
) -> None:
    """LIM-09, for three processes."""
    clock, path = ManualClock(), tmp_path_factory.mktemp("limits") / "limits.sqlite"
    limit = HostLimit(slots, {"*": (Rate(1, 1),)}, burst)
    three = [HostLimits(clock=clock, default_host=limit, store=SqliteLimitStore(path, clock=clock)) for _ in range(3)]
    judge_together(three, clock, moves, slots=slots, burst=burst)


def test_a_rate_of_one_role_does_not_refuse_another(path: Path) -> None:
    """LIM-13: also where a refusal is known without a look at the record."""
    clock = ManualClock()
    host = HostLimit(9, {Role.LANDING: (Rate(1, 60),)})
    limits = HostLimits(clock=clock, default_host=host, store=SqliteLimitStore(path, clock=clock))
    granted(limits.ask(gate(role=Role.LANDING)))
    refused(limits.ask(gate(role=Role.LANDING)))
    granted(limits.ask(gate(role=Role.ARTIFACT)))
    refused(limits.ask(gate(role=Role.LANDING)))
    limits.close()
