"""Slots that pass from one request of a process to the next, and what another process has to say about it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contentdownload.asked_limits import gate, granted, granted_soon, refused

from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.core.clock import ManualClock

Open = Callable[..., HostLimits]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.sqlite"


@pytest.fixture
def open_limits(path: Path, clock: ManualClock) -> Iterator[Open]:
    """Each call is what another process would be: a store of its own on the same file."""
    with contextlib.ExitStack() as stack:

        def open_one(slots: int = 9) -> HostLimits:
            store = SqliteLimitStore(path, clock=clock, boot_id="b1")
            limits = HostLimits(clock=clock, default_host=HostLimit(slots, {}), store=store)
            stack.callback(limits.close)
            return limits

        yield open_one


def test_a_pause_is_seen_although_a_freed_slot_was_written_in_between(open_limits: Open, clock: ManualClock) -> None:
    """NET-06: who writes that a slot is free has not looked at what the host asked for."""
    one, two = open_limits(), open_limits()
    running = [granted(one.ask(gate())) for _ in range(3)]
    two.hold("a.org", clock.monotonic() + 30, "Retry-After of 30 s")
    for permit in running:
        permit.release()
    assert refused(one.ask(gate())).at == clock.monotonic() + 30


def test_a_pause_is_seen_although_a_grant_was_given_back_in_between(open_limits: Open, clock: ManualClock) -> None:
    one, two = open_limits(), open_limits()
    unused, running = granted(one.ask(gate())), granted(one.ask(gate()))
    two.hold("a.org", clock.monotonic() + 30, "Retry-After of 30 s")
    unused.refund()
    running.release()
    assert refused(one.ask(gate())).at == clock.monotonic() + 30


def test_a_pause_that_a_newcomer_was_asked_for_is_seen_at_once(open_limits: Open, clock: ManualClock) -> None:
    one = open_limits()
    granted(one.ask(gate())).release()
    open_limits().hold("a.org", clock.monotonic() + 30, "Retry-After of 30 s")
    assert refused(one.ask(gate())).at == clock.monotonic() + 30


def test_a_process_that_had_no_signals_raises_them_as_soon_as_it_can(
    open_limits: Open, path: Path, clock: ManualClock
) -> None:
    signals = path.with_name("limits.sqlite-signals")
    signals.mkdir()
    without = open_limits()
    signals.rmdir()
    one = open_limits()
    granted(one.ask(gate())).release()
    without.hold("a.org", clock.monotonic() + 30, "Retry-After of 30 s")
    assert refused(one.ask(gate())).at == clock.monotonic() + 30


def test_a_change_that_was_not_written_is_not_told_to_a_new_file(
    open_limits: Open, path: Path, clock: ManualClock
) -> None:
    """A slot that is still in use must not go to another process because a write failed."""
    one, two = open_limits(slots=2), open_limits(slots=2)
    first, _second = granted(one.ask(gate())), granted(one.ask(gate()))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO lanes VALUES ('host:b.org', 'spoiled', ?)", (clock.monotonic(),))
    first.release()  # to be written with the next change, which fails
    refused(one.ask(gate("b.org")))
    clock.advance(1.0)
    granted(one.ask(gate("c.org")))
    granted_soon(two, gate())  # it is written by itself, soon after
    refused(two.ask(gate()))
